"""What a fitted model predicts for private rows, which all evaluations of it start from."""

import warnings
from collections.abc import Iterator
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from sklearn.base import BaseEstimator
from sklearn.pipeline import Pipeline
from sklearn.utils.validation import check_is_fitted

from .._rows.persons import computed_by_blocks
from .._rows.source import Table
from .._rows.table import groups_of, is_dask, labels_of, special_table
from .._utils.frames import n_rows_of, some_rows
from .._utils.process import is_own
from .._utils.validation import refusal_of, with_float_columns
from ..privacy.units import Units, units_of

Array = NDArray[Any]


def predicted(
    estimator: BaseEstimator, method: str, X: Any, y: object, groups: object, noise: object
) -> tuple[Array, Any, Units]:
    """What a fitted model predicts for PRIVATE rows, their labels, and their units, before any charge.

    Its warnings and errors are withheld, since they may quote rows.
    """
    check_is_fitted(estimator)
    y, groups = labels_of(X, y), groups_of(X, groups)
    if y is None:
        raise ValueError("y=None leaves nothing to evaluate by; pass the labels or targets of the rows.")
    persons = None if groups is None else units_of(groups, n_rows_of(X), noise)

    # Models of this library read files, and each cell by itself. Others may compute in the type of a column.
    is_foreign = not type(estimator).__module__.startswith("skmixdp.")
    if is_foreign:
        X = with_float_columns(X)

    def predict(rows: object) -> Array:
        if is_foreign and isinstance(rows, Table):
            return np.concatenate([predict(block) for block in _blocks(rows)])
        results = getattr(estimator, method)(rows)
        if is_dask(results):
            table: Any = special_table(results if results.ndim == 2 else results[:, np.newaxis])
            results = table.whole().reshape(-1, *results.shape[1:])
        return np.asarray(results, dtype=np.float64)

    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            if persons is None:
                results = predict(X)
            else:
                indexed, codes = in_memory(X), persons.codes
                results = computed_by_blocks(
                    codes, persons.n_units, lambda places: predict(some_rows(indexed, places))
                )
    except Exception as error:
        if is_own(error):
            raise
        culprit = f"{method} of {type(estimator).__name__}"
        refusal = refusal_of(estimator, X, culprit, error, numeric=not isinstance(estimator, Pipeline))
    else:
        if len(results) == 0:
            raise ValueError("X has no rows; pass one at least.")
        return results, y, persons or Units(None, len(results))
    raise refusal


def in_memory(X: object) -> Any:
    """Rows that can be indexed: rows of files and Dask arrays are read."""
    if not (isinstance(X, Table) or is_dask(X)):
        return X
    blocks = list(_blocks(X))
    return pd.concat(blocks) if isinstance(blocks[0], pd.DataFrame) else np.concatenate(blocks)


def _blocks(X: object) -> Iterator[Any]:
    """The rows of files or of a Dask array, one block at a time, with the names of their columns."""
    table: Any = special_table(X)
    for block in table.blocks():
        yield block if table.names is None else pd.DataFrame(block, columns=table.names)
