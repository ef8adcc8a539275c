"""A row map for rows that are read and mapped block by block in every pass.

:class:`RowMap` computes in float64, which is right for rows that are mapped once. Rows larger than memory
are mapped anew in every pass; those in half or single precision are then mapped in float32, with factors
that a first pass computed in float64. Whitening is applied to points and sums instead of rows, but enters
the factors. How a row is mapped depends on that row alone: :class:`RowMap` maps a row whose length is out
of float32's range, and no other.
"""

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from .._linear.arrays import FloatArray, largest_entries, row_norms
from .._linear.sums import on_grid
from .._rows.row_map import RowMap
from .._rows.scaling import Whitening

#: Shortest rows for float32. Entries of shorter ones could underflow, so RowMap maps those in float64.
_SHORTEST = 1e-20
#: Longest rows for float32. Entries of longer ones could overflow, so RowMap maps those in float64.
_LONGEST = 1e18

#: Smallest factor of a whitening that is applied to points and sums. A whitening with a smaller factor is
#: applied to the rows.
_MILD = 1e-2

#: The bits of a float16 are moved to their places in a float32, whose value is then 2**-112 of the original.
#: Rows stay in this unit until they are scaled. RowMap maps rows shorter than ``_HALF_SHORTEST``: their
#: factor could overflow.
_HALF_BITS = np.int32(-(2**31) + 0x0FFFE000)
_HALF_UNIT = 2.0**112
_HALF_SHORTEST = 1e-4


@dataclass(frozen=True)
class Measured:
    """What a first pass measures of a block of rows, each array of shape (n,), intercepts included."""

    #: These multiply rows in later passes, in the precision of mapped rows. A negative one is for a row that
    #: :class:`RowMap` maps, which is then multiplied by its absolute value.
    factors: FloatArray
    #: Lengths of the mapped rows, float64: true up to rounding, or upper bounds for the whitened rows if
    #: points and sums are whitened.
    norms: FloatArray
    #: Upper bounds on the largest absolute entries of the whitened rows, if points and sums are whitened.
    max_abs: FloatArray | None = None


class BlockMap:
    """A :class:`RowMap` for blocks of rows of dtype ``source``, to rows of another dtype.

    Mapped rows are rounded to multiples of ``grid``, a power of two, for sums that are exact. If ``single``,
    rows are mapped in float32 with factors from :meth:`measured`, except those out of its range. Mapped rows
    lack ``whitening`` and are scaled as if they had it: it is linear, and much cheaper on points and sums.
    """

    def __init__(
        self, row_map: RowMap, source: np.dtype[Any], dtype: np.dtype[Any], *, grid: float | None = None
    ) -> None:
        self._value = row_map.intercept_value
        self._dtype = np.dtype(dtype)
        self._grid = grid
        self._unit, self._shortest = (
            (_HALF_UNIT, _HALF_SHORTEST) if source == np.float16 else (1.0, _SHORTEST)
        )
        # With a bound on lengths, clipping needs that of a row, which is not known once the row is scaled.
        # Sums that are exact on a grid would not be so after a whitening, so there rows are whitened.
        linear = grid is None and row_map.bound is None
        self.whitening: Whitening | None = None
        #: Factor by which mapped rows may be longer than whitened ones.
        self.stretch = 1.0
        whitening = row_map.whitening
        if linear and whitening is not None:
            factor = float(whitening.factors.min(initial=whitening.rest))
            if factor >= _MILD:  # with smaller ones, sums would be imprecise
                self.whitening, self.stretch = whitening, 1 / factor
                self._shortest /= _MILD  # whitened rows may be shorter by this factor
                row_map = replace(row_map, whitening=None, intercept_value=None)
        self._map = row_map
        #: Whether mapped rows are whitened. Products round a row differently in blocks of other sizes.
        self.whitens = row_map.whitening is not None
        if row_map.unit_first:
            self._unit = 1.0
        mean = np.zeros(0) if row_map.mean is None else row_map.mean
        self.single = (
            dtype == np.float32
            and grid is None
            and row_map.whitening is None
            and row_map.columns is None
            and source in (np.float16, np.float32)
            and float(np.abs(mean).max(initial=0.0)) <= _LONGEST
        )
        self._mean = (mean / self._unit).astype(np.float32) if mean.size and self.single else None
        #: The constant of an intercept column, if mapped rows lack it: rows are multiplied faster if their
        #: length is a power of two.
        self.appended = self._value if self.single or self.whitening is not None else None

    def measured(self, X: FloatArray, out: FloatArray) -> Measured:
        """Factors and lengths of rows; overwrites ``out`` (n or more, n_features), of the mapped dtype.

        Rows are whitened once, as they are when scaled without regard to it: ``|M u|``, by whose upper bound
        they are divided then. With ``q`` the ratio of the new factor to the old, the row of later passes is
        ``q u`` but for two roundings of each entry, so ``q (|M u| + 2 eps |u|)`` bounds its length after the
        whitening ``M``, which lengthens nothing. All but these roundings is computed in float64.
        """
        factors = self._factors(self._lengths(X, out)) if self.single else np.ones(len(X), self._dtype)
        rows = self(X, factors, out)
        if self.whitening is None:
            return Measured(factors, self._with_appended(row_norms(rows)))
        lengths = row_norms(rows)
        whitened = self.whitening(rows)
        # Lengths, as sums of up to a million squares, have a relative error below 2**-33.
        change = 2 * float(np.finfo(self._dtype).eps) if self._map.normalize else 0.0
        norms = row_norms(whitened)
        pads = (self.whitening.rounding + change) * lengths * (1 + 2**-32) + 2**-32 * norms
        norms += pads
        entries = largest_entries(whitened) + pads
        if self._map.normalize:
            old, divisors = factors.astype(np.float64), np.where(norms > 0, norms, 1.0)
            factors = (old / divisors).astype(self._dtype)
            ratios = factors / old * (1 + 2**-50)
            norms, entries = norms * ratios, entries * ratios
        norms = self._with_appended(norms) * (1 + 2**-50)
        return Measured(factors, norms, np.maximum(entries, abs(self._value or 0.0)))

    def __call__(self, X: FloatArray, factors: FloatArray, out: FloatArray) -> FloatArray:
        """Mapped rows (n, d_in) without the constant :attr:`appended`; in ``out`` if they are ``single``.

        ``factors`` (n,) are those that were :meth:`measured`.
        """
        if not self.single:
            rows = self._map(X, self._dtype)
            if self.whitening is not None and self._map.normalize:
                rows *= factors[:, np.newaxis]
            return rows if self._grid is None else on_grid(rows, self._grid)
        with np.errstate(over="ignore", invalid="ignore"):
            rows = self._centred(X, out)
            if self._map.normalize or self._unit != 1:
                rows *= factors[:, np.newaxis]
        far = factors < 0
        if far.any():
            # All rows are computed alike, so that a row's result does not depend on the other rows.
            rows[far] = self._map(X, self._dtype)[far, : rows.shape[1]]
            if self.whitening is not None and self._map.normalize:
                rows[far] *= -factors[far, np.newaxis]
        return rows

    def _lengths(self, X: FloatArray, out: FloatArray) -> FloatArray:
        """Lengths (n,) of centred rows, float64; NaN out of float32's range. Overwrites float32 ``out``."""
        with np.errstate(over="ignore", invalid="ignore"):
            lengths = row_norms(self._centred(X, out)) * self._unit
        is_exact = (lengths == 0) | ((lengths >= self._shortest) & (lengths <= _LONGEST))
        return np.where(is_exact, lengths, np.nan)

    def _factors(self, lengths: FloatArray) -> FloatArray:
        """Factor of each centred row, (n,) float32; -1 for a row of unknown length."""
        if self._map.bound is not None:
            lengths = lengths.clip(min=self._map.bound)
        divisors = np.where(lengths > 0, lengths, 1.0) if self._map.normalize else np.ones(len(lengths))
        return np.where(np.isnan(lengths), -1.0, self._unit / divisors).astype(np.float32)

    def _with_appended(self, norms: FloatArray) -> FloatArray:
        return norms if self.appended is None else np.hypot(norms, self.appended)

    def _centred(self, X: FloatArray, out: FloatArray) -> FloatArray:
        """Rows minus the mean, in ``out`` and this map's unit; not finite if a length has no inverse."""
        rows = out[: len(X)]
        widen(X, rows)
        if self._map.unit_first:
            lengths = row_norms(rows)
            lengths[lengths == 0] = 1.0
            rows *= (1 / lengths).astype(np.float32)[:, np.newaxis]
        if self._mean is not None:
            rows -= self._mean
        return rows


def widen(X: FloatArray, out: FloatArray) -> None:
    """Write finite half or single precision rows to a float32 array, exactly.

    Half precision comes out in units of ``2**112``: bits of whole rows are moved, which is several times as
    fast as NumPy's conversion.
    """
    if X.dtype != np.float16:
        np.copyto(out, X)
        return
    bits = out.view(np.int32)
    np.copyto(bits, X.view(np.int16))  # also copies the sign to the upper half
    np.left_shift(bits, 13, out=bits)
    np.bitwise_and(bits, _HALF_BITS, out=bits)
