"""Evaluation on private rows: one noisy histogram, from which all metrics and thresholds follow."""

from ._one_vs_rest import OneVsRestEvaluation
from ._private_evaluation import private_evaluation
from ._residuals import ResidualEvaluation
from ._scores import ScoreEvaluation
from ._threshold import PrivateThresholdClassifier

__all__ = [
    "OneVsRestEvaluation",
    "PrivateThresholdClassifier",
    "ResidualEvaluation",
    "ScoreEvaluation",
    "private_evaluation",
]
