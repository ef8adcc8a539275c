"""Checks of an estimator that was read from a file."""

from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator

from ..._rows.row_map import RowMap, TargetMap
from ..._rows.scaling import check_kind, check_numbers
from ..._utils.models import classes_of, names_of_features, predicts_rates, report_of
from ..._utils.validation import COUNT, FLAG, NON_NEGATIVE, check, check_params
from ...preprocessing import TableColumn, TableEncoder
from ...privacy import PrivacyReport, SearchReport

Array = NDArray[Any]


def check_loaded(estimator: BaseEstimator) -> None:
    """Check types and shapes of the parameters and fitted attributes that were read from a file."""
    # Transformers of scikit-learn are not checked: a forged one makes predictions fail or wrong, but runs no
    # code.
    if isinstance(estimator, TableEncoder):
        columns = vars(estimator).get("columns_", {})  # only fitted encoders have columns
        if not isinstance(columns, dict) or not all(isinstance(name, str) for name in columns):
            raise ValueError("columns_ is not a dict of columns")
        for column in columns.values():
            check_kind("a column", column, TableColumn)
    if type(estimator).__name__ == "PrivatePipeline":
        _check_steps(estimator.steps)
    if not hasattr(estimator, "_allowed") or not hasattr(estimator, "_saved"):
        return
    check_params(estimator, estimator._allowed)
    check("n_iter_", estimator.n_iter_, COUNT)
    check("learning_rate_", estimator.learning_rate_, NON_NEGATIVE)
    if type(estimator.privacy_) not in (PrivacyReport, SearchReport):
        raise ValueError("privacy_ is not a report")
    classes = classes_of(estimator)
    if classes is not None:
        check("multilabel_", estimator.multilabel_, FLAG)
        _check_classes(classes, estimator.multilabel_)
    # Modules have them if they were fitted to a data frame.
    of_features = {"n_features_in_", "feature_names_in_"}
    if "coef_" in estimator._saved or of_features & vars(estimator).keys():
        d, names = estimator.n_features_in_, names_of_features(estimator)
        check("n_features_in_", d, COUNT)
        if names is not None and (names.shape != (d,) or not all(isinstance(name, str) for name in names)):
            raise ValueError("feature_names_in_ does not name the features")
    if "coef_" in estimator._saved:
        _check_head(estimator, classes)


def _check_steps(steps: Any) -> None:
    """Check that a pipeline has named steps, and a fitted head at its end."""
    named = isinstance(steps, list) and all(
        isinstance(step, tuple) and len(step) == 2 and isinstance(step[0], str) for step in steps
    )
    if not named or not steps or report_of(steps[-1][1]) is None:
        raise ValueError("steps is not a list of named steps with a fitted head at its end")


def _check_head(estimator: BaseEstimator, classes: Array | None) -> None:
    d = estimator.n_features_in_
    shape: tuple[int, ...]
    if classes is None:
        outputs = len(estimator._target_map.center)
        shape = () if estimator._flat else (outputs,)
        check_kind("_target_map", estimator._target_map, TargetMap)
        estimator._target_map.check_for(outputs)
        names = vars(estimator).get("_target_names") or [""] * outputs
        if [type(each) for each in names] != [str] * outputs:
            raise ValueError("_target_names does not name the targets")
    else:
        shape = (1,) if len(classes) == 2 and not estimator.multilabel_ else (len(classes),)
        if "class_shares_" in vars(estimator):
            check_numbers("class_shares_", estimator.class_shares_, (len(classes),))
    check_kind("_row_map", row_map := estimator._row_map, RowMap)
    if row_map.basis is not None:
        if type(row_map.basis).__name__ != "Basis":
            raise ValueError("basis is not a Basis")
        row_map.basis.check_for(d)
    d = row_map.check_for(d)
    check_numbers("coef_", estimator.coef_, (*shape, d))
    check_numbers("intercept_", estimator.intercept_, shape)
    if "_noise" in type(estimator)._saved:
        k = len(np.atleast_1d(estimator.intercept_))
        check_numbers("_noise", estimator._noise, (d, d) if predicts_rates(estimator) else (k + 3,))


def _check_classes(classes: object, in_any_order: bool) -> None:
    if not isinstance(classes, np.ndarray) or classes.ndim != 1 or len(classes) < 2:
        raise ValueError("classes_ is not a flat array of two or more labels")
    if len(np.unique(classes)) < len(classes):
        raise ValueError("classes_ has a label twice")
    if not (in_any_order or np.array_equal(np.unique(classes), classes)):
        raise ValueError("classes_ is not sorted")
