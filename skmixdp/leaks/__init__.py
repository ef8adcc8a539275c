"""Pipelines that leak private rows past the guarantee: what to look for, and what a fit says of it."""

from ._check_pipeline import check_pipeline
from ._enclosing import warn_of_leaks
from ._report import Finding, PipelineReport

__all__ = ["Finding", "PipelineReport", "check_pipeline", "warn_of_leaks"]
