"""Coefficients of regressions with confidence intervals, from private rows."""

from ._private_inference import private_inference
from ._result import InferenceResult

__all__ = ["InferenceResult", "private_inference"]
