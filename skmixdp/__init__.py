"""Private linear heads: differentially private classifiers on frozen features.

The estimators follow scikit-learn; what they guarantee stands in their ``privacy_``.
"""

from ._classification import MixedDPLogisticRegression

__version__ = "0.1.0"

__all__ = ["MixedDPLogisticRegression"]
