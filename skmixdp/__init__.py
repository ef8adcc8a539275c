"""Private linear heads: differentially private classifiers and regressors on frozen features.

The estimators follow scikit-learn. Their attribute ``privacy_`` states the guarantee.
"""

from ._utils import quiet_interrupts as quiet_interrupts  # isort: split

from typing import TYPE_CHECKING

from ._utils.registry import late_names
from ._version import __version__ as __version__
from .estimators import (
    MixedDPLogisticRegression,
    MixedDPRidge,
    PrivatePipeline,
    Typical,
    fit_many,
    load,
    private_pipeline,
)

if TYPE_CHECKING:
    from .additive import AdditiveDPClassifier, AdditiveDPRegressor
    from .estimators import FirstOrderDPModuleClassifier, ZerothOrderDPModuleClassifier, resumable
    from .inference import MixedDPPoissonRegressor
else:
    __getattr__, __dir__ = late_names(
        __name__,
        {
            "AdditiveDPClassifier": "additive",
            "AdditiveDPRegressor": "additive",
            "FirstOrderDPModuleClassifier": "estimators",
            "MixedDPPoissonRegressor": "inference",
            "ZerothOrderDPModuleClassifier": "estimators",
            "resumable": "estimators",
        },
    )

__all__ = [
    "AdditiveDPClassifier",
    "AdditiveDPRegressor",
    "FirstOrderDPModuleClassifier",
    "MixedDPLogisticRegression",
    "MixedDPPoissonRegressor",
    "MixedDPRidge",
    "PrivatePipeline",
    "Typical",
    "ZerothOrderDPModuleClassifier",
    "fit_many",
    "load",
    "private_pipeline",
    "resumable",
]
