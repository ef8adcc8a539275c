"""Preprocessing that does not leak: fitted on public rows, row by row, or within a budget."""

from ._cells import TableColumn
from ._leaks._check_pipeline import Finding, PipelineReport, check_pipeline
from ._noisy_scaler import NoisyScaler
from ._public_only import PublicOnly, PublicWhitener
from ._row_normalizer import RowNormalizer
from ._table_encoder import TableEncoder

__all__ = [
    "Finding",
    "NoisyScaler",
    "PipelineReport",
    "PublicOnly",
    "PublicWhitener",
    "RowNormalizer",
    "TableColumn",
    "TableEncoder",
    "check_pipeline",
]
