"""Private linear heads: differentially private classifiers and regressors on frozen features.

The estimators follow scikit-learn; what they guarantee stands in their ``privacy_``.
"""

from . import modelmix  # noqa: F401 (makes its name and its events known)
from .estimators import MixedDPLogisticRegression, MixedDPRidge, ZerothOrderDPClassifier, fit_many

__version__ = "0.1.0"

__all__ = ["MixedDPLogisticRegression", "MixedDPRidge", "ZerothOrderDPClassifier", "fit_many"]
