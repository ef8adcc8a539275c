"""A transformer whose state comes from public rows."""

import warnings
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import pandas as pd
import scipy.sparse as sp
from sklearn.base import BaseEstimator, TransformerMixin, clone
from sklearn.utils import get_tags
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_is_fitted, has_fit_parameter, validate_data

from .._utils.process import finite, own_state, public_code
from .._utils.validation import join_rows, refusal_of, sources_of, with_float_columns


def _inner_has(name: str) -> Callable[[Any], Any]:
    """Decorator of methods that exist if the wrapped transformer has them."""
    condition: Callable[[Any], Any] = available_if(lambda self: hasattr(self._inner, name))
    return condition


@dataclass(eq=False, repr=False)
class PublicOnly(TransformerMixin, BaseEstimator, auto_wrap_output_keys=None):  # type: ignore[misc, call-arg]
    """Fit a transformer on public rows, and transform any rows with it.

    A scaler, imputer or encoder fitted on private rows keeps facts about them. Wrapped in
    this class, it is fitted on ``X_pub`` instead.

    Parameters
    ----------
    transformer : estimator
        The transformer to fit, for instance ``StandardScaler()`` or a ``ColumnTransformer``.
        A clone of it is fitted.

    Attributes
    ----------
    transformer_ : estimator
        The fitted transformer.
    n_features_in_ : int
        Number of columns.
    feature_names_in_ : array of str
        Names of the columns, where the rows are a data frame with string columns.

    Notes
    -----
    *Guarantee*: :meth:`fit` reads nothing of its private rows but the number of columns and
    their names, which count as public. :meth:`transform` costs no privacy as long as the
    wrapped transformer maps each row by itself, as scalers, imputers, encoders and
    projections do. :meth:`fit_transform` is :meth:`fit` followed by :meth:`transform`, also
    for transformers that do otherwise.

    Columns of numbers in a data frame reach the transformer as float64, since one cell may have chosen their
    types. Its warnings are withheld. A row without missing cells has none afterwards: numbers
    that overflow become the largest of their type, and NaN becomes 0.

    Wrap a whole ``ColumnTransformer``; inside one, this class would not receive ``X_pub``.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.preprocessing import StandardScaler
    >>> from skmixdp.preprocessing import PublicOnly
    >>> X, X_pub = np.array([[100.0], [200.0]]), np.array([[1.0], [3.0]])
    >>> PublicOnly(StandardScaler()).fit(X, X_pub=X_pub).transform(X).ravel()
    array([ 98., 198.])
    """

    # Routed to fit by default, without set_fit_request, as for the estimators.
    __metadata_request__fit: ClassVar = {"X_pub": True, "y_pub": True}

    transformer: Any

    @property
    def _inner(self) -> Any:
        """The fitted transformer, or the one to be fitted."""
        return vars(self).get("transformer_", self.transformer)

    def fit(self, X: object, y: object = None, X_pub: object = None, y_pub: object = None) -> "PublicOnly":
        """Fit a clone of ``transformer`` on the public rows.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            PRIVATE rows. Only the number and names of their columns are read.
        y : array-like, default=None
            Ignored.
        X_pub : array-like of shape (n_pub, n_features), or tuple of such
            Public rows: one array, or a tuple of several sources.
        y_pub : array-like of shape (n_pub,), tuple of such, or None
            Labels of the public rows, for transformers that use labels.

        Returns
        -------
        self : PublicOnly
            Fitted transformer.

        Raises
        ------
        ValueError, TypeError
            Without public rows, if their columns are not those of ``X``, or if
            ``transformer`` is not a transformer or cannot be fitted.
        """
        with own_state():
            if not (isinstance(self.transformer, BaseEstimator) and hasattr(self.transformer, "transform")):
                raise TypeError(
                    f"transformer={self.transformer!r} must be a scikit-learn transformer object, such as "
                    "StandardScaler()."
                )
            with public_code():
                transformer = self._fitted(join_rows(X, X_pub), y_pub)
            validate_data(self, X, skip_check_array=True)
            self.transformer_ = transformer
            return self

    def _fitted(self, rows: object, y_pub: object) -> Any:
        """The transformer, fitted to public rows alone; one that wants their groups is refused."""
        transformer, labels = clone(self.transformer), []
        if y_pub is not None and has_fit_parameter(transformer, "y"):
            labels = [np.concatenate([np.asarray(part) for part in sources_of(y_pub)])]
        elif get_tags(transformer).target_tags.required:
            raise ValueError(
                f"y_pub=None does not do for {type(transformer).__name__}, which is fitted on labels; "
                "pass those of the public rows."
            )
        try:
            return transformer.fit(rows, *labels)
        except (TypeError, ValueError) as error:
            if "groups" not in str(error):
                raise
        raise ValueError(
            f"{type(transformer).__name__} wants groups, and PublicOnly passes rows and labels alone; "
            "choose a splitter without groups, or fit it to the public rows and pass FrozenEstimator(...)."
        )

    def transform(self, X: object) -> Any:
        """Rows (n_samples, n_features), transformed by the fitted transformer."""
        return self._mapped(X, "transform")

    @_inner_has("inverse_transform")
    def inverse_transform(self, X: object) -> Any:
        """Undo :meth:`transform`, where the wrapped transformer can."""
        return self._mapped(X, "inverse_transform")

    def _mapped(self, X: object, method: str) -> Any:
        """The result of a method of the fitted transformer, whose errors and warnings may quote rows."""
        check_is_fitted(self)
        try:
            with warnings.catch_warnings(), own_state():
                warnings.simplefilter("ignore")
                return _cut(getattr(self.transformer_, method)(with_float_columns(X)), X)
        except Exception as error:
            takes = get_tags(self.transformer_).input_tags
            refusal = refusal_of(
                self if method == "transform" else None,
                X,
                type(self.transformer_).__name__,
                error,
                numeric=takes.two_d_array and not (takes.categorical or takes.string),
            )
        raise refusal

    @_inner_has("get_feature_names_out")
    def get_feature_names_out(self, input_features: object = None) -> Any:
        """Names of the transformed columns, where the wrapped transformer has them.

        Parameters
        ----------
        input_features : array-like of str, default=None
            Names of the columns, where the rows had none.

        Returns
        -------
        array of str
            One name for each column of what :meth:`transform` returns.
        """
        check_is_fitted(self)
        return self.transformer_.get_feature_names_out(input_features)

    @_inner_has("set_output")
    def set_output(self, *, transform: str | None = None) -> "PublicOnly":
        """Choose the container that :meth:`transform` returns.

        Parameters
        ----------
        transform : {"default", "pandas", "polars"} or None, default=None
            The container; None changes nothing. It is passed on to the wrapped transformer.

        Returns
        -------
        self : PublicOnly
            This object.
        """
        self.transformer.set_output(transform=transform)
        if "transformer_" in vars(self):
            self.transformer_.set_output(transform=transform)
        return self

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        if isinstance(self.transformer, BaseEstimator):
            inner = get_tags(self.transformer)
            tags.input_tags = inner.input_tags
            tags.non_deterministic = inner.non_deterministic
            if inner.transformer_tags is not None:
                tags.transformer_tags = inner.transformer_tags
        return tags


def _cut(rows: Any, X: Any) -> Any:
    """Transformed rows of ``X``, with the largest number of their type for entries that overflow."""
    if sp.issparse(rows):
        entries: Any = rows
        if entries.dtype.kind == "f" and hasattr(entries, "data"):
            entries.data = finite(np.array(entries.data), nan=np.nan)
        return entries
    if isinstance(rows, pd.DataFrame):
        for place, dtype in enumerate(rows.dtypes):
            if isinstance(dtype, np.dtype) and dtype.kind == "f":
                rows.isetitem(place, _cut(rows.iloc[:, [place]].to_numpy(copy=True), X)[:, 0])
        return rows
    if type(rows).__module__.startswith("polars"):
        import polars as pl

        columns = rows.select(pl.selectors.float()).get_columns()
        return rows.with_columns(
            pl.Series(column.name, _cut(column.to_numpy()[:, np.newaxis], X)[:, 0], column.dtype)
            for column in columns
        )
    if not isinstance(rows, np.ndarray) or rows.dtype.kind != "f" or rows.ndim != 2:
        return rows
    results = finite(np.array(rows), nan=np.nan)
    if len(getattr(X, "shape", ())) == 2 and X.shape[0] == len(results):
        cells: Any = results[:, :0] if sp.issparse(X) else pd.isna(np.asarray(X))
        results[np.isnan(results) & ~cells.any(axis=1)[:, np.newaxis]] = 0.0
    return results
