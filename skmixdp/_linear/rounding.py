"""Bounds on the rounding of products, for what is subtracted from almost its equal.

A norm that is made of a difference, ``|g - m|^2 = |g|^2 - 2 <g, m> + |m|^2``, may come out far too
small when the products behind it were rounded. Whoever needs an upper bound adds the largest
error that the arithmetic allows, whatever the order in which it sums.
"""

import math
from typing import Any

import numpy as np

from .arrays import FloatArray

#: Added to each length, it makes room for products that underflow in float32 or flush to zero.
UNDERFLOW_PAD = 1e-15

#: A difference counts as no shorter than this, in units of what it is the difference of. So no sum of clipped
#: differences has terms longer than the clip by more than the inverse.
SHORTEST_DIFFERENCE = 2.0**-10

#: Bound on the terms of a clipped difference, in units of its clip: the two of which it is made, together.
LONGEST_TERM = 2 / SHORTEST_DIFFERENCE


def dot_error(n_terms: int, dtype: np.dtype[Any]) -> float:
    """Relative error bound of a dot product that is computed in ``dtype``.

    With ``n`` the length of the vectors, a computed ``x^T m`` is off by at most
    ``dot_error(n + 1, dtype) (|x| + pad) (|m| + pad)``, ``pad`` being ``UNDERFLOW_PAD``. This
    holds for float32 and wider, whether or not the entries of ``m`` were rounded to ``dtype``
    first (the added term), with and without fused multiply-add.

    Parameters
    ----------
    n_terms : int
        Number of roundings that one term can go through.
    dtype : dtype
        Of the products and of their sum.

    Returns
    -------
    float
        Infinite where the vectors are so long that nothing can be said.

    Notes
    -----
    Source: Higham 2002, "Accuracy and Stability of Numerical Algorithms", section 3.1.
    """
    roundings = n_terms * float(np.finfo(dtype).eps) / 2
    return roundings / (1 - roundings) if roundings < 1 else math.inf


def on_grid(X: FloatArray, grid: float) -> FloatArray:
    """The rows in float64, rounded to multiples of a power of two."""
    return np.asarray(np.round(np.asarray(X, dtype=np.float64) / grid) * grid)
