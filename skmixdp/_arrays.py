"""Checks of rows whose messages never quote the rows.

Some errors of scikit-learn and NumPy quote entries of a table ("could not convert string to float: 'Smith'"),
which may be private. The messages here depend only on shapes, types and the check that failed. They never
name an entry, a row number, or the number of rows that failed.
"""

import warnings
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from sklearn.utils.validation import check_array, validate_data

Array = NDArray[Any]

#: Repeated private rows are reported if a smaller share of the rows is distinct. In a bootstrap sample, 63%
#: of the rows are distinct.
_DISTINCT_SHARE = 0.75

#: Errors that libraries raise for entries that are not numbers.
CONVERSION_ERRORS = (ValueError, TypeError, OverflowError, ArithmeticError)


def check_table(X: Any, name: str, *, minimum: int) -> Array:
    """A finite float table of at least ``minimum`` rows."""
    try:
        table = check_array(
            X,
            dtype=[np.float64, np.float32],
            ensure_2d=False,
            allow_nd=True,
            ensure_all_finite=False,
            ensure_min_samples=0,
            ensure_min_features=0,
            input_name=name,
        )
    except CONVERSION_ERRORS as error:
        if isinstance(error, TypeError):
            raise TypeError(
                f"Sparse data was passed as {name} where dense rows are needed; pass {name}.toarray()."
                if sp.issparse(X)
                else f"{name} holds an entry that is no number; each argument must be a real number, or a "
                "string that spells a number."
            ) from None
        raise ValueError(
            f"{name} must hold real numbers; encode text and categories first (Complex data not supported)."
        ) from None
    if table.ndim != 2:
        raise ValueError(
            f"{name} has shape {table.shape}, not (n_samples, n_features); Reshape your data to a table."
        )
    if len(table) < minimum:
        raise ValueError(
            f"{name} has {len(table)} sample(s) while a minimum of {minimum} is required; pass more rows."
        )
    if table.shape[1] == 0:
        raise ValueError(f"{name} has 0 feature(s) (shape={table.shape}) while a minimum of 1 is required.")
    if not np.all(np.isfinite(table)):
        raise ValueError(
            f"{name} contains NaN or infinity; drop those rows, or impute them with what public rows say."
        )
    return np.asarray(table)


def rows_to_transform(estimator: Any, X: Any) -> Array:
    """Checked rows for a fitted estimator, with the same columns as in its fit."""
    table = check_table(X, "X", minimum=1)
    validate_data(estimator, X, reset=False, skip_check_array=True)
    return table


def refusal_of(estimator: Any, X: Any, culprit: str, error: Exception, *, numeric: bool = True) -> Exception:
    """An error that replaces another library's error, which may quote rows of ``X``.

    Parameters
    ----------
    estimator : estimator
        The estimator that processes the rows. If it is fitted, the rows must have its columns.
    X : array-like
        The rows.
    culprit : str
        Name of the function or object that failed.
    error : Exception
        The error that it raised. A TypeError stays a TypeError; the text is left out.
    numeric : bool, default=True
        Whether the culprit accepts only numbers.

    Returns
    -------
    Exception
        A ValueError or TypeError that describes the problem without quoting rows.
    """
    kind = TypeError if isinstance(error, TypeError) else ValueError
    if sp.issparse(X):
        return kind(f"{culprit} fails on sparse rows; pass X.toarray(), or check what it takes.")
    try:
        if hasattr(estimator, "n_features_in_") and len(getattr(X, "shape", (0, 0))) == 2:
            validate_data(estimator, X, reset=False, skip_check_array=True)
        if numeric:
            check_table(X, "X", minimum=1)
    except (ValueError, TypeError) as reason:
        return kind(str(reason))
    return kind(
        f"{culprit} fails on X with {type(error).__name__}, whose text is left out since it may quote rows; "
        "try it on rows that are public."
    )


def n_distinct_rows(X: Array) -> int:
    """Number of distinct rows of a table (n, n_features).

    It hashes whole rows. ``pandas.DataFrame.duplicated`` hashes each column and takes ten times as long.
    """
    return len({hash(row.tobytes()) for row in np.ascontiguousarray(X)})


def warn_of_repeats(n_distinct: int, n_rows: int, stacklevel: int = 6) -> None:
    """Warn if private rows repeat as in a bootstrap sample."""
    if n_distinct < _DISTINCT_SHARE * n_rows:
        warnings.warn(
            "many private rows occur several times; the guarantee is per row, so someone who appears in "
            "several rows is protected less; do not bootstrap private rows.",
            UserWarning,
            stacklevel=stacklevel,
        )


def warn_of_delta(delta: float, n_rows: int, stacklevel: int = 6) -> None:
    """Warn of a delta that guarantees little for this many rows."""
    if delta >= 1 / n_rows:
        warnings.warn(
            f"delta={delta:g} is not below 1/n = {1 / n_rows:g}, so the guarantee allows a "
            "row to be published outright with that probability; use a smaller delta.",
            UserWarning,
            stacklevel=stacklevel,
        )
