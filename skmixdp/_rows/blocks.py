"""Blocks of rows that are not those that contribute: they lack a column, or a whitening."""

from functools import cached_property

import numpy as np

from .._kernels import dot_error
from .._linear import largest_entries, row_norms
from .._rowmap import Whitening
from .source import Block, FloatArray, Labels


class AppendedBlock(Block):
    """A block of rows that are one constant entry longer than their array says."""

    def __init__(self, X: FloatArray, y: Labels, norms: FloatArray, value: float) -> None:
        super().__init__(X, y, norms)
        self._value = value

    @cached_property
    def max_abs(self) -> FloatArray:
        return np.maximum(largest_entries(self._X), abs(self._value))


class WhitenedBlock(Block):
    """A block of rows that are whitened by linearity, in points and sums.

    ``norms`` and ``max_abs`` bound the whitened rows, ``reach`` those that are multiplied, which are longer;
    it also makes room for the rounding of the whitened points.
    """

    def __init__(
        self,
        X: FloatArray,
        y: Labels,
        norms: FloatArray,
        max_abs: FloatArray,
        whitening: Whitening,
        value: float | None,
    ) -> None:
        super().__init__(X, y, norms)
        self.max_abs = max_abs
        self._whitening = whitening
        self._value = value or 0.0

    @cached_property
    def rounding_scale(self) -> FloatArray:
        rounding = self._whitening.rounding / dot_error(self._X.shape[1] + 1, self._X.dtype)
        return np.maximum(self.norms, np.hypot(row_norms(self._X), self._value) * (1 + rounding + 2**-32))
