"""Classes and predictions, which all classifiers share."""

import warnings
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit
from sklearn.base import ClassifierMixin
from sklearn.utils.extmath import softmax
from sklearn.utils.validation import check_is_fitted

from .._rows import is_dask
from .._rows.labels import check_class_labels, check_classes, encode_labels, is_text
from .._utils.validation import listed
from ..privacy import PrivacyLeakWarning
from ._outputs import lazy_result

Array = NDArray[Any]


class Classifier(ClassifierMixin):  # type: ignore[misc]
    """Mixin that adds classes and predictions to an estimator whose ``_outputs`` are logits."""

    #: Whether rows have several labels: then ``classes_`` names them, and each has its own logit.
    multilabel_: bool = False

    def _encode(self: Any, y: Array, y_pub: Array | None) -> tuple[Array, Array | None, str]:
        """Set ``classes_``; return encoded private and public labels, and the origin of the classes."""
        check_class_labels(y, "y")
        if y_pub is not None:
            check_class_labels(y_pub, "y_pub")
        self.classes_, origin = find_classes(self.classes, y, y_pub)
        if self.classes is None and y_pub is None:
            self._leaks = (*self._leaks, "the classes were read from the private labels")
        source = "classes" if self.classes is not None else "y_pub"
        if self.classes is None and y_pub is not None:
            check_same_numbering(y, self.classes_)
        y = encode_labels(y, self.classes_, "y", private=True, source=source)
        y = y.astype(np.min_scalar_type(-len(self.classes_)))  # read faster than wider ones
        if y_pub is None:
            return y, None, origin
        y_pub = encode_labels(y_pub, self.classes_, "y_pub", private=False)
        warn_of_empty_classes(y_pub, self.classes_)
        return y, y_pub, origin

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

    def predict_log_proba(self: Any, X: Any) -> Any:
        """Logarithm of :meth:`predict_proba`."""
        if is_dask(X):
            check_is_fitted(self)
            return lazy_result(self, "predict_log_proba", X, len(self.classes_))
        return np.log(self.predict_proba(X))

    def predict(self: Any, X: Any) -> Any:
        """Most likely class of each row, shape (n_samples,).

        With several labels per row, 1 for each label that is more likely than not, (n_samples, n_labels).
        """
        if is_dask(X):
            check_is_fitted(self)
            shape = (len(self.classes_), int) if self.multilabel_ else (None, self.classes_.dtype)
            return lazy_result(self, "predict", X, *shape)
        logits = self.decision_function(X)
        if self.multilabel_:
            return (logits > 0).astype(int)
        best = (logits > 0).astype(int) if logits.ndim == 1 else logits.argmax(axis=1)
        return np.asarray(self.classes_[best])


def find_classes(declared: Any, y: Array, y_pub: Array | None) -> tuple[Array, str]:
    """Sorted classes of a classifier, and their origin for the report."""
    if declared is not None:
        classes, origin = check_classes(declared), "declared"
    elif y_pub is not None:
        classes, origin = np.unique(y_pub), "those of the public labels"
    else:
        classes, origin = np.unique(y), "READ FROM THE PRIVATE LABELS"
        warnings.warn(
            "classes were read from the private labels y, which the guarantee does not cover; "
            "pass classes=[...] or public rows.",
            PrivacyLeakWarning,
            stacklevel=6,
        )
    if len(classes) < 2:
        # The message must not name a class that was read from private labels.
        named = "" if declared is None and y_pub is None else f": {classes.tolist()}"
        raise ValueError(
            f"classification needs at least two classes, but classes holds {len(classes)} class{named}; list "
            "all classes in classes."
        )
    return classes, origin


def check_same_numbering(y: Array, classes: Array) -> None:
    """Refuse labels that an ensemble has renumbered while the public labels kept their values."""
    if y.dtype.kind not in "iu":
        return
    labels, known = set(np.unique(y).tolist()), set(classes.tolist())
    from_zero = labels == set(range(len(labels)))
    spelt_out = is_text(classes) and all(label.isdecimal() for label in classes.tolist())
    if from_zero and not labels <= known and not known <= labels and not spelt_out:
        raise ValueError(
            f"y is numbered from 0, but y_pub holds {listed(classes)}; ensembles such as "
            "BaggingClassifier, VotingClassifier and StackingClassifier renumber y and do not change "
            "y_pub, so number both from 0 beforehand."
        )


def warn_of_empty_classes(y_pub: Array, classes: Array) -> None:
    """Warn of classes without public rows; ``y_pub`` holds indices."""
    counts = np.bincount(y_pub, minlength=len(classes))
    if np.any(counts == 0):
        empty = classes[counts == 0].tolist()
        warnings.warn(
            f"no public row has a label in {empty}; the outputs of these classes start from the rows of the "
            "other classes, so add a public row of each class if you can.",
            UserWarning,
            stacklevel=6,
        )
