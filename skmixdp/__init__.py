"""Private linear heads: differentially private classifiers and regressors on frozen features.

The estimators follow scikit-learn. Their attribute ``privacy_`` states the guarantee.
"""

from ._utils import quiet_interrupts as quiet_interrupts  # isort: split

from ._version import __version__ as __version__
from .estimators import (
    FirstOrderDPModuleClassifier,
    MixedDPLogisticRegression,
    MixedDPRidge,
    PrivatePipeline,
    ZerothOrderDPClassifier,
    ZerothOrderDPModuleClassifier,
    fit_many,
    load,
    private_pipeline,
    resumable,
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
