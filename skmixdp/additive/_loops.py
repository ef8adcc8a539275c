"""Loops over piecewise linear rows: compiled ones, where numba is installed, or those of NumPy and SciPy."""

from collections.abc import Callable
from functools import cache
from types import ModuleType
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from .._linear.arrays import FloatArray, row_slices, shorten_rows
from .._linear.losses import classification_loss
from .._linear.products import TOLERANCE, checked_loops, exact_residuals
from .._linear.sums import dot_error

#: Values in piecewise linear rows from which it is worth importing numba.
_FEWEST_VALUES = 2_000_000


#: Most points whose products SciPy computes one after the other.
_FEW_POINTS = 4


class PieceLoops(NamedTuple):
    """Loops over :class:`~skmixdp.additive._piecewise.PiecewiseRows`.

    Arguments are those of ``piece_products``, ``add_piece_sums`` and ``clipped_piece_sums`` of
    :mod:`~skmixdp._linear.loops`, but that the last one takes the threshold itself. Where there are
    ``curves``, what these make of places and parts, and a number of vertices, takes the place of both.
    """

    products: Callable[..., FloatArray]
    add_sums: Callable[..., None]
    clipped_sums: Callable[..., FloatArray]
    curves: Callable[..., Any] | None = None


def piece_loops(n_rows: int, d: int, places: type[np.unsignedinteger[Any]]) -> PieceLoops:
    """The loops over piecewise linear rows of ``d`` columns, whose places have this type."""
    compiles = n_rows * d >= _FEWEST_VALUES and places is np.uint16
    return (compiled_pieces() if compiles else None) or scipy_pieces()


def scipy_pieces() -> PieceLoops:
    """Loops of NumPy and SciPy."""

    def curves(places: NDArray[Any], parts: FloatArray, n_vertices: int) -> Any:
        """CSR array (n_rows, n_vertices) that takes vertices to the sums of the curves of rows."""
        n_rows, d = places.shape
        ends, weights = np.empty((n_rows, 2, d), np.int32), np.empty((n_rows, 2, d))
        ends[:, 0], weights[:, 1] = places, parts
        np.add(ends[:, 0], 1, out=ends[:, 1])
        np.subtract(1, weights[:, 1], out=weights[:, 0])
        starts = 2 * d * np.arange(n_rows + 1, dtype=np.int32)
        return sp.csr_array((weights.ravel(), ends.ravel(), starts), shape=(n_rows, n_vertices))

    def products(
        at: "sp.csr_array[Any]", lines: FloatArray, of_vertices: FloatArray, of_lines: FloatArray
    ) -> FloatArray:
        Z: FloatArray = (of_lines @ lines.T.astype(np.float64)).T
        # SciPy is faster with one point after the other, if they are few.
        n_at_once = 1 if len(of_vertices) <= _FEW_POINTS else len(of_vertices)
        for part in row_slices(len(of_vertices), n_at_once):
            Z[:, part] += at @ of_vertices[part].T
        return Z

    def add_sums(at: "sp.csr_array[Any]", lines: FloatArray, C: FloatArray, *sums: FloatArray) -> None:
        sums[0][:] += (at.T @ C).T
        sums[1][:] += C.T @ lines.astype(np.float64)

    def clipped_sums(
        at: "sp.csr_array[Any]", lines: FloatArray, *of_rows: FloatArray, threshold: float
    ) -> FloatArray:
        *moves, factors, y, lengths = of_rows
        m = len(moves[0])
        k, weights = max(m - 1, 1), factors[:, np.newaxis]
        of_vertices, of_lines, offsets, constants = (each[:k] - each[k:] if m > 1 else each for each in moves)
        Z = np.zeros((len(lines), m), np.float32, order="F")
        with np.errstate(over="ignore"):
            Z[:, :k] = weights * (products(at, lines, of_vertices, of_lines) + offsets) + constants
        R = classification_loss(max(m, 2)).residuals(Z, y)
        if m > 1:
            np.negative(R[:, :k].sum(axis=1), out=R[:, k])
        R[shorten_rows(R, lengths, _within(threshold, m))] = 0
        C = weights * R[:, :k]
        sums = [(at.T @ C.copy()).T, C.T @ lines.astype(np.float64)]
        sums += [each.sum(axis=0, dtype=np.float64)[:, np.newaxis] for each in (C, R[:, :k])]
        total = np.hstack(sums)
        return total if m == 1 else np.vstack([total, -total.sum(axis=0)])

    return PieceLoops(products, add_sums, clipped_sums, curves)


def _within(threshold: float, m: int) -> float:
    """The threshold less the rounding of the residual of the last of m classes, minus the sum of the others.

    Adding m - 1 residuals and rounding each of them once is off by ``m - 1`` roundoffs of the sum of their
    sizes, which is at most ``sqrt(m - 1)`` times their length.
    """
    return threshold / (1 + dot_error(m * (m - 1), np.dtype(np.float32)))


@cache
def compiled_pieces() -> PieceLoops | None:
    """The compiled loops for piecewise linear rows, if they can be used."""
    return checked_loops(_piece_loops_of, pieces_are_right)


def _piece_loops_of(loops: ModuleType) -> PieceLoops:
    def clipped(*arguments: NDArray[Any], threshold: float) -> FloatArray:
        m = len(arguments[3])
        within = np.float32(_within(threshold, m) / (1 + dot_error(m + 5, np.dtype(np.float32))))
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
