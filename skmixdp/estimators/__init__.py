"""The estimators: from arrays to a trained private head and its report."""

from ._fit import fit_many
from ._logistic import MixedDPLogisticRegression
from ._module import ZerothOrderDPModuleClassifier
from ._ridge import MixedDPRidge
from ._zeroth_order import ZerothOrderDPClassifier

__all__ = [
    "MixedDPLogisticRegression",
    "MixedDPRidge",
    "ZerothOrderDPClassifier",
    "ZerothOrderDPModuleClassifier",
    "fit_many",
]
