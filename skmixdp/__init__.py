"""Private linear heads: differentially private classifiers and regressors on frozen features.

The estimators follow scikit-learn. Their attribute ``privacy_`` states the guarantee.
"""

from ._utils import ctrl_c_at_start as ctrl_c_at_start  # isort: split

from typing import TYPE_CHECKING

from ._utils.lazy_imports import late_names
from ._version import __version__ as __version__
from .estimators import (
    MixedDPLogisticRegression,
    MixedDPRidge,
    PrivatePipeline,
    RowMapping,
    Typical,
    fit_many,
    load,
    private_pipeline,
)

if TYPE_CHECKING:
    from .additive import AdditiveDPClassifier, AdditiveDPRegressor
    from .additive._counts import AdditiveDPPoissonRegressor
    from .estimators import FirstOrderDPModuleClassifier, ZerothOrderDPModuleClassifier, resumable
    from .inference._count_regressor import MixedDPPoissonRegressor
else:
    __getattr__, __dir__ = late_names(__name__)

__all__ = [
    "AdditiveDPClassifier",
    "AdditiveDPPoissonRegressor",
    "AdditiveDPRegressor",
    "FirstOrderDPModuleClassifier",
    "MixedDPLogisticRegression",
    "MixedDPPoissonRegressor",
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
