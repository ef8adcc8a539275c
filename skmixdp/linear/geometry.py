"""Closed forms of a linear head's per-row gradients ``g_i = r_i x_i^T``.

``R`` is (n, k), ``X`` (n, d_in), a gradient (k, d_in). No function here forms anything of
size n x k x d_in: the norm of ``g_i`` is ``|r_i| |x_i|`` and a weighted sum of gradients is one
matrix product.
"""

from typing import Any

import numpy as np
from numpy.typing import NDArray

FloatArray = NDArray[np.floating[Any]]


def row_norms(X: FloatArray) -> FloatArray:
    """L2 norm of each row, shape (n,), accumulated and returned in float64."""
    squares = np.einsum("ij,ij->i", X, X, dtype=np.float64)
    return np.asarray(np.sqrt(squares))


def largest_entries(X: FloatArray) -> FloatArray:
    """Largest absolute entry of each row, shape (n,), in float64, where products do not overflow."""
    return np.asarray(np.abs(X).max(axis=1), dtype=np.float64)


def weighted_sum(C: FloatArray, X: FloatArray) -> FloatArray:
    """``sum_i c_i x_i^T`` for (n, k) weighted residuals, shape (k, d_in)."""
    return np.asarray(C.T @ X)


def scale_rows(C: FloatArray, factors: FloatArray) -> FloatArray:
    """Multiply each row of ``C`` (n, k) by its factor, in place; the factors (n,) that were used.

    A factor of 0 makes a row 0 whatever stood there. So does a factor below the smallest normal
    number of the dtype of ``C``, in which it would be rounded by more than a fixed fraction,
    and one that makes the row overflow.
    """
    factors = np.where(factors < np.finfo(C.dtype).tiny, 0.0, factors)
    C *= factors[:, np.newaxis].astype(C.dtype)
    if factors.max(initial=0.0) > 1:
        # Only a factor above 1 can make a finite residual overflow.
        factors[~np.isfinite(C).all(axis=1)] = 0
    C[factors == 0] = 0  # multiplication would keep a NaN
    return factors


def remove_mean_output(G: FloatArray) -> FloatArray:
    """Orthogonal projection of a (k, d_in) gradient on those that sum to zero over outputs."""
    return np.asarray(G - G.mean(axis=0, keepdims=True))


def orthonormal_columns(candidates: FloatArray, n_columns: int, tolerance: float = 1e-6) -> FloatArray:
    """First ``n_columns`` independent rows of ``candidates``, orthonormalised in their order.

    Parameters
    ----------
    candidates : array of shape (m, d_in)
        Directions, each of unit length, the most important first.
    n_columns : int
        How many to keep at the most.
    tolerance : float
        A direction whose component outside the span of those before it is shorter than
        this is dropped.

    Returns
    -------
    array of shape (d_in, P)
        Orthonormal to rounding; P is ``n_columns`` or the rank reached, if that is smaller.
    """
    remaining = candidates
    while True:
        basis, triangle = np.linalg.qr(remaining[:n_columns].T, mode="reduced")
        # |triangle[j, j]| is the length of direction j outside the span of those before it,
        # as long as none of those was dependent: so only the first small one is known to be.
        small = np.flatnonzero(np.abs(np.diag(triangle)) <= tolerance)
        if small.size == 0:
            return np.asarray(basis)
        first = small[0]
        if len(remaining) <= n_columns and np.abs(triangle[first:, first:]).max() <= tolerance:
            return np.asarray(basis[:, :first])
        remaining = np.delete(remaining, first, axis=0)
