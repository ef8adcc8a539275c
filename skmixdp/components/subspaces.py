"""Subspaces of feature space in which the private sum is released."""

import math
from dataclasses import dataclass

import numpy as np

from .._linear.arrays import FloatArray
from .._linear.sums import dot_error
from .public import PublicView

#: Allowed distance of a basis from orthonormality: far above rounding errors, and still negligible.
_ORTHONORMALITY = 1e-9


@dataclass(frozen=True)
class PublicSubspace:
    """The span of the public gradient's directions, completed by principal directions of public rows.

    Without public rows, or if there are no more dimensions, nothing is projected; ``exact_sums`` are
    afterwards.

    *Guarantee*: the basis depends on public rows and released heads only. It is asserted to be orthonormal,
    so the projection lengthens a gradient by at most the factor ``gain``.

    Source: AdaMix, section 3.2, "Adaptive subspace projection". The completion is ours: the public gradient
    has rank at most k, and the paper uses 2000 columns.
    """

    n_components: int
    exact_sums: bool = False

    def at(self, view: PublicView) -> "Coordinates | Complement | None":
        n_features = view.W.shape[1]
        if view.data.n_rows == 0 or self.n_components >= n_features:
            return None
        basis = view.basis(self.n_components)
        # Noise on the full sum that is then projected has the same distribution as noise on the coordinates.
        # It is cheaper beyond half of the dimensions, and keeps sums on their grid.
        if self.exact_sums or 2 * basis.shape[1] > n_features:
            return Complement(basis)
        return Coordinates(basis)


class Complement:
    """Release of the full sum, which is then projected on the basis (post-processing)."""

    gain = 1.0
    roundings = 0.0
    directions = None

    def __init__(self, basis: FloatArray) -> None:
        _check_orthonormal(basis)
        self.basis = basis

    def encode(self, gradient: FloatArray) -> FloatArray:
        return gradient

    def decode(self, released: FloatArray) -> FloatArray:
        return np.asarray((released @ self.basis) @ self.basis.T)


class Coordinates:
    """Release of the coordinates (k, P) in an orthonormal (d_in, P) basis."""

    gain = 1 + _ORTHONORMALITY

    def __init__(self, basis: FloatArray) -> None:
        _check_orthonormal(basis)
        self.basis = basis
        #: Rounding of the product with a basis, whose Frobenius norm is ``sqrt(P)``.
        self.roundings = dot_error(len(basis), np.dtype(np.float64)) * math.sqrt(basis.shape[1]) * self.gain

    @property
    def directions(self) -> FloatArray:
        return self.basis.T

    def encode(self, gradient: FloatArray) -> FloatArray:
        return np.asarray(gradient @ self.basis)

    def decode(self, released: FloatArray) -> FloatArray:
        return np.asarray(released @ self.basis.T)


def _check_orthonormal(basis: FloatArray) -> None:
    """Refuse a basis that is not orthonormal, which would break the stated sensitivity."""
    distance = np.abs(basis.T @ basis - np.eye(basis.shape[1])).sum(axis=1).max(initial=0.0)
    if not distance <= _ORTHONORMALITY:
        raise ArithmeticError(f"the public basis is not orthonormal (off by {distance:.1e}).")
