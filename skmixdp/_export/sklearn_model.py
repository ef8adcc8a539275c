"""A fitted linear head, or a pipeline, as a scikit-learn pipeline without skmixdp."""

from typing import Any

import numpy as np
from sklearn.linear_model import LogisticRegression, PoissonRegressor, Ridge
from sklearn.multiclass import OneVsRestClassifier
from sklearn.pipeline import Pipeline
from sklearn.preprocessing import FunctionTransformer, LabelBinarizer

from .._utils.models import LinearModel, classes_of, predicts_rates
from .._utils.validation import copy_fitted
from .operations import Array, of_row_map
from .sklearn_steps import plain_step, steps_of


def to_sklearn(estimator: LinearModel) -> Pipeline:
    """The pipeline of a fitted estimator; see :meth:`LinearHead.to_sklearn`."""
    if isinstance(estimator, Pipeline):
        *before, (name, head) = estimator.steps
        return Pipeline(
            [*((path, plain_step(step, path)) for path, step in before), (name, to_sklearn(head))]
        )
    coef, intercept = estimator.coef_, estimator.intercept_
    row_map = estimator._row_map
    options = {"dtype": np.float64}
    check = FunctionTransformer(
        np.asarray, validate=row_map.basis is None, kw_args=options, check_inverse=False
    )
    copy_fitted(check, estimator)
    steps = [("check", check), *steps_of(of_row_map(row_map), coef.shape[-1])]
    if predicts_rates(estimator):
        head = _with_coefficients(PoissonRegressor(), coef, intercept)
        head._base_loss = head._get_loss()
    elif classes_of(estimator) is None:
        head = _with_coefficients(Ridge(), coef, intercept)
    elif estimator.multilabel_:  # the classes are the numbers of the labels
        head, labels, n_iter = OneVsRestClassifier(LogisticRegression()), range(len(coef)), estimator.n_iter_
        head.estimators_ = [_logistic(coef[[j]], intercept[[j]], np.arange(2), n_iter) for j in labels]
        head.label_binarizer_ = LabelBinarizer().fit(np.array([[0] * len(coef), [1] * len(coef)]))
        head.n_features_in_ = coef.shape[1]
    else:
        head = _logistic(coef, intercept, estimator.classes_, estimator.n_iter_)
    return Pipeline([*steps, ("head", head)])


def _with_coefficients(head: Any, coef: Array, intercept: Array) -> Any:
    head.coef_, head.intercept_ = np.array(coef, order="C"), np.array(intercept)[()]
    head.n_features_in_ = coef.shape[-1]
    return head


def _logistic(coef: Array, intercept: Array, classes: Array, n_iter: int) -> LogisticRegression:
    head = _with_coefficients(LogisticRegression(), coef, intercept)
    head.classes_, head.n_iter_ = classes.copy(), np.array([n_iter])
    return head
