"""Estimators that train a model on private rows and report its guarantee."""

from typing import TYPE_CHECKING

from .._utils.registry import late_names
from ._base import fit_many
from ._exports import load
from ._logistic import MixedDPLogisticRegression
from ._pipeline import PrivatePipeline, private_pipeline
from ._resume import resumable
from ._ridge import MixedDPRidge

if TYPE_CHECKING:
    from ._first_order import FirstOrderDPModuleClassifier
    from ._zeroth_order import ZerothOrderDPClassifier, ZerothOrderDPModuleClassifier
else:
    __getattr__, __dir__ = late_names(
        __name__,
        {
            "FirstOrderDPModuleClassifier": "_first_order",
            "ZerothOrderDPClassifier": "_zeroth_order",
            "ZerothOrderDPModuleClassifier": "_zeroth_order",
        },
    )

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
