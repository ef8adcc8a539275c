"""Regressions by noisy Newton steps: coefficients with intervals, and rates of counts."""

from ._count_regressor import MixedDPPoissonRegressor
from ._private_inference import private_inference
from ._result import InferenceResult

__all__ = ["InferenceResult", "MixedDPPoissonRegressor", "private_inference"]
