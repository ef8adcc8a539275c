"""Checks that find pipeline steps which learn from private rows outside the guarantee."""

from ._check_pipeline import check_pipeline
from ._report import Finding, PipelineReport

__all__ = ["Finding", "PipelineReport", "check_pipeline"]
