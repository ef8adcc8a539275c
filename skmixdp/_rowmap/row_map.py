"""The fixed row-wise map between a user's features and the rows that a head sees."""

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import DTypeLike, NDArray

from .._linear import (
    Array,
    astype,
    empty_in,
    in_library_of,
    largest_entries,
    largest_singular_value,
    row_norms,
)
from .whitening import Whitening

FloatArray = NDArray[np.floating[Any]]

_BLOCK_ROWS = 1024

#: Constant of the intercept column where no public rows tell (they give 0.3 to 0.5 on images,
#: text and tables): uncentred rows of unit length have a common direction that serves as one.
_INTERCEPT = 0.3

#: Targets of unit scale are held within this, far beyond any use.
_FARTHEST_TARGET = 1e15


@dataclass(frozen=True)
class RowMap:
    """Subtract a mean, whiten, divide each row by its L2 norm, append the intercept column.

    It acts on one row at a time and is fixed before private rows are looked at, so applying
    it to them costs no privacy.

    Attributes
    ----------
    mean : array of shape (n_features,) or None
        Subtracted from each row; None subtracts nothing.
    normalize : bool
        Whether rows are scaled to unit length; a row of zeros stays as it is.
    intercept_value : float or None
        Constant of the last column; None appends no column.
    whitening : Whitening or None
        Applied to rows less the mean.
    """

    mean: FloatArray | None
    normalize: bool
    intercept_value: float | None
    whitening: Whitening | None = None

    @classmethod
    def of(
        cls,
        X: FloatArray,
        center: bool,
        normalize: bool,
        fit_intercept: bool,
        y: NDArray[np.integer[Any]] | None = None,
    ) -> "RowMap":
        """The map that public rows (n, n_features) suggest; n may be 0.

        With their class indices ``y`` it whitens.
        """
        return cls.with_rows(X, center, normalize, fit_intercept, y)[0]

    @classmethod
    def with_rows(
        cls,
        X: FloatArray,
        center: bool,
        normalize: bool,
        fit_intercept: bool,
        y: NDArray[np.integer[Any]] | None = None,
    ) -> tuple["RowMap", FloatArray]:
        """The same map, and the float64 rows (n, d_in) that it makes of the public ones."""
        mean = X.mean(axis=0, dtype=np.float64) if center and len(X) else None
        whitening = None if y is None else Whitening.of(cls(mean, normalize, None)(X, np.float64), y)
        bare = cls(mean, normalize, None, whitening)(X, np.float64)
        if not fit_intercept:
            return cls(mean, normalize, None, whitening), bare
        # The intercept column is as stiff as the strongest direction of the public rows:
        # a larger constant would ask for more steps, a smaller one would learn too slowly.
        moment = largest_singular_value(bare) / math.sqrt(len(bare)) if len(bare) else 0.0
        value = float(moment) or _INTERCEPT
        rows = np.column_stack([bare, np.full(len(bare), value)])
        return cls(mean, normalize, value, whitening), rows

    @property
    def norm_bound(self) -> float:
        """Bound on the L2 norm of any row that comes out; infinite unless rows are scaled."""
        if not self.normalize:
            return math.inf
        # Rounding unit rows to float32 may lengthen them a little.
        return math.hypot(1.0, self.intercept_value or 0.0) * (1 + 1e-6)

    def same_as(self, other: "RowMap") -> bool:
        """Whether another map is the same."""
        means = (self.mean is None, other.mean is None)
        return (
            (self.normalize, self.intercept_value) == (other.normalize, other.intercept_value)
            and means[0] == means[1]
            and (self.mean is None or np.array_equal(self.mean, np.asarray(other.mean)))
            and (
                other.whitening is None if self.whitening is None else self.whitening.same_as(other.whitening)
            )
        )

    def width(self, n_features: int) -> int:
        """Number of entries of a mapped row."""
        return n_features + (self.intercept_value is not None)

    def __call__(self, X: Array, dtype: DTypeLike) -> Array:
        """Map (n, n_features) features to new (n, d_in) rows of the given dtype.

        Tensors are mapped on their device.
        """
        n_rows, n_features = X.shape
        rows = empty_in(X, (n_rows, self.width(n_features)), dtype)
        # Block by block in float64: one rounding at the end, no second copy of the features.
        for start in range(0, n_rows, _BLOCK_ROWS):
            block = astype(X[start : start + _BLOCK_ROWS], np.float64, copy=True)
            if self.mean is not None:
                block -= in_library_of(block, self.mean)
            if self.normalize:
                # First by the largest entry: the square of a huge or tiny one is inf or 0.
                _divide(block, largest_entries(block))
            if self.whitening is not None:
                # Rows whose largest entry is 1 neither overflow nor vanish in float32.
                block = self.whitening(block, dtype if self.normalize else np.float64)
            if self.normalize:
                _divide(block, row_norms(block))
            rows[start : start + _BLOCK_ROWS, :n_features] = block
        if self.intercept_value is not None:
            rows[:, n_features] = self.intercept_value
        return rows

    def join(self, given: FloatArray, n_outputs: int, n_features: int) -> FloatArray:
        """A (k, d_in) head from coefficients, with the intercepts in a last column or without.

        Raises
        ------
        ValueError
            If ``given`` has another shape or is not finite.
        """
        bare, full = (n_outputs, n_features), (n_outputs, n_features + 1)
        fits = given.shape == bare or (given.shape == full and self.intercept_value is not None)
        if not fits or not np.all(np.isfinite(given)):
            ending = f", or of shape {full} with the intercepts in the last column"
            raise ValueError(
                f"init of shape {given.shape} must be a finite array of shape {bare}"
                f"{'' if self.intercept_value is None else ending}."
            )
        if self.intercept_value is None:
            return given
        head = np.zeros(full)
        head[:, : given.shape[1]] = given
        head[:, n_features] /= self.intercept_value
        return head

    def split(self, W: FloatArray, n_features: int) -> tuple[FloatArray, FloatArray]:
        """Split a (k, d_in) head into ``coef_`` (k, n_features) and ``intercept_`` (k,)."""
        if self.intercept_value is None:
            return W, np.zeros(len(W))
        return W[:, :n_features], W[:, n_features] * self.intercept_value


def _divide(rows: Array, lengths: Array) -> None:
    """Divide each row by its length, in place; those of length 0 stay as they are."""
    lengths[lengths == 0] = 1.0
    rows /= lengths[:, None]


@dataclass(frozen=True)
class TargetMap:
    """The fixed map between targets in a user's units and targets of unit scale.

    Like :class:`RowMap` it acts on each row by itself and is fixed before private rows are
    looked at.

    Attributes
    ----------
    center, scale : arrays of shape (k,)
        ``(y - center) / scale`` is what the head is trained on; ``scale`` is positive.
    """

    center: FloatArray
    scale: FloatArray

    @classmethod
    def of(cls, y: FloatArray) -> "TargetMap":
        """Mean and standard deviation of public (n, k) targets; constant ones have scale 1."""
        # By the largest target first: the square of a huge or tiny one is inf or 0.
        size = np.abs(y).max(axis=0)
        size[size == 0] = 1.0
        scale = (y / size).std(axis=0)
        constant = scale <= 10 * np.finfo(np.float64).eps
        return cls((y / size).mean(axis=0) * size, np.where(constant, 1.0, scale * size))

    def __call__(self, y: FloatArray, dtype: DTypeLike) -> FloatArray:
        """Map (n, k) targets to new ones of the given dtype."""
        with np.errstate(over="ignore"):
            unit = (y - self.center) / self.scale
        # No float32 overflows; so far out, the clip leaves no more of a target than its sign.
        return np.clip(unit, -_FARTHEST_TARGET, _FARTHEST_TARGET).astype(dtype)

    def to_units(self, coef: FloatArray, intercept: FloatArray) -> tuple[FloatArray, FloatArray]:
        """A head (k, d), (k,) for targets of unit scale, for targets in the user's units."""
        return coef * self.scale[:, np.newaxis], intercept * self.scale + self.center
