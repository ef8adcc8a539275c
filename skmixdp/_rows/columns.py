"""Standardised columns: the centre and the spread of each, from public rows."""

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .._linear import Array, FloatArray, in_library_of

#: Entries of standardised columns are cut at this many spreads.
_CUT = 8.0

#: Interquartile range of a normal distribution of spread 1.
IQR = 1.349

#: Columns are standardised if fewer than these are effective: a number, and a part of all columns.
_FEW_COLUMNS, _PART = 6.0, 0.4

#: Tables of up to so many columns are always standardised.
_NARROW = 10

#: Columns are also standardised if their centre is this many times as far from 0 as the spread of the rows.
_FAR = 10.0


@dataclass(frozen=True)
class Columns:
    """Columns ``(x - center) factor``, cut at ``cut`` on both sides.

    ``center`` and ``factor`` are (n_features,); factors are positive.
    """

    center: FloatArray
    factor: FloatArray
    cut: float = _CUT

    @classmethod
    def limits(cls, n_features: int, largest: float) -> "Columns":
        """Unchanged columns, with entries cut at ``largest``."""
        return cls(np.zeros(n_features), np.ones(n_features), largest)

    def __call__(self, X: Array, out: Array | None = None) -> Array:
        """Standardised columns of (n, n_features) rows in double precision; new, or in ``out``."""
        if not isinstance(X, np.ndarray):
            centred = (X - in_library_of(X, self.center)) * in_library_of(X, self.factor)
            return centred.clip(-self.cut, self.cut)
        with np.errstate(over="ignore"):  # what overflows is cut
            out = np.subtract(X, self.center, out=out, dtype=np.float64)
            out *= self.factor
        return np.clip(out, -self.cut, self.cut, out=out)

    def at(self, values: FloatArray, indices: NDArray[np.integer[Any]]) -> FloatArray:
        """Standardised entries (m,) of the columns with these ``indices`` (m,)."""
        with np.errstate(over="ignore"):  # what overflows is cut
            standardised = (values - self.center[indices]) * self.factor[indices]
        return np.asarray(np.clip(standardised, -self.cut, self.cut))

    def of_zeros(self) -> FloatArray:
        """Standardised columns (n_features,) of a row of zeros."""
        return np.asarray(self(np.zeros((1, len(self.center))))[0])


def columns_of(X: FloatArray, *, centred: bool = True, balanced: bool = False) -> Columns | None:
    """The columns of public rows (n, n_features) at spread 1, or None if rows need no scaling.

    The spread is the standard deviation, or the interquartile range divided by that of a normal distribution
    if it is larger. Columns that are constant keep their unit. Without ``centred``, the centre is 0. With
    ``balanced``, the spread of two values is at least half their distance, as if they were equally frequent.
    """
    if len(X) < 2:
        return None
    # In units of the largest entry, since squares of huge or tiny ones are inf or 0.
    size = np.abs(X).max(axis=0)
    unit = X / np.where(size == 0, 1.0, size)
    center = unit.mean(axis=0, dtype=np.float64)
    low, high = np.quantile(unit, [0.25, 0.75], axis=0)
    spread = np.maximum((high - low) / IQR, np.sqrt(np.mean((unit - center) ** 2, axis=0)))
    # Rounding of the mean of equal entries is no spread.
    spread[spread <= 1e-14] = 0.0
    center *= size
    if not worth_scaling(center if centred else np.zeros_like(center), spread * size):
        return None
    if balanced:
        low, high = unit.min(axis=0), unit.max(axis=0)
        two_valued = ((unit == low) | (unit == high)).all(axis=0)
        spread = np.where(two_valued, np.maximum(spread, (high - low) / 2), spread)
    with np.errstate(divide="ignore", over="ignore"):
        factor = np.where(spread > 0, 1 / spread / size, 1.0)
    factor[~np.isfinite(factor)] = 1.0
    return Columns(center if centred else np.zeros_like(center), factor)


def worth_scaling(center: FloatArray, spread: FloatArray) -> bool:
    """Whether columns should be standardised, by the centre and the spread (n_features,) of each.

    They do if columns are few, if a few of them hold most of the squared length of rows, or if the centre is
    so far from 0 that rows of unit length would all be alike.
    """
    largest, farthest = float(spread.max(initial=0.0)), float(np.abs(center).max(initial=0.0))
    if not (0 < largest < math.inf and farthest < math.inf):
        return False
    # In units of the largest number, since powers of huge or tiny ones are inf or 0.
    effective = effective_columns((spread / largest) ** 2)
    few = len(spread) <= _NARROW or effective < min(_PART * len(spread), _FEW_COLUMNS)
    unit = max(largest, farthest)
    return few or float(np.linalg.norm(center / unit)) > _FAR * float(np.linalg.norm(spread / unit))


def effective_columns(energies: FloatArray) -> float:
    """Effective number of columns of these mean squares ``e`` (n_features,): ``(sum e)^2 / sum e^2``."""
    return float(np.sum(energies)) ** 2 / float(np.sum(energies**2))
