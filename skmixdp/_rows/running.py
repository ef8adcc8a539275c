"""Products of all rows with a head, moved along with it instead of computed again.

A zeroth-order step moves a head along directions whose products with the rows the same step has
asked for, so the head's own products follow by linearity: ``X (W + sum_j c_j U_j)^T`` is
``X W^T + sum_j c_j X U_j^T``. They are private state, and stay with the rows.
"""

from typing import Any

import numpy as np
from numpy.typing import NDArray

FloatArray = NDArray[np.floating[Any]]

#: Head moves after which products are computed anew: each adds a rounding error or two.
_REFRESH = 64

#: Part of a move's length that may lie outside the span of the directions: float64 rounding.
_OUTSIDE = 1e-9


class RunningProducts:
    """Products of one run's head and of the directions that it has asked for since its last move.

    Parameters
    ----------
    n_rows : int
        Number of rows.
    dtype : dtype
        That of the products.
    """

    def __init__(self, n_rows: int, dtype: np.dtype[Any]) -> None:
        self._n_rows = n_rows
        self._dtype = dtype
        self._head: FloatArray | None = None
        self._Z = np.empty((0, 0), dtype)
        self._asked: list[tuple[FloatArray, FloatArray]] = []
        self._age = 0

    def begin(self, points: FloatArray, n_head: int) -> FloatArray:
        """Start a pass for the head ``points[:n_head]`` and directions, the other points.

        Returns
        -------
        array of shape (m', d_in)
            The points whose products the pass must compute: directions alone, where the head
            has moved within the span of those asked for before.
        """
        head, directions = points[:n_head], points[n_head:]
        self._moves = self._follow(head)
        if self._moves is None:
            self._Z = np.empty((self._n_rows, n_head), self._dtype, order="F")
            self._age = 0
        elif self._moves:
            self._age += 1
        self._head = head.copy()
        products = np.empty((self._n_rows, len(directions)), self._dtype, order="F")
        # Directions count from the head's last place: an empty list of moves is a head that stayed.
        earlier = self._asked if self._moves == [] else []
        self._asked = [*earlier, (directions.copy(), products)]
        return points if self._moves is None else directions

    def complete(self, rows: slice, computed: FloatArray) -> FloatArray:
        """Products of a block of rows with all points, from those that the pass computed."""
        Z = self._Z[rows]
        if self._moves is None:
            Z[:] = computed[:, : Z.shape[1]]
            computed = computed[:, Z.shape[1] :]
        else:
            for coefficient, products in self._moves:
                Z += coefficient * products[rows]
        self._asked[-1][1][rows] = computed
        return np.concatenate([Z.T, computed.T]).T

    def _follow(self, head: FloatArray) -> list[tuple[FloatArray, FloatArray]] | None:
        """The products to add to those of the last head, with factors; None if that is no way."""
        if self._head is None or self._head.shape != head.shape or self._age >= _REFRESH:
            return None
        move = (head - self._head).ravel()
        if not np.any(move):
            return []
        k = len(head)
        blocks = [
            (points[start : start + k], products[:, start : start + k])
            for points, products in self._asked
            for start in range(0, len(points), k)
        ]
        span = np.array([points.ravel() for points, _ in blocks]).T
        if span.size == 0 or span.shape[0] != len(move):
            return None
        coefficients = np.linalg.lstsq(span, move)[0]
        if np.linalg.norm(span @ coefficients - move) > _OUTSIDE * np.linalg.norm(move):
            return None
        factors = coefficients.astype(self._dtype)
        return [(c, products) for c, (_, products) in zip(factors, blocks, strict=True) if c]
