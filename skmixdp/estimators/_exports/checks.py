"""Checks of an estimator that was read from a file."""

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator

from ..._rows import Columns, RowMap, TargetMap, Whitening
from ..._utils.models import classes_of, names_of_features, report_of
from ..._utils.validation import (
    COUNT,
    FLAG,
    FRACTION,
    NON_NEGATIVE,
    POSITIVE,
    PROBABILITY,
    Allowed,
    Kind,
    Number,
    check,
    check_params,
    number,
    whole_from,
)
from ...preprocessing import TableColumn, TableEncoder
from ...preprocessing._table_encoder import KINDS, MOST_HASHED
from ...privacy import NEIGHBORING, PrivacyReport, SearchReport

Array = NDArray[Any]

_FINITE = number(-np.inf)
_SUM = number(0, closed="both")
_TEXT = Kind("a string", lambda value: isinstance(value, str))
_TEXTS = Kind("a tuple of strings", lambda value: _all(value, tuple, lambda text: isinstance(text, str)))
_SHARES = Kind(
    "pairs of a string and a number",
    lambda value: _all(value, tuple, lambda pair: _is_entry(pair) if isinstance(pair, tuple) else False),
)
_COSTS = Kind(
    "a dict of numbers", lambda value: isinstance(value, dict) and all(map(_is_entry, value.items()))
)

#: Allowed values of the fields of all reports.
_STATEMENT: dict[str, tuple[Allowed, ...]] = {
    "epsilon": (_SUM,),
    "delta": (PROBABILITY,),
    "neighboring": NEIGHBORING,
    "n_private": (whole_from(0),),
    "n_public": (whole_from(0),),
    "treated_as_public": (_TEXTS,),
    "noise": ("cryptographic", "seeded", "discrete"),
    "unit": (_TEXT,),
    "warnings": (_TEXTS,),
    "leaks": (_TEXTS,),
}

#: Allowed values of the fields of a ledger's data set; without a ledger all are None.
_DATASET: dict[str, tuple[Allowed, ...]] = {
    "dataset": (_TEXT,),
    "dataset_epsilon": (POSITIVE,),
    "dataset_delta": (PROBABILITY,),
    "dataset_spent": (_SUM,),
    "dataset_purpose": (_TEXT,),
}
_NO_DATASET: dict[str, tuple[Allowed, ...]] = dict.fromkeys(_DATASET, (None,))

#: Allowed values of the other fields of each kind of report.
_REPORTS: dict[type, dict[str, tuple[Allowed, ...]]] = {
    PrivacyReport: {
        "mu": (_SUM, None),
        "noise_multiplier": (NON_NEGATIVE,),
        "n_steps": (whole_from(0),),
        "sampling_rate": (FRACTION,),
        "accountant": (_TEXT,),
        "epsilon_unamplified": (_SUM, None),
        "computed_on": (_TEXT,),
        "shares": (_SHARES,),
    },
    SearchReport: {
        "strategy": ("grid", "random"),
        "n_trials": (POSITIVE,),
        "distribution": (_TEXT, _FINITE, None),
        "fit_epsilon": (_SUM,),
        "noise_multiplier": (NON_NEGATIVE,),
        "scoring": ("public", "private"),
        "score_noise": (NON_NEGATIVE, None),
        "refit": (FLAG,),
        "costs": (_COSTS,),
        "affordable": (_COSTS,),
        "n_held_out": (whole_from(0),),
    },
}


def check_loaded(estimator: BaseEstimator) -> None:
    """Check types and shapes of the parameters and fitted attributes that were read from a file.

    Transformers of scikit-learn are not checked: a forged one makes predictions fail or wrong, but runs no
    code.
    """
    if isinstance(estimator, TableEncoder):
        _check_encoder(estimator)
    if type(estimator).__name__ == "PrivatePipeline":
        _check_steps(estimator.steps)
    if not hasattr(estimator, "_allowed") or not hasattr(estimator, "_saved"):
        return
    check_params(estimator, estimator._allowed)
    check("n_iter_", estimator.n_iter_, COUNT)
    check("learning_rate_", estimator.learning_rate_, NON_NEGATIVE)
    _check_report(estimator.privacy_)
    classes = classes_of(estimator)
    if classes is not None:
        check("multilabel_", estimator.multilabel_, FLAG)
        _check_classes(classes, estimator.multilabel_)
    if "coef_" in estimator._saved or any(name in vars(estimator) for name in _OF_FEATURES):
        _check_features(estimator)
    if "coef_" in estimator._saved:
        _check_head(estimator, classes)


def _check_steps(steps: Any) -> None:
    """Check that a pipeline has named steps, and a fitted head at its end."""
    named = isinstance(steps, list) and all(
        isinstance(step, tuple) and len(step) == 2 and isinstance(step[0], str) for step in steps
    )
    if not named or not steps or report_of(steps[-1][1]) is None:
        raise ValueError("steps is not a list of named steps with a fitted head at its end")


def _check_encoder(encoder: TableEncoder) -> None:
    columns = vars(encoder).get("columns_", {})  # only fitted encoders have columns
    if not isinstance(columns, dict) or not all(isinstance(name, str) for name in columns):
        raise ValueError("columns_ is not a dict of columns")
    for column in columns.values():
        _check_kind("a column", column, TableColumn)
        check_params(column, _COLUMN)


#: Allowed values of the fields of an encoded column.
_COLUMN: dict[str, tuple[Allowed, ...]] = {
    "kind": (*KINDS, "list"),
    "center": (_FINITE,),
    "scale": (POSITIVE,),
    "cut": (POSITIVE,),
    "categories": (_TEXTS,),
    "n_hashed": (Number("a count", 0, MOST_HASHED, "both", whole=True),),
    "indicator": (FLAG,),
    "format": (_TEXT,),
    "length": (Number("a count", 0, MOST_HASHED, "both", whole=True),),
}

#: Attributes of modules that were fitted to a data frame.
_OF_FEATURES = ("n_features_in_", "feature_names_in_")


def _check_features(estimator: BaseEstimator) -> None:
    d = estimator.n_features_in_
    check("n_features_in_", d, COUNT)
    names = names_of_features(estimator)
    if names is not None and (names.shape != (d,) or not all(isinstance(name, str) for name in names)):
        raise ValueError("feature_names_in_ does not name the features")


def _check_head(estimator: BaseEstimator, classes: Array | None) -> None:
    d = estimator.n_features_in_
    shape: tuple[int, ...]
    if classes is None:
        outputs = len(estimator._target_map.center)
        shape = () if estimator._flat else (outputs,)
        _check_kind("_target_map", estimator._target_map, TargetMap)
        for name in ("center", "scale"):
            _check_numbers(f"_target_map.{name}", vars(estimator._target_map)[name], (outputs,))
    else:
        shape = (1,) if len(classes) == 2 and not estimator.multilabel_ else (len(classes),)
        if "class_shares_" in vars(estimator):
            _check_numbers("class_shares_", estimator.class_shares_, (len(classes),))
    d = _check_row_map(estimator._row_map, d)
    _check_numbers("coef_", estimator.coef_, (*shape, d))
    _check_numbers("intercept_", estimator.intercept_, shape)


def _check_row_map(row_map: Any, d: int) -> int:
    """Check a map of rows of d features, and return the number of features of the head."""
    _check_kind("_row_map", row_map, RowMap)
    if (basis := row_map.basis) is not None:
        if type(basis).__name__ != "Basis":
            raise ValueError("basis is not a Basis")
        _check_basis(basis, d)
        d = basis.width
    check("normalize", row_map.normalize, FLAG)
    check("unit_first", row_map.unit_first, FLAG)
    check("intercept_value", row_map.intercept_value, _FINITE, None)
    check("bound", row_map.bound, POSITIVE, None)
    if row_map.mean is not None:
        _check_numbers("_row_map.mean", row_map.mean, (d,))
    if row_map.columns is not None:
        _check_kind("columns", row_map.columns, Columns)
        check("cut", row_map.columns.cut, POSITIVE)
        for name in ("center", "factor"):
            _check_numbers(f"columns.{name}", vars(row_map.columns)[name], (d,))
    if row_map.whitening is not None:
        _check_kind("whitening", row_map.whitening, Whitening)
        factors = row_map.whitening.factors
        _check_numbers("whitening.factors", factors, np.shape(factors)[:1])
        _check_numbers("whitening.directions", row_map.whitening.directions, (len(factors), d))
    return d


def _check_basis(basis: Any, d: int) -> None:
    for name in ("center", "factor"):
        _check_numbers(f"basis.{name}", vars(basis)[name], (d,))
    for name in ("scale", "cut"):
        check(name, vars(basis)[name], POSITIVE)
    if not isinstance(basis.knots, tuple) or len(basis.knots) != d:
        raise ValueError(f"basis.knots is not a tuple of {d} arrays")
    if not isinstance(basis.mean, tuple) or len(basis.mean) != d:
        raise ValueError(f"basis.mean is not a tuple of {d} arrays")
    for knots, mean in zip(basis.knots, basis.mean, strict=True):
        _check_numbers("basis.knots", knots, np.shape(knots)[:1])
        _check_numbers("basis.mean", mean, knots.shape)
        if len(knots) in (1, 2) or not np.all(np.diff(knots) > 0):
            raise ValueError("knots do not ascend")
    missing = basis.missing
    if not isinstance(missing, np.ndarray) or missing.dtype != bool or missing.shape != (d,):
        raise ValueError(f"basis.missing is not {d} flags")


def _check_numbers(name: str, array: object, shape: tuple[int, ...]) -> None:
    array = np.asarray(array)
    if array.dtype.kind != "f" or array.shape != shape or not np.all(np.isfinite(array)):
        raise ValueError(
            f"{name} of shape {array.shape} and type {array.dtype} is not a finite array of {shape}"
        )


def _check_classes(classes: object, in_any_order: bool) -> None:
    if not isinstance(classes, np.ndarray) or classes.ndim != 1 or len(classes) < 2:
        raise ValueError("classes_ is not a flat array of two or more labels")
    if len(np.unique(classes)) < len(classes):
        raise ValueError("classes_ has a label twice")
    if not (in_any_order or np.array_equal(np.unique(classes), classes)):
        raise ValueError("classes_ is not sorted")


def _check_report(report: Any) -> None:
    if type(report) not in _REPORTS:
        raise ValueError("privacy_ is not a report")
    dataset = _NO_DATASET if report.dataset is None else _DATASET
    check_params(report, _STATEMENT | dataset | _REPORTS[type(report)])


def _is_entry(pair: Any) -> bool:
    """Whether a value is a pair of a text and a number."""
    return len(pair) == 2 and isinstance(pair[0], str) and _FINITE.admits(pair[1])


def _all(values: object, kind: type, holds: Callable[[Any], bool]) -> bool:
    return isinstance(values, kind) and all(map(holds, values))  # type: ignore[call-overload]


def _check_kind(name: str, value: object, kind: type) -> None:
    if type(value) is not kind:
        raise ValueError(f"{name} is not a {kind.__name__}")
