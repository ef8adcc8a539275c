"""Transformers whose state comes from public rows."""

import warnings
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import pandas as pd
import scipy.sparse as sp
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, ClassNamePrefixFeaturesOutMixin, TransformerMixin, clone
from sklearn.utils import get_tags
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_array, check_is_fitted, has_fit_parameter, validate_data

from .._utils.process import finite, own_state, public_code
from .._utils.validation import (
    COUNT,
    FRACTION,
    check_params,
    join_rows,
    refusal_of,
    rows_to_transform,
    sources_of,
    with_float_columns,
)

Array = NDArray[np.floating[Any]]

#: Directions with a smaller share of the largest eigenvalue count as constant.
_FLAT = 1e-12


def _inner_has(name: str) -> Callable[[Any], Any]:
    """Decorator of methods that exist if the wrapped transformer has them."""
    condition: Callable[[Any], Any] = available_if(
        lambda self: hasattr(vars(self).get("transformer_", self.transformer), name)
    )
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


@dataclass(eq=False, repr=False)
class PublicWhitener(ClassNamePrefixFeaturesOutMixin, TransformerMixin, BaseEstimator):  # type: ignore[misc]
    """Centre by the public mean and scale each principal direction of the public rows to variance 1.

    With fewer public rows than a few per column their covariance says little, so it is shrunk
    towards a multiple of the identity, ``(1 - s) C + s trace(C) / d I``.

    Parameters
    ----------
    shrinkage : "auto" or float in [0, 1], default="auto"
        ``s``; 1 only centres and scales all columns by one number. ``"auto"`` is the Ledoit-Wolf
        estimate of the best one.
    n_components : int or None, default=None
        How many directions to keep, those of largest public variance; None keeps all.

    Attributes
    ----------
    mean_ : array of shape (n_features,)
        Mean of the public rows, float64.
    components_ : array of shape (n_components, n_features)
        Transformed rows are ``(x - mean_) @ components_.T``.
    explained_variance_ : array of shape (n_components,)
        Eigenvalues of the shrunk covariance.
    shrinkage_ : float
        Shrinkage that was used.
    n_features_in_ : int
        Number of columns.
    feature_names_in_ : array of str
        Names of the columns, where the rows are a data frame with string columns.

    See Also
    --------
    PublicOnly : ``PublicOnly(StandardScaler(with_std=False))`` only subtracts the mean.
    NoisyScaler : For those without public rows.

    Notes
    -----
    *Guarantee*: :meth:`fit` reads nothing of its private rows but the number of columns and
    their names, which count as public, and :meth:`transform` maps each row by itself.

    Directions of little variance are lifted to that of the others, and what noise there is in them
    with them. A private head may lose by it; keep fewer components, or only centre, where it does.

    References
    ----------
    Ledoit and Wolf 2004, "A well-conditioned estimator for large-dimensional covariance
    matrices" (the automatic shrinkage, as scikit-learn computes it).

    Examples
    --------
    >>> import numpy as np
    >>> from skmixdp.preprocessing import PublicWhitener
    >>> X_pub = np.array([[9.0, 1.0], [1.0, 1.0], [9.0, 3.0], [1.0, 3.0]])
    >>> PublicWhitener(shrinkage=0.0).fit(X_pub, X_pub=X_pub).transform(X_pub)
    array([[ 1., -1.],
           [-1., -1.],
           [ 1.,  1.],
           [-1.,  1.]])
    """

    # Routed to fit by default, without set_fit_request, as for the estimators.
    __metadata_request__fit: ClassVar = {"X_pub": True, "y_pub": True}

    shrinkage: Any = "auto"
    n_components: int | None = None

    @own_state()
    def fit(
        self, X: object, y: object = None, X_pub: object = None, y_pub: object = None
    ) -> "PublicWhitener":
        """Take mean and shrunk covariance of the public rows.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            PRIVATE rows. Only the number and names of their columns are read.
        y : array-like, default=None
            Ignored.
        X_pub : array-like of shape (n_pub, n_features), or tuple of such
            Public rows, two at the least: one array, or a tuple of several sources.
        y_pub : array-like, default=None
            Ignored.

        Returns
        -------
        self : PublicWhitener
            Fitted transformer.

        Raises
        ------
        ValueError, TypeError
            For a parameter outside its range; without public rows, or if they are sparse, not
            finite or of other columns than ``X``; and if they have no variance in a direction
            that is to be kept.
        """
        check_params(self, {"shrinkage": ("auto", FRACTION), "n_components": (COUNT, None)})
        rows = np.asarray(_public_table(X, X_pub), dtype=np.float64)
        n_components = rows.shape[1] if self.n_components is None else int(self.n_components)
        if n_components > rows.shape[1]:
            raise ValueError(
                f"n_components={n_components} exceeds the {rows.shape[1]} features; pass a smaller one, or "
                "None for all."
            )
        mean = rows.mean(axis=0)
        # Imported here, since it is slow and every estimator imports this folder.
        from sklearn.covariance import ledoit_wolf, shrunk_covariance

        centred, shrinkage = rows - mean, self.shrinkage
        if isinstance(shrinkage, str):
            covariance, shrinkage = ledoit_wolf(centred, assume_centered=True)
        else:
            covariance = shrunk_covariance(centred.T @ centred / len(centred), float(shrinkage))
        values, vectors = np.linalg.eigh(covariance)
        values, vectors = values[::-1][:n_components], vectors[:, ::-1][:, :n_components]
        if not values[-1] > _FLAT * values[0]:
            raise ValueError(
                f"shrinkage={self.shrinkage!r} leaves directions in which the {len(rows)} public rows have "
                "no variance; pass a positive shrinkage, fewer n_components, or more public rows that differ."
            )
        # An eigenvector's sign is arbitrary: make its largest entry positive.
        vectors *= np.sign(vectors[np.abs(vectors).argmax(axis=0), np.arange(n_components)])
        validate_data(self, X, skip_check_array=True)
        self.mean_ = mean
        self.components_ = (vectors / np.sqrt(values)).T
        self.explained_variance_ = values
        self.shrinkage_ = float(shrinkage)
        return self

    @own_state()
    def transform(self, X: object) -> Array:
        """Whitened rows (n_samples, n_components); float32 stays float32."""
        check_is_fitted(self)
        X = rows_to_transform(self, X)
        return finite((X - self.mean_.astype(X.dtype)) @ self.components_.T.astype(X.dtype))

    @own_state()
    def inverse_transform(self, X: object) -> Array:
        """Rows (n_samples, n_features) that :meth:`transform` maps to the given (n_samples, n_components).

        With fewer components than columns, those that lie in the kept directions.
        """
        check_is_fitted(self)
        rows = np.asarray(X)
        back = (self.components_ * self.explained_variance_[:, np.newaxis]).astype(rows.dtype)
        return np.asarray(rows @ back + self.mean_.astype(rows.dtype))

    @property
    def _n_features_out(self) -> int:
        return len(self.components_)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.transformer_tags.preserves_dtype = ["float64", "float32"]
        return tags


@public_code()
def _public_table(X: object, X_pub: object) -> Array:
    """Public rows as one dense, finite table (n_pub, n_features), float32 or float64."""
    if any(sp.issparse(source) for source in sources_of(X_pub)):
        raise TypeError(
            "X_pub is sparse, and rows from which a mean is subtracted are not; pass X_pub.toarray(), or use "
            "RowNormalizer."
        )
    rows = check_array(
        join_rows(X, X_pub), dtype=[np.float64, np.float32], ensure_min_samples=0, input_name="X_pub"
    )
    if len(rows) < 2:
        raise ValueError(f"X_pub has {len(rows)} sample(s) while a minimum of 2 is required; pass more.")
    return np.asarray(rows)
