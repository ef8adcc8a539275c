"""Files of rows that a fit reads in parts: where they are, and :func:`open_rows`.

pyarrow reads S3 and Google Cloud Storage by itself, in ranges of bytes. Credentials are those of their own
tools, such as ``AWS_ACCESS_KEY_ID``. fsspec keeps the files of ``memory://``.
"""

import glob
import io
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from fnmatch import fnmatchcase
from functools import cached_property
from os import PathLike
from pathlib import Path, PurePosixPath
from stat import S_IFDIR, S_IFREG
from types import SimpleNamespace
from typing import Any
from urllib.parse import unquote
from weakref import ref

import pandas as pd

from .._utils.frames import CellSource
from .._utils.process import own_state
from .._utils.validation import how_to_install
from .formats import FORMATS, MissingPackageError
from .shards import Shard, Wanted, file_shards
from .streamed import StreamedTable
from .text import FileError, TextForm

#: Bytes that are fetched at a time where readers ask for few.
_PART_BYTES = 2**22

_SCHEMES = "s3://, gs://, memory:// and file://"


@dataclass(frozen=True, order=True)
class StoredPath:
    """A file or folder of a file system of pyarrow, with the methods of a path that readers call."""

    path: PurePosixPath
    files: Any

    def __str__(self) -> str:
        return str(self.path)

    @property
    def name(self) -> str:
        """The last part."""
        return self.path.name

    @property
    def suffix(self) -> str:
        """The ending of the name."""
        return self.path.suffix

    def open(self, mode: str = "rb") -> Any:
        """An open file that is fetched in large parts."""
        return io.BufferedReader(self.open_unbuffered(), _PART_BYTES)

    def open_unbuffered(self) -> Any:
        """An open file of pyarrow, which fetches the bytes of each read by a request of its own."""
        with _errors_in_words(self.name):
            return self.files.open_input_file(str(self.path))

    def is_dir(self) -> bool:
        """Whether this is a folder."""
        return bool(self._info().type.name == "Directory")

    def is_file(self) -> bool:
        """Whether this is a file."""
        return bool(self._info().type.name == "File")

    def stat(self) -> SimpleNamespace:
        """The size and the kind, as those of a local path."""
        facts = self._info()
        if facts.type.name == "NotFound":
            raise FileNotFoundError
        return SimpleNamespace(st_size=facts.size, st_mode=S_IFREG if facts.type.name == "File" else S_IFDIR)

    def _info(self) -> Any:
        with _errors_in_words(self.name):
            return self.files.get_file_info(str(self.path))

    def iterdir(self) -> Iterator["StoredPath"]:
        """What is in the folder."""
        from pyarrow.fs import FileSelector

        with _errors_in_words(self.name):
            for entry in self.files.get_file_info(FileSelector(str(self.path), allow_not_found=True)):
                yield StoredPath(PurePosixPath(entry.path), self.files)

    def matching(self) -> "list[StoredPath]":
        """The files and folders whose path matches this one, part by part."""
        first = next(i for i, part in enumerate(self.path.parts) if glob.has_magic(part))
        entries = [StoredPath(PurePosixPath(*self.path.parts[:first]), self.files)]
        for part in self.path.parts[first:]:
            entries = [
                entry for folder in entries for entry in folder.iterdir() if fnmatchcase(entry.name, part)
            ]
        return sorted(entries)


@contextmanager
def _errors_in_words(name: str) -> Iterator[None]:
    """Context manager that turns errors of a store into sentences."""
    try:
        yield
    except FileNotFoundError:
        raise FileError(f"{name} is not in the store; check the address.") from None
    except OSError:
        raise FileError(
            f"{name} cannot be reached in its store; check the address and its settings, the credentials and "
            "the network."
        ) from None


def places(address: str | PathLike[str]) -> list[Any]:
    """The paths of an address, path or pattern."""
    scheme, separator, rest = address.partition("://") if isinstance(address, str) else ("", "", "")
    if separator and scheme != "file":
        path = _stored_path(scheme, str(address))
        return path.matching() if glob.has_magic(str(path)) else [path]
    local = Path("/" + unquote(rest.partition("/")[2]) if separator else address)
    if glob.has_magic(str(local)) and not local.exists():
        return sorted(map(Path, glob.glob(str(local))))  # noqa: PTH207
    return [local]


def _stored_path(scheme: str, address: str) -> StoredPath:
    """The path of an address in a store."""
    where = f"paths={address!r}"
    if scheme not in ("s3", "gs", "gcs", "memory"):
        raise ValueError(
            f"{where} begins with {scheme}://, and open_rows reads paths, {_SCHEMES}; copy the files to one "
            "of these."
        )
    try:
        from pyarrow.fs import FileSystem, FSSpecHandler, PyFileSystem

        if scheme == "memory":
            import fsspec
    except ImportError as error:
        raise MissingPackageError(
            f"{where} needs the packages pyarrow and fsspec, which are not installed; "
            f"{how_to_install('storage')}."
        ) from error
    if scheme == "memory":
        files = PyFileSystem(FSSpecHandler(fsspec.filesystem("memory")))
        return StoredPath(PurePosixPath("/" + address.partition("://")[2]), files)
    # Settings follow the last question mark. Other question marks belong to a pattern.
    location, mark, settings = address.rpartition("?")
    location, query = (
        (location, mark + settings) if "=" in settings and "/" not in settings else (address, "")
    )
    path = PurePosixPath(unquote(location.partition("://")[2]))
    try:
        files, _ = FileSystem.from_uri(f"{scheme}://{path.parts[0]}{query}")
    except Exception:
        raise ValueError(
            f"{where} is no address that pyarrow reads; write it as {scheme}://bucket/folder/file, with "
            "settings such as ?region=eu-west-1 at its end."
        ) from None
    return StoredPath(path, files)


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
