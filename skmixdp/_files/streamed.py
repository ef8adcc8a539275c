"""Private rows that are read block by block in every pass, so that they need not fit in memory."""

from bisect import bisect_right
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from functools import cached_property, partial
from itertools import accumulate
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .._linear.arrays import FloatArray, row_norms
from .._linear.products import NARROW, row_memory
from .._linear.sums import dot_error, panel_rows_for
from .._rows.blockwise import (
    Arithmetic,
    BlockRows,
    InMemoryRows,
    Selection,
    Visit,
    block_size,
    check_lengths,
    dense_visit,
    grid_of_rows,
    max_abs_of,
    selections,
)
from .._rows.row_map import RowMap
from .._rows.source import Batch, Block, Labels, PrivateRows, Table, declared_type
from .._rows.table import finite_rows
from .._utils.validation import check_finite
from .blockmap import BlockMap
from .shards import Shard, array_shard, check_alike, read_labels
from .temporary import temporary_memory

Array = NDArray[Any]

#: Bytes of a mapped block, which stays in cache between its two products.
_BLOCK_BYTES = 2**21


class StreamedRows(BlockRows):
    """Private rows in mapped shards, which are read and mapped again in every pass.

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
        self._shards = shards
        self._ends = list(accumulate(shard.n_rows for shard in shards))
        self.n_rows = self._ends[-1]
        self._y, self._dtype = y, np.dtype(dtype)
        self.grid = grid_of_rows(self.n_rows) if exact else None
        self._map = BlockMap(row_map, shards[0].dtype, self._dtype, grid=self.grid)
        self.whitening, stretch = self._map.whitening, self._map.stretch
        later = () if self.whitening is None else (self.whitening.sum_rounding * stretch,)
        # Without the whitening, rows are longer, so they are added in shorter panels.
        self.arithmetic = Arithmetic(self._dtype, panel_rows_for(stretch), stretch=stretch, later=later)
        d_in = row_map.width(shards[0].n_features)
        self._block_rows = block_size(_BLOCK_BYTES // (d_in * self._dtype.itemsize))
        self._norms = np.empty(self.n_rows)
        self._factors = np.ones(self.n_rows, self._dtype)
        #: Bounds on entries, kept if computing them again would whiten the rows.
        self._max_abs = np.empty(0 if self.whitening is None else self.n_rows)
        self._measure()
        check_lengths(self._norms, self._dtype)

    def wanted_rows(self, m: int) -> int:
        return self._block_rows

    def blocks(self, batches: Sequence[Batch], block_rows: int) -> Iterator[Selection]:
        """The rows of each visit, all of them in one shard."""
        n_blocks = 0
        for shard, end in zip(self._shards, self._ends, strict=True):
            first = end - shard.n_rows
            parts = [batch.part(first, end) for batch in batches]
            # Shards without members are not opened.
            if any(batch.members is None or batch.members.any() for batch in parts):
                for rows in selections(parts, shard.n_rows, block_rows):
                    yield _moved(rows, first)
                    n_blocks += 1
        if n_blocks == 0:
            yield slice(0, 0)

    def visits(self, blocks: Sequence[Selection], block_rows: int, m: int) -> Iterator[Visit]:
        out = self._memory(block_rows)
        products = np.empty((len(out), m), self._dtype)
        for rows, raw, _ in self._read(blocks):
            X = self._map(raw, self._factors[rows], out)
            yield dense_visit(rows, self._block(rows, X), products, self._map.appended)

    def _memory(self, block_rows: int) -> FloatArray:
        """Memory for the mapped rows of a block."""
        return row_memory(min(block_rows, max(self.n_rows, 1)), self._shards[0].n_features, self._dtype)

    def _read(self, blocks: Iterable[Selection]) -> Iterator[tuple[Selection, Array, Shard]]:
        """The rows of each block, their features and their shard, of which one at a time is open."""
        index, X = -1, np.empty(0)
        for rows in blocks:
            number = bisect_right(self._ends, rows.start if isinstance(rows, slice) else rows[0])
            if number != index:
                index = min(number, len(self._shards) - 1)
                shard = self._shards[index]
                (X,) = shard.rows()
            yield rows, np.asarray(X[_moved(rows, shard.n_rows - self._ends[index])]), shard

    def _block(self, rows: Selection, X: FloatArray) -> Block:
        value, whitening = self._map.appended, self.whitening
        norms = row_norms(X) if self._map.whitens else self._norms[rows]

        def max_abs() -> FloatArray:
            return max_abs_of(X, value) if whitening is None else self._max_abs[rows]

        def rounding_scale() -> FloatArray:
            if whitening is None:
                return norms
            # Points and sums are whitened, not rows. So the rounding of products grows with the lengths of
            # the unwhitened rows, and the rounding of the whitened points is added.
            rounding = whitening.rounding / dot_error(X.shape[1] + 1, X.dtype)
            unwhitened = np.hypot(row_norms(X), value or 0.0) * (1 + rounding + 2**-32)
            return np.asarray(np.maximum(norms, unwhitened))

        return Block(X, self._y[rows], norms, max_abs, rounding_scale)

    def _measure(self) -> None:
        """Compute each row's factor and length, and refuse rows that are not finite."""
        out = self._memory(self._block_rows)
        for rows, raw, shard in self._read(self.blocks([Batch()], self._block_rows)):
            check_finite(finite_rows(raw).all(), shard.file)
            measured = self._map.measured(raw, out)
            self._factors[rows], self._norms[rows] = measured.factors, measured.norms
            if measured.max_abs is not None:
                self._max_abs[rows] = measured.max_abs


class StreamedTable(Table):
    """Shards that a user passed.

    Rows that must be decoded are decoded once, into a temporary map. Narrow ones are then mapped like rows in
    memory, into another one. So a fit computes what it computes for a frame.
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

    def _memory_mapped(self) -> list[Shard]:
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
        if not self._is_narrow or self._is_mapped or exact:
            return StreamedRows(self._memory_mapped(), y, row_map, dtype, exact=exact)
        # Later passes may need a column more, and a full disk must be refused before the charge.
        temporary_memory(self.shape[0], self.shape[1] + 1, dtype)
        return InMemoryRows.mapped(self._decoded, y, row_map, dtype, memory=temporary_memory)

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


def _moved(rows: Selection, by: int) -> Selection:
    return slice(rows.start + by, rows.stop + by) if isinstance(rows, slice) else rows + by
