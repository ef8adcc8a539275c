"""Arrays of rows: lengths, scaling and memory layout, for NumPy and torch.

Functions are written with what both libraries have under one name, much of it from the array API standard.
The few operations in which they differ come first. Torch is not imported: whoever has a tensor has imported
it. ``Array`` is either.

The gradient of a row of a linear head is ``g_i = r_i x_i^T`` (k, d_in), with residuals ``R`` (n, k) and rows
``X`` (n, d_in). No function here forms anything of size n x k x d_in: the norm of ``g_i`` is ``|r_i| |x_i|``,
and a weighted sum of gradients is one matrix product.
"""

import sys
from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import DTypeLike, NDArray

from .sums import dot_error

Array = Any
FloatArray = NDArray[np.floating[Any]]

#: Shortest rows for which dot products are computed row by row.
_LONG = 32

#: Entries that are computed at a time, so that they stay in cache in double precision.
_IN_CACHE = 2**15

#: Lengths up to this, and their inverses, are far from the limits of float32.
FARTHEST = 1e15

#: A unit direction is linearly dependent on others if its component outside of their span is shorter than
#: this.
_DEPENDENT = 1e-6


def namespace_of(array: Array) -> Any:
    """The library of an array: numpy or torch."""
    return np if isinstance(array, (np.ndarray, np.generic)) else sys.modules["torch"]


def dtype_of(array: Array) -> np.dtype[Any]:
    """NumPy's dtype of an array's entries."""
    if isinstance(array, np.ndarray):
        return np.dtype(array.dtype)
    return np.dtype(str(array.dtype).removeprefix("torch."))


def astype(array: Array, dtype: DTypeLike, *, copy: bool = False) -> Array:
    """The array in a dtype of NumPy's; the same object if it has that dtype, unless ``copy``."""
    if isinstance(array, np.ndarray):
        return array.astype(dtype, copy=copy)
    return array.to(getattr(namespace_of(array), np.dtype(dtype).name), copy=copy)


def in_library_of(array: Array, values: Array) -> Array:
    """NumPy's ``values`` as an array like another one (library and device)."""
    xp = namespace_of(array)
    return values if xp is np else xp.asarray(np.ascontiguousarray(values), device=array.device)


def row_dots(A: Array, B: Array, dtype: DTypeLike) -> Array:
    """Dot products ``sum_j a_ij b_ij`` (n,) of the rows of two (n, k) arrays, computed in a dtype."""
    if not isinstance(A, np.ndarray):
        return (astype(A, dtype) * astype(B, dtype)).sum(dim=1)
    if A is B and A.dtype != dtype and A.size > _IN_CACHE:
        # Converted a few rows at a time: einsum converts entries one by one, which takes twice as long.
        dots = np.empty(len(A), dtype)
        for rows in parts_in_cache(A):
            wide = A[rows].astype(dtype)
            dots[rows] = row_dots(wide, wide, dtype)
        return dots
    if A.dtype == dtype and A.shape[1] >= _LONG and A.strides[1] == A.itemsize:
        return np.vecdot(A, B)
    return np.einsum("ij,ij->i", A, B, dtype=np.dtype(dtype))  # type: ignore[arg-type]


def parts_in_cache(A: Array) -> Iterator[slice]:
    """Parts of the rows of an array (n, k), each small enough for the cache in double precision."""
    return row_slices(len(A), max(_IN_CACHE // max(A.shape[1], 1), 1))


def row_slices(n_rows: int, step: int) -> Iterator[slice]:
    """Slices of ``step`` rows that cover all rows."""
    return (slice(start, min(start + step, n_rows)) for start in range(0, n_rows, step))


def logistic(Z: Array) -> Array:
    """``1 / (1 + exp(-z))`` of each entry, in place."""
    if not isinstance(Z, np.ndarray):
        return Z.sigmoid_()
    # Four vectorised passes take a quarter of the time of scipy.special.expit.
    np.negative(Z, out=Z)
    with np.errstate(over="ignore"):
        np.exp(Z, out=Z)
    Z += 1
    return np.divide(1, Z, out=Z)


def row_norms(X: Array) -> Array:
    """L2 norm of each row of (n, k), shape (n,), accumulated and returned in float64."""
    return namespace_of(X).sqrt(row_dots(X, X, np.float64))


def row_norm_bounds(C: Array) -> Array:
    """Upper bound on the L2 norm of each row of (n, k), shape (n,), float64.

    Squares are added up in the dtype of ``C``, which is faster than :func:`row_norms`. Their rounding, at
    most ``dot_error`` of their sum, and what may have underflowed are added: some ``k eps / 2`` of the norm.
    """
    xp, dtype, k = namespace_of(C), dtype_of(C), C.shape[1]
    if k == 1:
        return astype(abs(C[:, 0]), np.float64, copy=True) * (1 + 2 * dot_error(3, dtype))
    with np.errstate(over="ignore", invalid="ignore"):
        squares = row_dots(C, C, dtype)
    # Covers the roundings below, and one of a product with the result.
    squares *= 1 + 2 * dot_error(k + 5, dtype)
    squares += 2 * k * float(np.finfo(dtype).tiny)
    xp.sqrt(squares, out=squares)
    bounds = astype(squares, np.float64)
    if len(bounds) and not bounds.max() < np.inf:
        finite = xp.isfinite(bounds)
        # In the other rows, squares overflowed, or an entry is not finite. All rows are measured again, so
        # that the result of a row does not depend on how many others overflowed.
        measured = row_norms(C) * (1 + 2 * dot_error(k + 2, np.dtype(np.float64)))
        bounds[~finite] = measured[~finite]
    return bounds


def largest_entries(X: Array) -> Array:
    """Largest absolute entry of each row (n, k), shape (n,), in float64, where products do not overflow."""
    return astype(namespace_of(X).amax(abs(X), axis=1), np.float64)


def largest_singular_value(X: FloatArray) -> float:
    """Largest singular value of a matrix, from the Gram matrix of its shorter side."""
    # Scaled by the largest entry, since squares of huge or tiny entries are inf or 0.
    size = float(np.abs(X).max(initial=0.0))
    if not 0 < size < np.inf:
        return size
    X = X / size
    gram = X @ X.T if len(X) < X.shape[1] else X.T @ X
    return size * float(np.sqrt(np.linalg.eigvalsh(gram)[-1]))


def finite(X: FloatArray) -> FloatArray:
    """The array with 0 in place of what is not finite, for which linear algebra fails or returns anything."""
    return np.nan_to_num(X, nan=0.0, posinf=0.0, neginf=0.0)


def scale_rows(C: Array, factors: Array) -> Array:
    """Multiply each row of ``C`` (n, k) by its factor (n,), in place, and return the factors used.

    A factor of 0 makes a row 0, even of NaN. So does one that makes the row overflow, or is below the
    smallest normal number of the dtype of ``C``, in which it would be rounded by more than a fixed fraction.
    """
    xp, dtype = namespace_of(C), dtype_of(C)
    usable = factors >= float(np.finfo(dtype).tiny)  # false for NaN
    all_usable = usable.all()
    if not all_usable:
        factors = xp.where(usable, factors, 0.0)
    C *= astype(factors, dtype)[:, None]
    if (factors > 1).any():
        # A factor of at most 1 leaves finite residuals finite.
        usable &= xp.isfinite(C).all(axis=1)
        factors = xp.where(usable, factors, 0.0)
        all_usable = usable.all()
    if not all_usable:
        C[~usable] = 0  # 0 times NaN would be NaN
    return factors


def shorten_rows(C: FloatArray, lengths: FloatArray, longest: float) -> NDArray[np.intp]:
    """Scale each row of ``C`` (n, k), in place, such that ``|c_i| lengths_i`` is at most ``longest``.

    Returned are the indices (m,) of rows left as they are, whose length in the dtype of ``C`` is above
    ``FARTHEST`` or NaN. ``lengths`` (n,), in that dtype, are upper bounds. ``longest`` is from ``1 /
    FARTHEST`` to ``FARTHEST``. The result of a row depends on that row alone.

    *Guarantee*: ``|c_i| lengths_i`` is at most ``longest`` times ``1 + 2 eps`` afterwards, ``eps`` being the
    precision of the dtype. With ``u`` its half, computed squares fall short by at most ``dot_error(k)`` and
    what underflows, which is added. Four more roundings follow before the division, each of ``u``, and
    ``dot_error(k + 5)`` is taken off ``longest`` for all of them. It is rounded itself, and so are the factor
    and its product with the row: ``(1 + u)**3``. Entries that become subnormal are rounded by up to half of
    the smallest number, which is no fixed fraction of them. Where that matters, :func:`drop_subnormal` has to
    follow.
    """
    k = C.shape[1]
    with np.errstate(over="ignore", invalid="ignore"):
        if k == 1:
            bounds = np.abs(C[:, 0])
        else:
            bounds = row_dots(C, C, C.dtype)
            bounds += 2 * k * float(np.finfo(C.dtype).tiny)
            np.sqrt(bounds, out=bounds)
        bounds *= lengths
    within = longest / (1 + dot_error(k + 5, C.dtype))
    # A row within the limit gets the same factor in either case. NaN fails the test.
    far = np.empty(0, np.intp)
    if len(bounds) and not bounds.max() <= FARTHEST:
        far = np.flatnonzero(~(bounds <= FARTHEST))
        bounds[far] = 0.0
    bounds.clip(within, np.inf, out=bounds)
    np.divide(within, bounds, out=bounds)
    C *= bounds[:, np.newaxis]
    return far


def drop_subnormal(C: Array) -> None:
    """Set subnormal entries of ``C`` to 0, in place; this lengthens no row."""
    C[abs(C) < float(np.finfo(dtype_of(C)).tiny)] = 0


def remove_mean_output(G: FloatArray) -> FloatArray:
    """Orthogonal projection of a (k, d_in) gradient on the gradients that sum to zero over outputs."""
    return np.asarray(G - G.mean(axis=0, keepdims=True))


def principal_axes(X: FloatArray, weighted: FloatArray | None = None) -> tuple[FloatArray, ...]:
    """Principal axes (d_in, r) of the span of rows, second moments (r,) along them, and the rows (n, r).

    ``weighted`` are the rows times weights. With d_in rows or more, the axes span the whole space.
    """
    span = np.eye(X.shape[1]) if len(X) >= X.shape[1] else np.linalg.qr(X.T)[0]
    rows = X @ span
    moments, axes = np.linalg.eigh((rows if weighted is None else weighted @ span).T @ rows / max(len(X), 1))
    return span @ axes, np.maximum(moments, 0.0), rows @ axes


def orthonormal_columns(candidates: FloatArray, n_columns: int) -> FloatArray:
    """The first ``n_columns`` independent rows of unit ``candidates`` (m, d_in), orthonormalised: (d_in, P).

    One whose component outside the span of those before it is shorter than 1e-6 is dropped.
    """
    remaining = candidates
    while True:
        basis, triangle = np.linalg.qr(remaining[:n_columns].T, mode="reduced")
        # |triangle[j, j]| is the length of direction j outside the span of the earlier ones, if these are
        # independent. So only the first small one is known to be dependent.
        small = np.flatnonzero(np.abs(np.diag(triangle)) <= _DEPENDENT)
        if small.size == 0:
            return np.asarray(basis)
        first = small[0]
        if len(remaining) <= n_columns and np.abs(triangle[first:, first:]).max() <= _DEPENDENT:
            return np.asarray(basis[:, :first])
        remaining = np.delete(remaining, first, axis=0)
