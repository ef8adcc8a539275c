"""Answers from blocks of rows, for all sources that visit rows block by block, and rows in one array."""

import math
import operator
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial, reduce
from itertools import pairwise
from typing import Any, TypeVar

import numpy as np
from numpy.typing import DTypeLike, NDArray

from .._linear import (
    BLOCK_ROWS,
    EXACT,
    PANEL_ROWS,
    Array,
    Cascade,
    FloatArray,
    SumError,
    add_products,
    clipped_sums,
    in_library_of,
    is_narrow,
    largest_entries,
    namespace_of,
    on_grid,
    read_ahead,
    row_memory,
    row_norms,
    row_products,
    row_slices,
    sum_error,
)
from .._utils.process import in_parallel, n_parts
from .row_map import RowMap
from .scaling import Whitening
from .source import BinCounts, Block, Labels, OuterStatistics, PrivateRows, Request, Sums, truncated

#: Minimum rows per block, since each block has a fixed cost.
_FEWEST_ROWS = 512

#: Number of outputs from which products are stored row by row; fewer are stored column by column.
_NARROW = 32

#: The number of lanes for a random batch of b rows is 64 ceil(sqrt(b) / 8), a multiple of this.
_LANES = 64
#: The root of b is divided by this.
_PER_ROOT = 8

#: Indices of rows of a source.
Selection = slice | NDArray[np.intp]
_Rows = TypeVar("_Rows", slice, Selection)
#: The points to multiply for a request, and a function that adds cached products, or None without a cache.
Products = tuple[FloatArray, Callable[[Selection, Array], Array] | None]


@dataclass(frozen=True)
class Visit:
    """A block of rows: their indices, the data that queries may use, and the two products.

    ``times`` takes ``points`` (m, d_in), in Fortran order, to ``X points^T`` (rows, m), where the rows are
    and in the dtype of the products. ``add_sum`` adds ``C^T X`` (k, d_in) to a
    :class:`~skmixdp._linear.Cascade`, given ``C`` (rows, k) and the most rows whose terms may be added in
    single precision. Terms are added in double precision if ``C`` is, or if that number is 0.
    """

    rows: Selection
    block: Block
    times: Callable[[FloatArray], Array]
    add_sum: Callable[[Array, Cascade, int], None]


def answer(
    requests: Sequence[Request],
    visits: Iterable[Visit],
    dtype: DTypeLike,
    whitening: Whitening | None = None,
    products: Sequence[Products] | None = None,
) -> list[tuple[Array | None, Array | None]]:
    """Sums of all requests over the visited blocks. There is at least one block, which may be empty.

    ``dtype`` is that in which points are multiplied. In each block, all requests of a precision share one
    product and one sum. Visited rows may lack a ``whitening``, which is linear: it is then applied to the
    points, and to the sums. The sums of tensors are tensors.

    ``products`` says what must be multiplied for each request; None is all of its points.
    """
    if products is None:
        products = [(request.query.points, None) for request in requests]
    asked = np.concatenate([computed for computed, _ in products])
    points = (asked if whitening is None else whitening(asked)).astype(dtype, order="F")
    narrow = min(len(request.query.points) for request in requests) < _NARROW
    buffer = np.empty(0, dtype)
    ends = np.cumsum([len(computed) for computed, _ in products])
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
            computed, complete = products[index]
            products_of_request = Z[:, end - len(computed) : end]
            if complete is not None:
                products_of_request = complete(visit.rows, products_of_request)
            C, S = request.query.contribute(products_of_request, visit.block)
            C, S = (_masked(part, request, masks[index], visit.rows) for part in (C, S))
            if request.observe is not None:
                request.observe(visit.rows, visit.block, products_of_request, (C, S))
            if C is not None:
                weighted.setdefault(request.query.panel_rows, []).append(C)
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
    sums: list[tuple[Array | None, Array | None]] = []
    for request, width, vector in zip(requests, widths, vectors, strict=True):
        matrix = None
        if width:
            rest = totals[request.query.panel_rows]
            matrix, totals[request.query.panel_rows] = rest[:width], rest[width:]
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
    found: list[Sums] = []
    for sums in zip(*parts, strict=True):
        present = ([array for array in arrays if array is not None] for arrays in zip(*sums, strict=True))
        matrix, vector = (reduce(operator.add, arrays) if arrays else None for arrays in present)
        found.append((matrix, vector))
    return found


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


def selections(requests: Sequence[Request], n_rows: int, block_rows: int) -> Iterator[Selection]:
    """The rows that any request needs, in blocks: at least one block, which may be empty.

    Rows that follow each other are a slice, which costs no copy of them. Batches are gathered if the pass is
    then much shorter, see :func:`rounds`. Otherwise all members are visited, and those that are not in a
    batch contribute nothing.
    """
    lanes = min(n_lanes([request.batch.rate for request in requests], n_rows), block_rows)
    if lanes:
        taken = np.zeros(n_rows, bool)
        for request in requests:
            taken |= request.batch.mask
        yield from rounds(taken, lanes)
        return
    members = [request.batch.members for request in requests if request.batch.members is not None]
    if len(members) < len(requests):
        yield from row_slices(n_rows, block_rows)
        return
    taking_part = np.flatnonzero(np.logical_or.reduce(members))
    for start in range(0, max(len(taking_part), 1), block_rows):
        block = taking_part[start : start + block_rows]
        unbroken = len(block) > 0 and block[-1] - block[0] == len(block) - 1
        yield slice(int(block[0]), int(block[-1]) + 1) if unbroken else block


def stated_error(
    request: Request,
    n_rows: int,
    dtype: DTypeLike,
    *,
    panel_rows: int = PANEL_ROWS,
    block_rows: int = BLOCK_ROWS,
    stretch: float = 1.0,
) -> SumError:
    """The error of the sums of a request over ``n_rows`` rows of a dtype.

    The source adds at most ``panel_rows`` rows in single precision; 0 is no row. ``block_rows`` and
    ``stretch`` are those of :func:`~skmixdp._linear.sum_error`.
    """
    return sum_error(
        n_rows,
        dtype,
        panel_rows=min(panel_rows, request.query.panel_rows),
        block_rows=block_rows,
        stretch=stretch,
        moving=request.batch.taken is not None,
    )


def n_lanes(rates: Iterable[float], n_rows: int, unit: int = _LANES) -> int:
    """Number of lanes, a multiple of a unit, in which the rows of random batches are gathered.

    0 visits all rows. Fewer lanes need more rounds (:func:`rounds`), and more lanes have more empty places.
    The unit is small if a row takes long.
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

#: Size in bytes of the blocks that are mapped in every pass.
_PASSING_BYTES = 2**21

#: Largest cache, in bytes, of products that later steps use again.
_KEPT_BYTES = 2**28

#: A function that makes an array for rows, like :func:`~skmixdp._linear.row_memory`.
RowMemory = Callable[[int, int, Any], FloatArray]


class InMemoryRows(PrivateRows):
    """Private rows in one array (n_rows, d_in), after the :class:`~skmixdp._rows.RowMap`.

    Their dtype is that of the products; ``y`` (n_rows,) are class indices or targets. With ``exact``, rows
    are kept in float64, rounded to a grid so coarse that sums over all of them are computed without rounding.
    ``norms`` (n_rows,) are the L2 norms if they are known. ``appended`` is a constant entry that each row has
    after those in ``X``, included in the norms. Rows so long that products could overflow are a ValueError.

    Blocks of ``block_bytes`` are so large that their fixed cost is small, and so small that some caches still
    hold a block when it is needed again. A block has at least 512 rows: adding up (k, d_in) sums then costs
    little compared with their products.
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
        self._narrow = is_narrow(*X.shape)
        self._X = np.asfortranarray(X) if self._narrow else X
        self._appended = appended
        self._all = Block(self._X, y, row_norms(X) if norms is None else norms)
        check_lengths(self._all.norms, X.dtype)
        self.n_rows = len(X)
        #: Caches by the position of a request in a pass: the next pass mostly has the same fit there.
        self._kept: dict[int, FixedProducts] = {}
        self._block_rows = block_size(block_bytes // max(X.shape[1] * X.itemsize, 1))

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
        norms, value = np.empty(len(X)), row_map.intercept_value
        if is_narrow(*X.shape):
            narrow = memory(len(X), row_map.width(X.shape[1]), dtype)
            row_map.write(X, narrow, norms)
            return cls(narrow, y, norms=norms)
        rows = memory(len(X), X.shape[1], dtype)
        row_map.write(X, rows, norms)
        return cls(rows, y, norms=norms if value is None else np.hypot(norms, value), appended=value)

    def private_sums(self, requests: Sequence[Request]) -> list[Sums]:
        if (sums := self._compiled_sums(requests)) is not None:
            return sums
        products: list[Products] = []
        for place, request in enumerate(requests):
            points, n_fixed = request.query.points, request.query.n_fixed
            kept_bytes = len(points) * self.n_rows * self._X.itemsize
            if n_fixed == 0 or request.batch.mask is not None or kept_bytes > _KEPT_BYTES:
                products.append((points, None))
                continue
            kept = self._kept.setdefault(place, FixedProducts(self.n_rows, self._X.dtype))
            products.append((kept.begin(points, n_fixed), kept.complete))
        m = sum(len(computed) for computed, _ in products)
        block_rows = min(_NARROW_OUTPUTS // max(m, 1), _NARROW_ROWS)
        if not self._narrow:
            block_rows = min(block_rows, self._block_rows)
        block_rows = block_size(block_rows, self.n_rows, n_parts.get())

        def visited(blocks: Sequence[Selection]) -> list[Sums]:
            return answer(requests, self._visits(blocks, block_rows, m), self._X.dtype, products=products)

        return in_parts(requests, list(selections(requests, self.n_rows, block_rows)), visited)

    def _visits(self, blocks: Sequence[Selection], block_rows: int, m: int) -> Iterator[Visit]:
        """Visits of blocks of at most ``block_rows`` rows, which are multiplied with m points."""
        bytes_of_block = block_rows * self._X.shape[1] * self._X.itemsize
        ahead = not self._narrow and m < _FEW_POINTS and bytes_of_block <= _AHEAD_BYTES
        buffer, value = np.empty((min(block_rows, self.n_rows), m), self._X.dtype), self._appended
        for rows in blocks:
            X = self._X[rows]
            if ahead and isinstance(rows, slice):  # other rows were just copied
                read_ahead(X)
            block = Block(X, self._all.y[rows], self._all.norms[rows], partial(max_abs_of, X, value))
            times = partial(row_products, X, out=buffer[: len(X)], appended=value)
            yield Visit(rows, block, times, partial(add_products, X, appended=value))

    def _compiled_sums(self, requests: Sequence[Request]) -> list[Sums] | None:
        """The sums of clipped residuals by compiled loops; None unless these suit all requests."""
        X, y = self._X, self._all.y
        loops_fit = self._narrow and self._appended is None and y.dtype == np.int8
        if not loops_fit or n_lanes([request.batch.rate for request in requests], self.n_rows) > 0:
            return None
        loops: list[Any] = []
        for request in requests:
            plain = request.query.clip_threshold is not None and request.query.panel_rows == PANEL_ROWS
            # NumPy reads only the rows that take part, which is faster if these are fewer than half.
            members = request.batch.members
            few = members is not None and 2 * np.count_nonzero(members) < self.n_rows
            if not plain or request.resolution is not None or request.observe is not None or few:
                return None
            loop = clipped_sums(self.n_rows, X.shape[1], len(request.query.points), X.dtype)
            if loop is None:
                return None
            loops.append(loop)
        # Rows that take no part get infinite lengths, with which they contribute nothing.
        norms = self._all.single_norms
        lengths = [
            norms if mask is None else np.where(mask, norms, np.float32(np.inf))
            for mask in (request.batch.mask for request in requests)
        ]

        def visited(blocks: Sequence[slice]) -> list[Sums]:
            totals = [Cascade() for _ in requests]
            for rows in blocks:
                for request, add, of_request, total in zip(requests, loops, lengths, totals, strict=True):
                    total.add(add(X, y, of_request, request.query.points, request.query.clip_threshold, rows))
            return [(total.value, None) for total in totals]

        size = block_size(BLOCK_ROWS, self.n_rows, n_parts.get())
        return in_parts(requests, list(row_slices(self.n_rows, size)), visited)

    def sum_error(self, request: Request) -> SumError:
        if request.resolution is not None:
            return EXACT
        return stated_error(request, self.n_rows, self._X.dtype)


class RemappedRows(PrivateRows):
    """Private rows in memory that are mapped again in every pass, which saves a copy if there are few passes.

    Rows are features (n_rows, n_features), and the map scales them to unit length and appends no intercept.
    """

    def __init__(self, X: FloatArray, y: Labels, row_map: RowMap, dtype: np.dtype[Any]) -> None:
        self._X = X
        self._y = y
        self._map = row_map
        self._dtype = np.dtype(dtype)
        self.n_rows = len(X)

    def private_sums(self, requests: Sequence[Request]) -> list[Sums]:
        m = sum(len(request.query.points) for request in requests)
        size = block_size(_PASSING_BYTES // (self._X.shape[1] * self._dtype.itemsize))

        def visited(blocks: Sequence[Selection]) -> list[Sums]:
            held = row_memory(min(size, max(self.n_rows, 1)), self._X.shape[1], self._dtype)
            return answer(requests, self._visits(blocks, held, m), self._dtype)

        return in_parts(requests, list(selections(requests, self.n_rows, size)), visited)

    def _visits(self, blocks: Sequence[Selection], held: FloatArray, m: int) -> Iterator[Visit]:
        """Visits of blocks in memory that holds one at a time."""
        buffer = np.empty((len(held), m), self._dtype)
        for rows in blocks:
            features = self._X[rows]
            X, norms = held[: len(features)], np.empty(len(features))
            self._map.write(features, X, norms)
            times = partial(row_products, X, out=buffer[: len(features)])
            yield Visit(rows, Block(X, self._y[rows], norms), times, partial(add_products, X))

    def sum_error(self, request: Request) -> SumError:
        return stated_error(request, self.n_rows, self._dtype)


class FixedProducts:
    """Cache of the products of fixed points; it is private state, and stays with the rows."""

    def __init__(self, n_rows: int, dtype: np.dtype[Any]) -> None:
        self._points: FloatArray = np.empty((0, 0))
        self._Z = np.empty((n_rows, 0), dtype)

    def begin(self, points: FloatArray, n_fixed: int) -> FloatArray:
        """Start a pass for points (m, d_in), the last ``n_fixed`` of them fixed; those to compute."""
        fixed = points[len(points) - n_fixed :]
        if self._Z.shape[1] == len(points) and np.array_equal(self._points, fixed):
            return points[: len(points) - n_fixed]
        self._points = fixed.copy()
        self._Z = np.empty((len(self._Z), len(points)), self._Z.dtype)
        return points

    def complete(self, rows: Selection, computed: FloatArray) -> FloatArray:
        """Products of a block of rows with all points, from the computed and the cached ones."""
        self._Z[rows, : computed.shape[1]] = computed
        return self._Z[rows]


def max_abs_of(X: FloatArray, appended: float | None) -> FloatArray:
    """Largest absolute entry of each row, (n,), including an appended one."""
    return np.asarray(np.maximum(largest_entries(X), abs(appended or 0.0)))


def check_lengths(norms: FloatArray, dtype: np.dtype[Any], name: str = "X") -> None:
    """Refuse rows so long that products could overflow, and lengths that are NaN."""
    if not np.all(norms <= LONGEST_ROW):
        raise ValueError(
            f"{name} holds a row that is too large for {dtype} products; pass row_norm='unit' or scale the "
            "features."
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
