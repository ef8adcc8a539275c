"""Coordinates of per-row gradients on the span of a few rows' gradients.

The gradients ``g_a = r_a x_a^T`` of m *anchor* rows span a subspace of the k x d_in matrices. Its
orthonormal basis ``V_j = sum_a A_aj g_a`` comes from the anchors' m x m Gram matrix, and inner
products with it from products of rows, so nothing of size n x k x d_in is ever formed.
"""

from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import DTypeLike, NDArray

from .._kernels.rounding import SHORTEST_DIFFERENCE, UNDERFLOW_PAD, dot_error
from .gradients import row_norms, weighted_sum

FloatArray = NDArray[np.floating[Any]]

#: Directions whose eigenvalue is at most this fraction of the largest count as dependent.
_EIGENVALUE_CUT = 1e-8

#: Relative rounding that adds little to the sensitivity of a sum over a million rows.
_EXACT_ENOUGH = 1e-11


class GradientEmbedding:
    """Orthonormal basis of the span of anchor gradients, or of its leading directions.

    Parameters
    ----------
    X : array of shape (m, d_in)
        Anchor rows.
    R : array of shape (m, k)
        Their loss residuals.
    n_components : int or None
        Largest number of directions, the strongest first; None keeps all of them.

    Attributes
    ----------
    X : array of shape (m, d_in)
        Anchor rows, scaled together so that the longest has unit length (the basis does not
        depend on their scale).
    n_components : int
        Number of directions kept: q.
    held_out_coordinates, held_out_residuals : arrays of shape (m,)
        Lengths of each anchor's gradient within and outside the basis of the others, which
        is how a row that is no anchor looks.

    Notes
    -----
    ``(R R^T) * (X X^T) = Q L Q^T`` is the Gram matrix and ``A = Q L^(-1/2)``; eigenvalues of at
    most ``1e-8`` of the largest are dropped. The held-out lengths need no further decomposition:
    with the ridge ``rho`` and ``B = (G + rho)^-1``, leaving anchor j out leaves the residual
    ``sqrt((B G B)_jj) / B_jj``. It is exact for the whole span (``rho`` at the cut); where weaker
    directions are left out, the strongest of them is ``rho``, a soft form of the same choice.

    Source: GEP (Yu et al. 2021, "Do Not Let Privacy Overbill Utility"), Algorithm 1, whose power
    iteration on materialised gradients the Gram matrix replaces.
    """

    def __init__(self, X: FloatArray, R: FloatArray, n_components: int | None = None) -> None:
        norms = row_norms(X)
        longest = float(norms.max(initial=0.0)) or 1.0
        self.X, self.R = X / longest, R
        self._lengths = row_norms(R) * (norms / longest + UNDERFLOW_PAD)
        gram = (R @ R.T) * (self.X @ self.X.T)
        values, vectors = np.linalg.eigh(gram)
        values, vectors = values[::-1], _signed(vectors[:, ::-1])  # the strongest first
        cut = _EIGENVALUE_CUT * float(values.max(initial=0.0))
        kept = int(np.sum(values > cut))
        if n_components is not None:
            kept = min(kept, n_components)
        self.n_components = kept
        self._A = vectors[:, :kept] / np.sqrt(values[:kept])
        #: How far errors in the anchors' products can reach into each coordinate.
        self._rounding_scale = np.abs(self._A).T @ self._lengths
        #: Largest eigenvalue, at most, of the basis' distance from orthonormality.
        self._skew = float(np.abs(self._A.T @ gram @ self._A - np.eye(kept)).sum(axis=1).max(initial=0.0))
        ridge = max(cut, float(values[kept:].max(initial=0.0)))
        self.held_out_coordinates, self.held_out_residuals = _held_out(values, vectors, ridge, longest)

    def coordinates(self, R: FloatArray, products: FloatArray) -> FloatArray:
        """Coordinates (n, q) of the gradients of rows with residuals ``R`` (n, k).

        ``products`` (n, m) are the rows' products with the anchor rows ``X``.
        """
        return np.asarray(((R @ self.R.T) * products) @ self._A)

    def gradient(self, coordinates: FloatArray, precision: DTypeLike = np.float64) -> FloatArray:
        """The (k, d_in) gradient ``sum_j z_j V_j`` of coordinates (q,), computed in a precision."""
        weights = self._A.astype(precision) @ coordinates.astype(precision)
        gradient = weighted_sum(weights[:, np.newaxis] * self.R, self.X.astype(precision))
        return np.asarray(gradient, dtype=np.float64)

    @cached_property
    def precision(self) -> np.dtype[Any]:
        """The precision in which :meth:`gradient` of a sum over many rows is exact enough.

        Extended precision is far slower, and of use only where anchor gradients are nearly dependent.
        """
        return np.dtype(np.float64 if self._rounding_in(np.float64) <= _EXACT_ENOUGH else np.longdouble)

    @cached_property
    def rounding(self) -> float:
        """Bound on the rounding of :meth:`gradient` in :attr:`precision`, relative to the coordinates' norm.

        A subtraction after it is included.
        """
        return self._rounding_in(self.precision) + 2 * float(np.finfo(np.float64).eps) * (1 + self._skew)

    def _rounding_in(self, precision: DTypeLike) -> float:
        """Rounding of ``sum_j z_j sum_a A_ja g_a``: a multiple of ``sum_j |z_j| sum_a |A_ja| |g_a|``."""
        n_roundings = sum(self._A.shape) + 4
        return float(n_roundings * np.finfo(precision).eps * np.linalg.norm(self._rounding_scale))

    def residual_bounds(
        self,
        residual_norms: FloatArray,
        norms: FloatArray,
        coordinates: FloatArray,
        dtype: np.dtype[Any],
        rounding_scale: FloatArray | None = None,
    ) -> FloatArray:
        """Upper bounds (n,) on ``|g_i - sum_j z_ij V_j|``, rounding included.

        Parameters
        ----------
        residual_norms, norms : arrays of shape (n,)
            Lengths of the rows' residuals and of the rows.
        coordinates : array of shape (n, q)
            As :meth:`coordinates` returned them from rounded products.
        dtype : dtype
            In which the products with the anchor rows were computed, and in which the
            residuals will be weighted.
        rounding_scale : array of shape (n,) or None
            Lengths in proportion to which products may be off, where those are not the rows'.

        Notes
        -----
        With coordinates off by ``e`` and a basis off orthonormality by ``E``, the square is
        ``|g|^2 - |z|^2 + 2 z^T e + z^T E z``. ``|e_j|`` is at most the products' relative error times
        ``|g| sum_a |A_aj| |g_a|``. The bound also covers the rounding of residuals that are
        weighted in ``dtype`` (two roundings of their full length) and of ``sum_j z_j V_j``.
        No bound is below :data:`SHORTEST_DIFFERENCE` times ``|g| + |z|``. A row of which nothing
        finite is known has an infinite bound.
        """
        eps = float(np.finfo(dtype).eps)
        (m, k), (d_in, q) = self.R.shape, (self.X.shape[1], self.n_components)
        wide = dot_error(d_in + k + 2 * m + q + 32, np.dtype(np.float64))
        lengths = residual_norms * (norms + UNDERFLOW_PAD)
        sizes = lengths if rounding_scale is None else residual_norms * (rounding_scale + UNDERFLOW_PAD)
        inside = np.einsum("ij,ij->i", coordinates, coordinates)
        reached = np.abs(coordinates) @ self._rounding_scale
        square = lengths**2 - inside
        slack = (
            2 * dot_error(d_in + 1, dtype) * sizes * reached
            + self._skew * inside
            + 16 * eps * (lengths**2 + inside)
            + wide * (lengths + reached) ** 2
        )
        bounds = np.sqrt(np.maximum(square, 0) + slack) + 2 * eps * lengths + wide * reached
        bounds = np.maximum(bounds, SHORTEST_DIFFERENCE * (lengths + np.sqrt(inside)))
        return np.where(np.isfinite(square), bounds, np.inf)


def _signed(vectors: FloatArray) -> FloatArray:
    """Each column with the sign that makes its largest entry positive.

    An eigenvector's sign is up to the last bit of the matrix, and would turn the noise of its coordinate:
    the same law, but another fit wherever rows are multiplied in another order.
    """
    if vectors.size == 0:
        return vectors
    largest = np.take_along_axis(vectors, np.abs(vectors).argmax(axis=0)[np.newaxis], axis=0)
    return vectors * np.sign(largest)


def _held_out(
    values: FloatArray, vectors: FloatArray, ridge: float, scale: float
) -> tuple[FloatArray, FloatArray]:
    """Each anchor's lengths within and outside the span of the others."""
    values = np.maximum(values, 0)
    if ridge == 0:  # no gradient at all
        return np.zeros(len(values)), np.zeros(len(values))
    energy = vectors**2
    own = energy @ (1 / (values + ridge))
    residuals = np.sqrt(energy @ (values / (values + ridge) ** 2)) / own
    coordinates = np.sqrt(np.maximum(energy @ values - residuals**2, 0))
    return scale * coordinates, scale * residuals
