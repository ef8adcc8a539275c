"""Estimators that train a model on private rows and report its guarantee."""

from ._exports import load
from ._first_order import FirstOrderDPModuleClassifier
from ._fit import fit_many
from ._logistic import MixedDPLogisticRegression
from ._pipeline import PrivatePipeline, private_pipeline
from ._resume import resumable
from ._ridge import MixedDPRidge
from ._zeroth_order import ZerothOrderDPClassifier, ZerothOrderDPModuleClassifier

__all__ = [
    "FirstOrderDPModuleClassifier",
    "MixedDPLogisticRegression",
    "MixedDPRidge",
    "PrivatePipeline",
    "ZerothOrderDPClassifier",
    "ZerothOrderDPModuleClassifier",
    "fit_many",
    "load",
    "private_pipeline",
    "resumable",
]
