"""Estimators that train a model on private rows and report its guarantee."""

from typing import TYPE_CHECKING

from .._utils.lazy_imports import late_names
from ._base import fit_many
from ._logistic import MixedDPLogisticRegression
from ._pipeline import PrivatePipeline, private_pipeline
from ._ridge import MixedDPRidge
from ._row_mapping import RowMapping, Typical
from ._saving.saving import load

if TYPE_CHECKING:
    from .._resuming import resumable
    from .._torch.classifiers import FirstOrderDPModuleClassifier, ZerothOrderDPModuleClassifier
else:
    __getattr__, __dir__ = late_names(__name__)

__all__ = [
    "FirstOrderDPModuleClassifier",
    "MixedDPLogisticRegression",
    "MixedDPRidge",
    "PrivatePipeline",
    "RowMapping",
    "Typical",
    "ZerothOrderDPModuleClassifier",
    "fit_many",
    "load",
    "private_pipeline",
    "resumable",
]
