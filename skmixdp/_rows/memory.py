"""Private rows in one array."""

import math
from collections.abc import Sequence
from contextlib import AbstractContextManager
from typing import Any

import numpy as np

from .._kernels import EXACT, SumError, add_products, on_grid, product_session, row_products, sum_error
from .._linear import row_norms
from .answering import Selection, Visit, answer, block_size, many_rows, selections
from .source import Block, FloatArray, Labels, PrivateRows, Request, Sums

#: Longer rows would bring products so near the ends of float32's range that rounding no
#: longer is a fixed fraction of them.
_LONGEST_ROW = 1e30


#: Blocks for several requests are larger than those for one by this factor, at most.
_LARGER = 4

#: With at least so many points, blocks are as large as :func:`many_rows` says, and half as large at least:
#: there are more outputs, which are in cache as well.
_MANY_POINTS = 32


class InMemoryRows(PrivateRows):
    """Private rows in one array.

    Parameters
    ----------
    X : array of shape (n_rows, d_in)
        Rows after the :class:`~skmixdp._rowmap.RowMap`; their dtype is that of the products.
    y : array of shape (n_rows,)
        Class indices.
    exact : bool
        Keep the rows in float64, rounded to a grid so coarse that sums over all of them can
        be computed without rounding.
    block_bytes : int
        Size of the blocks that are visited in turn: large enough for the products to run at
        full speed, small enough for a block to be still in cache when it is needed again. A
        block has at least 512 rows: to add up (k, d_in) sums costs little compared with their products.
    norms : array of shape (n_rows,) or None
        L2 norms of the rows, where they are known; with ``exact`` they are computed anew.

    Raises
    ------
    ValueError
        If a row is so long that its products could overflow.
    """

    def __init__(
        self,
        X: FloatArray,
        y: Labels,
        *,
        exact: bool = False,
        block_bytes: int = 2**22,
        norms: FloatArray | None = None,
    ) -> None:
        self.grid = grid_of_rows(len(X)) if exact else None
        if self.grid is not None:
            X, norms = on_grid(X, self.grid), None
        self._X = X
        self._y = y
        self._norms = row_norms(X) if norms is None else norms
        check_lengths(self._norms, X.dtype)
        self.n_rows = len(X)
        self._block_rows = block_size(block_bytes // max(X.shape[1] * X.itemsize, 1))

    def training(self) -> AbstractContextManager[None]:
        return product_session(self._X.dtype)

    def private_sums(self, requests: Sequence[Request]) -> list[Sums]:
        # Each request has a fixed cost in every block: several of them are asked for larger ones.
        m = sum(len(request.points) for request in requests)
        block_rows = self._block_rows * min(len(requests), _LARGER)
        if m >= _MANY_POINTS:
            block_rows = max(block_rows // 2, many_rows(m, self._X.shape[1]))
        block_rows = block_size(block_rows)
        blocks = selections([request.mask for request in requests], self.n_rows, block_rows)
        buffer = np.empty((min(block_rows, self.n_rows), m), self._X.dtype)
        return answer(requests, (self._visit(rows, buffer) for rows in blocks), self._X.dtype)

    def _visit(self, rows: Selection, buffer: FloatArray) -> Visit:
        """A block of rows; its products are in the buffer, until the next one's are."""
        X = self._X[rows]
        return Visit(
            rows,
            Block(X, self._y[rows], self._norms[rows]),
            times=lambda points: row_products(X, points, buffer[: len(X)]),
            add_sum=lambda C, total: add_products(total, C, X),
        )

    def sum_error(self, request: Request) -> SumError:
        if request.resolution is not None:
            return EXACT
        return sum_error(self.n_rows, np.float64 if request.wide_sums else self._X.dtype)


def check_lengths(norms: FloatArray, dtype: np.dtype[Any]) -> None:
    """Refuse rows so long, or of a length so unknown, that products could overflow."""
    if not np.all(norms <= _LONGEST_ROW):
        raise ValueError(
            f"X holds a row that is too large for {dtype} products; pass normalize=True or scale the "
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
    """Half of the bits that sums over the rows leave, the other half being the residuals'."""
    return 2.0 ** -((52 - math.ceil(math.log2(max(n_rows, 2)))) // 2)
