"""Additive models: private heads on curves of each column."""

from ._estimators import AdditiveDPClassifier, AdditiveDPRegressor

__all__ = ["AdditiveDPClassifier", "AdditiveDPRegressor"]
