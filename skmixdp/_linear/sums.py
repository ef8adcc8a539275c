"""Sums over rows, and bounds on the rounding of products and sums.

The released sums are computed with rounding. Zeroing out one row changes its own term exactly,
and the rounding of every addition that comes after it. :func:`sum_error` bounds how much that can be; the
release adds it to the stated sensitivity. Two things keep it small. Few rows are added in single precision,
and few additions lie between a row and the result.
"""

import math
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import DTypeLike, NDArray

FloatArray = NDArray[np.floating[Any]]

#: Number of rows whose terms are added in single precision, in any order.
PANEL_ROWS = 384

#: Number of rows whose terms are added in double precision, in any order.
BLOCK_ROWS = 2**16

#: Number of panels whose sums are added in single precision. Their total is then added in double precision.
_PANELS = 6

#: Number of double-precision sums that one level of a cascade adds before it passes on the total.
_FAN_IN = 16

#: Rounding of a :class:`Cascade` of up to 16**8 double-precision sums, in units of the roundoff and of all
#: terms.
_CASCADE = 64

#: Rounding of sums that the size of panels aims at, as a fraction by which the sensitivity grows.
_AIM = 0.01

#: Panels of fewer rows take longer than sums in double precision.
_FEWEST_PANEL_ROWS = 48

#: Most entries of a sum.
_MOST_ENTRIES = 1e12

#: Below this, a result in single precision may be set to zero, or lose digits as a subnormal number.
_UNDERFLOW = 2.0**-126

#: Added to each length, to cover products that underflow in float32.
UNDERFLOW_PAD = 1e-15

#: Minimum length of a difference ``a - b``, relative to ``|a| + |b|``. Terms of a sum of clipped differences
#: then exceed the clip by at most the inverse of this.
SHORTEST_DIFFERENCE = 2.0**-10


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


@dataclass(frozen=True)
class SumError:
    """How much the rounding of a sum of ``n_rows`` terms changes when one row is zeroed out.

    ``relative`` is in units of the norm of the longest term, and ``absolute`` is what underflow can add. What
    is computed from the sum is rounded in proportion to the number of terms.
    """

    relative: float = 0.0
    absolute: float = 0.0
    n_rows: int = 0

    def of(self, longest_term: float, later_roundings: float = 0.0) -> float:
        """Bound on how far one row moves the rounding (L2), for terms of norm at most ``longest_term``.

        ``later_roundings`` bounds the rounding of what is computed from the sum, relative to the sum's norm.
        """
        later = 2 * later_roundings * self.n_rows * (1 + self.relative)
        return (self.relative + later) * longest_term + self.absolute

    def plus_later(self, roundings: float) -> "SumError":
        """The error of results that are computed from the sum, with roundings relative to its norm."""
        return replace(self, relative=self.of(1.0, roundings) - self.absolute)


#: The error of sums without rounding.
EXACT = SumError()


def any_order(n_terms: int, roundoff: float) -> float:
    """How much the rounding of a sum of ``n_terms`` can differ between two sets of terms.

    In units of the longest term, and of products that are rounded once before they are added.

    Adding ``n`` terms in any order is a binary tree. Each addition is off by at most the roundoff ``u`` times
    its result, which is no longer than the number of leaves below it. The sum of these numbers over all inner
    nodes is largest where terms are added one after the other: ``n (n + 1) / 2 - 1``. Rounded products add
    ``n``. Two sums may be off in opposite directions, hence ``u (n^2 + 3 n)``. The growth of the partial sums
    by rounding is at most ``(1 + u)^(n + 1)``. The bound is one on the Frobenius norm of sums of ``c_i
    x_i^T``, since each entry's error is bounded by the entries' magnitudes and ``| |c_i| |x_i|^T | = |c_i|
    |x_i|``.
    """
    return roundoff * (n_terms**2 + 3 * n_terms) * math.exp((n_terms + 1) * roundoff)


def sum_error(
    n_rows: int,
    dtype: DTypeLike,
    *,
    panel_rows: int = PANEL_ROWS,
    block_rows: int = BLOCK_ROWS,
    stretch: float = 1.0,
) -> SumError:
    """The error of sums over rows as :class:`Cascade` adds them, in units of a bound on the terms.

    Weighted residuals and rows are multiplied in ``dtype``, float32 or float64; in float64 if ``panel_rows``
    is 0. At most ``panel_rows`` terms are added in float32, and ``block_rows`` in float64 in any order. Terms
    may be ``stretch`` times longer than those of the bound. Where all are added in double precision, the
    bound covers rows that move others to other places: one that is removed, or is in a random batch.

    Only one panel of rows holds the row that is zeroed out. All other panels are the same numbers in both
    sums, bit for bit, so that their rounding cancels. What differs is the panel itself (:func:`any_order`),
    and every addition between it and the result. The ``q`` panels that are added one after the other are off
    by at most ``u (2 + ... + q)`` panels in each of the two cases, and a column of constants, which is added
    up separately, is rounded once more: ``u (q^2 + q)`` panels together. A level of double precision with
    ``f`` terms of ``m`` rows each is off by at most ``u m (f^2 + f) / 2``, again twice. Over all levels that
    is less than ``u n (f + 1) f / (f - 1)``, and the last additions of what the levels hold are off by less
    than ``2 u n`` times their number. Adding up to eight such sums, one for each part of the rows, is off by
    less than ``14 u n``. Source: Higham 2002, "Accuracy and Stability of Numerical Algorithms", sections 3.1
    and 4.2, for one sum.
    """
    double = float(np.finfo(np.float64).eps) / 2
    n_blocks = -(-n_rows // block_rows)
    relative, absolute = n_blocks * any_order(min(block_rows, n_rows), double), 0.0
    relative += _CASCADE * double * n_rows
    if np.dtype(dtype) == np.float32 and panel_rows:
        single = float(np.finfo(np.float32).eps) / 2
        later = (_PANELS**2 + _PANELS) * panel_rows
        relative += any_order(panel_rows, single) + single * later * math.exp(2 * panel_rows * single)
        absolute = 4 * panel_rows * _UNDERFLOW * math.sqrt(_MOST_ENTRIES)
    return SumError(relative * stretch, absolute * stretch, n_rows)


def panel_rows_for(stretch: float) -> int:
    """Rows in a panel for which the error stays near a hundredth of a term; 0 if there are too few."""
    if stretch == 1:
        return PANEL_ROWS
    for rows in range(PANEL_ROWS, _FEWEST_PANEL_ROWS - 1, -16):
        if sum_error(0, np.float32, panel_rows=rows, stretch=stretch).relative <= _AIM:
            return rows
    return 0


@dataclass(eq=False, repr=False)
class Cascade:
    """Sum of many arrays or tensors in double precision, with few additions from each to the result.

    Terms in single precision are the sums of at most :data:`PANEL_ROWS` rows each, those in double precision
    of at most :data:`BLOCK_ROWS`.
    """

    #: For each level: the sum so far, and its number of terms.
    _levels: list[list[Any]] = field(default_factory=list)

    def add(self, term: Any) -> None:
        """Add an array, which the cascade may overwrite."""
        level = 0 if term.dtype == np.float32 else 1
        while True:
            while len(self._levels) <= level:
                self._levels.append([None, 0])
            partial, count = self._levels[level]
            if partial is None:
                self._levels[level] = [term, 1]
                return
            partial += term
            if count + 1 < (_PANELS if level == 0 else _FAN_IN):
                self._levels[level][1] = count + 1
                return
            self._levels[level] = [None, 0]
            term = partial.astype(np.float64) if level == 0 else partial
            level += 1

    @property
    def value(self) -> Any:
        """The sum in double precision, or None if nothing was added."""
        total = None
        for partial, _ in self._levels:
            if partial is not None:
                wide = partial.astype(np.float64) if partial.dtype == np.float32 else partial
                total = wide if total is None else total + wide
        return total
