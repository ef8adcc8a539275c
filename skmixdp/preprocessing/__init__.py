"""Preprocessing that does not leak: fitted on public rows, row by row, or for a budget."""

from ..leaks._check_pipeline import check_pipeline
from ..leaks._report import Finding, PipelineReport
from ._noisy_scaler import NoisyScaler
from ._public_moments import PublicCenterer, PublicWhitener
from ._public_only import PublicOnly
from ._row_normalizer import RowNormalizer

__all__ = [
    "Finding",
    "NoisyScaler",
    "PipelineReport",
    "PublicCenterer",
    "PublicOnly",
    "PublicWhitener",
    "RowNormalizer",
    "check_pipeline",
]
