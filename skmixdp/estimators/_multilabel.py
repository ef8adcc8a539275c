"""Checks of several labels per row: tables of zeros and ones, and the names of their columns."""

from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from .._utils.validation import CONVERSION_ERRORS, listed, shown, sources_of
from ._checks import has_missing

Array = NDArray[Any]


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
    given = np.asarray(y)
    try:
        table = given.astype(np.float64)
    except CONVERSION_ERRORS:  # the original message would quote the entry
        table = np.full(given.shape, np.nan)
    if table.ndim != 2 or not np.all((table == 0) | (table == 1)):
        raise ValueError(
            f"{name} should be a 1d array of labels, got an array of shape {given.shape} with other values "
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
