"""Private rows in one array."""

import math
from collections.abc import Iterator, Sequence
from weakref import WeakKeyDictionary

import numpy as np
from numpy.typing import NDArray

from ..linear import row_norms, row_products, weighted_sum
from .contract import Block, FloatArray, Labels, Request, Sums
from .running import RunningProducts

#: Longer rows would bring products so near the ends of float32's range that rounding no
#: longer is a fixed fraction of them.
_LONGEST_ROW = 1e30


#: Fewer outputs than this are laid out column by column.
_NARROW = 32

#: Blocks whose sums are added in the rows' own precision before they go to float64.
_ADDED_TOGETHER = 8

#: Products of more bytes than this are not kept from one step to the next.
_KEPT_BYTES = 2**28


class InMemoryRows:
    """Private rows in one array.

    Parameters
    ----------
    X : array of shape (n_rows, d_in)
        Rows after the :class:`~skmixdp.linear.RowMap`; their dtype is that of the products.
    y : array of shape (n_rows,)
        Class indices.
    exact : bool
        Keep the rows in float64, rounded to a grid so coarse that sums over all of them can
        be computed without rounding.
    block_bytes : int
        Size of the blocks that are visited in turn: large enough for the products to run at
        full speed, small enough for a block to be still in cache when it is needed again. A
        block has at least 512 rows, beside whose products adding up (k, d_in) sums is cheap.

    Raises
    ------
    ValueError
        If a row is so long that its products could overflow.
    """

    def __init__(self, X: FloatArray, y: Labels, *, exact: bool = False, block_bytes: int = 2**21) -> None:
        self.grid = _grid_of_rows(len(X)) if exact else None
        if self.grid is not None:
            X = np.round(np.asarray(X, dtype=np.float64) / self.grid) * self.grid
        self._X = X
        self._y = y
        self._norms = row_norms(X)
        if not np.all(self._norms <= _LONGEST_ROW):
            row = int(np.argmin(self._norms <= _LONGEST_ROW))
            raise ValueError(
                f"row {row} of X is of length {self._norms[row]:.3g}, too large for {X.dtype} products; "
                "pass normalize=True or scale the features."
            )
        self.n_rows = len(X)
        # A run's products go when the run does.
        self._running: WeakKeyDictionary[object, RunningProducts] = WeakKeyDictionary()
        self._block_rows = max(512, block_bytes // max(X.shape[1] * X.itemsize, 1))

    def private_sums(self, requests: Sequence[Request]) -> list[Sums]:
        products = [self._products(request) for request in requests]
        points = np.concatenate([computed for computed, _ in products])
        points = points.astype(self._X.dtype, order="F")
        ends = np.cumsum([len(computed) for computed, _ in products])
        totals = [(BlockTotal(), BlockTotal()) for _ in requests]
        narrowest = min(len(computed) for computed, _ in products)
        buffer = np.empty((min(self._block_rows, self.n_rows), len(points)), points.dtype)
        for rows in self._blocks(requests):
            X = self._X[rows]
            Z = _by_run(row_products(X, points, buffer[: len(X)]), narrowest)
            block = Block(X, self._y[rows], self._norms[rows])
            weighted: list[tuple[int, FloatArray]] = []
            for index, (request, (computed, running), end) in enumerate(
                zip(requests, products, ends, strict=True)
            ):
                own: FloatArray = Z[:, end - len(computed) : end]
                if running is not None:
                    assert isinstance(rows, slice)  # no mask: blocks are slices
                    own = running.complete(rows, own)
                C, S = request.contribute(own, block)
                if request.mask is not None:
                    absent = ~request.mask[rows]
                    for part in (C, S):
                        if part is not None:
                            part[absent] = 0
                if request.resolution is not None:
                    C, S = (_truncate(part, request.resolution) for part in (C, S))
                if C is not None:
                    weighted.append((index, C))
                if S is not None:
                    totals[index][1].add(S.sum(axis=0, dtype=np.float64))
            # One product for all requests.
            if weighted:
                parts = [C for _, C in weighted]
                product = weighted_sum(parts[0] if len(parts) == 1 else np.concatenate(parts, axis=1), X)
                row = 0
                for index, C in weighted:
                    totals[index][0].add(product[row : row + C.shape[1]])
                    row += C.shape[1]
        return [(matrix.value, vector.value) for matrix, vector in totals]

    def _products(self, request: Request) -> tuple[FloatArray, RunningProducts | None]:
        """The points to be multiplied for a request, and what keeps the products of others."""
        size = len(request.points) * self.n_rows * self._X.itemsize
        if request.n_head == 0 or request.mask is not None or size > _KEPT_BYTES:
            return request.points, None
        running = self._running.get(request.run)
        if running is None:
            running = self._running[request.run] = RunningProducts(self.n_rows, self._X.dtype)
        return running.begin(request.points, request.n_head), running

    def _blocks(self, requests: Sequence[Request]) -> Iterator[slice | NDArray[np.intp]]:
        """The rows that any request needs, block by block; at least one block, if an empty one."""
        masks = [request.mask for request in requests if request.mask is not None]
        if len(masks) < len(requests):
            for start in range(0, self.n_rows, self._block_rows):
                yield slice(start, start + self._block_rows)
            return
        taking_part = np.flatnonzero(np.logical_or.reduce(masks))
        for start in range(0, max(len(taking_part), 1), self._block_rows):
            yield taking_part[start : start + self._block_rows]


def sum_resolution(n_rows: int, row_grid: float, bound: float) -> float:
    """Resolution of weighted residuals at which their sums against the rows are exact.

    One row contributes at most ``bound`` to any entry of a sum, so partial sums are multiples
    of ``row_grid * resolution`` no larger than ``n_rows * bound``; float64 holds them, and
    the products, exactly while there are fewer than 2**53 such multiples.
    """
    spare = 52 - math.ceil(math.log2(n_rows * bound)) + math.log2(row_grid)
    return 2.0 ** -math.floor(spare)


def _grid_of_rows(n_rows: int) -> float:
    """Half of the bits that sums over the rows leave, the other half being the residuals'."""
    return 2.0 ** -((52 - math.ceil(math.log2(max(n_rows, 2)))) // 2)


def _truncate(part: FloatArray | None, resolution: float) -> FloatArray | None:
    """Round towards zero, which lengthens no row's contribution."""
    return None if part is None else np.asarray(np.trunc(part / resolution) * resolution)


class BlockTotal:
    """Sum of arrays, one for each block, in float64: a few in their own precision first."""

    def __init__(self) -> None:
        self._total: FloatArray | None = None
        self._recent: FloatArray | None = None
        self._n_recent = 0

    def add(self, term: FloatArray) -> None:
        """Add the array of a block; it may be kept."""
        if self._recent is None:
            self._recent = term
        else:
            self._recent += term
        self._n_recent += 1
        if self._n_recent == _ADDED_TOGETHER:
            self._flush()

    @property
    def value(self) -> FloatArray | None:
        """The sum, or None where nothing was added."""
        self._flush()
        return self._total

    def _flush(self) -> None:
        if self._recent is not None:
            if self._total is None:
                self._total = self._recent.astype(np.float64)
            else:
                self._total += self._recent
        self._recent, self._n_recent = None, 0


def _by_run(Z: FloatArray, narrowest: int) -> FloatArray:
    """Products laid out so that what works on one run's few outputs is vectorised over rows."""
    return np.asfortranarray(Z) if narrowest < _NARROW else Z
