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


def require(holds: Any, problem: str) -> None:
    """Refuse what only a damaged or forged file has, by a text that says what is wrong."""
    if not holds:
        raise ValueError(problem)


def check_loaded(estimator: BaseEstimator) -> None:
    """Check types and shapes of the parameters and fitted attributes that were read from a file."""
    # Transformers of scikit-learn are not checked: a forged one makes predictions fail or wrong, but runs no
    # code.
    if isinstance(estimator, TableEncoder):
        columns = vars(estimator).get("columns_", {})  # only fitted encoders have columns
        named = isinstance(columns, dict) and all(isinstance(name, str) for name in columns)
        require(named, "columns_ is not a dict of columns")
        for column in columns.values():
            check_kind("a column", column, TableColumn)
    if type(estimator).__name__ == "PrivatePipeline":
        _check_steps(estimator.steps)
    if not hasattr(estimator, "_allowed") or not hasattr(estimator, "_saved"):
        return
    check_params(estimator, estimator._allowed)
    check("n_iter_", estimator.n_iter_, COUNT)
    check("learning_rate_", estimator.learning_rate_, NON_NEGATIVE)
    require(type(estimator.privacy_) in (PrivacyReport, SearchReport), "privacy_ is not a report")
    classes = classes_of(estimator)
    if classes is not None:
        check("multilabel_", estimator.multilabel_, FLAG)
        flat = isinstance(classes, np.ndarray) and classes.ndim == 1 and len(classes) > 1
        require(flat, "classes_ is not a flat array of two or more labels")
        require(len(np.unique(classes)) == len(classes), "classes_ has a label twice")
        in_order = estimator.multilabel_ or np.array_equal(np.unique(classes), classes)
        require(in_order, "classes_ is not sorted")
    # Modules have them if they were fitted to a data frame.
    of_features = {"n_features_in_", "feature_names_in_"}
    if "coef_" in estimator._saved or of_features & vars(estimator).keys():
        d, names = estimator.n_features_in_, names_of_features(estimator)
        check("n_features_in_", d, COUNT)
        named = names is None or (names.shape == (d,) and all(isinstance(name, str) for name in names))
        require(named, "feature_names_in_ does not name the features")
    if "coef_" in estimator._saved:
        _check_head(estimator, classes)


def _check_steps(steps: Any) -> None:
    """Check that a pipeline has named steps, and a fitted head at its end."""
    named = isinstance(steps, list) and all(
        isinstance(step, tuple) and len(step) == 2 and isinstance(step[0], str) for step in steps
    )
    ends_in_head = named and steps and report_of(steps[-1][1]) is not None
    require(ends_in_head, "steps is not a list of named steps with a fitted head at its end")


def _check_head(estimator: BaseEstimator, classes: Array | None) -> None:
    d = estimator.n_features_in_
    shape: tuple[int, ...]
    if classes is None:
        outputs = len(estimator._target_map.center)
        shape = () if estimator._flat else (outputs,)
        check_kind("_target_map", estimator._target_map, TargetMap)
        estimator._target_map.check_for(outputs)
        names = vars(estimator).get("_target_names") or [""] * outputs
        named = [type(each) for each in names] == [str] * outputs
        require(named, "_target_names does not name the targets")
    else:
        shape = (1,) if len(classes) == 2 and not estimator.multilabel_ else (len(classes),)
        if "class_shares_" in vars(estimator):
            check_numbers("class_shares_", estimator.class_shares_, (len(classes),))
    check_kind("_row_map", row_map := estimator._row_map, RowMap)
    if row_map.basis is not None:
        require(type(row_map.basis).__name__ == "Basis", "basis is not a Basis")
        row_map.basis.check_for(d)
    d = row_map.check_for(d)
    check_numbers("coef_", estimator.coef_, (*shape, d))
    check_numbers("intercept_", estimator.intercept_, shape)
    if "_noise" in type(estimator)._saved:
        k = len(np.atleast_1d(estimator.intercept_))
        check_numbers("_noise", estimator._noise, (d, d) if predicts_rates(estimator) else (k + 3,))
