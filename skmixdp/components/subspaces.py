"""Subspaces of feature space in which the private sum is released."""

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .._kernels import dot_error
from ..public import PublicView

FloatArray = NDArray[np.floating[Any]]

#: Allowed distance of a basis from orthonormality; far above rounding, far below any use.
_ORTHONORMALITY = 1e-9


class FullSpace:
    """No projection."""

    gain = 1.0
    roundings = 0.0
    is_full = True

    def at(self, view: PublicView) -> "FullSpace":
        return self

    def encode(self, gradient: FloatArray) -> FloatArray:
        return gradient

    def decode(self, released: FloatArray) -> FloatArray:
        return released


@dataclass(frozen=True)
class PublicSubspace:
    """Span of the public gradient's directions, completed by the public rows' own.

    Parameters
    ----------
    n_components : int
        Number of columns of the basis; fewer if the rank is lower, and all of feature space if that has no
        more dimensions or there are no public rows.
    exact_sums : bool
        Whether the full sum is released, and projected afterwards.

    *Guarantee*: the basis is made of public rows and released heads, and asserted to be
    orthonormal, so the projection lengthens no gradient by more than ``gain``.

    Source: AdaMix, section 3.2, "Adaptive subspace projection"; the completion of the basis
    is ours (the public gradient has rank at most k, the paper uses 2000 columns).
    """

    n_components: int
    exact_sums: bool = False

    @property
    def is_full(self) -> bool:
        """False: whether it spans everything depends on the public rows."""
        return False

    def at(self, view: PublicView) -> "FullSpace | Coordinates | Complement":
        n_features = view.W.shape[1]
        if view.n_rows == 0 or self.n_components >= n_features:
            return FullSpace()
        basis = view.basis(self.n_components)
        # Noise on the full sum followed by the projection has the same law as noise on the
        # coordinates: cheaper beyond half of the dimensions, and it leaves sums on their grid.
        if self.exact_sums or 2 * basis.shape[1] > n_features:
            return Complement(basis)
        return Coordinates(basis)


class Complement:
    """Release the full sum, then remove what lies outside the basis (post-processing)."""

    gain = 1.0
    roundings = 0.0

    def __init__(self, basis: FloatArray) -> None:
        _check_orthonormal(basis)
        self.basis = basis

    def encode(self, gradient: FloatArray) -> FloatArray:
        return gradient

    def decode(self, released: FloatArray) -> FloatArray:
        return np.asarray((released @ self.basis) @ self.basis.T)


class Coordinates:
    """Release the coordinates in an orthonormal (d_in, P) basis: (k, P) numbers."""

    gain = 1 + _ORTHONORMALITY

    def __init__(self, basis: FloatArray) -> None:
        _check_orthonormal(basis)
        self.basis = basis
        #: A matrix times a basis of Frobenius norm ``sqrt(P)``.
        self.roundings = dot_error(len(basis), np.dtype(np.float64)) * math.sqrt(basis.shape[1]) * self.gain

    def encode(self, gradient: FloatArray) -> FloatArray:
        return np.asarray(gradient @ self.basis)

    def decode(self, released: FloatArray) -> FloatArray:
        return np.asarray(released @ self.basis.T)


def _check_orthonormal(basis: FloatArray) -> None:
    """A basis that is not orthonormal would break the stated sensitivity."""
    distance = np.abs(basis.T @ basis - np.eye(basis.shape[1])).sum(axis=1).max(initial=0.0)
    if not distance <= _ORTHONORMALITY:
        raise ArithmeticError(f"the public basis is not orthonormal (off by {distance:.1e}).")
