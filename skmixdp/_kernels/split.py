"""Products of matrices that are more accurate than double precision, by BLAS.

Each matrix is split into a sum of three, whose entries have so few bits that the products of the leading ones
are computed without any rounding. Six products replace one.

Source: Ozaki, Ogita, Oishi and Rump 2012, "Error-free transformations of matrix multiplication by using fast
routines of matrix multiplication and its applications".
"""

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

FloatArray = NDArray[np.floating[Any]]

_DOUBLE = float(np.finfo(np.float64).eps) / 2


def split_product(P: NDArray[Any], X: FloatArray) -> FloatArray:
    """``P^T X`` (k, d) in double precision, of matrices (m, k) and (m, d).

    Parameters
    ----------
    P : array of shape (m, k)
        In extended or double precision.
    X : array of shape (m, d), float64
        No entry exceeds 1.

    Notes
    -----
    An entry is off by at most :func:`split_rounding` times the largest entry of ``P``, and by one rounding of
    the result.
    """
    bits = _bits(len(X))
    largest = float(np.abs(P).max(initial=0.0))
    if not 0 < largest < math.inf:
        return np.asarray(P.astype(np.float64).T @ X)
    exponent = math.frexp(largest)[1]
    P1, P2, P3 = (part.T for part in _parts(np.ldexp(P, -exponent), bits))
    X1, X2, X3 = _parts(X, bits)
    last = P1 @ X3 + P2 @ (X2 + X3) + P3 @ X
    return np.asarray(np.ldexp(P1 @ X1 + (P1 @ X2 + P2 @ X1 + last), exponent))


def split_rounding(m: int) -> float:
    """Bound on the error of a sum of ``m`` terms in :func:`split_product`, but for its last rounding.

    In units of the largest entry of ``P``, which is scaled by at most 2.

    Notes
    -----
    With parts of ``b`` bits, three products have terms of at most ``2^(-2 b)``, with ``m + 3`` roundings
    each. Two have terms of at most ``2^(-b)`` and are exact; three additions follow, the last but one of
    which may be off by as much as those terms' roundings. The first product is exact.
    """
    bits = _bits(m)
    return 2 * m * _DOUBLE * (3 * (m + 3) * 2.0 ** (-2 * bits) + 6 * 2.0**-bits)


def _bits(m: int) -> int:
    """Bits of a part such that ``m`` products of two parts are added up without rounding."""
    return (53 - math.ceil(math.log2(max(m, 2)))) // 2


def _parts(X: NDArray[Any], bits: int) -> list[FloatArray]:
    """Three matrices that add up to one of entries of at most 1, but for the rounding of the last."""
    first = np.round(np.ldexp(X, bits))
    rest = np.ldexp(X, bits) - first
    second = np.round(np.ldexp(rest, bits))
    third = np.ldexp(rest, bits) - second
    parts = ((first, bits), (second, 2 * bits), (third, 2 * bits))
    return [np.ldexp(part.astype(np.float64), -exponent) for part, exponent in parts]
