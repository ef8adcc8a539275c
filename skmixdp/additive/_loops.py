"""Compiled loops over piecewise linear rows, where numba is installed; NumPy and SciPy do the same."""

from collections.abc import Callable
from functools import cache
from types import ModuleType
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from .._linear import FloatArray, dot_error
from .._linear.products import TOLERANCE, checked_loops, exact_residuals

#: Values in piecewise linear rows from which it is worth importing numba.
_FEWEST_VALUES = 2_000_000


class PieceLoops(NamedTuple):
    """Compiled loops over :class:`~skmixdp.additive._piecewise.PiecewiseRows`, in float32.

    Arguments are those of ``piece_products``, ``add_piece_sums`` and ``clipped_piece_sums`` of
    :mod:`~skmixdp._linear.loops`, but that the last one takes the threshold itself.
    """

    products: Callable[..., FloatArray]
    add_sums: Callable[..., None]
    clipped_sums: Callable[..., FloatArray]


def piece_loops(n_rows: int, d: int) -> PieceLoops | None:
    """The loops over piecewise linear rows of ``d`` columns; None where SciPy is fast enough."""
    return compiled_pieces() if n_rows * d >= _FEWEST_VALUES else None


@cache
def compiled_pieces() -> PieceLoops | None:
    """The compiled loops for piecewise linear rows, if they can be used."""
    return checked_loops(_piece_loops_of, pieces_are_right)


def _piece_loops_of(loops: ModuleType) -> PieceLoops:
    def clipped(*arguments: NDArray[Any], threshold: float) -> FloatArray:
        within = np.float32(threshold / (1 + dot_error(len(arguments[3]) + 5, np.dtype(np.float32))))
        return np.asarray(loops.clipped_piece_sums(*arguments, within))

    return PieceLoops(loops.piece_products, loops.add_piece_sums, clipped)


def pieces_are_right(loops: PieceLoops) -> bool:
    """Whether products and sums are right of rows of a line and two curves, of two vertices and three."""
    n = 1030
    places = np.stack([np.zeros(n), 2 + np.arange(n) % 2], axis=1).astype(np.uint16)
    parts = np.cos(np.arange(2 * n)).reshape(n, 2).astype(np.float32) ** 2
    lines = np.sin(np.arange(n)).reshape(n, 1).astype(np.float32)
    rows, right = np.zeros((n, 6)), parts.astype(np.float64)
    rows[:, 5:] = lines
    for j in range(2):
        at = places[:, j].astype(int)
        rows[np.arange(n), at], rows[np.arange(n), at + 1] = 1 - right[:, j], right[:, j]
    pieces = places, parts, lines

    def close(first: FloatArray, second: FloatArray) -> bool:
        return bool(np.allclose(first, second, rtol=0, atol=1e-9))

    for m in (1, 3, 8):
        points, C = (
            9 * np.sin(np.arange(6.0 * m)).reshape(m, 6),
            np.cos(np.arange(float(n * m))).reshape(n, m),
        )
        of_points = points[:, :5].copy(), points[:, 5:].copy()
        of_vertices, of_lines = np.zeros((m, 5)), np.zeros((m, 1))
        loops.add_sums(*pieces, C, of_vertices, of_lines)
        added = np.column_stack([of_vertices, of_lines])
        if not (close(loops.products(*pieces, *of_points), rows @ points.T) and close(added, C.T @ rows)):
            return False
        factors, y = 1 + np.cos(np.arange(n)) ** 2, (np.arange(n) % max(m, 2)).astype(np.int8)
        lengths, moves = factors * np.sqrt((rows**2).sum(axis=1)), np.sin(np.arange(2.0 * m)).reshape(2, m)
        R = exact_residuals(factors[:, np.newaxis] * (rows @ points.T + moves[0]) + moves[1], y)
        R *= (0.3 / np.maximum(np.sqrt((R**2).sum(axis=1)) * lengths, 0.3))[:, np.newaxis]
        exact = (factors[:, np.newaxis] * R).T @ np.column_stack([rows, np.ones(n), 1 / factors])
        of_rows = factors, y, lengths.astype(np.float32)
        sums = loops.clipped_sums(*pieces, *of_points, *moves, *of_rows, threshold=0.3)
        if not np.all(np.abs(sums - exact) <= 0.3 * TOLERANCE * n**0.5):
            return False
    return True
