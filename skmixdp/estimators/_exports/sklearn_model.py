"""A fitted linear head, or a pipeline, as a scikit-learn pipeline without skmixdp."""

from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.multiclass import OneVsRestClassifier
from sklearn.pipeline import FeatureUnion, Pipeline
from sklearn.preprocessing import FunctionTransformer, LabelBinarizer

from ..._rows import RowMap
from .sklearn_makers import normalizer, projection, scaler

Array = NDArray[Any]


def to_sklearn(estimator: Any) -> Pipeline:
    """The pipeline of a fitted estimator; see :meth:`LinearHead.to_sklearn`."""
    if hasattr(estimator, "steps"):
        from .sklearn_steps import plain_step  # it imports much of scikit-learn

        *before, (name, head) = estimator.steps
        return Pipeline(
            [*((path, plain_step(step, path)) for path, step in before), (name, to_sklearn(head))]
        )
    row_map: RowMap = estimator._row_map
    d = estimator.n_features_in_
    coef, intercept = estimator.coef_, estimator.intercept_
    steps: list[tuple[str, Any]] = [("check", _double(d, getattr(estimator, "feature_names_in_", None)))]
    if (columns := row_map.columns) is not None:
        cut = FunctionTransformer(np.clip, kw_args={"a_min": -columns.cut, "a_max": columns.cut})
        steps += [("columns", scaler(d, mean=columns.center, scale=1 / columns.factor)), ("cut", cut)]
    if row_map.unit_first:
        # First by the largest entry: the square of a huge or tiny one is inf or 0.
        steps += [("unit_entries", normalizer("max", d)), ("unit_length", normalizer("l2", d))]
    if row_map.mean is not None:
        steps.append(("center", scaler(d, mean=row_map.mean)))
    bound = row_map.bound if row_map.normalize else None
    if row_map.normalize and bound is None:
        steps.append(("largest_entry", normalizer("max", d)))
    if row_map.whitening is not None:
        matrix = np.eye(d) + np.linalg.multi_dot([np.eye(d), *row_map.whitening.factorised])
        steps.append(("whiten", projection(matrix.T)))
    if bound is not None:
        steps += [("missing_length", _with_missing_length(bound)), ("clip", normalizer("l2", d + 1))]
        # The last column, the missing length, has coefficients 0.
        coef = np.concatenate([coef, np.zeros((*coef.shape[:-1], 1))], axis=-1)
    elif row_map.normalize:
        steps.append(("normalize", normalizer("l2", d)))
    if not hasattr(estimator, "classes_"):
        head = _with_coefficients(Ridge(), coef, intercept)
    elif estimator.multilabel_:
        head = _one_for_each_label(coef, intercept, estimator.n_iter_)
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


def _one_for_each_label(coef: Array, intercept: Array, n_iter: int) -> OneVsRestClassifier:
    """A fitted OneVsRestClassifier of labels (n, k); its classes are the numbers of the labels."""
    k = len(coef)
    head = OneVsRestClassifier(LogisticRegression())
    head.estimators_ = [_logistic(coef[[j]], intercept[[j]], np.arange(2), n_iter) for j in range(k)]
    head.label_binarizer_ = LabelBinarizer().fit(np.array([[0] * k, [1] * k]))
    head.n_features_in_ = coef.shape[1]
    return head


def _double(d: int, names: Array | None) -> FunctionTransformer:
    """Checks the rows and their columns, and converts them to float64."""
    step = FunctionTransformer(np.asarray, validate=True, kw_args={"dtype": np.float64}, check_inverse=False)
    step.n_features_in_ = d
    if names is not None:
        step.feature_names_in_ = names.copy()
    return step


def _with_missing_length(bound: float) -> FeatureUnion:
    """Append ``sqrt(max(bound^2 - |x|^2, 0))``: normalising the longer row then clips ``x`` at the bound."""
    missing = Pipeline(
        [
            ("length", FunctionTransformer(np.linalg.norm, kw_args={"axis": 1, "keepdims": True})),
            ("square", FunctionTransformer(np.square)),
            ("missing", scaler(1, mean=np.array([bound**2]), scale=np.array([-1.0]))),
            ("positive", FunctionTransformer(np.clip, kw_args={"a_min": 0.0, "a_max": None})),
            ("root", FunctionTransformer(np.sqrt)),
        ]
    )
    return FeatureUnion([("row", FunctionTransformer()), ("missing", missing)])
