"""A row map on one block after another, at the speed of memory.

:class:`RowMap` computes in float64, which is right for rows that are mapped once. Rows larger than
memory are mapped anew in every pass; those in half or single precision are then mapped in float32,
with factors that one pass in advance has found in float64.
"""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from .geometry import row_norms
from .preparation import RowMap

FloatArray = NDArray[np.floating[Any]]

#: Rows of other lengths are left to RowMap: their float32 entries could over- or underflow.
_SHORTEST, _LONGEST = 1e-20, 1e18

#: The bits of a float16, moved to where a float32 has them, are read as 2**-112 of its value. All is
#: computed in this unit until rows are scaled, down to lengths whose inverse is still finite.
_HALF_BITS = np.int32(-(2**31) + 0x0FFFE000)
_HALF_UNIT = 2.0**112
_HALF_EXPONENT = np.uint16(0x7C00)
_HALF_SHORTEST = 1e-4


class BlockMap:
    """A :class:`RowMap` for blocks of rows of one dtype.

    Parameters
    ----------
    row_map : RowMap
        The map.
    source : dtype
        Of the features.
    dtype : dtype
        Of the mapped rows.
    """

    def __init__(self, row_map: RowMap, source: np.dtype[Any], dtype: np.dtype[Any]) -> None:
        self._map = row_map
        self._dtype = np.dtype(dtype)
        self._unit, self._shortest = (
            (_HALF_UNIT, _HALF_SHORTEST) if source == np.float16 else (1.0, _SHORTEST)
        )
        mean = np.zeros(0) if row_map.mean is None else row_map.mean
        #: Whether blocks are mapped in float32 with given factors, or by the row map itself.
        self.single = (
            dtype == np.float32
            and row_map.whitening is None
            and source in (np.float16, np.float32)
            and float(np.abs(mean).max(initial=0.0)) <= _LONGEST
        )
        self._mean = (mean / self._unit).astype(np.float32) if mean.size and self.single else None

    @property
    def appended(self) -> float | None:
        """The constant of an intercept column that mapped rows are left without.

        Rows of a power of two of features are multiplied faster than those with one more.
        """
        return self._map.intercept_value if self.single else None

    def lengths(self, X: FloatArray, out: FloatArray) -> FloatArray:
        """Lengths (n,) of centred rows, float64; nan where they are out of float32's reach.

        ``out`` (n or more, n_features) is float32 and overwritten.
        """
        if not self.single:
            return np.full(len(X), np.nan)
        with np.errstate(over="ignore", invalid="ignore"):
            lengths = row_norms(self._centred(X, out)) * self._unit
        known = (lengths == 0) | ((lengths >= self._shortest) & (lengths <= _LONGEST))
        return np.where(known, lengths, np.nan)

    def factors(self, lengths: FloatArray) -> FloatArray:
        """What multiplies each centred row, (n,) float32."""
        divisors = np.where(lengths > 0, lengths, 1.0) if self._map.normalize else np.ones(len(lengths))
        return (self._unit / divisors).astype(np.float32)

    def __call__(self, X: FloatArray, factors: FloatArray, out: FloatArray) -> FloatArray:
        """Mapped rows (n, d_in), but for what is :attr:`appended`; in ``out`` where that is float32."""
        if not self.single:
            return self._map(X, self._dtype)
        rows = self._centred(X, out)
        if self._map.normalize or self._unit != 1:
            rows *= factors[:, np.newaxis]
        return rows

    def _centred(self, X: FloatArray, out: FloatArray) -> FloatArray:
        """Rows less the mean, in the first rows of ``out`` and in this map's unit."""
        rows = out[: len(X)]
        widen(X, rows)
        if self._mean is not None:
            rows -= self._mean
        return rows


def widen(X: FloatArray, out: FloatArray) -> None:
    """Write finite half or single precision rows to a float32 array, exactly.

    Half precision comes out in units of ``2**112``. NumPy converts it number by number; here whole rows
    have their bits moved, several times as fast.
    """
    if X.dtype != np.float16:
        np.copyto(out, X)
        return
    bits = out.view(np.int32)
    np.copyto(bits, X.view(np.int16))  # the sign is repeated in the upper half
    np.left_shift(bits, 13, out=bits)
    np.bitwise_and(bits, _HALF_BITS, out=bits)


def finite_rows(X: FloatArray) -> NDArray[np.bool_]:
    """Whether all entries of each row are finite, shape (n,)."""
    half = X.dtype == np.float16
    finite = (X.view(np.uint16) & _HALF_EXPONENT) != _HALF_EXPONENT if half else np.isfinite(X)
    return np.asarray(finite.all(axis=1))
