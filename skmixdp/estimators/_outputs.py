"""Outputs of a fitted head for all types of rows, and what all classifiers predict from theirs."""

import copy
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
import pandas as pd
import scipy.sparse as sp
from numpy.typing import NDArray
from scipy.special import expit
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.metrics import accuracy_score
from sklearn.utils.extmath import softmax
from sklearn.utils.validation import check_is_fitted, validate_data

from .._linear.arrays import row_slices
from .._rows.sparse import centered_products, centered_sparse_rows, scaled_first
from .._rows.table import check_columns, finite_rows, header, is_dask, special_table
from .._utils.frames import is_frame
from .._utils.lazy_imports import annex
from .._utils.process import own_errors, own_state
from .._utils.validation import rows_to_transform

Array = NDArray[Any]

#: Rows of a block, whose outputs are bounded together.
_BLOCK_ROWS = 8192
#: Rounding of the sum with an intercept, in units of the intercept.
_ROUNDING = 1e-15


@np.errstate(all="ignore")  # a warning or error of NumPy could reveal tiny or huge rows
@own_errors()
def head_outputs(
    estimator: BaseEstimator,
    X: object,
    of_rows: Callable[[Array], Array] | None = None,
    *,
    decisive: bool = False,
) -> Array:
    """Outputs (n, k) of a fitted head, or (n,) of a flat one. Large data sets are processed in blocks.

    ``of_rows`` computes something else, of dense rows. ``decisive`` outputs need only tell what is predicted.
    """
    table, basis = special_table(X), estimator._row_map.basis
    dense = of_rows or partial(_decisive_outputs if decisive else _dense_outputs, estimator)
    if table is None:
        return _finite_outputs(dense(rows_to_transform(estimator, X, finite=basis is None)))
    table.check("X", finite=basis is None)
    if table.shape[0] == 0:
        raise ValueError("X has 0 sample(s) while a minimum of 1 is required; pass more rows.")
    validate_data(estimator, header(table), reset=False, skip_check_array=True)
    parts = []
    for features in table.blocks():
        block: Any = features
        if sp.issparse(features):
            if of_rows is None and basis is None:
                parts.append(_sparse_outputs(estimator, block))
                continue
            block = block.toarray()
        if basis is None and not finite_rows(block).all():
            raise ValueError("X contains NaN or infinity; drop those rows, or impute the values.")
        parts.append(dense(block))
    return _finite_outputs(np.concatenate(parts))


def _finite_outputs(outputs: Array) -> Array:
    """The outputs; refused unless they are finite."""
    if not np.isfinite(outputs).all():
        raise ValueError(
            "X has rows whose outputs are not finite, since they or the coefficients are too large; scale "
            "the features, or fit with rows=RowMapping(norm='unit')."
        )
    return outputs


def lazy_result(
    estimator: BaseEstimator, method: str, X: Any, n_columns: int | None, dtype: Any = np.float64
) -> Any:
    """The result of a method for Dask rows, as a lazy Dask array."""
    check_is_fitted(estimator)
    named = pd.DataFrame(columns=[*X.columns]) if is_frame(X) else X
    validate_data(estimator, named, reset=False, skip_check_array=True)
    light = copy.copy(estimator)  # workers need no ledger
    light.ledger = None
    light.__dict__.pop("feature_names_in_", None)  # names were compared, and chunks have none
    return annex("DaskTable").lazily(X, getattr(light, method), n_columns, dtype)


def _dense_outputs(estimator: BaseEstimator, X: Array) -> Array:
    Z = estimator._row_map.times(X, np.atleast_2d(estimator.coef_))
    return np.asarray((Z if estimator.coef_.ndim == 2 else Z[:, 0]) + estimator.intercept_)


def _decisive_outputs(estimator: BaseEstimator, X: Array) -> Array:
    """Outputs (n, k) of dense rows that decide as those of the head do; other outputs may be off.

    One output, or that of a label, decides by its sign, and others by which of them is the largest. Outputs
    at two bounds on the length of a row mostly agree in that. Only the other rows are measured.
    """
    if len(X) == 1:  # which is measured in less time than it is bounded
        return _dense_outputs(estimator, X)
    outputs = np.empty((len(X), len(estimator.coef_)))
    by_sign = len(estimator.coef_) == 1 or estimator.multilabel_
    for rows in row_slices(len(X), _BLOCK_ROWS):
        bounded = estimator._row_map.bounds_of_times(X[rows], estimator.coef_)
        if bounded is None:
            return _dense_outputs(estimator, X)
        ends = bounded[0] + estimator.intercept_
        rounding = bounded[1] + _ROUNDING * float(np.abs(estimator.intercept_).max())
        outputs[rows] = ends[0]
        # Outputs lie between those at both ends, and so do their differences.
        margins = np.where(ends[0] > 0, 1.0, -1.0) * ends
        if not by_sign:
            best = np.arange(len(ends[0])), ends[0].argmax(axis=1)
            margins = ends[:, *best][:, :, np.newaxis] - ends
            margins[:, *best] = np.inf
        unsure = np.flatnonzero(~(margins.min(axis=(0, 2)) > 2 * rounding))
        outputs[rows][unsure] = _dense_outputs(estimator, X[rows][unsure])
    return outputs


def _sparse_outputs(estimator: BaseEstimator, X: Any) -> Array:
    passed = X
    X, row_map = scaled_first(X, replace(estimator._row_map, intercept_value=None))
    factors = centered_sparse_rows(X, row_map).factors
    points = np.atleast_2d(estimator.coef_)
    Z = centered_products(
        X, factors, row_map, points if row_map.whitening is None else row_map.whitening(points)
    )
    outputs = np.asarray((Z if estimator.coef_.ndim == 2 else Z[:, 0]) + estimator.intercept_)
    # A row whose length overflows has factor 0, even if its products do not overflow.
    overflowed = ~np.isfinite(outputs if outputs.ndim == 1 else outputs.sum(axis=1)) | (factors == 0)
    if overflowed.any():  # dense rows are divided by their largest entries first
        outputs[overflowed] = _dense_outputs(estimator, passed[overflowed].toarray().astype(np.float64))
    return outputs


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
