"""Private rows, kept behind one method that answers questions about them in sums.

A *question* is a matrix ``points`` (m, d_in) and a function ``contribute``: for each block of
rows the source computes ``Z = X points^T`` (rows, m), the function turns it into weighted
residuals ``C`` (rows, k) and per-row statistics ``S`` (rows, s), and the answer is the pair
``(C^T X, sum S)``. A head's gradient has ``points = W``; several heads, public centres or
random directions are more rows of ``points``. Whoever writes another source (sparse,
memory-mapped, distributed) implements these two products.

The sums that come out are NOT private. Only ``engine/release.py`` may ask.
"""

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from .linear import largest_entries, row_norms, weighted_sum

FloatArray = NDArray[np.floating[Any]]
Labels = NDArray[Any]


class Block:
    """What a question may know of a block of rows besides its products.

    Attributes
    ----------
    y : array of shape (rows,)
        Labels.
    norms : array of shape (rows,)
        L2 norm of each row, float64.
    """

    def __init__(self, X: FloatArray, y: Labels, norms: FloatArray) -> None:
        self._X = X
        self.y = y
        self.norms = norms

    @cached_property
    def max_abs(self) -> FloatArray:
        """Largest absolute entry of each row, shape (rows,), float64."""
        return largest_entries(self._X)


#: Longer rows would bring products so near the ends of float32's range that rounding no
#: longer is a fixed fraction of them.
_LONGEST_ROW = 1e30

Contribution = tuple[FloatArray | None, FloatArray | None]
Contribute = Callable[[FloatArray, Block], Contribution]
#: The sums of one question: ``C^T X`` (k, d_in) and ``sum S`` (s,), float64.
Sums = tuple[FloatArray | None, FloatArray | None]


@dataclass(frozen=True)
class Request:
    """The part of a question that a row source answers.

    Attributes
    ----------
    points : array of shape (m, d_in)
        Directions whose products with the rows are needed.
    contribute : callable
        ``(Z, block) -> (C, S)``; either may be None. ``Z`` is its own to overwrite.
    mask : boolean array of shape (n_rows,) or None
        Rows that take part; None is all of them.
    resolution : float or None
        Power of two; contributions are rounded towards zero to multiples of it, so that
        their sums are exact. None rounds nothing.
    """

    points: FloatArray
    contribute: Contribute
    mask: NDArray[np.bool_] | None = None
    resolution: float | None = None


class PrivateRows(Protocol):
    """A source of private rows."""

    n_rows: int
    #: Power of two of which every entry of the rows is a multiple; None where none is known.
    grid: float | None

    def private_sums(self, requests: Sequence[Request]) -> list[Sums]:
        """Exact, unprotected sums of all requests, from one pass over the rows."""


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
        self._block_rows = max(512, block_bytes // max(X.shape[1] * X.itemsize, 1))

    def private_sums(self, requests: Sequence[Request]) -> list[Sums]:
        points = np.concatenate([request.points for request in requests]).astype(self._X.dtype)
        ends = np.cumsum([len(request.points) for request in requests])
        totals: list[list[FloatArray | None]] = [[None, None] for _ in requests]
        for rows in self._blocks(requests):
            X = self._X[rows]
            # Column by column: maxima and sums over a row's few outputs are then vectorised
            # over rows. (points @ X.T comes out that way, but is a slower product.)
            Z = np.asfortranarray(X @ points.T)
            block = Block(X, self._y[rows], self._norms[rows])
            weighted: list[tuple[int, FloatArray]] = []
            for index, (request, end) in enumerate(zip(requests, ends, strict=True)):
                C, S = request.contribute(Z[:, end - len(request.points) : end], block)
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
                    _add(totals[index], 1, S.sum(axis=0, dtype=np.float64))
            # One product for all requests; blocks are added up in float64.
            if weighted:
                parts = [C for _, C in weighted]
                product = weighted_sum(parts[0] if len(parts) == 1 else np.concatenate(parts, axis=1), X)
                row = 0
                for index, C in weighted:
                    _add(totals[index], 0, product[row : row + C.shape[1]])
                    row += C.shape[1]
        return [(matrix, vector) for matrix, vector in totals]

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


def _add(total: list[FloatArray | None], part: int, term: FloatArray) -> None:
    current = total[part]
    if current is None:
        total[part] = term.astype(np.float64)
    else:
        current += term
