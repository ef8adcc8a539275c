"""Answers from blocks of rows: what every source that visits its rows block by block shares."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import DTypeLike, NDArray

from .._kernels import (
    BLOCK_ROWS,
    PANEL_ROWS,
    Cascade,
    add_products,
    in_parallel,
    laid_out,
    n_parts,
    row_products,
)
from .._linear import Array, astype, in_library_of, namespace_of
from .._rowmap import Whitening
from .source import Block, FloatArray, OuterStatistics, Request, Sums, truncated

#: Rows of a block, at least: each block has a fixed cost.
_FEWEST_ROWS = 512

#: Fewer outputs than this are laid out column by column.
_NARROW = 32

#: Rows of a source, by number.
Selection = slice | NDArray[np.intp]
#: The points to be multiplied for a request, and what makes all of its products out of theirs.
Products = tuple[FloatArray, Callable[[Selection, Array], Array] | None]


@dataclass(frozen=True)
class Visit:
    """One block of rows, and the two products that a source implements.

    Attributes
    ----------
    rows : slice or array of shape (rows,)
        Which rows of the source these are.
    block : Block
        What queries may know of them besides products.
    times : callable
        ``points`` (m, d_in), :func:`~skmixdp._kernels.laid_out`, to ``X points^T``, shape (rows, m), in
        the dtype of the products and where the rows are.
    add_sum : callable
        Adds ``C^T X``, shape (k, d_in), to a :class:`~skmixdp._kernels.Cascade`, given ``C`` (rows, k): in
        double precision where ``C`` is.
    add_short_sum : callable or None
        Does the same, given a third argument: the largest number of rows whose terms are added in single
        precision. None if the source adds in double precision instead.
    """

    rows: Selection
    block: Block
    times: Callable[[FloatArray], Array]
    add_sum: Callable[[Array, Cascade], None]
    add_short_sum: Callable[[Array, Cascade, int], None] | None = None


def visit_of(
    rows: Selection,
    X: FloatArray,
    block: Block,
    buffer: FloatArray,
    *,
    appended: float | None,
    panel_rows: int | None = PANEL_ROWS,
    takes_short_panels: bool = False,
) -> Visit:
    """The visit of a block of rows in an array.

    Parameters
    ----------
    rows : slice or array
        Which rows these are.
    X : array of shape (rows, n_features)
        The rows, but for an appended entry.
    block : Block
        What queries may know of them.
    buffer : array of shape (rows, m)
        Memory for products.
    appended : float or None
        A constant that each row has after its last entry. Rows of a power of two of features are multiplied
        faster than those with one more.
    panel_rows : int or None
        Largest number of rows whose terms are added in single precision; None adds all in double precision.
    takes_short_panels : bool
        Whether requests may choose fewer rows (``Request.short_panels``).
    """

    def times(points: FloatArray) -> FloatArray:
        if appended is None:
            return row_products(X, points, buffer)
        products = row_products(X, points[:, :-1], buffer)
        products += (appended * points[:, -1]).astype(products.dtype)
        return products

    def add_sum(C: Array, total: Cascade) -> None:
        weights = C.astype(np.float64, copy=False) if panel_rows is None else C
        add_products(total, weights, X, panel_rows=panel_rows or PANEL_ROWS, appended=appended)

    def add_short_sum(C: Array, total: Cascade, few: int) -> None:
        add_products(total, C, X, panel_rows=few, appended=appended)

    return Visit(rows, block, times, add_sum, add_short_sum if takes_short_panels else None)


def answer(
    requests: Sequence[Request],
    visits: Iterable[Visit],
    dtype: DTypeLike,
    whitening: Whitening | None = None,
    products: Sequence[Products] | None = None,
) -> list[tuple[Array | None, Array | None]]:
    """Sums of all requests over the visited blocks; at least one block, if an empty one.

    ``dtype`` is that in which points are multiplied. In each block, all requests of a precision share one
    product and one sum. Visited rows may lack a ``whitening``, which is linear: it is then applied to the
    points, and to the sums. The sums of tensors are tensors.

    ``products`` says what must be multiplied for each request; None is all of its points.
    """
    if products is None:
        products = [(request.points, None) for request in requests]
    asked = np.concatenate([computed for computed, _ in products])
    points = laid_out(asked if whitening is None else whitening(asked), dtype)
    columns = _Columns(min(len(request.points) for request in requests) < _NARROW, dtype)
    ends = np.cumsum([len(computed) for computed, _ in products])
    matrices: dict[int | None, Cascade] = {}
    vectors = [Cascade() for _ in requests]
    widths = [0] * len(requests)
    for visit in visits:
        Z = columns(visit.times(points))
        weighted: dict[int | None, list[Array]] = {}
        for index, (request, end) in enumerate(zip(requests, ends, strict=True)):
            computed, complete = products[index]
            own = Z[:, end - len(computed) : end]
            own = own if complete is None else complete(visit.rows, own)
            C, S = request.contribute(own, visit.block)
            C, S = _as_asked(C, request, visit.rows), _as_asked(S, request, visit.rows)
            if request.observe is not None:
                request.observe(visit.rows, visit.block, own, (C, S))
            if C is not None:
                weighted.setdefault(_panel_rows(request, visit), []).append(C)
                widths[index] = C.shape[1]
            if isinstance(S, OuterStatistics):
                vectors[index].add(S.sums())
            elif S is not None:
                xp = namespace_of(S)
                vectors[index].add(xp.sum(S, axis=0, dtype=xp.float64))
        for panel_rows, parts in weighted.items():
            joint, total = _joined(parts), matrices.setdefault(panel_rows, Cascade())
            if panel_rows is None:
                visit.add_sum(astype(joint, np.float64), total)
            elif panel_rows == PANEL_ROWS or visit.add_short_sum is None:
                visit.add_sum(joint, total)
            else:
                visit.add_short_sum(joint, total, panel_rows)
    found = {panel_rows: total.value for panel_rows, total in matrices.items()}
    sums: list[tuple[Array | None, Array | None]] = []
    for request, width, vector in zip(requests, widths, vectors, strict=True):
        matrix = None
        if width:
            panel_rows = _panel_rows(request, visit)
            rest = found[panel_rows]
            matrix, found[panel_rows] = rest[:width], rest[width:]
            matrix = matrix if whitening is None else whitening(matrix)
        sums.append((matrix, vector.value))
    return sums


def _panel_rows(request: Request, visit: Visit) -> int | None:
    """Largest number of rows whose terms are added in single precision; None adds all in double precision."""
    if not request.wide_sums:
        return PANEL_ROWS
    return None if visit.add_short_sum is None else request.short_panels


def in_parts(
    requests: Sequence[Request],
    blocks: Sequence[Selection],
    visited: Callable[[Sequence[Selection]], list[Sums]],
) -> list[Sums]:
    """Sums of all requests over blocks of rows, which threads share if there are any.

    ``visited`` answers the requests for some of the blocks. Records of rows need all blocks in their order.
    """
    watched = any(request.observe is not None for request in requests)
    count = 1 if watched else max(1, min(n_parts(), len(blocks)))
    ends = [index * len(blocks) // count for index in range(count + 1)]
    tasks = [partial(visited, blocks[i:j]) for i, j in pairwise(ends)]
    parts = in_parallel(tasks)
    return [
        (_total([part[index][0] for part in parts]), _total([part[index][1] for part in parts]))
        for index in range(len(requests))
    ]


def _total(sums: Sequence[FloatArray | None]) -> FloatArray | None:
    """The sum of what the parts of the rows give, one after the other."""
    total = sums[0]
    for other in sums[1:]:
        total = other if total is None else total if other is None else total + other
    return total


def _as_asked(part: Any, request: Request, rows: Selection) -> Any:
    """What a block contributes, without the rows that take no part and at the resolution asked for.

    Statistics that are not formed are formed only if a resolution is asked for.
    """
    if isinstance(part, OuterStatistics):
        if request.resolution is None:
            return part if request.mask is None else part.without(~request.mask[rows])
        part = np.asarray(part)
    if part is None:
        return None
    if request.mask is not None:
        part[in_library_of(part, ~request.mask[rows])] = 0
    return part if request.resolution is None else truncated(part, request.resolution)


def _joined(parts: Sequence[Array]) -> Array:
    """The weighted residuals of all requests, shape (rows, sum k)."""
    if len(parts) == 1:
        return parts[0]
    # Their transposes are joined, which keeps the order of entries in memory.
    return namespace_of(parts[0]).concat([part.T for part in parts]).T


class _Columns:
    """NumPy's products column by column, where there are few: what runs over a row's few outputs is then
    vectorised over rows.
    """

    def __init__(self, narrow: bool, dtype: DTypeLike) -> None:
        self._narrow = narrow
        self._buffer = np.empty(0, dtype)

    def __call__(self, Z: Array) -> Array:
        if not self._narrow or not isinstance(Z, np.ndarray) or Z.flags.f_contiguous:
            return Z
        if self._buffer.size < Z.size:
            self._buffer = np.empty(Z.size, Z.dtype)
        copy = self._buffer[: Z.size].reshape(Z.shape, order="F")
        np.copyto(copy, Z)
        return copy


def many_rows(m: int, d_in: int) -> int:
    """Rows in a block whose products with ``m`` points take long: many, to share its fixed cost.

    Arithmetic takes so long then that it does not matter whether rows are still in cache for their second
    product. The larger the sums of a block, the more rows it takes for adding them up to be cheap, as far as
    its outputs are no more than a million.
    """
    return max(1536, min(m * d_in // 32, 2**20 // max(m, 1)))


def block_size(n_rows: int) -> int:
    """A number of rows for a block: whole panels, and no more than its sums in double precision allow."""
    return max(min(max(_FEWEST_ROWS, n_rows), BLOCK_ROWS) // PANEL_ROWS, 1) * PANEL_ROWS


def even_blocks(n_rows: int, n_parts: int, block_rows: int) -> int:
    """Rows in a block, at most about ``block_rows``, with which several parts are about equally large."""
    if n_parts < 2:
        return block_rows
    share = -(-n_rows // n_parts)
    # Blocks are whole panels. Rounded up, they leave no small block over.
    return -(-share // max(-(-share // block_rows), 1)) + PANEL_ROWS - 1


def selections(
    masks: Sequence[NDArray[np.bool_] | None], n_rows: int, block_rows: int
) -> Iterator[Selection]:
    """The rows that any mask needs, block by block; None needs all.

    Rows that follow each other are a slice, which costs no copy of them. Where every mask is given,
    there is at least one block, if an empty one.
    """
    given = [mask for mask in masks if mask is not None]
    if len(given) < len(masks):
        for start in range(0, n_rows, block_rows):
            yield slice(start, min(start + block_rows, n_rows))
        return
    taking_part = np.flatnonzero(np.logical_or.reduce(given))
    for start in range(0, max(len(taking_part), 1), block_rows):
        block = taking_part[start : start + block_rows]
        unbroken = len(block) > 0 and block[-1] - block[0] == len(block) - 1
        yield slice(int(block[0]), int(block[-1]) + 1) if unbroken else block
