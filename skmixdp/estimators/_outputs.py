"""Outputs of a fitted head for all types of rows."""

import copy
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_is_fitted, validate_data

from .._rows import (
    TABLE_TYPES,
    RowMap,
    centered_products,
    centered_sparse_rows,
    finite_rows,
    header,
    scaled_first,
    special_table,
)
from .._utils.validation import rows_to_transform

Array = NDArray[Any]


@np.errstate(all="ignore")  # a warning or error of NumPy could reveal tiny or huge rows
def head_outputs(
    estimator: BaseEstimator, X: object, of_rows: Callable[[Array], Array] | None = None
) -> Array:
    """Outputs (n, k) of a fitted head, or (n,) of a flat one. Large data sets are processed in blocks.

    ``of_rows`` computes something else, of dense rows.
    """
    table, basis = special_table(X), estimator._row_map.basis
    dense = partial(_dense_outputs, estimator) if of_rows is None else of_rows
    if table is None:
        return _checked(dense(rows_to_transform(estimator, X, finite=basis is None)))
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
    return _checked(np.concatenate(parts))


def _checked(outputs: Array) -> Array:
    """The outputs; refused unless they are finite."""
    if not np.isfinite(outputs).all():
        raise ValueError(
            "X has rows whose outputs are not finite, since they or the coefficients are too large; scale "
            "the features, or fit with row_norm='unit'."
        )
    return outputs


def lazy_result(
    estimator: BaseEstimator, method: str, X: Any, n_columns: int | None, dtype: Any = np.float64
) -> Any:
    """The result of a method for Dask rows, as a lazy Dask array."""
    check_is_fitted(estimator)
    validate_data(estimator, X, reset=False, skip_check_array=True)
    light = copy.copy(estimator)  # workers need no ledger
    light.ledger = None
    return TABLE_TYPES["dask.array.Array"].lazily(X, getattr(light, method), n_columns, dtype)


def _dense_outputs(estimator: BaseEstimator, X: Array) -> Array:
    row_map: RowMap = estimator._row_map
    rows = row_map(X, np.float64)[:, : estimator.coef_.shape[-1]]
    return np.asarray(rows @ estimator.coef_.T + estimator.intercept_)


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
