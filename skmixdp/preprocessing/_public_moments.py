"""Whitening by the moments of public rows."""

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.utils.validation import check_array, check_is_fitted, validate_data

from .._utils.process import finite, own_state, public_code
from .._utils.validation import COUNT, FRACTION, check_params, join_rows, rows_to_transform, sources_of

Array = NDArray[np.floating[Any]]

#: Directions with a smaller share of the largest eigenvalue count as constant.
_FLAT = 1e-12


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
