"""Files of rows that a fit reads in parts: :func:`open_rows`."""

from collections.abc import Callable, Sequence
from functools import cached_property
from pathlib import Path
from typing import Any
from urllib.parse import unquote
from weakref import ref

import pandas as pd

from .._utils.frames import CellSource
from .._utils.process import own_state
from .addresses import StoredPath, places
from .formats import FORMATS
from .shards import Shard, Wanted, file_shards
from .streamed import StreamedTable
from .text import TextForm


class RowFiles(StreamedTable, CellSource):
    """Rows in files that need not fit in memory; what :func:`open_rows` returns.

    ``fit`` and ``predict`` of the estimators take it for ``X``. Labels that the files hold take the
    place of ``y=None``.

    Attributes
    ----------
    shape : tuple of int
        ``(n_rows, n_features)``.
    names : list of str or None
        Names of the features, where the files have them.
    labels : array of shape (n_rows,) or None
        Labels in the files, read whenever they are asked for.
    groups : Series of shape (n_rows,) or None
        Ids of persons in the files, by the name of their column. They are read once, and kept.
    """

    _in_fit: Callable[[], StreamedTable | None] = staticmethod(lambda: None)

    def __init__(self, shards: Sequence[Shard], group: str | None = None) -> None:
        super().__init__(shards)
        self._group = group

    @cached_property
    def groups(self) -> "pd.Series[Any] | None":
        """Ids of all persons, which are read each time they are needed first."""
        parts = [shard.ids() for shard in self._shards if shard.ids is not None]
        # Ids of several types become objects, which are refused, since text and numbers are never taken as
        # equal.
        return pd.concat(parts, ignore_index=True).rename(self._group) if parts else None

    def for_fit(self) -> StreamedTable:
        """A table that frees decoded rows after the fit; simultaneous fits share it."""
        table = self._in_fit()
        if table is None:
            table = StreamedTable(self._shards)
            self._in_fit = ref(table)
        return table

    def frame(self) -> pd.DataFrame:
        """All features as cells in memory, as an encoder of tables reads them."""
        parts = [shard.frame() for shard in self._shards if shard.frame is not None]
        if len(parts) < len(self._shards):
            raise ValueError(
                f"{self._shards[0].where} holds an array, whose columns have no names; pass the array itself."
            )
        return pd.concat(parts, ignore_index=True)

    def __len__(self) -> int:
        return self.shape[0]

    def __repr__(self) -> str:
        word = "shard" if len(self._shards) == 1 else "shards"
        return f"<RowFiles: {self.shape[0]} rows of {self.shape[1]} features in {len(self._shards)} {word}>"


@own_state()
def open_rows(
    paths: object,
    *,
    label: str | None = None,
    group: str | None = None,
    columns: Sequence[str] | None = None,
    exclude: Sequence[str] = (),
    separator: str | None = None,
    decimal: str | None = None,
    encoding: str | None = None,
    names: Sequence[str] | None = None,
) -> RowFiles:
    """Open files of rows that need not fit in memory; only headers are read, except for text.

    Parameters
    ----------
    paths : path or address, or list of them
        Files, patterns such as ``"part-*.parquet"``, and folders of which all files are taken in the order of
        their names; also at ``s3://``, ``gs://``, ``memory://`` and ``file://``. Formats are
        ``.npy`` (memory-mapped), ``.npz`` (arrays ``X`` and ``y``), ``.parquet`` (a row group is read at a
        time), ``.arrow`` or ``.feather`` (a record batch at a time), and text: ``.csv`` and ``.tsv``, also
        packed as ``.gz`` or ``.xz``. A table holds a column for each feature, or columns of lists of one
        length. In a folder, those named ``year=2020`` are read too, and ``year`` is then a column.
    label : str or None, default=None
        Column, or array of an archive, that holds the labels. None takes ``y`` of archives;
        otherwise labels are passed to ``fit``.
    group : str or None, default=None
        Column, or array of an archive, that holds the ids of persons. It is no feature, and takes the place
        of ``groups`` in ``fit`` and in noisy scores: the guarantee is then for all rows of one person.
    columns : list of str or None, default=None
        Columns that are features, in this order. None takes all others than labels, ids, ``exclude`` and the
        index that pandas wrote.
    exclude : list of str, default=()
        Columns that are no features.
    separator : str or None, default=None
        The character between the cells of text, or ``"tab"``. None is a tab for ``.tsv`` and a comma for
        ``.csv``.
    decimal : {".", ","} or None, default=None
        The decimal mark of text. With a comma, points may separate groups of three digits. None is a point.
    encoding : str or None, default=None
        The encoding of text. None is that of its byte-order mark, and UTF-8 without one.
    names : list of str or None, default=None
        Names of all columns of text without a line of names. None takes the first line, which is refused if
        it reads like a row: names of features are published with a model. An empty list names them ``c1``,
        ``c2``, and so on.

    Returns
    -------
    RowFiles
        Rows in the order of the files, to be passed as ``X``.

    Raises
    ------
    ValueError
        If a file is damaged, lacks the labels, ids or columns, or files differ in width, dtype or columns; it
        names the file. Also for a line of text that does not hold one cell for each column.

    Notes
    -----
    *Guarantee*: that of the fit. The files must not change while a fit runs. Rows of archives and tables
    also lie, unencrypted, in a temporary file without a name while it runs; ``TMPDIR`` sets its folder.
    Messages name files, and neither a row nor a value in it. Each cell is read by itself: nothing is guessed
    from other cells. Columns of any type become rows of float64, and lists keep the type of their numbers.

    Examples
    --------
    >>> import tempfile, pathlib, numpy as np
    >>> folder = pathlib.Path(tempfile.mkdtemp())
    >>> for part in range(3):
    ...     np.savez(folder / f"{part}.npz", X=np.ones((5, 2), np.float16), y=np.arange(5))
    >>> open_rows(folder)
    <RowFiles: 15 rows of 2 features in 3 shards>
    """
    column_names = _names("names", names)
    form = TextForm(separator, decimal, encoding, None if column_names is None else tuple(column_names))
    wanted = Wanted(label, group, _names("columns", columns), _names("exclude", exclude) or ())
    shards = [shard for path, folders in _files(paths) for shard in file_shards(path, wanted, form, folders)]
    if not shards:
        raise ValueError(f"paths={str(paths)!r} hold no rows; name files that do.")
    return RowFiles(shards, group)


def _names(what: str, value: Any) -> list[str] | None:
    """Names of columns that a user listed; None stays None."""
    if value is None:
        return None
    names = [] if isinstance(value, str) else list(value)
    if (
        isinstance(value, str)
        or not all(isinstance(name, str) for name in names)
        or len(set(names)) < len(names)
    ):
        raise ValueError(f"{what}={value!r} must be a list of distinct names of columns.")
    return names


def _files(paths: Any) -> list[tuple[Any, dict[str, str]]]:
    """The given files, and all of known formats in folders, with the columns in the names of its folders."""
    files: list[tuple[Any, dict[str, str]]] = []
    for address in paths if isinstance(paths, (list, tuple)) else [paths]:
        matches = places(address)
        if matches and not matches[0].is_dir() and len(matches) == 1:
            files.append((matches[0], {}))
            continue
        inside = [
            each for path in matches for each in (_in_folder(path, {}) if path.is_dir() else [(path, {})])
        ]
        if not inside:
            raise ValueError(f"paths={str(address)!r} has no {', '.join(FORMATS)} file; name another folder.")
        files += inside
    return files


def _in_folder(folder: Path | StoredPath, partitions: dict[str, str]) -> list[tuple[Any, dict[str, str]]]:
    """Files in a folder, then those in its folders named ``column=value``, in the order of names."""
    entries: list[Path | StoredPath] = sorted(folder.iterdir(), key=str)
    files = [
        (path, partitions)
        for path in entries
        if path.name.lower().endswith(tuple(FORMATS)) and path.is_file()
    ]
    for entry in entries:
        name, equals, value = entry.name.partition("=")
        if name and equals and entry.is_dir():
            files += _in_folder(entry, partitions | {unquote(name): unquote(value)})
    return files
