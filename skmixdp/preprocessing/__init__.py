"""Preprocessing that does not leak: fitted on public rows, row by row, or paid for."""

from ._public_moments import PublicCenterer, PublicWhitener
from ._public_only import PublicOnly
from ._row_normalizer import RowNormalizer

__all__ = [
    "PublicCenterer",
    "PublicOnly",
    "PublicWhitener",
    "RowNormalizer",
]
