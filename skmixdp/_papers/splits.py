"""Public directions, and how gradients of rows are split by them: a mean gradient, or a span of gradients.

The gradients ``g_a = r_a x_a^T`` of m *anchor* rows span a subspace of the k x d_in matrices. Its
orthonormal basis ``V_j = sum_a A_aj g_a`` comes from the anchors' m x m Gram matrix, and inner
products with it from products of rows, so nothing of size n x k x d_in is ever formed.
"""

import math
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from scipy.linalg import blas, lapack

from .._linear.arrays import (
    Array,
    FloatArray,
    astype,
    dtype_of,
    finite,
    largest_entries,
    namespace_of,
    parts_in_cache,
    row_dots,
    row_norms,
)
from .._linear.sums import SHORTEST_DIFFERENCE, UNDERFLOW_PAD, dot_error
from .._rows.source import Block
from ..components.protocols import Lengths
from ..components.public import PublicView

#: Directions count as dependent if their eigenvalue is at most this fraction of the largest.
_EIGENVALUE_CUT = 1e-8


@dataclass(frozen=True)
class Centre:
    """The split into the public mean gradient ``M`` (k, d_in), the same for all rows, and the difference."""

    offset: FloatArray

    n_components: ClassVar = 0  # no coordinate is private
    n_fixed: ClassVar = 0
    takes_tensors: ClassVar = True
    margin: ClassVar = 2.0  # for the rounding of a row's weight, amply

    @property
    def points(self) -> FloatArray:
        return self.offset

    @property
    def lengths(self) -> Lengths:
        return Lengths(self._lengths, self.offset)

    def coordinates(self, R: Array, products: Array) -> Array:
        """What bounds need of the rows: their products (n, k) with the centre."""
        return products

    def gradient(self, coordinates: FloatArray, *, tolerance: float = math.inf) -> FloatArray:
        """The centre (k, d_in) times the sum of weights (1,)."""
        return np.asarray(coordinates[0] * self.offset)

    def rounding(self, tolerance: float) -> float:
        """Bound on the rounding of two sums, a product and a subtraction."""
        return 4 * float(np.finfo(np.float64).eps)

    def residual_bounds(
        self,
        R: Array,
        products: Array,
        part_norms: None,
        norms: Array,
        rounding_scale: Array | None = None,
        shortest: float = SHORTEST_DIFFERENCE,
    ) -> Array:
        """Upper bounds (n,) on ``|r_i x_i^T - M|``, rounding included; infinite where values are not finite.

        ``R`` (n, k) are residuals, and ``norms`` (n,) lengths of the rows. The errors of products are in
        proportion to ``rounding_scale`` (n,), by default the lengths.

        The square is ``|r|^2 |x|^2 - 2 r^T M x + |M|^2``. If its terms cancel, the result may be pure
        rounding error, and a factor computed from it could leave the row unclipped. So the largest error of
        the three terms is added: ``(|r| |x| + |M|)^2`` times 16 eps plus the error of sums of ``d_in`` and
        ``k`` terms in any order. The bound also covers the weighting of residuals in their own precision,
        which rounds their full length twice. No bound is below ``shortest`` times ``|g| + |M|``.
        """
        xp, dtype = namespace_of(R), dtype_of(R)
        (k, d_in), eps = self.offset.shape, float(np.finfo(dtype).eps)
        wide = astype(R, np.float64)
        residual_norms = row_norms(wide)
        centre_square = float(np.sum(np.ravel(self.offset) ** 2))  # summed pairwise
        aligned = row_dots(wide, astype(products, np.float64), np.float64)
        square = (residual_norms * norms) ** 2 - 2 * aligned + centre_square
        lengths = residual_norms * (norms + UNDERFLOW_PAD)
        size = residual_norms * ((norms if rounding_scale is None else rounding_scale) + UNDERFLOW_PAD)
        size = size + math.sqrt(centre_square) + math.sqrt(k) * UNDERFLOW_PAD
        slack = (16 * eps + dot_error(d_in + k + 1, dtype)) * size**2
        bounds = (square.clip(min=0) + slack) ** 0.5 + 2 * eps * lengths
        bounds = xp.maximum(bounds, shortest * size)
        # A product of minus infinity would seem to have a finite bound.
        return xp.where(abs(square) < math.inf, bounds, math.inf)

    def largest_entries(self, R: Array, block: Block, bounds: Array) -> Array:
        """Upper bounds (n,) on the entries of ``r_i x_i^T - M``, float64, rounding included."""
        eps = float(np.finfo(dtype_of(R)).eps)
        entries = largest_entries(R) * block.max_abs
        return (entries + float(np.abs(self.offset).max(initial=0.0))) * (1 + 4 * eps)

    def _lengths(self, C: FloatArray, S: FloatArray, products: FloatArray, block: Block) -> list[FloatArray]:
        """Upper bounds on the lengths of ``c_i (g_i - M)``, for weighted residuals and factors (rows, 1)."""
        factors = S[:, 0]
        used = factors > 0
        R = C / np.where(used, factors, 1.0).astype(C.dtype)[:, np.newaxis]
        bounds = self.residual_bounds(R, products, None, block.norms, block.rounding_scale)
        return [np.multiply(factors, bounds, out=np.zeros_like(bounds), where=used)]


def centre_of(view: PublicView) -> Centre:
    """The split by the mean gradient of the public rows."""
    return Centre(view.gradient)


def deviation_norms(view: PublicView) -> FloatArray:
    """Lengths (n_pub,) of the public rows' gradients minus their mean."""
    aligned = np.einsum("ij,ij->i", view.residuals, view.data.X @ view.gradient.T)
    squares = view.gradient_norms**2 - 2 * aligned + np.sum(view.gradient**2)
    return np.asarray(np.sqrt(np.maximum(squares, 0)))


class GradientEmbedding:
    """Orthonormal basis of the span of anchor gradients, or of its ``n_components`` strongest directions.

    Anchor rows ``X`` (m, d_in) and their residuals ``R`` (m, k) are kept scaled such that the longest has
    unit length. Residuals that are not finite, as where a head diverged, count as 0. ``held_out_coordinates``
    and ``held_out_residuals`` (m,) are lengths of each anchor's gradient within and outside the basis of the
    others, which is how a row that is no anchor looks.

    The Gram matrix is ``G = (R R^T) * (X X^T)``. If its rank is full and all directions are kept, the basis
    is ``A = L^(-T)`` for the Cholesky factor ``G = L L^T``, which is cheap to find and to multiply with.
    Otherwise ``G = Q D Q^T`` and ``A = Q D^(-1/2)``; eigenvalues of at most ``1e-8`` of the largest are
    dropped. Both bases of the whole span differ by a rotation, which noise does not see.

    With the ridge ``rho`` and ``B = (G + rho)^-1``, leaving anchor j out leaves the residual
    ``sqrt((B G B)_jj) / B_jj``. It is exact for the whole span; where weaker directions are left out, the
    strongest of them is ``rho``, a soft form of the same choice.

    Source: GEP (Yu et al. 2021, "Do Not Let Privacy Overbill Utility"), Algorithm 1, whose power iteration on
    materialised gradients the Gram matrix replaces.
    """

    offset: ClassVar = 0.0  # the part inside is released
    takes_tensors: ClassVar = False
    margin: ClassVar = 1.01  # for the rounding of a row's weight

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
        self.points, self.n_fixed = self.X, len(X)  # the products that a query needs
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
        #: From the relative error of products of anchors to the error of each coordinate.
        self._rounding_scale = np.abs(self._A).T @ self._lengths
        #: Upper bound on the distance of the basis from an orthonormal one, as an eigenvalue.
        self._skew = float(np.abs(square - np.eye(len(square))).sum(axis=1).max(initial=0.0))
        self.held_out_coordinates, self.held_out_residuals = (longest * largest * part for part in held_out)
        self._in_dtype: dict[np.dtype[Any], tuple[FloatArray, FloatArray]] = {}

    def coordinates(self, R: FloatArray, products: FloatArray) -> FloatArray:
        """Coordinates (n, q) of gradients, from residuals (n, k) and products (n, m) with the anchor rows."""
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
        """The (k, d_in) gradient ``sum_j z_j V_j`` of coordinates (q,), within ``rounding(tolerance)``.

        A product more accurate than that of double precision takes 20 times as long.
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
        """Bound on the rounding of ``gradient`` and a subtraction, relative to the length of coordinates."""
        rounding = self._product_rounding(np.float64)
        if rounding > tolerance:
            rounding = self._product_rounding(np.longdouble)
        return rounding + 2 * float(np.finfo(np.float64).eps) * (1 + self._skew)

    @property
    def lengths(self) -> Lengths:
        return Lengths(self._row_lengths)

    def _row_lengths(self, C: FloatArray, S: Any, products: Any, block: Block) -> list[FloatArray]:
        """Lengths of ``a_i z_i``, and upper bounds on those of ``c_i (g_i - V z_i)``."""
        formed, q = np.asarray(S), self.n_components
        # A bound for the scaled row is the scaled bound.
        z = formed[:, q:]
        residuals = self.residual_bounds(C, z, row_norms(z), block.norms, block.rounding_scale)
        return [row_norms(formed[:, :q]), residuals] if q else [residuals]

    def largest_entries(self, R: Array, block: Block, bounds: FloatArray) -> FloatArray:
        return bounds  # a length also bounds each entry

    def residual_bounds(
        self,
        R: FloatArray,
        coordinates: FloatArray,
        coordinate_norms: FloatArray,
        norms: FloatArray,
        rounding_scale: FloatArray | None = None,
        shortest: float = SHORTEST_DIFFERENCE,
    ) -> FloatArray:
        """Upper bounds (n,) on the residuals ``|g_i - sum_j z_ij V_j|``, rounding included.

        ``R`` (n, k) are the rows' residuals, and ``norms`` (n,) the lengths of the rows. ``coordinates``
        (n, q) come from products in the dtype of ``R``, in which it will be weighted too;
        ``coordinate_norms`` (n,) are in double precision. Products may be off in proportion to
        ``rounding_scale`` (n,), by default the lengths of the rows. No bound is below ``shortest`` times
        ``|g| + |z|``. A row of which nothing finite is known has an infinite bound.

        With coordinates off by ``e`` and a basis off orthonormality by ``E``, the square is ``|g|^2 - |z|^2 +
        2 z^T e + z^T E z``. ``|e_j|`` is at most ``|g| sum_a |A_aj| |g_a|`` times the relative error of three
        products in a row, those with rows, residuals and basis. The bound also covers the rounding of
        weighted residuals (two roundings of their full length) and of ``sum_j z_j V_j``.
        """
        dtype, residual_norms = R.dtype, row_norms(R)
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
    """Each column with the sign that makes its largest entry positive, which rounding does not change."""
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
