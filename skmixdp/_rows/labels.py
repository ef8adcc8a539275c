"""Checks of labels and targets, and their codes. Each error is one sentence that names the remedy."""

from typing import Any

import numpy as np
import pandas as pd
import scipy.sparse as sp
from numpy.typing import NDArray
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import column_or_1d

from .._utils.validation import CONVERSION_ERRORS, listed, shown, sources_of
from .streamed import RowFiles
from .table import from_device

Array = NDArray[Any]

#: Integer labels within a smaller range are looked up in a table, which is many times as fast.
_FEW_VALUES = 2**12


def given_labels(X: Any, y: Any) -> Any:
    """``y`` in host memory; if it is None, the labels in the files of ``X``."""
    return X.labels if y is None and isinstance(X, RowFiles) else from_device(y)


def check_labels(y: Any, name: str, n_rows: int, rows_name: str) -> Array:
    """Labels as a flat array of ``n_rows`` entries, none of them missing."""
    if y is None:
        raise ValueError(f"fit requires {name} to be passed, but the target {name} is None.")
    try:
        shape = np.asarray(y).shape
    except CONVERSION_ERRORS:
        raise ValueError(
            f"{name} should be a 1d array of labels of one type; pass one label per row."
        ) from None
    if len(shape) != 1 and shape[1:] != (1,):
        raise ValueError(
            f"{name} should be a 1d array, got an array of shape {shape}; pass one label per row."
        )
    labels = np.asarray(column_or_1d(y, warn=True))
    if len(labels) != n_rows:
        raise ValueError(
            f"{name} has {len(labels)} labels and {rows_name} {n_rows} rows; pass one label for each row."
        )
    if has_missing(labels):
        raise ValueError(f"{name} contains NaN, None or infinity; drop the rows without a label.")
    return labels


def has_missing(labels: Array) -> bool:
    """Whether a label is NaN, None, NaT or infinite."""
    if labels.dtype.kind == "f":
        return not np.all(np.isfinite(labels))
    # Comparing pandas.NA raises an error, so ask pandas.
    return labels.dtype.kind == "O" and bool(pd.isna(labels).any())


def check_targets(y: Any, name: str, n_rows: int, rows_name: str) -> Array:
    """Targets as a finite float64 table (n_rows, k); a flat array has one target per row."""
    if y is None:
        raise ValueError(f"fit requires {name} to be passed, but the target {name} is None.")
    try:
        values = np.asarray(y)
    except CONVERSION_ERRORS:  # targets of different lengths
        raise ValueError(
            f"{name} must hold the same number of targets in each row; pass a table of real numbers."
        ) from None
    if values.dtype.kind not in "biufO":
        raise ValueError(f"{name} must hold real numbers; encode text, dates and complex numbers first.")
    try:
        targets = values.astype(np.float64)
    except CONVERSION_ERRORS:  # the original message would quote the entry
        raise ValueError(f"{name} must hold real numbers; encode everything else first.") from None
    if targets.ndim not in (1, 2) or targets.shape[1:] == (0,):
        raise ValueError(
            f"{name} has shape {targets.shape}, not (n_samples,) or (n_samples, n_targets); pass one or "
            "several targets per row."
        )
    if len(targets) != n_rows:
        raise ValueError(
            f"{name} has {len(targets)} targets and {rows_name} {n_rows} rows; pass targets for each row."
        )
    if not np.all(np.isfinite(targets)):
        raise ValueError(f"{name} contains NaN or infinity; drop the rows without a target.")
    return targets.reshape(n_rows, -1)


def check_classes(classes: Any) -> Array:
    """The declared classes, checked and sorted."""
    labels = np.asarray(classes)
    mixed = len({type(label) for label in labels.ravel().tolist()}) > 1
    if labels.ndim != 1 or len(labels) == 0 or mixed or has_missing(labels):
        raise ValueError(
            f"classes={shown(classes)} must be a flat list of labels of one type, without missing values."
        )
    return np.unique(labels)


def check_class_labels(y: Array, name: str) -> None:
    """Refuse continuous values and labels of mixed types."""
    kinds = {isinstance(label, str) for label in y.tolist()} if y.dtype.kind == "O" else {True}
    try:
        if len(kinds) > 1:
            raise ValueError("text and numbers")
        # Each label twice: where more than half of the labels are distinct, scikit-learn warns of it, which
        # would tell of private labels.
        labels = np.repeat(np.unique(y), 2)
        with np.errstate(invalid="ignore"):  # it converts labels beyond 64 bits to integers
            check_classification_targets(labels)
    except CONVERSION_ERRORS:
        raise ValueError(
            f"Unknown label type: {name} holds continuous values or labels of mixed types; pass integers, "
            "bools or strings."
        ) from None


def encode_labels(
    y: Array, classes: Array, name: str, *, private: bool, source: str = "classes"
) -> NDArray[np.intp]:
    """Index of each label in the sorted ``classes``, which come from ``source``."""
    firsts = [labels[:1].tolist()[0] for labels in (y, classes)]
    kinds = ["text" if isinstance(label, (str, bytes)) else "numbers" for label in firsts]
    if kinds[0] != kinds[1]:
        raise ValueError(
            f"{name} holds {kinds[0]} and {source} holds {kinds[1]}; write all labels in one way, as numbers "
            "or as text."
        )
    # As Python objects, so that True is 1 and "1" is not.
    places = {label: place for place, label in enumerate(classes.tolist())}
    low, high = (int(y.min()), int(y.max())) if y.dtype.kind in "iu" and len(y) else (0, _FEW_VALUES)
    if high - low < _FEW_VALUES and high <= np.iinfo(np.int64).max:
        table = np.array([places.get(label, -1) for label in range(low, high + 1)], dtype=np.intp)
        index = table[y.astype(np.int64) - low]
    else:
        index = np.array([places.get(label, -1) for label in y.tolist()], dtype=np.intp)
    unknown = index < 0
    if np.any(unknown):
        # The message must not quote a private label, or its row: it may come from a wrong column.
        row = int(np.argmax(unknown))
        label = f"{name} holds a label that" if private else f"{name}[{row}] = {y.tolist()[row]!r}"
        known = f"the classes {listed(classes, 20)}"
        if source == "y_pub":
            raise ValueError(
                f"{label} is not one of {known} of y_pub, so the public rows lack a class; list every class "
                "in classes=[...], or spell both alike."
            )
        raise ValueError(f"{label} is not one of {known}; list every class in classes.")
    return index


def is_indicator(y: Any) -> bool:
    """Whether labels have two columns or more, or are sparse; their values are not looked at."""
    try:
        return sp.issparse(y) or np.shape(y)[1:] > (1,)
    except CONVERSION_ERRORS:  # rows of different lengths
        return False


def check_indicator(y: Any, name: str, n_rows: int, rows_name: str) -> Array:
    """Labels as a table (n_rows, k) of zeros and ones in int8."""
    if y is None:
        raise ValueError(f"fit requires {name} to be passed, but the target {name} is None.")
    if sp.issparse(y):
        raise ValueError(f"{name} is a sparse matrix; pass {name}.toarray(), with one column for each label.")
    if not is_indicator(y):
        raise ValueError(
            f"{name} has one label per row and y has several; pass zeros and ones, one column for each label."
        )
    values = np.asarray(y)
    try:
        table = values.astype(np.float64)
    except CONVERSION_ERRORS:  # the original message would quote the entry
        table = np.full(values.shape, np.nan)
    if table.ndim != 2 or not np.all((table == 0) | (table == 1)):
        raise ValueError(
            f"{name} should be a 1d array of labels, got an array of shape {values.shape} with other values "
            "than zeros and ones; pass one label per row, or zeros and ones, one column for each label."
        )
    if len(table) != n_rows:
        raise ValueError(
            f"{name} has {len(table)} rows of labels and {rows_name} {n_rows} rows; pass labels for each row."
        )
    return table.astype(np.int8)


def names_of_labels(declared: Any, y: Any, y_pub: Any, n_labels: int) -> tuple[Array, str]:
    """Names (k,) of the columns of labels, in their order, and their origin for the report."""
    sources = (y, *sources_of(y_pub))
    columns = [list(source.columns) for source in sources if hasattr(source, "columns")]
    if any(other != columns[0] for other in columns):
        raise ValueError(
            f"y and y_pub differ in their columns, {listed(columns[0])} and others; pass the same columns in "
            "the same order."
        )
    if declared is None:
        return (np.asarray(columns[0]), "columns of y") if columns else (np.arange(n_labels), "numbered")
    names = np.asarray(declared)
    mixed = len({type(name) for name in names.ravel().tolist()}) > 1
    if names.ndim != 1 or mixed or has_missing(names):
        raise ValueError(
            f"classes={shown(declared)} must be a flat list of labels of one type, without missing values."
        )
    if len(np.unique(names)) != n_labels or len(names) != n_labels:
        raise ValueError(
            f"classes={shown(declared)} must name the {n_labels} columns of y in their order, each once."
        )
    return names, "declared"
