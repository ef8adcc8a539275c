"""The fixed row-wise map between a user's features and the rows that a head sees."""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import DTypeLike, NDArray

from .geometry import row_norms

FloatArray = NDArray[np.floating[Any]]

_BLOCK_ROWS = 4096

#: Targets of unit scale are held within this, far beyond any use.
_FARTHEST_TARGET = 1e15


@dataclass(frozen=True)
class RowMap:
    """Subtract a mean, divide each row by its L2 norm, append the intercept column.

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
    """

    mean: FloatArray | None
    normalize: bool
    intercept_value: float | None

    def __call__(self, X: FloatArray, dtype: DTypeLike) -> FloatArray:
        """Map (n, n_features) features to new (n, d_in) rows of the given dtype."""
        n_rows, n_features = X.shape
        rows = np.empty((n_rows, n_features + (self.intercept_value is not None)), dtype=dtype)
        # Block by block in float64: one rounding at the end, no second copy of the features.
        for start in range(0, n_rows, _BLOCK_ROWS):
            block = np.array(X[start : start + _BLOCK_ROWS], dtype=np.float64)
            if self.mean is not None:
                block -= self.mean
            if self.normalize:
                # First by the largest entry: the square of a huge or tiny one is inf or 0.
                for measure in (_largest_entries, row_norms):
                    lengths = measure(block)
                    lengths[lengths == 0] = 1.0
                    block /= lengths[:, np.newaxis]
            rows[start : start + _BLOCK_ROWS, :n_features] = block
        if self.intercept_value is not None:
            rows[:, n_features] = self.intercept_value
        return rows

    def split(self, W: FloatArray, n_features: int) -> tuple[FloatArray, FloatArray]:
        """Split a (k, d_in) head into ``coef_`` (k, n_features) and ``intercept_`` (k,)."""
        if self.intercept_value is None:
            return W, np.zeros(len(W))
        return W[:, :n_features], W[:, n_features] * self.intercept_value


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


def _largest_entries(X: FloatArray) -> FloatArray:
    return np.asarray(np.abs(X).max(axis=1))
