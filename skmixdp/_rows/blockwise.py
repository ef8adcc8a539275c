"""Answers from blocks of rows, for all sources that visit rows block by block, and rows in one array."""

import math
import operator
from abc import abstractmethod
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial, reduce
from itertools import pairwise
from typing import Any, NamedTuple, TypeVar

import numpy as np
from numpy.typing import DTypeLike, NDArray

from .._linear.arrays import (
    Array,
    FloatArray,
    in_library_of,
    largest_entries,
    namespace_of,
    parts_in_cache,
    row_norms,
    row_slices,
)
from .._linear.products import add_products, clipped_sums, is_narrow, read_ahead, row_memory, row_products
from .._linear.sums import BLOCK_ROWS, EXACT, PANEL_ROWS, Cascade, SumError, on_grid, sum_error
from .._utils.process import in_parallel, n_parts
from .row_map import RowMap
from .scaling import Whitening
from .source import Batch, BinCounts, Block, Labels, OuterStatistics, PrivateRows, Request, Sums, truncated

#: Minimum rows per block, since each block has a fixed cost.
_FEWEST_ROWS = 512

#: Number of outputs from which products are stored row by row; fewer are stored column by column.
_NARROW = 32

#: A random batch of b rows has 64 ceil(sqrt(b) / 8) lanes. This is the 64.
_LANES = 64
#: This is the 8.
_PER_ROOT = 8

#: Indices of rows of a source.
Selection = slice | NDArray[np.intp]
_Rows = TypeVar("_Rows", slice, Selection)


@dataclass(frozen=True)
class Arithmetic:
    """How a source multiplies and adds, from which its stated rounding follows."""

    dtype: DTypeLike  # in which rows are multiplied
    panel_rows: int = PANEL_ROWS  # the most that are added in single precision
    block_rows: int = BLOCK_ROWS  # the most that are added in double precision in any order
    stretch: float = 1.0  # how many times as long as clips allow terms may be
    later: tuple[float, ...] = ()  # roundings of the sums, relative to their norm

    def panels(self, request: Request) -> int:
        """Most rows of a request that are added in single precision."""
        return min(self.panel_rows, request.query.panel_rows)

    def error(self, request: Request, n_rows: int) -> SumError:
        """The error of the sums of a request over ``n_rows`` rows."""
        if request.resolution is not None:
            return EXACT
        limits = {"panel_rows": self.panels(request), "block_rows": self.block_rows}
        error = sum_error(n_rows, self.dtype, **limits, stretch=self.stretch)
        return reduce(SumError.plus_later, self.later, error)


@dataclass(frozen=True)
class Visit:
    """A block of rows: their indices, the data that queries may use, and the two products."""

    rows: Selection
    block: Block
    #: Points (m, d_in), in Fortran order, to ``X points^T`` (rows, m), where rows are and in their dtype.
    times: Callable[[FloatArray], Array]
    #: Adds ``C^T X`` (k, d_in), given ``C`` (rows, k) and the most rows whose terms may be added in single
    #: precision. Terms are added in double precision if ``C`` is, or if that number is 0.
    add_sum: Callable[[Array, Cascade, int], None]


def dense_visit(rows: Selection, block: Block, products: FloatArray, appended: float | None) -> Visit:
    """The visit of a block of dense rows with an ``appended`` entry, and with memory for their products."""
    X: Any = block.X
    times = partial(row_products, X, out=products[: len(X)], appended=appended)
    return Visit(rows, block, times, partial(add_products, X, appended=appended))


class ClipLoop(NamedTuple):
    """Compiled loops for a request that sums clipped residuals of cross-entropy, and nothing else."""

    #: Of a block, in double precision, given bounds on the lengths of all rows; infinite ones add nothing.
    term: Callable[[slice, FloatArray], FloatArray]
    #: Upper bounds (n_rows,) on the lengths, float32.
    lengths: FloatArray
    #: The sums (k, d_in) from the total of the terms.
    matrix: Callable[[FloatArray], FloatArray] = np.asarray


class BlockRows(PrivateRows):
    """Base class of private rows that are visited block by block, with ``n_rows`` and what follows."""

    arithmetic: Arithmetic
    #: What visited rows lack of their map. It is linear, so it is applied to points and sums.
    whitening: Whitening | None = None

    @abstractmethod
    def visits(self, blocks: Sequence[Selection], block_rows: int, m: int) -> Iterator[Visit]:
        """Visits of blocks, which are multiplied with m points, in one memory; threads call it at once."""

    def wanted_rows(self, m: int) -> int:
        """Number of rows of a block that are fast to multiply with m points."""
        return self.arithmetic.block_rows

    def blocks(self, batches: Sequence[Batch], block_rows: int) -> Iterator[Selection]:
        """The rows of each visit, see :func:`selections`."""
        return selections(batches, self.n_rows, block_rows)

    def clip_loop(self, request: Request) -> ClipLoop | None:
        """Compiled loops that suit a request with a clip threshold; None where there are none."""
        return None

    def private_sums(self, requests: Sequence[Request]) -> list[Sums]:
        return self._sums(requests)

    def _sums(self, requests: Sequence[Request]) -> list[Sums]:
        if (sums := self._compiled_sums(requests)) is not None:
            return sums
        m = sum(len(request.query.points) for request in requests)
        size = block_size(self.wanted_rows(m), self.n_rows, n_parts.get(), most=self.arithmetic.block_rows)

        def visited(blocks: Sequence[Selection]) -> list[Sums]:
            return answer(requests, self.visits(blocks, size, m), self.arithmetic, self.whitening)

        return in_parts(requests, list(self.blocks([request.batch for request in requests], size)), visited)

    def sum_error(self, request: Request) -> SumError:
        return self.arithmetic.error(request, self.n_rows)

    def _compiled_sums(self, requests: Sequence[Request]) -> list[Sums] | None:
        """The sums of clipped residuals by compiled loops; None unless these suit all requests."""
        if n_lanes([request.batch.rate for request in requests], self.n_rows) > 0:
            return None
        loops: list[ClipLoop] = []
        for request in requests:
            plain = request.query.clip_threshold is not None and request.query.panel_rows == PANEL_ROWS
            if not plain or request.resolution is not None or request.observe is not None:
                return None
            if (loop := self.clip_loop(request)) is None:
                return None
            loops.append(loop)
        lengths = [
            loop.lengths if mask is None else np.where(mask, loop.lengths, np.float32(np.inf))
            for loop, mask in zip(loops, (request.batch.mask for request in requests), strict=True)
        ]

        def visited(blocks: Sequence[slice]) -> list[Sums]:
            totals = [Cascade() for _ in loops]
            for rows in blocks:
                for loop, of_request, total in zip(loops, lengths, totals, strict=True):
                    total.add(loop.term(rows, of_request))
            matrices = [loop.matrix(total.value) for loop, total in zip(loops, totals, strict=True)]
            return [(each if self.whitening is None else self.whitening(each), None) for each in matrices]

        most = self.arithmetic.block_rows
        size = block_size(most, self.n_rows, n_parts.get(), most=most)
        return in_parts(requests, list(row_slices(self.n_rows, size)), visited)


def answer(
    requests: Sequence[Request],
    visits: Iterable[Visit],
    arithmetic: Arithmetic,
    whitening: Whitening | None = None,
) -> list[Sums]:
    """Sums of all requests over one visited block or more; in each, requests of a precision share products.

    A ``whitening`` that visited rows lack is applied to points and sums. The sums of tensors are tensors.
    """
    all_points = np.concatenate([request.query.points for request in requests])
    points = (all_points if whitening is None else whitening(all_points)).astype(arithmetic.dtype, order="F")
    narrow = min(len(request.query.points) for request in requests) < _NARROW
    buffer = np.empty(0, arithmetic.dtype)
    ends = np.cumsum([len(request.query.points) for request in requests])
    gathered = all(request.batch.taken is not None for request in requests)
    masks = [request.batch.mask for request in requests]
    matrices: dict[int, Cascade] = {}
    vectors = [Cascade() for _ in requests]
    widths = [0] * len(requests)
    for visit in visits:
        Z = visit.times(points)
        if narrow and isinstance(Z, np.ndarray) and not Z.flags.f_contiguous:
            # Column by column, so that work on a few products of a row is vectorised over rows.
            buffer = np.empty(Z.size, Z.dtype) if buffer.size < Z.size else buffer
            copy = buffer[: Z.size].reshape(Z.shape, order="F")
            np.copyto(copy, Z)
            Z = copy
        weighted: dict[int, list[Array]] = {}
        for index, (request, end) in enumerate(zip(requests, ends, strict=True)):
            products = Z[:, end - len(request.query.points) : end]
            C, S = request.query.contribute(products, visit.block)
            C, S = (_masked(part, request, masks[index], visit.rows) for part in (C, S))
            if request.observe is not None:
                request.observe(visit.rows, visit.block, products, (C, S))
            if C is not None:
                weighted.setdefault(arithmetic.panels(request), []).append(C)
                widths[index] = C.shape[1]
            if isinstance(S, (OuterStatistics, BinCounts)):
                vectors[index].add(S.sums())
            elif S is not None:
                xp = namespace_of(S)
                vectors[index].add(xp.sum(S, axis=0, dtype=xp.float64))
        for panel_rows, parts in weighted.items():
            # One more row in a batch moves later rows to other blocks, which changes the rounding of sums.
            # So these are added in double precision (0), where the stated error covers the change.
            largest = 0 if gathered and not isinstance(visit.rows, slice) else panel_rows
            # Transposed before they are joined, which keeps the order of entries in memory.
            joined = parts[0] if len(parts) == 1 else namespace_of(parts[0]).concat([C.T for C in parts]).T
            visit.add_sum(joined, matrices.setdefault(panel_rows, Cascade()), largest)
    totals = {panel_rows: total.value for panel_rows, total in matrices.items()}
    sums: list[Sums] = []
    for request, width, vector in zip(requests, widths, vectors, strict=True):
        matrix = None
        if width:
            panel_rows = arithmetic.panels(request)
            matrix, totals[panel_rows] = totals[panel_rows][:width], totals[panel_rows][width:]
            matrix = matrix if whitening is None else whitening(matrix)
        sums.append((matrix, vector.value))
    return sums


def in_parts(
    requests: Sequence[Request], blocks: Sequence[_Rows], visited: Callable[[Sequence[_Rows]], list[Sums]]
) -> list[Sums]:
    """Sums of all requests over blocks, which threads share; ``visited`` answers them for some blocks."""
    count = min(n_parts.get(), len(blocks))  # (Records of rows need all blocks in their order.)
    if count < 2 or any(request.observe is not None for request in requests):
        return visited(blocks)
    ends = [index * len(blocks) // count for index in range(count + 1)]
    tasks = [partial(visited, blocks[i:j]) for i, j in pairwise(ends)]
    return added(in_parallel(tasks))


def added(parts: Sequence[list[Sums]]) -> list[Sums]:
    """The sums of several parts of the rows, added one by one; None adds nothing."""
    totals: list[Sums] = []
    for sums in zip(*parts, strict=True):
        present = ([array for array in arrays if array is not None] for arrays in zip(*sums, strict=True))
        matrix, vector = (reduce(operator.add, arrays) if arrays else None for arrays in present)
        totals.append((matrix, vector))
    return totals


def _masked(part: Any, request: Request, mask: NDArray[np.bool_] | None, rows: Selection) -> Any:
    """The contribution of a block at the request's resolution, with zeros for rows that take no part."""
    if isinstance(part, (OuterStatistics, BinCounts)):  # kept as factors or bins unless they are rounded
        if request.resolution is None or (isinstance(part, BinCounts) and request.resolution <= 1):
            return part if mask is None else part.without(~mask[rows])
        part = np.asarray(part)
    if part is None:
        return None
    if mask is not None:
        part[in_library_of(part, ~mask[rows])] = 0
    return part if request.resolution is None else truncated(part, request.resolution)


def block_size(wanted: int, n_rows: int = 0, n_parts: int = 1, *, most: int = BLOCK_ROWS) -> int:
    """Rows of a block: close to the wanted number, in whole panels, and within the limits."""
    if n_parts > 1:  # all of about the same size
        share = -(-n_rows // n_parts)
        # Rounded up to whole panels, so that the last block is not a small one.
        wanted = -(-share // max(-(-share // wanted), 1)) + PANEL_ROWS - 1
    return max(min(max(_FEWEST_ROWS, wanted), most) // PANEL_ROWS, 1) * PANEL_ROWS


def selections(batches: Sequence[Batch], n_rows: int, block_rows: int) -> Iterator[Selection]:
    """The rows in any batch, in one block or more, which may be empty; slices where rows follow each other.

    Batches are gathered if the pass is then much shorter, see :func:`rounds`. Otherwise all members are
    visited, and those that are not in a batch contribute nothing.
    """
    lanes = min(n_lanes([batch.rate for batch in batches], n_rows), block_rows)
    if lanes:
        taken = np.zeros(n_rows, bool)
        for batch in batches:
            taken |= batch.mask
        yield from rounds(taken, lanes)
        return
    members = [batch.members for batch in batches if batch.members is not None]
    if len(members) < len(batches):
        yield from row_slices(n_rows, block_rows)
        return
    taking_part = np.flatnonzero(np.logical_or.reduce(members))
    for start in range(0, max(len(taking_part), 1), block_rows):
        block = taking_part[start : start + block_rows]
        unbroken = len(block) > 0 and block[-1] - block[0] == len(block) - 1
        yield slice(int(block[0]), int(block[-1]) + 1) if unbroken else block


def n_lanes(rates: Iterable[float], n_rows: int, unit: int = _LANES) -> int:
    """Number of lanes, a multiple of a unit, in which random batches are gathered; 0 visits all rows.

    Fewer lanes need more rounds (:func:`rounds`), and more have more empty places.
    """
    expected = n_rows * sum(rates)
    lanes = unit * max(1, math.ceil(math.sqrt(expected) / _PER_ROOT))
    per_lane = expected / lanes
    visited = lanes * (per_lane + 4 * math.sqrt(per_lane) + 5)  # places, nearly always enough
    return lanes if visited < n_rows / 2 else 0


def rounds(batch: NDArray[np.bool_], lanes: int) -> Iterator[NDArray[np.intp]]:
    """The rows of a random batch (n_rows,), in blocks (lanes,) of the same shapes for any batch.

    Row ``i`` is at place ``i % lanes`` of some block. Another row in the batch may move it to the next
    block, where all computations have the same shapes and the row the same place. What it contributes is
    therefore the same, bit for bit. Empty places hold a row that is not in the batch.
    """
    index = np.flatnonzero(batch)
    if len(index) == len(batch):
        raise RuntimeError("a random batch holds all rows, and none is left for empty places.")
    lane = index % lanes
    number, n_blocks = numbers_in_lanes(lane, lanes)
    places = np.full((n_blocks, lanes), int(np.argmin(batch)))
    places[number, lane] = index
    yield from places


def numbers_in_lanes(lane: NDArray[np.intp], n_lanes: int) -> tuple[NDArray[np.intp], int]:
    """The number (n,) of each row within its ``lane`` (n,), and the most rows of a lane, or 1."""
    counts = np.bincount(lane, minlength=n_lanes)
    number, first = np.empty_like(lane), np.cumsum(counts) - counts
    number[np.argsort(lane, kind="stable")] = np.arange(len(lane)) - np.repeat(first, counts)
    return number, max(int(counts.max()), 1)


#: Largest length of rows for precise products: beyond it, entries may be near the limits of float32.
LONGEST_ROW = 1e30


#: Most rows of a block with few points or narrow rows. Each block has a fixed cost.
_NARROW_ROWS = 64512
#: Most outputs of all rows of such a block.
_NARROW_OUTPUTS = 2**19

#: Size in bytes of the largest blocks that are read ahead of their products.
_AHEAD_BYTES = 2**23
#: Blocks are read ahead for fewer points than this.
_FEW_POINTS = 32

#: Largest cache, in bytes, of products that later steps use again.
_KEPT_BYTES = 2**28

#: A function that makes an array for rows, like :func:`row_memory`.
RowMemory = Callable[[int, int, Any], FloatArray]


class InMemoryRows(BlockRows):
    """Private rows in one array (n_rows, d_in), after the :class:`RowMap`, in the dtype of the products.

    ``y`` (n_rows,) are class indices or targets. With ``exact``, rows are kept in float64, rounded to a grid
    so coarse that sums over all of them are computed without rounding. ``norms`` (n_rows,) are the L2 norms
    if they are known. ``appended`` is a constant entry that each row has after those in ``X``, included in
    the norms. Rows so long that products could overflow are a ValueError.
    """

    def __init__(
        self,
        X: FloatArray,
        y: Labels,
        *,
        exact: bool = False,
        block_bytes: int = 2**22,
        norms: FloatArray | None = None,
        appended: float | None = None,
    ) -> None:
        self.grid = grid_of_rows(len(X)) if exact else None
        if self.grid is not None:
            X, norms = on_grid(X, self.grid), None
        self.n_rows, self.arithmetic = len(X), Arithmetic(X.dtype)
        self._narrow = is_narrow(*X.shape)
        self._X = np.asfortranarray(X) if self._narrow else X
        self._appended = appended
        norms = row_norms(X) if norms is None else norms
        self._all = Block(self._X, y, norms, partial(max_abs_of, self._X, appended))
        check_lengths(norms, X.dtype)
        self._block_rows = block_size(block_bytes // max(X.shape[1] * X.itemsize, 1))
        #: Fixed points of the last request, and the products (n_rows, m) of all rows with them.
        self._kept: tuple[FloatArray, FloatArray] | None = None
        self._n_new: int | None = None

    @classmethod
    def mapped(
        cls,
        X: FloatArray,
        y: Labels,
        row_map: RowMap,
        dtype: np.dtype[Any],
        *,
        memory: RowMemory = row_memory,
    ) -> "InMemoryRows":
        """Mapped features (n_rows, n_features), in new ``memory``."""
        norms, narrow = np.empty(len(X)), is_narrow(*X.shape)
        appended = None if narrow else row_map.intercept_value
        rows = memory(len(X), row_map.width(X.shape[1]) if narrow else X.shape[1], dtype)
        row_map.write(X, rows, norms)
        norms = norms if appended is None else np.hypot(norms, appended)
        return cls(rows, y, norms=norms, appended=appended)

    def private_sums(self, requests: Sequence[Request]) -> list[Sums]:
        # The products with fixed points of a lone request are kept, and only the others are computed.
        query, mask = requests[0].query, requests[0].batch.mask
        m, self._n_new = len(query.points), None
        kept_bytes = m * self.n_rows * self._X.itemsize
        if len(requests) > 1 or query.n_fixed == 0 or mask is not None or kept_bytes > _KEPT_BYTES:
            self._kept = None
            return self._sums(requests)
        fixed, self._n_new = query.points[m - query.n_fixed :], m - query.n_fixed
        if self._kept is None or self._kept[1].shape[1] != m or not np.array_equal(self._kept[0], fixed):
            self._kept, self._n_new = (fixed.copy(), np.empty((self.n_rows, m), self._X.dtype)), m
        return self._sums(requests)

    def wanted_rows(self, m: int) -> int:
        rows = min(_NARROW_OUTPUTS // max(m, 1), _NARROW_ROWS)
        return rows if self._narrow else min(rows, self._block_rows)

    def visits(self, blocks: Sequence[Selection], block_rows: int, m: int) -> Iterator[Visit]:
        bytes_of_block = block_rows * self._X.shape[1] * self._X.itemsize
        ahead = not self._narrow and m < _FEW_POINTS and bytes_of_block <= _AHEAD_BYTES
        n_new = m if self._n_new is None else self._n_new
        products = np.empty((min(block_rows, self.n_rows), n_new), self._X.dtype)
        for rows in blocks:
            block = self._all.of(rows)
            if ahead and isinstance(rows, slice):  # other rows were just copied
                read_ahead(self._X[rows])
            visit = dense_visit(rows, block, products, self._appended)
            yield visit if self._kept is None else replace(visit, times=partial(self._completed, visit))

    def _completed(self, visit: Visit, points: FloatArray) -> FloatArray:
        """Products of a block with all points, some of which are kept."""
        assert self._kept is not None
        Z = self._kept[1]
        Z[visit.rows, : self._n_new] = visit.times(np.asfortranarray(points[: self._n_new]))
        completed: FloatArray = Z[visit.rows]
        return completed

    def clip_loop(self, request: Request) -> ClipLoop | None:
        X, y, query, members = self._X, self._all.y, request.query, request.batch.members
        # NumPy reads only the rows that take part, which is faster if these are fewer than half.
        few = members is not None and 2 * np.count_nonzero(members) < self.n_rows
        if few or not self._narrow or self._appended is not None or y.dtype != np.int8:
            return None
        add = clipped_sums(self.n_rows, X.shape[1], len(query.points), X.dtype)
        if add is None:
            return None
        threshold = query.clip_threshold or 0.0

        def term(rows: slice, lengths: FloatArray) -> FloatArray:
            return add(X, y, lengths, query.points, threshold, rows)

        return ClipLoop(term, self._all.single_norms)


def max_abs_of(X: FloatArray, appended: float | None) -> FloatArray:
    """Largest absolute entry of each row, (n,), including an appended one."""
    entries = [largest_entries(X[rows]) for rows in parts_in_cache(X)]
    return np.asarray(np.maximum(np.concatenate([*entries, np.empty(0)]), abs(appended or 0.0)))


def check_lengths(norms: FloatArray, dtype: np.dtype[Any], name: str = "X") -> None:
    """Refuse rows so long that products could overflow, and lengths that are NaN."""
    if not np.all(norms <= LONGEST_ROW):
        raise ValueError(
            f"{name} holds a row that is too large for {dtype} products; pass "
            "rows=RowMapping(norm='unit') or scale the features."
        )


def sum_resolution(n_rows: int, row_grid: float, bound: float) -> float:
    """Resolution of weighted residuals at which their sums against the rows are exact.

    One row contributes at most ``bound`` to any entry of a sum, so partial sums are multiples
    of ``row_grid * resolution`` no larger than ``n_rows * bound``; float64 holds them, and
    the products, exactly while there are fewer than 2**53 such multiples.
    """
    spare = 52 - math.ceil(math.log2(n_rows * bound)) + math.log2(row_grid)
    return 2.0 ** -math.floor(spare)


def grid_of_rows(n_rows: int) -> float:
    """Grid of the rows for exact sums. It takes half of the free bits; the residuals take the others."""
    return 2.0 ** -((52 - math.ceil(math.log2(max(n_rows, 2)))) // 2)
