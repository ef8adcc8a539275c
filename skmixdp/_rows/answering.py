"""Answers from blocks of rows: what every source that visits its rows block by block shares."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import DTypeLike, NDArray

from .._kernels import BLOCK_ROWS, PANEL_ROWS, Cascade, laid_out
from .._rowmap import Whitening
from .joining import Joined
from .running import RunningProducts
from .source import Block, FloatArray, Request, Sums, truncated

#: Rows of a block, at least: each block has a fixed cost.
_FEWEST_ROWS = 512

#: Fewer outputs than this are laid out column by column.
_NARROW = 32

#: Rows of a source, by number.
Selection = slice | NDArray[np.intp]
#: The points to be multiplied for a request, and what keeps the products of its others.
Products = tuple[FloatArray, RunningProducts | None]


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
        ``points`` (m, d_in), :func:`~skmixdp._linear.laid_out`, to ``X points^T``, shape (rows, m), in
        the dtype of the products.
    add_sum : callable
        Adds ``C^T X``, shape (k, d_in), to a :class:`~skmixdp._linear.Cascade`, given ``C`` (rows, k): in
        double precision where ``C`` is.
    """

    rows: Selection
    block: Block
    times: Callable[[FloatArray], FloatArray]
    add_sum: Callable[[FloatArray, Cascade], None]


def answer(
    requests: Sequence[Request],
    visits: Iterable[Visit],
    dtype: DTypeLike,
    whitening: Whitening | None = None,
) -> list[Sums]:
    """Sums of all requests over the visited blocks; at least one block, if an empty one.

    ``dtype`` is that in which points are multiplied. Requests of one kind are answered as one. Visited rows
    may lack a ``whitening``, which is linear: it is then applied to the points, and to the sums.
    """
    joined = Joined(requests)
    products: list[Products] = [
        (request.points if whitening is None else whitening(request.points), None)
        for request in joined.requests
    ]
    found = joined.answers(answer_each(joined.requests, visits, dtype, products))
    if whitening is None:
        return found
    return [(None if matrix is None else whitening(matrix), vector) for matrix, vector in found]


def answer_each(
    requests: Sequence[Request], visits: Iterable[Visit], dtype: DTypeLike, products: Sequence[Products]
) -> list[Sums]:
    """As :func:`answer`, one by one; ``products`` says what must be multiplied for each request."""
    points = laid_out(np.concatenate([computed for computed, _ in products]), dtype)
    narrow = min(len(r.points) // r.n_joined for r in requests) < _NARROW
    columns = np.empty(0, dtype)
    ends = np.cumsum([len(computed) for computed, _ in products])
    # One product for all requests of a precision, and one sum for each request's statistics.
    matrices = {wide: Cascade() for wide in (False, True)}
    vectors = [Cascade() for _ in requests]
    widths = [0] * len(requests)
    for visit in visits:
        Z = visit.times(points)
        if narrow and not Z.flags.f_contiguous:
            # Column by column: what runs over a row's few outputs is then vectorised over rows.
            if columns.size < Z.size:
                columns = np.empty(Z.size, Z.dtype)
            copy = columns[: Z.size].reshape(Z.shape, order="F")
            np.copyto(copy, Z)
            Z = copy
        weighted: dict[bool, list[FloatArray]] = {False: [], True: []}
        for index, (request, (computed, running), end) in enumerate(
            zip(requests, products, ends, strict=True)
        ):
            own: FloatArray = Z[:, end - len(computed) : end]
            if running is not None:
                assert isinstance(visit.rows, slice)  # no mask: blocks are slices
                own = running.complete(visit.rows, own)
            C, S = request.contribute(own, visit.block)
            if request.mask is not None:
                absent = ~request.mask[visit.rows]
                for part in (C, S):
                    if part is not None:
                        part[absent] = 0
            if request.resolution is not None:
                C, S = (None if part is None else truncated(part, request.resolution) for part in (C, S))
            if C is not None:
                weighted[request.wide_sums].append(C)
                widths[index] = C.shape[1]
            if S is not None:
                vectors[index].add(S.sum(axis=0, dtype=np.float64))
        for wide, parts in weighted.items():
            if parts:
                joint = _side_by_side(parts)
                visit.add_sum(joint.astype(np.float64) if wide else joint, matrices[wide])
    found = {wide: total.value for wide, total in matrices.items()}
    sums: list[Sums] = []
    for request, width, vector in zip(requests, widths, vectors, strict=True):
        matrix = None
        if width:
            matrix, found[request.wide_sums] = np.split(found[request.wide_sums], [width])
        sums.append((matrix, vector.value))
    return sums


def _side_by_side(parts: Sequence[FloatArray]) -> FloatArray:
    """The weighted residuals of all requests, shape (rows, sum k)."""
    if len(parts) == 1:
        return parts[0]
    # Their transposes are joined, which keeps columns as they lie.
    return np.concatenate([part.T for part in parts]).T


def many_rows(m: int, d_in: int) -> int:
    """Rows in a block whose products with ``m`` points take long: many, to share its fixed price.

    Arithmetic takes so long then that it does not matter whether rows are still in cache for their second
    product. The larger the sums of a block, the more rows it takes for adding them up to be cheap, as far as
    its outputs are no more than a million.
    """
    return max(1536, min(m * d_in // 32, 2**20 // max(m, 1)))


def block_size(n_rows: int) -> int:
    """A number of rows for a block: whole panels, and no more than its sums in double precision allow."""
    return max(min(max(_FEWEST_ROWS, n_rows), BLOCK_ROWS) // PANEL_ROWS, 1) * PANEL_ROWS


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
