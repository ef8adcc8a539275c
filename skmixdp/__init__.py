"""Private linear heads: differentially private classifiers and regressors on frozen features.

The estimators follow scikit-learn; what they guarantee stands in their ``privacy_``.
"""

from ._classification import MixedDPLogisticRegression
from ._regression import MixedDPRidge
from ._together import fit_many
from ._zeroth_order import ZerothOrderDPClassifier

__version__ = "0.1.0"

__all__ = ["MixedDPLogisticRegression", "MixedDPRidge", "ZerothOrderDPClassifier", "fit_many"]
