"""The fixed row-wise map between a user's features and the rows that a head sees."""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import DTypeLike, NDArray

from .geometry import row_norms

FloatArray = NDArray[np.floating[Any]]

_BLOCK_ROWS = 4096


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


def _largest_entries(X: FloatArray) -> FloatArray:
    return np.asarray(np.abs(X).max(axis=1))
