"""Clipped sums over tables by loops that numba compiles, where it is installed.

With few features and classes, a pass of NumPy takes longer for the work between the two products than for
the products. The loops do all of it while some rows are in cache. What they add up obeys the same bounds as
what NumPy adds up, and differs by rounding.
"""

from functools import cache

import numpy as np
from numpy.typing import DTypeLike, NDArray

from .accelerators import Accelerator, ClippedSums, FloatArray
from .rounding import dot_error
from .sums import PANEL_ROWS

#: Fewer rows are passed in less time, over a whole fit, than it takes to import numba.
_FEWEST_ROWS = 1_000_000

#: Entries of a row and outputs, at most. Products of more of them are what BLAS is made for.
_MOST_ENTRIES, _MOST_OUTPUTS = 64, 16

#: How much the small sums may differ from those in double precision: in units of the longest term.
_TOLERANCE = 1e-4


class Fused(Accelerator):
    """Loops compiled by numba, for a million rows or more."""

    def clipped_sums(self, n_rows: int, d_in: int, m: int, dtype: DTypeLike) -> ClippedSums | None:
        few = 0 < d_in <= _MOST_ENTRIES and 0 < m <= _MOST_OUTPUTS
        return compiled() if few and n_rows >= _FEWEST_ROWS and np.dtype(dtype) == np.float32 else None


@cache
def compiled() -> ClippedSums | None:
    """The compiled loops; None without numba, or where they cannot be compiled or do not add up right."""
    try:
        from .loops import clipped_sums

        def sums(
            X: FloatArray,
            y: NDArray[np.int8],
            lengths: FloatArray,
            points: FloatArray,
            threshold: float,
            rows: slice,
        ) -> FloatArray:
            (m, d_in), n_rows = points.shape, len(X)
            W = np.zeros((m, -(-d_in // 4) * 4), np.float32)
            W[:, :d_in] = points
            within = np.float32(threshold / (1 + dot_error(m + 5, np.dtype(np.float32))))
            start, stop, _ = rows.indices(n_rows)
            found = clipped_sums(X.T, y, lengths, W, within, start, stop, PANEL_ROWS)
            return np.asarray(found[:, :d_in])

        # It has none if numba is told not to compile.
        if not getattr(clipped_sums, "signatures", ()):
            return None
        return sums if is_right(sums) else None
    # Whatever fails here, NumPy adds up as well. A fit may have been charged already.
    except Exception:
        return None


def is_right(sums: ClippedSums) -> bool:
    """Whether a few small sums come out as they must."""
    for n, d_in, k in ((3, 1, 1), (PANEL_ROWS + 5, 5, 1), (5 * PANEL_ROWS - 1, 7, 3), (40, 4, 4)):
        # (Cosines of whole numbers are as good as random ones here.)
        X = np.asfortranarray(np.cos(np.arange(n * d_in)).reshape(n, d_in), np.float32)
        W = 9 * np.cos(np.arange(k * d_in, dtype=np.float32)).reshape(k, d_in)
        y = (np.arange(n) % max(k, 2)).astype(np.int8)
        lengths = np.sqrt(np.sum(X.astype(np.float64) ** 2, axis=1))
        found = sums(X, y, lengths.astype(np.float32), W, 0.3, slice(1, n))
        R = _residuals(X.astype(np.float64) @ W.astype(np.float64).T, y)
        norms = np.sqrt(np.sum(R**2, axis=1)) * lengths
        exact = ((0.3 / np.maximum(norms, 0.3))[:, np.newaxis] * R)[1:].T @ X[1:]
        if found.shape != exact.shape or not np.all(np.abs(found - exact) <= _TOLERANCE * 0.3 * n**0.5):
            return False
    return True


def _residuals(Z: FloatArray, y: NDArray[np.int8]) -> FloatArray:
    """Residuals (n, k) of cross-entropy in double precision; one output is the logit of class 1."""
    if Z.shape[1] == 1:
        return np.asarray(1 / (1 + np.exp(-Z)) - y[:, np.newaxis])
    P = np.exp(Z - Z.max(axis=1, keepdims=True))
    return np.asarray(P / P.sum(axis=1, keepdims=True) - (y[:, np.newaxis] == np.arange(Z.shape[1])))


accelerator = Fused()
