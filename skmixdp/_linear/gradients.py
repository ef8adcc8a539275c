"""Closed forms of a linear head's per-row gradients ``g_i = r_i x_i^T``.

``R`` is (n, k), ``X`` (n, d_in), a gradient (k, d_in). No function here forms anything of
size n x k x d_in: the norm of ``g_i`` is ``|r_i| |x_i|`` and a weighted sum of gradients is one
matrix product.
"""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from .._kernels.rounding import dot_error

FloatArray = NDArray[np.floating[Any]]

#: Rows of at least so many entries are multiplied with themselves one by one.
_LONG = 32


def row_norms(X: FloatArray) -> FloatArray:
    """L2 norm of each row of a block (..., n, k), shape (..., n), accumulated and returned in float64."""
    squares = np.einsum("...j,...j->...", X, X, dtype=np.float64)
    return np.asarray(np.sqrt(squares))


def row_norm_bounds(C: FloatArray) -> FloatArray:
    """Upper bound on the L2 norm of each row of a block (..., n, k), shape (..., n), float64.

    Squares are added up in the dtype of ``C``, which is faster than :func:`row_norms` and off by no
    more than ``dot_error`` of their sum: that, and the squares that may have underflowed, are
    added. The bound exceeds the norm by some ``k eps / 2`` of it.
    """
    k, info = C.shape[-1], np.finfo(C.dtype)
    one_by_one = k >= _LONG and C.strides[-1] == C.itemsize
    with np.errstate(over="ignore", invalid="ignore"):
        squares = np.vecdot(C, C) if one_by_one else np.einsum("...j,...j->...", C, C)
    bounds = np.asarray(squares, dtype=np.float64)
    # One rounding more for the square root, and one for the products that it enters.
    bounds *= 1 + 2 * dot_error(k + 2, C.dtype)
    bounds += 2 * k * float(info.tiny)
    np.sqrt(bounds, out=bounds)
    finite = np.isfinite(bounds)
    if not finite.all():
        # Squares overflowed in these rows. In float64 only those of what is infinite do.
        wide = C[~finite].astype(np.float64, copy=False)
        bounds[~finite] = row_norms(wide) * (1 + 2 * dot_error(k + 2, wide.dtype))
    return bounds


def largest_entries(X: FloatArray) -> FloatArray:
    """Largest absolute entry of each row (..., n, k), in float64, where products do not overflow."""
    return np.asarray(np.abs(X).max(axis=-1), dtype=np.float64)


def largest_singular_value(X: FloatArray) -> float:
    """Largest singular value of a matrix, from the Gram matrix of its shorter side."""
    # By the largest entry first: the square of a huge or tiny one is inf or 0.
    size = float(np.abs(X).max(initial=0.0))
    if not 0 < size < np.inf:
        return size
    X = X / size
    gram = X @ X.T if len(X) < X.shape[1] else X.T @ X
    return size * float(np.sqrt(np.linalg.eigvalsh(gram)[-1]))


def weighted_sum(C: FloatArray, X: FloatArray) -> FloatArray:
    """``sum_i c_i x_i^T`` for (n, k) weighted residuals, shape (k, d_in)."""
    return np.asarray(C.T @ X)


def subtract_at(E: FloatArray, y: NDArray[Any], amounts: FloatArray) -> None:
    """Subtract amounts (..., n) from the entries ``y`` (n,) of the rows of ``E`` (..., n, k), in place."""
    n, k = E.shape[-2:]
    if E.size == 0:
        return
    by_columns = E.swapaxes(-1, -2)
    places = np.asarray(y, dtype=np.intp)  # small integers would overflow below
    if by_columns.flags.c_contiguous:
        flat, places = by_columns.reshape(-1), places * n + np.arange(n)
    elif E.flags.c_contiguous:
        flat, places = E.reshape(-1), places + k * np.arange(n)
    else:
        E[..., np.arange(n), y] -= amounts
        return
    # One index for each row of each head instead of three: none occurs twice, but this is the fastest.
    heads = np.arange(0, flat.size, n * k)[:, np.newaxis]
    np.subtract.at(flat, (places + heads).ravel(), np.ravel(amounts))


def scale_rows(C: FloatArray, factors: FloatArray) -> FloatArray:
    """Multiply each row of ``C`` (..., n, k) by its factor, in place; the factors (..., n) used.

    A factor of 0 makes a row 0 whatever stood there. So does a factor below the smallest normal
    number of the dtype of ``C``, in which it would be rounded by more than a fixed fraction,
    and one that makes the row overflow.
    """
    normal = factors >= np.finfo(C.dtype).tiny
    all_normal = normal.all()
    if not all_normal:
        factors = np.where(normal, factors, 0.0)
    C *= factors.astype(C.dtype)[..., np.newaxis]
    if factors.max(initial=0.0) > 1:
        # Only a factor above 1 can make a finite residual overflow.
        normal &= np.isfinite(C).all(axis=-1)
        factors = np.where(normal, factors, 0.0)
        all_normal = normal.all()
    if not all_normal:
        C[~normal] = 0  # multiplication would keep a NaN
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
