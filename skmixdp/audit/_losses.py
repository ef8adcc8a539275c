"""Loss of each row under a fitted estimator."""

from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import is_regressor

FloatArray = NDArray[np.float64]

#: Smaller probabilities count as this one.
_LEAST_PROBABILITY = 1e-300


def losses_of(estimator: Any, X: Any, y: Any, name: str) -> FloatArray:
    """Loss (n,) of each row: cross-entropy of a classifier, squared error of a regressor.

    Parameters
    ----------
    estimator : fitted classifier with ``predict_proba``, or regressor
        May be a pipeline.
    X, y : array-likes of n rows
        Rows and labels or targets.
    name : str
        Name of ``y`` in messages.

    Raises
    ------
    ValueError
        If a row has no label or target, or a label is not in ``classes_``.
    TypeError
        If the estimator is neither.
    """
    targets = np.asarray(y)
    if is_regressor(estimator):
        predicted = np.asarray(estimator.predict(X), dtype=np.float64)
        _check_length(targets, len(predicted), name)
        errors = predicted.reshape(len(predicted), -1) - targets.reshape(len(predicted), -1)
        return np.asarray(np.sum(errors**2, axis=1))
    if not (hasattr(estimator, "predict_proba") and hasattr(estimator, "classes_")):
        raise TypeError(
            f"{type(estimator).__name__} has no predict_proba and is no regressor; pass a classifier that "
            "predicts probabilities, or a regressor."
        )
    probabilities = np.asarray(estimator.predict_proba(X), dtype=np.float64)
    _check_length(targets, len(probabilities), name)
    positions = {label: column for column, label in enumerate(np.asarray(estimator.classes_).tolist())}
    columns = np.array([positions.get(label, -1) for label in targets.ravel().tolist()], dtype=np.intp)
    if np.any(columns < 0):
        raise ValueError(f"{name} has a label that is none of the estimator's classes_; drop such rows.")
    own = probabilities[np.arange(len(columns)), columns]
    return np.asarray(-np.log(np.maximum(own, _LEAST_PROBABILITY)))


def _check_length(targets: NDArray[Any], n_rows: int, name: str) -> None:
    if targets.ndim == 0 or len(targets) != n_rows:
        found = "no length" if targets.ndim == 0 else f"{len(targets)} entries"
        raise ValueError(f"{name} has {found} and its rows are {n_rows}; pass one label or target for each.")
