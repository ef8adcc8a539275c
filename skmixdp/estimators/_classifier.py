"""Classes and predictions, which all classifiers share."""

from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit
from sklearn.base import ClassifierMixin
from sklearn.metrics import accuracy_score
from sklearn.utils.extmath import softmax
from sklearn.utils.validation import check_is_fitted

from .._rows.table import check_columns, is_dask
from .._utils.process import own_state
from ._outputs import lazy_result

Array = NDArray[Any]


class Classifier(ClassifierMixin):  # type: ignore[misc]
    """Mixin that adds classes and predictions to an estimator whose ``_outputs`` are logits."""

    #: Whether rows have several labels. Then ``classes_`` are the names of the labels, each with its own
    #: logit.
    multilabel_: bool = False

    def decision_function(self: Any, X: Any) -> Any:
        """Logits of each row.

        Parameters
        ----------
        X : array-like, tensor, sparse matrix, memory map, Dask array or RowFiles, (n_samples, n_features)
            Rows. For a Dask array, the result is a lazy Dask array.

        Returns
        -------
        array of shape (n_samples, n_classes), or (n_samples,) for two classes
            For two classes, only the logit of ``classes_[1]``. With several labels per row, the logit of each
            label, (n_samples, n_labels).
        """
        if is_dask(X):
            check_is_fitted(self)
            n_classes = len(self.classes_)
            flat = n_classes == 2 and not self.multilabel_
            return lazy_result(self, "decision_function", X, None if flat else n_classes)
        outputs = self._outputs(X)
        return outputs[:, 0] if outputs.shape[1] == 1 else outputs

    @own_state()
    def predict_proba(self: Any, X: Any) -> Any:
        """Class probabilities of each row, shape (n_samples, n_classes).

        With several labels per row, they are the probability of each label, and do not sum to 1.
        """
        if is_dask(X):
            check_is_fitted(self)
            return lazy_result(self, "predict_proba", X, len(self.classes_))
        logits = self.decision_function(X)
        if self.multilabel_:
            return expit(logits)
        if logits.ndim == 1:
            return np.column_stack([expit(-logits), expit(logits)])
        return np.asarray(softmax(logits))

    @own_state()
    def predict_log_proba(self: Any, X: Any) -> Any:
        """Logarithm of :meth:`predict_proba`."""
        if is_dask(X):
            check_is_fitted(self)
            return lazy_result(self, "predict_log_proba", X, len(self.classes_))
        return np.log(self.predict_proba(X))

    def score(self: Any, X: object, y: object, sample_weight: object = None) -> float:
        """Accuracy of the predictions for rows with their labels.

        With several labels per row, all of them must be right, and a data frame ``y`` needs the columns of
        the fit.
        """
        if self.multilabel_:
            check_columns(y, self.classes_, "this classifier has")
        return float(accuracy_score(y, self.predict(X), sample_weight=sample_weight))

    def predict(self: Any, X: Any) -> Any:
        """Most likely class of each row, shape (n_samples,).

        With several labels per row, 1 for each label that is more likely than not, (n_samples, n_labels).
        """
        if is_dask(X):
            check_is_fitted(self)
            shape = (len(self.classes_), int) if self.multilabel_ else (None, self.classes_.dtype)
            return lazy_result(self, "predict", X, *shape)
        logits = self._outputs(X, decisive=True)
        if self.multilabel_:
            return (logits > 0).astype(int)
        best = (logits[:, 0] > 0).astype(int) if logits.shape[1] == 1 else logits.argmax(axis=1)
        return np.asarray(self.classes_[best])
