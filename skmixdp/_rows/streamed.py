"""Private rows that are read block by block in every pass, so that they need not fit in memory."""

import mmap
from abc import abstractmethod
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from functools import cached_property, partial
from itertools import accumulate
from pathlib import Path
from typing import Any
from urllib.parse import unquote
from weakref import ref

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from .._linear import (
    EXACT,
    NARROW,
    PANEL_ROWS,
    FloatArray,
    SumError,
    add_products,
    dot_error,
    largest_entries,
    panel_rows_for,
    row_memory,
    row_norms,
    row_products,
)
from .._utils.validation import check_finite
from .blockmap import BlockMap, finite_rows
from .blockwise import (
    InMemoryRows,
    RemappedRows,
    Selection,
    Visit,
    answer,
    block_size,
    check_lengths,
    grid_of_rows,
    selections,
    stated_error,
)
from .files import FORMATS
from .row_map import RowFunction, RowMap
from .scaling import Whitening
from .shards import Shard, Wanted, check_alike, file_shards, read_labels
from .source import Block, Labels, PrivateRows, Request, Sums, Table, declared_type
from .temporary import temporary_memory
from .text import TextForm

Array = NDArray[Any]

#: Bytes of a mapped block, which stays in cache between its two products.
_BLOCK_BYTES = 2**21

#: Bytes of a memory map that the system is asked to read ahead.
_AHEAD = 2**26


class ShardedRows(PrivateRows):
    """Base class of private rows in shards, which are read block by block in every pass.

    The shards are mapped. ``dtype`` is that of the products; ``y`` (n_rows,) are class indices or targets. A
    subclass maps a block in :meth:`_visit`, and sets its memory ``_out`` and the rows of a block
    ``_block_rows``.
    """

    #: A whitening that is applied to points and sums instead of rows, and most rows that are added in single
    #: precision.
    _whitening: Whitening | None = None
    _panel_rows: int = PANEL_ROWS
    _block_rows: int
    _out: FloatArray

    def __init__(self, shards: Sequence[Shard], y: Labels, dtype: np.dtype[Any]) -> None:
        self._shards = shards
        self._y = y
        self._dtype = np.dtype(dtype)
        self.n_rows = sum(shard.n_rows for shard in shards)

    def private_sums(self, requests: Sequence[Request]) -> list[Sums]:
        m = sum(len(request.query.points) for request in requests)
        Z = np.empty((len(self._out), m), self._dtype)
        blocks = self._read(requests)
        visits = (self._visit(rows, raw, Z[: len(raw)]) for rows, raw in blocks)
        # Without the whitening, rows are longer, so they are added in shorter panels.
        short = [
            request.with_query(panel_rows=min(request.query.panel_rows, self._panel_rows))
            for request in requests
        ]
        return answer(short, visits, self._dtype, whitening=self._whitening)

    @abstractmethod
    def _visit(self, rows: Selection, raw: Array, Z: FloatArray) -> Visit:
        """The visit of a block of features. A buffer holds it and its products until the next block."""

    def _read(self, requests: Sequence[Request]) -> Iterator[tuple[Selection, Array]]:
        """Indices and features of the rows of all blocks that take part, at least one block."""
        first, n_visited = 0, 0
        for shard in self._shards:
            end = first + shard.n_rows
            parts = [replace(request, batch=request.batch.part(first, end)) for request in requests]
            members = [request.batch.members for request in parts]
            if any(mask is None or mask.any() for mask in members):
                (X,) = shard.rows()
                for rows in selections(parts, shard.n_rows, self._block_rows):
                    raw = _take(X, rows)
                    if isinstance(rows, slice):
                        yield slice(first + rows.start, first + rows.stop), raw
                    else:
                        yield first + rows, raw
                    n_visited += 1
            first = end
        if n_visited == 0:
            yield slice(0, 0), np.empty((0, self._shards[0].n_features), self._shards[0].dtype)

    def _checked(self) -> Iterator[tuple[slice, Array]]:
        """Indices and features of the rows of all blocks; features that are not finite are refused."""
        first = 0
        for shard in self._shards:
            (X,) = shard.rows()
            for start in range(0, shard.n_rows, self._block_rows):
                rows = slice(start, min(start + self._block_rows, shard.n_rows))
                raw = _take(X, rows)
                check_finite(finite_rows(raw).all(), shard.file)
                yield slice(first + rows.start, first + rows.stop), raw
            first += shard.n_rows


class StreamedRows(ShardedRows):
    """Private rows on disk, which are read and mapped again in every pass.

    With ``exact``, rows are rounded to a grid on which sums are exact; see :class:`InMemoryRows`. A shard
    that cannot be read, or holds a row that is not finite or too long, is a ValueError that names it.

    *Guarantee*: one pass in advance finds each row's length after the map; rows are mapped by the same
    arithmetic in every later pass, so that the length is that of the row that contributes, but for roundings
    that the clip's sensitivity allows for. Rows that are whitened before they are multiplied are measured
    again in every pass. The files must not change meanwhile.
    """

    def __init__(
        self,
        shards: Sequence[Shard],
        y: Labels,
        row_map: RowMap,
        dtype: np.dtype[Any],
        *,
        exact: bool = False,
    ) -> None:
        super().__init__(shards, y, dtype)
        n_features = shards[0].n_features
        d_in = row_map.width(n_features)
        self.grid = grid_of_rows(self.n_rows) if exact else None
        self._map = BlockMap(row_map, shards[0].dtype, self._dtype, grid=self.grid)
        self._whitening = self._map.whitening
        self._block_rows = block_size(_BLOCK_BYTES // (d_in * self._dtype.itemsize))
        self._panel_rows = panel_rows_for(self._map.stretch)
        self._out = np.empty((min(self._block_rows, max(self.n_rows, 1)), n_features), self._dtype)
        self._norms = np.empty(self.n_rows)
        self._factors = np.ones(self.n_rows, self._dtype)
        #: Bounds on entries, kept if computing them again would whiten the rows.
        self._max_abs = np.empty(0 if self._whitening is None else self.n_rows)
        self._measure()
        check_lengths(self._norms, self._dtype)

    def _visit(self, rows: Selection, raw: Array, Z: FloatArray) -> Visit:
        X = self._map(raw, self._factors[rows], self._out)
        value, whitening = self._map.appended, self._whitening
        norms = row_norms(X) if self._map.whitens else self._norms[rows]

        def max_abs() -> FloatArray:
            if whitening is not None:
                return self._max_abs[rows]
            return _largest(X, abs(value or 0.0))  # the appended entry is not in the array

        def rounding_scale() -> FloatArray:
            if whitening is None:
                return norms
            # Rows are whitened by linearity, in points and sums. So the rows that are multiplied are longer,
            # and the rounding of whitened points is added.
            rounding = whitening.rounding / dot_error(X.shape[1] + 1, X.dtype)
            unwhitened = np.hypot(row_norms(X), value or 0.0) * (1 + rounding + 2**-32)
            return np.asarray(np.maximum(norms, unwhitened))

        block = Block(X, self._y[rows], norms, max_abs, rounding_scale)
        times = partial(row_products, X, out=Z, appended=value)
        return Visit(rows, block, times, partial(add_products, X, appended=value))

    def sum_error(self, request: Request) -> SumError:
        if request.resolution is not None:
            return EXACT
        whitening, stretch = self._whitening, self._map.stretch
        error = stated_error(request, self.n_rows, self._dtype, panel_rows=self._panel_rows, stretch=stretch)
        if whitening is None:
            return error
        return error.plus_later(whitening.sum_rounding * stretch)

    def _measure(self) -> None:
        """Compute each row's factor and length, and refuse rows that are not finite."""
        for rows, raw in self._checked():
            measured = self._map.measured(raw, self._out)
            self._factors[rows], self._norms[rows] = measured.factors, measured.norms
            if measured.max_abs is not None:
                self._max_abs[rows] = measured.max_abs


class NarrowStreamedRows(ShardedRows):
    """Private rows of few features on disk, of which only the labels are held between passes.

    To map and measure such rows takes less time than to read them, so both are done in every pass. Parameters
    are those of :class:`StreamedRows`.
    """

    def __init__(self, shards: Sequence[Shard], y: Labels, row_map: RowMap, dtype: np.dtype[Any]) -> None:
        super().__init__(shards, y, dtype)
        n_features = shards[0].n_features
        self._value = row_map.intercept_value
        self._bare = replace(row_map, intercept_value=None)
        self._block_rows = block_size(_BLOCK_BYTES // (n_features * self._dtype.itemsize))
        self._out = row_memory(min(self._block_rows, max(self.n_rows, 1)), n_features, self._dtype)
        self._measure()

    def _visit(self, rows: Selection, raw: Array, Z: FloatArray) -> Visit:
        X, norms = self._mapped(raw)
        block = Block(X, self._y[rows], norms, partial(_largest, X, abs(self._value or 0.0)))
        times = partial(row_products, X, out=Z, appended=self._value)
        return Visit(rows, block, times, partial(add_products, X, appended=self._value))

    def _mapped(self, raw: Array) -> tuple[FloatArray, FloatArray]:
        """Mapped rows in the buffer, without the intercept, and their lengths, with the intercept."""
        X, norms = self._out[: len(raw)], np.empty(len(raw))
        self._bare.write(raw, X, norms)
        return X, norms if self._value is None else np.hypot(norms, self._value)

    def sum_error(self, request: Request) -> SumError:
        return stated_error(request, self.n_rows, self._dtype)

    def _measure(self) -> None:
        """Refuse rows that are not finite, or too long."""
        for _, raw in self._checked():
            if not self._bare.normalize:
                check_lengths(self._mapped(raw)[1], self._dtype)


def _largest(X: FloatArray, value: float) -> FloatArray:
    """Largest absolute entry of each row, (n,), including an appended one."""
    return np.asarray(np.maximum(largest_entries(X), value))


class StreamedTable(Table):
    """Shards that a user passed.

    Rows that must be decoded are decoded once, into a temporary map that is freed with the table. Narrow ones
    are then mapped like rows in memory, into another one. So a fit computes what it computes for a frame.
    """

    def __init__(self, shards: Sequence[Shard]) -> None:
        check_alike(shards)
        self._shards = list(shards)
        self.declared = declared_type(shards[0].dtype)
        self.shape: tuple[int, int] = (sum(s.n_rows for s in shards), shards[0].n_features)
        self.names: list[str] | None = None if shards[0].names is None else list(shards[0].names)
        # StreamedRows converts half precision faster.
        self._is_narrow = self.shape[1] <= NARROW and shards[0].dtype != np.float16
        self._is_mapped = all(shard.is_mapped for shard in shards)
        self.is_shared = self._is_narrow and not self._is_mapped

    @property
    def labels(self) -> Labels | None:
        """Labels of all rows, which are read each time."""
        return read_labels(self._shards)

    def check(self, name: str, *, finite: bool = True) -> None:
        """Nothing to do: shapes and types were checked when the shards were opened."""

    @cached_property
    def _decoded(self) -> Array:
        """All features (n_rows, n_features), decoded into a temporary map."""
        X = temporary_memory(*self.shape, self._shards[0].dtype, order="C")
        first = 0
        for shard in self._shards:
            for piece in shard.rows():
                check_finite(finite_rows(piece).all(), shard.file)
                X[first : first + len(piece)] = piece
                first += len(piece)
        return X

    def _mapped(self) -> list[Shard]:
        """The shards, all of them memory-mapped; rows in other formats are decoded first."""
        if self._is_mapped:
            return self._shards
        X = self._decoded
        ends = accumulate(shard.n_rows for shard in self._shards)
        return [
            replace(shard, rows=partial(iter, [X[end - shard.n_rows : end]]), is_mapped=True)
            for shard, end in zip(self._shards, ends, strict=True)
        ]

    def private_rows(self, y: Labels, row_map: RowMap, dtype: np.dtype[Any], *, exact: bool) -> PrivateRows:
        if not self._is_narrow or exact:
            return StreamedRows(self._mapped(), y, row_map, dtype, exact=exact)
        if self._is_mapped:
            return NarrowStreamedRows(self._shards, y, row_map, dtype)
        return InMemoryRows.mapped(self._decoded, y, row_map, dtype, memory=temporary_memory)

    def remapped_rows(self, y: Labels, row_map: RowMap, dtype: np.dtype[Any]) -> PrivateRows:
        if not self._is_narrow or self._is_mapped:
            return self.private_rows(y, row_map, dtype, exact=False)
        # The decoded file is needed now: a full disk must be refused before the charge.
        temporary_memory(self.shape[0], self.shape[1] + 1, dtype)
        return RemappedRows(self._decoded, y, row_map, dtype)

    def blocks(self) -> Iterator[Array]:
        rows = max(512, _BLOCK_BYTES // (8 * max(self.shape[1], 1)))
        for shard in self._shards:
            for piece in shard.rows():
                for start in range(0, len(piece), rows):
                    yield np.asarray(piece[start : start + rows])

    def transformed(self, function: RowFunction) -> Table:
        return stream_of(self.shape[0], function, self.blocks)


def stream_of(n_rows: int, function: RowFunction, blocks: Callable[[], Iterator[Array]]) -> StreamedTable:
    """The results of a function of the rows in ``blocks``, in parts."""

    def rows() -> Iterator[Array]:
        return map(function, blocks())

    return StreamedTable([Shard("X", "X", n_rows, function.width, np.dtype(np.float64), rows)])


class RowFiles(StreamedTable):
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

    def __len__(self) -> int:
        return self.shape[0]

    def __repr__(self) -> str:
        word = "shard" if len(self._shards) == 1 else "shards"
        return f"<RowFiles: {self.shape[0]} rows of {self.shape[1]} features in {len(self._shards)} {word}>"


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
) -> RowFiles:
    """Open files of rows that need not fit in memory; only headers are read, except for text.

    Parameters
    ----------
    paths : path, or list of paths
        Files, or one folder of which all files are taken in the order of their names:
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
    from other cells. Columns of tables are rows of float64, whatever their types, and lists keep the type of
    their numbers.

    Examples
    --------
    >>> import tempfile, pathlib, numpy as np
    >>> folder = pathlib.Path(tempfile.mkdtemp())
    >>> for part in range(3):
    ...     np.savez(folder / f"{part}.npz", X=np.ones((5, 2), np.float16), y=np.arange(5))
    >>> open_rows(folder)
    <RowFiles: 15 rows of 2 features in 3 shards>
    """
    form = TextForm(separator, decimal, encoding)
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


def _files(paths: Any) -> list[tuple[Path, dict[str, str]]]:
    """The given files, or all of known formats in a folder, with the columns in the names of its folders."""
    if isinstance(paths, (list, tuple)) or not Path(paths).is_dir():
        return [(Path(path), {}) for path in (paths if isinstance(paths, (list, tuple)) else [paths])]
    files = _in_folder(Path(paths), {})
    if not files:
        raise ValueError(f"paths={str(paths)!r} has no {', '.join(FORMATS)} file; name another folder.")
    return files


def _in_folder(folder: Path, told: dict[str, str]) -> list[tuple[Path, dict[str, str]]]:
    """Files in a folder, then those in its folders named ``column=value``, in the order of names."""
    entries = sorted(folder.iterdir())
    files = [
        (path, told) for path in entries if path.name.lower().endswith(tuple(FORMATS)) and path.is_file()
    ]
    for entry in entries:
        name, equals, value = entry.name.partition("=")
        if name and equals and entry.is_dir():
            files += _in_folder(entry, told | {unquote(name): unquote(value)})
    return files


def _take(X: Array, rows: Selection) -> Array:
    """Rows of a shard as a plain array; the system reads a little ahead."""
    base = X._mmap if isinstance(X, np.memmap) else None  # type: ignore[attr-defined]
    if base is not None and isinstance(rows, slice) and hasattr(mmap, "MADV_WILLNEED"):
        _read_ahead(X, base, rows)
    return np.asarray(X[rows])


def _read_ahead(X: Array, base: mmap.mmap, rows: slice) -> None:
    """Request the pages after a block that starts a new part of the file, of ``_AHEAD`` bytes."""
    per_row = X.shape[1] * X.itemsize
    start, stop = rows.start * per_row, rows.stop * per_row
    if start // _AHEAD == stop // _AHEAD and start:
        return
    begin = (stop // mmap.PAGESIZE) * mmap.PAGESIZE
    length = min(2 * _AHEAD, len(base) - begin)
    if length > 0 and X.flags.c_contiguous:
        base.madvise(mmap.MADV_WILLNEED, begin, length)
