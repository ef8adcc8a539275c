"""Coordinates of per-row gradients in the span of the gradients of a few rows.

The gradients ``g_a = r_a x_a^T`` of m *anchor* rows span a subspace of the k x d_in matrices. Its
orthonormal basis ``V_j = sum_a A_aj g_a`` comes from the anchors' m x m Gram matrix, and inner
products with it from products of rows, so nothing of size n x k x d_in is ever formed.
"""

from typing import Any

import numpy as np
from scipy.linalg import blas, lapack

from .._linear.arrays import FloatArray, finite, parts_in_cache, row_norms
from .._linear.sums import SHORTEST_DIFFERENCE, UNDERFLOW_PAD, dot_error
from ..components.public import PublicView

#: Directions count as dependent if their eigenvalue is at most this fraction of the largest.
_EIGENVALUE_CUT = 1e-8


class GradientEmbedding:
    """Orthonormal basis of the span of anchor gradients, or of its ``n_components`` strongest directions.

    Anchor rows ``X`` (m, d_in) and their residuals ``R`` (m, k) are kept scaled such that the longest has
    unit length, since the basis does not depend on their scale. Residuals that are not finite, as where a
    head diverged, count as 0. ``products`` is ``X X^T``, if it is known.
    ``held_out_coordinates`` and ``held_out_residuals`` (m,) are lengths of each anchor's gradient within and
    outside the basis of the others, which is how a row that is no anchor looks.

    The Gram matrix is ``G = (R R^T) * (X X^T)``. If its rank is full and all directions are kept, the basis
    is ``A = L^(-T)`` for the Cholesky factor ``G = L L^T``, which is cheap to find and to multiply with.
    Otherwise ``G = Q D Q^T`` and ``A = Q D^(-1/2)``; eigenvalues of at most ``1e-8`` of the largest are
    dropped. Both bases of the whole span differ by a rotation, which noise does not see.

    The held-out lengths need no further decomposition: with the ridge ``rho`` and ``B = (G + rho)^-1``,
    leaving anchor j out leaves the residual ``sqrt((B G B)_jj) / B_jj``. It is exact for the whole span
    (``rho`` at the cut, or 0 at full rank); where weaker directions are left out, the strongest of them is
    ``rho``, a soft form of the same choice.

    Source: GEP (Yu et al. 2021, "Do Not Let Privacy Overbill Utility"), Algorithm 1, whose power iteration on
    materialised gradients the Gram matrix replaces.
    """

    def __init__(
        self,
        X: FloatArray,
        R: FloatArray,
        n_components: int | None = None,
        *,
        products: FloatArray | None = None,
    ) -> None:
        R = finite(R)
        norms, residual_norms = row_norms(X), row_norms(R)
        longest = float(norms.max(initial=0.0)) or 1.0
        largest = float(residual_norms.max(initial=0.0)) or 1.0
        self.X, self.R = X / longest, R / largest
        self._lengths = residual_norms / largest * (norms / longest + UNDERFLOW_PAD)
        gram = self.X @ self.X.T if products is None else products / longest / longest
        gram = (self.R @ self.R.T) * gram
        whole = n_components is None or n_components >= len(gram)
        #: The transposed basis if it is triangular, or None.
        self._triangle = _inverse_triangle(gram) if whole else None
        if self._triangle is not None:
            self._A = self._triangle.T
            squares = 1 / np.sum(self._triangle**2, axis=0)  # squared residuals
            held_out = np.sqrt(np.maximum(np.diag(gram) - squares, 0)), np.sqrt(squares)
            image = blas.dtrmm(1.0, self._triangle, gram, side=1, lower=1, trans_a=1)
            square = blas.dtrmm(1.0, self._triangle, image, side=0, lower=1, overwrite_b=1)
        else:
            values, vectors = np.linalg.eigh(gram)
            values, vectors = values[::-1], _fix_signs(vectors[:, ::-1])  # in descending order
            cut = _EIGENVALUE_CUT * float(values.max(initial=0.0))
            n_kept = int(np.sum(values > cut))
            if n_components is not None:
                n_kept = min(n_kept, n_components)
            self._A = vectors[:, :n_kept] / np.sqrt(values[:n_kept])
            held_out = _held_out(values, vectors, max(cut, float(values[n_kept:].max(initial=0.0))))
            square = self._A.T @ gram @ self._A
        self.n_components = self._A.shape[1]
        #: Factor from the relative error of products of anchors to the error of each coordinate.
        self._rounding_scale = np.abs(self._A).T @ self._lengths
        #: Upper bound on the distance of the basis from an orthonormal one, as an eigenvalue.
        self._skew = float(np.abs(square - np.eye(len(square))).sum(axis=1).max(initial=0.0))
        self.held_out_coordinates, self.held_out_residuals = (longest * largest * part for part in held_out)
        self._in_dtype: dict[np.dtype[Any], tuple[FloatArray, FloatArray]] = {}

    def coordinates(self, R: FloatArray, products: FloatArray) -> FloatArray:
        """Coordinates (n, q) of the gradients of rows with residuals ``R`` (n, k).

        ``products`` (n, m) are the rows' products with the anchor rows ``X``; the coordinates are computed
        in their dtype.
        """
        dtype = products.dtype
        if dtype not in self._in_dtype:
            basis = self._A if self._triangle is None else self._triangle
            self._in_dtype[dtype] = self.R.T.astype(dtype), basis.astype(dtype)
        anchors, basis = self._in_dtype[dtype]
        H = R.astype(dtype, copy=False) @ anchors
        H *= products
        if self._triangle is None or len(H) == 0:
            return np.asarray(H @ (basis if self._triangle is None else basis.T))
        multiply = blas.strmm if dtype == np.float32 else blas.dtrmm
        return np.asarray(multiply(1.0, basis, H.T, side=0, lower=1, overwrite_b=1).T)

    def gradient(self, coordinates: FloatArray, *, tolerance: float = np.inf) -> FloatArray:
        """The (k, d_in) gradient ``sum_j z_j V_j`` of coordinates (q,), in double precision.

        Its rounding is at most ``rounding(tolerance)`` times the coordinates' norm. A plain product is used
        where that is within the tolerance. A more accurate one takes 20 times as long.
        """
        if self._product_rounding(np.float64) <= tolerance:
            return np.asarray(((self._A @ coordinates)[:, np.newaxis] * self.R).T @ self.X)
        weights = self._A.astype(np.longdouble) @ coordinates.astype(np.longdouble)
        gradient = (weights[:, np.newaxis] * self.R).T @ self.X.astype(np.longdouble)
        return np.asarray(gradient.astype(np.float64))

    def _product_rounding(self, dtype: Any) -> float:
        """Rounding of ``sum_j z_j sum_a A_ja g_a``: a multiple of ``sum_j |z_j| sum_a |A_ja| |g_a|``."""
        roundings = (sum(self._A.shape) + 4) * float(np.finfo(dtype).eps)
        return roundings * float(np.linalg.norm(self._rounding_scale))

    def rounding(self, tolerance: float) -> float:
        """Bound on the rounding of ``gradient(tolerance=tolerance)``, relative to that of coordinates.

        A subtraction after it is included. The bound exceeds the tolerance where no product is as accurate.
        """
        rounding = self._product_rounding(np.float64)
        if rounding > tolerance:
            rounding = self._product_rounding(np.longdouble)
        return rounding + 2 * float(np.finfo(np.float64).eps) * (1 + self._skew)

    def residual_bounds(
        self,
        residual_norms: FloatArray,
        norms: FloatArray,
        coordinates: FloatArray,
        coordinate_norms: FloatArray,
        dtype: np.dtype[Any],
        rounding_scale: FloatArray | None = None,
        *,
        shortest: float = SHORTEST_DIFFERENCE,
    ) -> FloatArray:
        """Upper bounds (n,) on the residuals ``|g_i - sum_j z_ij V_j|``, rounding included.

        ``residual_norms`` and ``norms`` (n,) are lengths of the rows' residuals and of the rows.
        ``coordinates`` (n, q) come from products rounded to ``dtype``, in which residuals will be weighted
        too; ``coordinate_norms`` (n,) are in double precision. Products may be off in proportion to
        ``rounding_scale`` (n,), by default the lengths of the rows. No bound is below ``shortest`` times
        ``|g| + |z|``. A row of which nothing finite is known has an infinite bound.

        With coordinates off by ``e`` and a basis off orthonormality by ``E``, the square is ``|g|^2 - |z|^2 +
        2 z^T e + z^T E z``. ``|e_j|`` is at most ``|g| sum_a |A_aj| |g_a|`` times the relative error of three
        products in a row, those with rows, residuals and basis. The bound also covers the rounding of
        weighted residuals (two roundings of their full length) and of ``sum_j z_j V_j``.
        """
        eps = float(np.finfo(dtype).eps)
        (m, k), (d_in, q) = self.R.shape, (self.X.shape[1], self.n_components)
        wide = dot_error(d_in + k + 2 * m + q + 32, np.dtype(np.float64))
        lengths = residual_norms * (norms + UNDERFLOW_PAD)
        scale = norms if rounding_scale is None else rounding_scale
        sizes = (residual_norms + UNDERFLOW_PAD) * (scale + UNDERFLOW_PAD)
        inside = coordinate_norms**2
        reached, weights = np.empty(len(coordinates)), self._rounding_scale.astype(coordinates.dtype)
        for rows in parts_in_cache(coordinates):
            reached[rows] = np.abs(coordinates[rows]) @ weights
        square = lengths**2 - inside
        slack = (
            2 * dot_error(d_in + k + m + 8, dtype) * sizes * reached
            + self._skew * inside
            + 16 * eps * (lengths**2 + inside)
            + wide * (lengths + reached) ** 2
        )
        bounds = np.sqrt(np.maximum(square, 0) + slack) + 2 * eps * lengths + wide * reached
        bounds = np.maximum(bounds, shortest * (lengths + coordinate_norms))
        return np.where(np.isfinite(square), bounds, np.inf)


def embedding_of(view: PublicView, n_components: int | None) -> GradientEmbedding:
    """The embedding of the public rows' gradients, which the view keeps."""
    key = GradientEmbedding, n_components
    if key not in view.computed:
        data = view.data
        view.computed[key] = GradientEmbedding(data.X, view.residuals, n_components, products=data.products)
    embedding: GradientEmbedding = view.computed[key]
    return embedding


def _fix_signs(vectors: FloatArray) -> FloatArray:
    """Each column with the sign that makes its largest entry positive.

    The sign of an eigenvector depends on rounding, and changes the sign of the noise in its coordinate: the
    same law, but another fit if rows are multiplied in another order.
    """
    if vectors.size == 0:
        return vectors
    largest = np.take_along_axis(vectors, np.abs(vectors).argmax(axis=0)[np.newaxis], axis=0)
    return vectors * np.sign(largest)


def _inverse_triangle(gram: FloatArray) -> FloatArray | None:
    """``L^-1`` of the Cholesky factor ``G = L L^T``, lower triangular; None if eigenvalues may be cut.

    With Frobenius norms, all eigenvalues are at least ``1 / |L^-1|^2`` and at most ``|G|``. So all are above
    the cut if the first exceeds the cut times the second.
    """
    if len(gram) == 0:
        return None
    factor, failed = lapack.dpotrf(gram, lower=1, clean=1)
    if failed:
        return None
    inverse, failed = lapack.dtrtri(factor, lower=1, overwrite_c=1)
    squares = float(np.vdot(inverse, inverse))
    if failed or not squares * _EIGENVALUE_CUT * float(np.linalg.norm(gram)) < 1:
        return None
    return np.asarray(inverse)


def _held_out(values: FloatArray, vectors: FloatArray, ridge: float) -> tuple[FloatArray, FloatArray]:
    """Lengths of each anchor within and outside the span of the others."""
    values = np.maximum(values, 0)
    if ridge == 0:  # all gradients are zero
        return np.zeros(len(values)), np.zeros(len(values))
    energy = vectors**2
    inverse = energy @ (1 / (values + ridge))
    residuals = np.sqrt(energy @ (values / (values + ridge) ** 2)) / inverse
    return np.sqrt(np.maximum(energy @ values - residuals**2, 0)), residuals
