"""Checks that find leaks: steps that learn from private rows without a budget."""

from ._check_pipeline import check_pipeline
from ._enclosing import check_public_rows, enclosing_pipeline, seeding_ensemble, warn_of_leaks
from ._findings import Finding, PipelineReport

__all__ = [
    "Finding",
    "PipelineReport",
    "check_pipeline",
    "check_public_rows",
    "enclosing_pipeline",
    "seeding_ensemble",
    "warn_of_leaks",
]
