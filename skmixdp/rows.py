"""Private rows, kept behind one method that answers questions about them in sums.

A *question* is a matrix ``points`` (m, d_in) and a function ``contribute``: for each block of
rows the source computes ``Z = X points^T`` (rows, m), the function turns it into weighted
residuals ``C`` (rows, k) and per-row statistics ``S`` (rows, s), and the answer is the pair
``(C^T X, sum S)``. A head's gradient has ``points = W``; several heads, public centres or
random directions are more rows of ``points``. Whoever writes another source (sparse,
memory-mapped, distributed) implements these two products.

The sums that come out are NOT private. Only ``engine/release.py`` may ask.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from .linear import row_norms, weighted_sum

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
        """Largest absolute entry of each row, shape (rows,)."""
        return np.asarray(np.abs(self._X).max(axis=1))


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
    """

    points: FloatArray
    contribute: Contribute
    mask: NDArray[np.bool_] | None = None


class PrivateRows(Protocol):
    """A source of private rows."""

    n_rows: int

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
    block_bytes : int
        Size of the blocks that are visited in turn: large enough for the products to run at
        full speed, small enough for a block to be still in cache when it is needed again.
    """

    def __init__(self, X: FloatArray, y: Labels, *, block_bytes: int = 2**21) -> None:
        self._X = X
        self._y = y
        self._norms = row_norms(X)
        self.n_rows = len(X)
        self._block_rows = max(256, block_bytes // max(X.shape[1] * X.itemsize, 1))

    def private_sums(self, requests: Sequence[Request]) -> list[Sums]:
        points = np.concatenate([request.points for request in requests]).astype(self._X.dtype)
        ends = np.cumsum([len(request.points) for request in requests])
        totals: list[list[FloatArray | None]] = [[None, None] for _ in requests]
        for start in range(0, self.n_rows, self._block_rows):
            rows = slice(start, start + self._block_rows)
            X = self._X[rows]
            Z = X @ points.T
            block = Block(X, self._y[rows], self._norms[rows])
            weighted: list[tuple[int, FloatArray]] = []
            for index, (request, end) in enumerate(zip(requests, ends, strict=True)):
                C, S = request.contribute(Z[:, end - len(request.points) : end], block)
                if request.mask is not None:
                    absent = ~request.mask[rows]
                    for part in (C, S):
                        if part is not None:
                            part[absent] = 0
                if C is not None:
                    weighted.append((index, C))
                if S is not None:
                    _add(totals[index], 1, S.sum(axis=0, dtype=np.float64))
            # One product for all requests; blocks are added up in float64.
            if weighted:
                product = weighted_sum(np.concatenate([C for _, C in weighted], axis=1), X)
                row = 0
                for index, C in weighted:
                    _add(totals[index], 0, product[row : row + C.shape[1]].astype(np.float64))
                    row += C.shape[1]
        return [(matrix, vector) for matrix, vector in totals]


def _add(total: list[FloatArray | None], part: int, term: FloatArray) -> None:
    current = total[part]
    if current is None:
        total[part] = term
    else:
        current += term
