"""Private rows that are read block by block in every pass, so that they need not fit in memory."""

import mmap
from abc import abstractmethod
from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import cached_property, partial
from itertools import accumulate
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .._linear import (
    EXACT,
    NARROW,
    PANEL_ROWS,
    FloatArray,
    SumError,
    add_products,
    dot_error,
    panel_rows_for,
    row_memory,
    row_norms,
    row_products,
)
from .._rows.blockwise import (
    InMemoryRows,
    RemappedRows,
    Selection,
    Visit,
    answer,
    block_size,
    check_lengths,
    grid_of_rows,
    max_abs_of,
    selections,
    stated_error,
)
from .._rows.row_map import RowMap
from .._rows.scaling import Whitening
from .._rows.source import Block, Labels, PrivateRows, Request, Sums, Table, declared_type
from .._rows.table import finite_rows
from .._utils.validation import check_finite
from .blockmap import BlockMap
from .shards import Shard, array_shard, check_alike, read_labels
from .temporary import temporary_memory

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
            return max_abs_of(X, value)

        def rounding_scale() -> FloatArray:
            if whitening is None:
                return norms
            # Points and sums are whitened, not rows. So the rounding of products grows with the lengths of
            # the unwhitened rows, and the rounding of the whitened points is added.
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
        block = Block(X, self._y[rows], norms, partial(max_abs_of, X, self._value))
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
        # Half precision is left to StreamedRows, which converts it faster.
        self._is_narrow = self.shape[1] <= NARROW and shards[0].dtype != np.float16
        self._is_mapped = all(shard.is_mapped for shard in shards)
        self.is_shared = self._is_narrow and not self._is_mapped

    @property
    def labels(self) -> Labels | None:
        """Labels of all rows, which are read each time."""
        return read_labels(self._shards)

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

    def memory(self, n_rows: int, width: int) -> FloatArray:
        return temporary_memory(n_rows, width, np.float64)

    def blocks(self) -> Iterator[Array]:
        rows = max(512, _BLOCK_BYTES // (8 * max(self.shape[1], 1)))
        for shard in self._shards:
            for piece in shard.rows():
                for start in range(0, len(piece), rows):
                    yield np.asarray(piece[start : start + rows])


def table_of_map(X: Array) -> StreamedTable | None:
    """The table of a memory map; None unless it holds rows of numbers."""
    if X.ndim != 2 or X.dtype.kind not in "biuf":
        return None
    return StreamedTable([array_shard("X", (X.shape, X.dtype), lambda: X)])


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
