"""Sums of clipped numbers of each row, and their sensitivity."""

import math

import numpy as np

from .._linear.arrays import FloatArray
from .protocols import ReleasedArray


def clipped(values: FloatArray, bound: float, missing: float = 0.0) -> FloatArray:
    """Values (rows, m) clipped to ``[-bound, bound]``, in float64; NaN becomes ``missing``."""
    values = np.nan_to_num(values.astype(np.float64), nan=missing, posinf=bound, neginf=-bound)
    return np.clip(values, -bound, bound, out=values)


def scalars(bound: float, count: int, share: float) -> ReleasedArray:
    """The released array of ``count`` sums, with terms of at most ``bound`` in absolute value."""
    return ReleasedArray(math.nextafter(bound * math.sqrt(count), math.inf), share)
