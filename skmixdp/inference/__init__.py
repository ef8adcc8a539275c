"""Regressions by noisy Newton steps: coefficients with intervals, and rates of counts."""

from ._private_inference import private_inference
from ._result import InferenceResult

__all__ = ["InferenceResult", "private_inference"]
