"""Scaling each row by itself."""

from collections.abc import Callable
from typing import Any

from sklearn.preprocessing import Normalizer

from .._utils.process import own_state
from .._utils.validation import FLAG, check, check_params, refusal_of, with_float_columns


class RowNormalizer(Normalizer):  # type: ignore[misc]
    """Scale each row to unit length: it learns nothing, so it costs no privacy.

    It is scikit-learn's ``Normalizer`` under a name that says what it may see. Rows of zeros
    stay as they are, and sparse rows stay sparse.

    Parameters
    ----------
    norm : {"l1", "l2", "max"}, default="l2"
        The length that becomes 1.
    copy : bool, default=True
        False scales NumPy arrays and sparse rows in place.

    Attributes
    ----------
    n_features_in_ : int
        Number of columns.
    feature_names_in_ : array of str
        Names of the columns, where the rows are a data frame with string columns.

    See Also
    --------
    PublicOnly : ``PublicOnly(StandardScaler(with_std=False))`` first, and unit rows differ by more.

    Notes
    -----
    *Guarantee*: ``fit`` keeps the number of columns and their names alone, and ``transform`` may
    be called without it. What one row becomes depends on no other row: columns of numbers in a data frame
    of any type count as float64.

    The estimators scale rows themselves (``normalize=True``).

    Examples
    --------
    >>> from skmixdp.preprocessing import RowNormalizer
    >>> RowNormalizer().transform([[3.0, 4.0], [0.0, 0.0]])
    array([[0.6, 0.8],
           [0. , 0. ]])
    """

    def fit(self, X: object, y: object = None) -> "RowNormalizer":
        """Record the number and the names of the columns; nothing else is learned.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features)
            Rows.
        y : array-like, default=None
            Ignored.

        Returns
        -------
        self : RowNormalizer
            Fitted transformer.
        """
        self._without_quotes(super().fit, X)
        return self

    def transform(self, X: object, copy: bool | None = None) -> Any:
        """Rows (n_samples, n_features), each of unit length; ``copy`` overrides the parameter."""
        return self._without_quotes(super().transform, X, copy=copy)

    @own_state()
    def _without_quotes(self, method: Callable[..., Any], X: Any, **options: Any) -> Any:
        """The result of a method of scikit-learn; its errors are replaced, since they may quote rows."""
        check_params(self, {"norm": ("l1", "l2", "max"), "copy": (FLAG,)})
        check("copy", options.get("copy"), FLAG, None)
        try:
            return method(with_float_columns(X), **options)
        except Exception as error:
            refusal = refusal_of(self, X, type(self).__name__, error)
        raise refusal
