"""Rows of every kind: checks, placement on a device, and the outputs of a fitted head."""

import copy
from dataclasses import replace
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from sklearn.utils.validation import check_is_fitted, validate_data

from .._rowmap import RowMap, finite_rows, implicit_products, implicit_rows, scaled_first
from .._rows import ArrayTable, PrivateRows, RowFiles, Table, from_device, special_table
from .._rows import is_dask as is_dask
from .._validation import check_table, rows_to_transform, shown
from ..privacy import Noise, noise_name

Array = NDArray[Any]


def given_labels(X: Any, y: Any) -> Any:
    """``y`` in host memory; if it is None, the labels in the files of ``X``."""
    return X.labels if y is None and isinstance(X, RowFiles) else from_device(y)


def check_private_rows(estimator: Any, X: Any, *, minimum: int = 2, reset: bool = True) -> Table:
    """A table of at least ``minimum`` rows; ``reset`` sets the estimator's number and names of features.

    The values of rows that are not in memory are checked later, when the rows are mapped, before any charge.
    """
    table = special_table(X)
    if table is None:
        table = ArrayTable(check_table(X, "X", minimum=minimum))
        validate_data(estimator, X, reset=reset, skip_check_array=True)
        return table
    table.check("X")
    n_rows, n_features = table.shape
    if n_rows < minimum:
        raise ValueError(
            f"X has {n_rows} sample(s) while a minimum of {minimum} is required; pass more rows."
        )
    if n_features == 0:
        raise ValueError(f"X has 0 feature(s) (shape={table.shape}) while a minimum of 1 is required.")
    validate_data(estimator, _header(X, table), reset=reset, skip_check_array=True)
    return table


def bfloat16_rows(table: Table, y: Array, row_map: RowMap, *, exact: bool) -> PrivateRows:
    """The rows of a table, held in bfloat16."""
    if exact:
        raise ValueError("dtype='bfloat16' has no exact sums; pass dtype='float32', or noise='float'.")
    return table.bfloat16_rows(y, row_map)


def passed(table: Table, *, labels: bool) -> str:
    """Text for the report: which checks of private rows were treated as public."""
    checks = ["shapes", "finiteness", *(["repeats"] if table.counts_repeats else []), *(["labels"] * labels)]
    words = f"that their {', '.join(checks[:-1])} and {checks[-1]} passed validation"
    return words if table.counts_repeats else f"{words} (repeated rows were not looked for)"


def head_outputs(estimator: Any, X: Any) -> Array:
    """Outputs (n, k) of a fitted head, or (n,) of a flat one. Large data sets are processed in blocks."""
    table = special_table(X)
    if table is None:
        return _checked(_dense_outputs(estimator, rows_to_transform(estimator, X)))
    table.check("X")
    if table.shape[0] == 0:
        raise ValueError("X has 0 sample(s) while a minimum of 1 is required; pass more rows.")
    validate_data(estimator, _header(X, table), reset=False, skip_check_array=True)
    parts = []
    for block in table.blocks():
        if sp.issparse(block):
            parts.append(_sparse_outputs(estimator, block))
            continue
        if not finite_rows(block).all():
            raise ValueError("X contains NaN or infinity; drop those rows, or impute the values.")
        parts.append(_dense_outputs(estimator, block))
    return _checked(np.concatenate(parts))


def _checked(outputs: Array) -> Array:
    """Outputs, all of them finite."""
    if not np.isfinite(outputs).all():
        raise ValueError(
            "X has rows whose outputs are not finite, since they or the coefficients are too large; scale "
            "the features, or fit with row_norm='unit'."
        )
    return outputs


def lazy_result(estimator: Any, method: str, X: Any, n_columns: int | None, dtype: Any = np.float64) -> Any:
    """The result of a method for Dask rows, as a lazy Dask array."""
    check_is_fitted(estimator)
    from .._rows.dask import lazily

    validate_data(estimator, X, reset=False, skip_check_array=True)
    light = copy.copy(estimator)  # workers need no ledger
    light.ledger = None
    return lazily(X, getattr(light, method), n_columns, dtype)


@np.errstate(over="ignore", invalid="ignore")
def _dense_outputs(estimator: Any, X: Array) -> Array:
    row_map: RowMap = estimator._row_map
    rows = row_map(X, np.float64)[:, : estimator.n_features_in_]
    return np.asarray(rows @ estimator.coef_.T + estimator.intercept_)


@np.errstate(over="ignore", invalid="ignore")
def _sparse_outputs(estimator: Any, X: Any) -> Array:
    given = X
    X, row_map = scaled_first(X, replace(estimator._row_map, intercept_value=None))
    factors = implicit_rows(X, row_map).factors
    points = np.atleast_2d(estimator.coef_)
    Z = implicit_products(
        X, factors, row_map, points if row_map.whitening is None else row_map.whitening(points)
    )
    outputs = np.asarray((Z if estimator.coef_.ndim == 2 else Z[:, 0]) + estimator.intercept_)
    # A row whose length overflows has factor 0, even where its products do not overflow.
    overflowed = ~np.isfinite(outputs if outputs.ndim == 1 else outputs.sum(axis=1)) | (factors == 0)
    if overflowed.any():  # dense rows are divided by their largest entry first
        outputs[overflowed] = _dense_outputs(estimator, given[overflowed].toarray().astype(np.float64))
    return outputs


def _header(X: Any, table: Table) -> Any:
    """An object from which scikit-learn reads the number and names of features."""
    if table.names is None:
        return table
    import pandas as pd

    return pd.DataFrame(columns=table.names)


def check_device(device: Any) -> str | None:
    """The name of a device, or None for ``"auto"``. Devices other than ``"cpu"`` need torch.

    Raises
    ------
    ValueError
        If there is no such device.
    ImportError
        If torch is needed and not installed.
    """
    if isinstance(device, str) and device in ("auto", "cpu"):
        return None if device == "auto" else device
    try:
        from .._rows.tensors import device_name
    except ModuleNotFoundError as error:
        raise ImportError(
            f"device={shown(device)} needs the torch package; install skmixdp[features], or pass "
            "device='auto'."
        ) from error
    return device_name(device)


def check_movable(table: Table, device: str | None, *, noise: Noise) -> None:
    """Refuse rows and noise that the requested device does not support.

    Raises
    ------
    ValueError
        For rows that are not dense and in memory, and for discrete noise on a device other than the CPU.
    """
    if device is None or device == "cpu":
        return
    if not table.is_movable:
        raise ValueError(
            f"device={shown(device)} needs dense rows in memory, but X is a {type(table).__name__}; pass "
            "device='auto'."
        )
    if noise_name(noise) == "discrete":
        raise ValueError(
            f"noise='discrete' computes its exact sums on the CPU, not on device={shown(device)}; pass "
            "device='cpu', or noise='float'."
        )
