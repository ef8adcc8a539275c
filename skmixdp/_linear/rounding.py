"""Bounds on the rounding of products, for differences of nearly equal numbers.

A norm that is made of a difference, ``|g - m|^2 = |g|^2 - 2 <g, m> + |m|^2``, may come out far too
small when the products behind it were rounded. Whoever needs an upper bound adds the largest
error that the arithmetic allows in any order of sums.
"""

import math
from typing import Any

import numpy as np

from .arrays import FloatArray

#: Added to each length, to cover products that underflow in float32 or flush to zero.
UNDERFLOW_PAD = 1e-15

#: Least length of a difference ``a - b``, relative to ``|a| + |b|``. So the terms of a sum of clipped
#: differences exceed the clip by at most the inverse factor.
SHORTEST_DIFFERENCE = 2.0**-10

#: Bound on ``|a| + |b|`` for a clipped difference ``a - b``, in units of its clip.
LONGEST_TERM = 2 / SHORTEST_DIFFERENCE


def dot_error(n_terms: int, dtype: np.dtype[Any]) -> float:
    """Relative error bound of a dot product in ``dtype`` whose terms go through ``n_terms`` roundings.

    With ``n`` the length of the vectors, a computed ``x^T m`` is off by at most ``dot_error(n + 1, dtype)
    (|x| + pad) (|m| + pad)``, ``pad`` being ``UNDERFLOW_PAD``. This holds for float32 and wider, whether or
    not the entries of ``m`` were rounded to ``dtype`` first (the added term), with and without fused
    multiply-add. It is infinite for vectors too long for a bound. Source: Higham 2002, "Accuracy and
    Stability of Numerical Algorithms", section 3.1.
    """
    roundings = n_terms * float(np.finfo(dtype).eps) / 2
    return roundings / (1 - roundings) if roundings < 1 else math.inf


def on_grid(X: FloatArray, grid: float) -> FloatArray:
    """The rows in float64, rounded to multiples of a power of two."""
    return np.asarray(np.round(np.asarray(X, dtype=np.float64) / grid) * grid)
