"""Answers from blocks of rows, for all sources that visit their rows block by block."""

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
    PANEL_ROWS,
    Array,
    Cascade,
    FloatArray,
    SumError,
    in_library_of,
    in_parallel,
    n_parts,
    namespace_of,
    sum_error,
)
from .scaling import Whitening
from .source import BinCounts, Block, OuterStatistics, Request, Sums, truncated

#: Minimum rows per block, since each block has a fixed cost.
_FEWEST_ROWS = 512

#: Number of outputs from which products are stored row by row; fewer are stored column by column.
_NARROW = 32

#: The number of lanes for random batches is the first number times the square root of a batch's size divided
#: by the second, rounded up.
_LANES, _PER_ROOT = 64, 8

#: Rows of a source, by number.
Selection = slice | NDArray[np.intp]
_Rows = TypeVar("_Rows", slice, Selection)
#: The points to multiply for a request, and a function that adds cached products; None without a cache.
Products = tuple[FloatArray, Callable[[Selection, Array], Array] | None]


@dataclass(frozen=True)
class Visit:
    """A block of rows by number, what queries may know of it, and the two products of its source.

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
    """Sums of all requests over the visited blocks, of which there is at least one; it may be empty.

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
            # Column by column, so that work on few products of a row is vectorised over rows.
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
            # Another row may move rows of a batch to other blocks. In double precision the stated error
            # covers this.
            largest = 0 if gathered and not isinstance(visit.rows, slice) else panel_rows
            # Their transposes are joined, which keeps the order of entries in memory.
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
    """Sums of all requests over blocks of rows, which threads share if there are any.

    ``visited`` answers the requests for some of the blocks. Records of rows need all blocks in their order.
    """
    watched = any(request.observe is not None for request in requests)
    count = 1 if watched else max(1, min(n_parts.get(), len(blocks)))
    ends = [index * len(blocks) // count for index in range(count + 1)]
    tasks = [partial(visited, blocks[i:j]) for i, j in pairwise(ends)]
    return added(in_parallel(tasks))


def added(parts: Sequence[list[Sums]]) -> list[Sums]:
    """The sums of several parts of the rows, added one after the other; None adds nothing."""

    def total(arrays: Iterable[Any]) -> Any:
        present = [array for array in arrays if array is not None]
        return reduce(operator.add, present) if present else None

    return [(total(m for m, _ in sums), total(v for _, v in sums)) for sums in zip(*parts, strict=True)]


def _masked(part: Any, request: Request, mask: NDArray[np.bool_] | None, rows: Selection) -> Any:
    """The contribution of a block at the request's resolution, with zeros for rows that take no part.

    Statistics that are kept as factors or bins stay so, unless they must be rounded to a resolution.
    """
    if isinstance(part, (OuterStatistics, BinCounts)):
        if request.resolution is None or (isinstance(part, BinCounts) and request.resolution <= 1):
            return part if mask is None else part.without(~mask[rows])
        part = np.asarray(part)
    if part is None:
        return None
    if mask is not None:
        part[in_library_of(part, ~mask[rows])] = 0
    return part if request.resolution is None else truncated(part, request.resolution)


def block_size(wanted: int, n_rows: int = 0, n_parts: int = 1) -> int:
    """Rows of a block: about as many as wanted, in whole panels and within the limits of a block.

    Several parts of a pass over ``n_rows`` rows get about the same size.
    """
    if n_parts > 1:
        share = -(-n_rows // n_parts)
        # Rounded up to whole panels, blocks leave no small one over.
        wanted = -(-share // max(-(-share // wanted), 1)) + PANEL_ROWS - 1
    return max(min(max(_FEWEST_ROWS, wanted), BLOCK_ROWS) // PANEL_ROWS, 1) * PANEL_ROWS


def selections(requests: Sequence[Request], n_rows: int, block_rows: int) -> Iterator[Selection]:
    """The rows that any request needs, block by block: at least one block, which may be empty.

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
        for start in range(0, n_rows, block_rows):
            yield slice(start, min(start + block_rows, n_rows))
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
    """Number of lanes, a multiple of a unit, in which to gather the rows of random batches together.

    0 visits all rows. Fewer lanes need more rounds (:func:`rounds`), and more lanes have more empty places.
    The unit is small if a row takes long.
    """
    expected = n_rows * sum(rates)
    lanes = unit * max(1, math.ceil(math.sqrt(expected) / _PER_ROOT))
    per_lane = expected / lanes
    visited = lanes * (per_lane + 4 * math.sqrt(per_lane) + 5)  # or hardly more
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
    order = np.argsort(lane, kind="stable")
    counts = np.bincount(lane, minlength=lanes)
    number = np.empty(len(index), np.intp)  # of a row within its lane
    number[order] = np.arange(len(index)) - np.repeat(np.cumsum(counts) - counts, counts)
    places = np.full((max(int(counts.max()), 1), lanes), int(np.argmin(batch)))
    places[number, lane] = index
    yield from places
