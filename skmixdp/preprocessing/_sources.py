"""Public rows from one or several sources, with the columns of the private ones."""

from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from scipy import sparse
from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_array, validate_data


def public_table(X: Any, X_pub: Any, minimum: int) -> NDArray[np.floating[Any]]:
    """Public rows as one dense, finite table (n_pub, n_features), float32 or float64.

    Parameters
    ----------
    X : array-like of shape (n_samples, n_features)
        PRIVATE rows, of which only the number and names of the columns are read.
    X_pub : array-like of shape (n_pub, n_features), or tuple of such
        Public rows.
    minimum : int
        How many public rows it takes.

    Raises
    ------
    ValueError, TypeError
        Without enough public rows, or if they are sparse, not finite or of other columns.
    """
    if X_pub is None:
        raise ValueError(
            "X_pub=None leaves nothing to fit on; pass public rows to fit, which in a Pipeline takes "
            "sklearn.set_config(enable_metadata_routing=True), or use NoisyScaler or RowNormalizer, which "
            "need none."
        )
    sources = X_pub if isinstance(X_pub, tuple) else (X_pub,)
    if any(sparse.issparse(source) for source in sources):
        raise TypeError(
            "X_pub is sparse, and rows from which a mean is subtracted are not; pass X_pub.toarray(), or use "
            "RowNormalizer."
        )
    rows = check_array(
        join_rows(X, sources), dtype=[np.float64, np.float32], ensure_min_samples=0, input_name="X_pub"
    )
    if len(rows) < minimum:
        raise ValueError(
            f"X_pub has {len(rows)} sample(s) while a minimum of {minimum} is required; pass more."
        )
    return np.asarray(rows)


def join_rows(X: Any, sources: tuple[Any, ...]) -> Any:
    """The rows of all sources in one container, once their columns are seen to be those of X."""
    if not sources:
        raise ValueError("X_pub=() holds no source; pass at least one array of public rows.")
    width, names = _columns(X)
    for source in sources:
        public_width, public_names = _columns(source)
        if public_width != width:
            raise ValueError(
                f"X_pub has {public_width} features and X has {width}; pass public rows with the columns "
                "of the private ones."
            )
        if public_names != names:
            raise ValueError(
                f"X_pub has {_words(public_names)} and X has {_words(names)}; pass the same columns in the "
                "same order, both as data frames or both as arrays."
            )
    if len(sources) == 1:
        return sources[0]
    if any(sparse.issparse(source) for source in sources):
        return sparse.vstack(sources, format="csr")
    if all(hasattr(source, "iloc") for source in sources):
        return pd.concat(sources, ignore_index=True)
    return np.concatenate([np.asarray(source) for source in sources])


def _columns(X: Any) -> tuple[int | None, list[str] | None]:
    """Number and names of the columns as scikit-learn sees them; its values stay unread."""
    probe = BaseEstimator()
    validate_data(probe, X, skip_check_array=True)
    names = getattr(probe, "feature_names_in_", None)
    return getattr(probe, "n_features_in_", None), None if names is None else names.tolist()


def _words(names: list[str] | None, limit: int = 8) -> str:
    if names is None:
        return "no column names"
    return f"the columns [{', '.join(map(repr, names[:limit]))}{', ...' if len(names) > limit else ''}]"
