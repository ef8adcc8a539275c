"""Sums of clipped residuals times rows in one visit of the rows, where numba is installed.

With few outputs, a pass of NumPy takes about as long for copying rows and for the work between its two
products as for the products. The compiled loops read the rows once. What they add up obeys the same bounds as
what NumPy adds up, and differs by rounding.
"""

from collections.abc import Callable
from functools import cache
from importlib.util import find_spec
from itertools import pairwise
from typing import NamedTuple

import numpy as np
from numpy.lib.stride_tricks import as_strided
from numpy.typing import DTypeLike, NDArray

from .arrays import FloatArray
from .sums import PANEL_ROWS, dot_error

#: ``(X, y, lengths, points, threshold, rows)``: ``sum_i c_i x_i^T`` (m, d_in) in float64 over some of the
#: rows ``X`` (n_rows, d_in), held column by column. The residuals ``c_i`` of cross-entropy are clipped such
#: that no term is longer than the threshold. Class indices ``y`` are int8, and ``lengths`` are upper bounds
#: in float32 on the lengths of the rows. Rows of infinite length contribute nothing. A lone point is the head
#: of class 1 of two. Terms are added as :func:`~skmixdp._linear.sums.sum_error` says of one block.
ClippedSums = Callable[[FloatArray, NDArray[np.int8], FloatArray, FloatArray, float, slice], FloatArray]


class MeanGradients(NamedTuple):
    """Compiled loops over rows ``X`` (n_rows, d_in) by person, and residuals ``C^T`` (m, n_places), float32.

    ``factors(C^T, norms, longest)`` (n_places,) make no term ``c_i x_i^T`` longer than ``longest``. With
    lengths that are not finite they are 0. ``write(X, C^T, weights, place, first, out)`` forms ``sum_i w_i
    c_i x_i^T`` of each person, (n_persons, m, d_in), in float64 and returns their lengths (n_persons,). The
    rows of person p are ``X[first[p]:first[p + 1]]``, their residuals and weights are at the ``place`` of
    each, and these alone decide what is written.
    """

    factors: Callable[[FloatArray, FloatArray, float], FloatArray]
    write: Callable[..., FloatArray]


#: Rows, or work of a pass, from which it is worth importing numba.
_MANY_ROWS, _FEWEST = 1_000_000, 200_000_000

#: The same for the work of one row of each person.
_FEWEST_OF_PERSONS = 2_000_000

#: The work on an output of a row takes as long as so many multiplications.
_WORK_ON_OUTPUT = 48

#: Most features and outputs; with more, BLAS is faster.
_MOST_FEATURES, _MOST_OUTPUTS = 128, 16

#: Tolerance for the check of the sums, in units of the longest term.
_TOLERANCE = 1e-4


def work_of_pass(n_rows: int, d_in: int, m: int) -> int:
    """Multiplications in a pass over rows (n_rows, d_in) with ``m`` outputs, the work on outputs included."""
    return n_rows * (d_in + _WORK_ON_OUTPUT) * m


def clipped_sums(n_rows: int, d_in: int, m: int, dtype: DTypeLike) -> ClippedSums | None:
    """The function that sums clipped residuals of ``m`` outputs times rows; None where NumPy is faster."""
    many = n_rows >= _MANY_ROWS or work_of_pass(n_rows, d_in, m) >= _FEWEST
    few = 0 < d_in <= _MOST_FEATURES and 0 < m <= _MOST_OUTPUTS
    return compiled() if few and many and np.dtype(dtype) == np.float32 else None


def mean_gradients(n_persons: int, d_in: int, m: int, dtype: DTypeLike) -> MeanGradients | None:
    """The loops that form persons' mean gradients with ``m`` outputs; None where NumPy is faster."""
    many = work_of_pass(n_persons, d_in, m) >= _FEWEST_OF_PERSONS
    few = 0 < d_in <= _MOST_FEATURES and 0 < m <= _MOST_OUTPUTS
    return compiled_gradients() if few and many and np.dtype(dtype) == np.float32 else None


def may_be_compiled(n_rows: int, d_in: int) -> bool:
    """Whether the loops may be used for rows (n_rows, d_in), with some number of outputs."""
    many = work_of_pass(n_rows, d_in, _MOST_OUTPUTS) >= _FEWEST
    return d_in <= _MOST_FEATURES and many and _is_installed()


@cache
def _is_installed() -> bool:
    return find_spec("numba") is not None


@cache
def compiled() -> ClippedSums | None:
    """The compiled loops; None without numba, or if compiling or a check of their sums fails."""
    try:
        from . import loops

        def sums(
            X: FloatArray,
            y: NDArray[np.int8],
            lengths: FloatArray,
            points: FloatArray,
            threshold: float,
            rows: slice,
        ) -> FloatArray:
            (n_rows, d_in), m = X.shape, len(points)
            W = np.zeros((m, -(-d_in // 4) * 4), np.float32)
            W[:, :d_in] = points
            stride = X.strides[1] // X.itemsize
            memory = as_strided(X, ((d_in - 1) * stride + n_rows,), (X.itemsize,))
            within = np.float32(threshold / (1 + dot_error(m + 5, np.dtype(np.float32))))
            start, stop, _ = rows.indices(n_rows)
            totals = loops.clipped_sums(memory, stride, d_in, y, lengths, W, within, start, stop, PANEL_ROWS)
            return np.asarray(totals[:, :d_in])

        # There are no signatures if numba is told not to compile.
        if not getattr(loops.clipped_sums, "signatures", ()):
            return None
        return sums if is_right(sums) else None
    # NumPy can always replace the loops, and a fit may have been charged already.
    except Exception:
        return None


@cache
def compiled_gradients() -> MeanGradients | None:
    """The compiled loops for persons; None without numba, or if compiling or a check fails."""
    try:
        from . import loops

        # There are no signatures if numba is told not to compile.
        if not getattr(loops.mean_gradients, "signatures", ()):
            return None
        found = MeanGradients(loops.shortening, loops.mean_gradients)
        return found if gradients_are_right(found) else None
    # NumPy can always replace the loops, and a fit may have been charged already.
    except Exception:
        return None


def gradients_are_right(loops: MeanGradients) -> bool:
    """Whether a few gradients are right: those of persons with no to nine rows."""
    X, C = np.cos(np.arange(225)).reshape(45, 5), np.sin(np.arange(90)).reshape(2, 45)
    X, C = X.astype(np.float32), C.astype(np.float32)
    place, first = np.arange(45)[::-1].copy(), np.cumsum(np.arange(11)) - np.arange(11)
    norms, found = np.sqrt(np.sum(X.astype(np.float64) ** 2, axis=1)), np.empty((10, 2, 5))
    factors = loops.factors(C, norms, 0.3)
    terms = np.sqrt(np.sum(C.astype(np.float64) ** 2, axis=0)) * norms
    lengths = loops.write(X[place], C, factors, place, first, found)
    weighted = C * (0.3 / np.maximum(terms, 0.3))
    exact = np.array([weighted[:, place[i:j]] @ X[place[i:j]] for i, j in pairwise(first.tolist())])
    right = np.allclose(found, exact, rtol=0, atol=1e-12)
    return bool(right and np.allclose(lengths, np.linalg.norm(exact, axis=(1, 2)), rtol=0, atol=1e-12))


def is_right(sums: ClippedSums) -> bool:
    """Whether a few small sums are right."""
    for n, d_in, k in ((3, 1, 1), (PANEL_ROWS + 5, 5, 1), (5 * PANEL_ROWS - 1, 7, 3), (40, 4, 4)):
        # (Cosines of whole numbers are as good as random ones here.)
        X = np.cos(np.arange(n * d_in)).reshape(n, d_in)
        W = 9 * np.cos(np.arange(k * d_in)).reshape(k, d_in)
        y = (np.arange(n) % max(k, 2)).astype(np.int8)
        lengths = np.sqrt(np.sum(X**2, axis=1))
        R = _residuals(X @ W.T, y)
        norms = np.sqrt(np.sum(R**2, axis=1)) * lengths
        C = ((0.3 / np.maximum(norms, 0.3))[:, np.newaxis] * R)[1:]
        rows = np.asarray(X, np.float32, order="F")
        result = sums(rows, y, lengths.astype(np.float32), W, 0.3, slice(1, n))
        exact = C.T @ X[1:]
        if result.shape != exact.shape or not np.all(np.abs(result - exact) <= 0.3 * _TOLERANCE * n**0.5):
            return False
    return True


def _residuals(Z: FloatArray, y: NDArray[np.int8]) -> FloatArray:
    """Residuals (n, k) of cross-entropy in double precision; one output is the logit of class 1."""
    if Z.shape[1] == 1:
        return np.asarray(1 / (1 + np.exp(-Z)) - y[:, np.newaxis])
    P = np.exp(Z - Z.max(axis=1, keepdims=True))
    return np.asarray(P / P.sum(axis=1, keepdims=True) - (y[:, np.newaxis] == np.arange(Z.shape[1])))
