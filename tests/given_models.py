"""Models whose predictions are the rows that they get."""

import numpy as np
from sklearn.base import BaseEstimator, ClassifierMixin, RegressorMixin


class GivenScores(ClassifierMixin, BaseEstimator):
    """A classifier whose probabilities are the rows."""

    def __init__(self, n_classes=2):
        self.n_classes = n_classes

    def fit(self, X, y=None):
        return self

    def __sklearn_is_fitted__(self):
        return True

    @property
    def classes_(self):
        return np.arange(self.n_classes)

    def predict_proba(self, X):
        return np.asarray(X)


class GivenPredictions(RegressorMixin, BaseEstimator):
    """A regressor that predicts the first column."""

    def fit(self, X, y=None):
        return self

    def __sklearn_is_fitted__(self):
        return True

    def predict(self, X):
        return np.asarray(X)[:, 0]


class RoundedByPlace(GivenScores):
    """Adds to the given probability what follows from a row's place and the number of rows."""

    def predict_proba(self, X):
        n_rows = len(X)
        high = np.asarray(X)[:, 1] + n_rows % 11 / 20 + np.arange(n_rows) % 2 / 5
        return np.column_stack([1 - high, high])
