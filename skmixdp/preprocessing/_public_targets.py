"""A regressor whose target transformation comes from public targets."""

import warnings
from collections.abc import Callable
from dataclasses import KW_ONLY, dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, MetaEstimatorMixin, RegressorMixin, clone
from sklearn.preprocessing import FunctionTransformer
from sklearn.utils import get_tags
from sklearn.utils.validation import check_is_fitted

from .._utils.process import LEFT_OUT, own_state, public_code
from .._utils.validation import copy_fitted, is_empty, public_sources
from ._leaks._rules import holds_public_targets

Array = NDArray[Any]


@dataclass(eq=False, repr=False)
class PublicTransformedTargetRegressor(RegressorMixin, MetaEstimatorMixin, BaseEstimator):  # type: ignore[misc]
    """Fit a private regressor to transformed targets; public targets determine the transformation.

    scikit-learn's ``TransformedTargetRegressor`` transforms ``y``, leaves ``y_pub`` as it is, and fits its
    transformer to private targets. This class fits the transformer to ``y_pub`` and transforms both.

    Parameters
    ----------
    regressor : estimator
        A regressor that takes public rows, such as ``MixedDPRidge()``. A clone of it is fitted. Of a
        ``WithPublicRows``, a clone of its estimator is fitted, with its public rows.
    transformer : estimator or None, default=None
        A transformer of columns, such as ``QuantileTransformer()``. It is fitted to the public targets.
    func, inverse_func : callable or None, default=None
        A function of an array of targets and its inverse, such as ``np.log`` and ``np.exp``. The function
        must treat each target by itself.

    Attributes
    ----------
    regressor_ : estimator
        The fitted regressor.
    transformer_ : estimator
        The fitted transformer.
    privacy_ : PrivacyReport
        The report of the regressor.
    n_features_in_ : int
        Number of columns.
    feature_names_in_ : array of str
        Names of the columns, where the rows are a data frame with string columns.

    Notes
    -----
    *Guarantee*: that of the regressor. The transformation is fixed by its parameters and the public targets,
    and changes each private target by itself.

    ``MixedDPRidge`` centres and scales targets by itself, so a ``StandardScaler`` changes nothing. Use this
    class for transformations that are not linear.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.datasets import make_regression
    >>> from skmixdp import MixedDPRidge
    >>> from skmixdp.preprocessing import PublicTransformedTargetRegressor
    >>> X, y = make_regression(1000, 3, random_state=0)
    >>> y = np.exp(y / 100)
    >>> model = PublicTransformedTargetRegressor(MixedDPRidge(), func=np.log, inverse_func=np.exp)
    >>> model = model.fit(X[100:], y[100:], X_pub=X[:100], y_pub=y[:100])
    >>> bool(np.all(model.predict(X) > 0))
    True
    """

    # Routed to fit by default, without set_fit_request, as for the estimators.
    __metadata_request__fit: ClassVar = {"X_pub": True, "y_pub": True}

    regressor: Any
    _: KW_ONLY
    transformer: Any = None
    func: Callable[[Array], Array] | None = None
    inverse_func: Callable[[Array], Array] | None = None

    def fit(
        self, X: object, y: Any, X_pub: object = None, y_pub: object = None, sample_weight: object = None
    ) -> "PublicTransformedTargetRegressor":
        """Fit the transformer to public targets, and the regressor to transformed ones.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            PRIVATE rows.
        y : array-like of shape (n_samples,) or (n_samples, k)
            Their targets.
        X_pub : array-like of shape (n_pub, n_features), tuple of such, or None
            Public rows: one array, or a tuple of several sources.
        y_pub : array-like of shape (n_pub,) or (n_pub, k), tuple of such, or None
            Targets of the public rows, in the units of ``y``.
        sample_weight : array-like of shape (n_samples,) or None
            Weights of the private rows, for regressors that take them.

        Returns
        -------
        self : PublicTransformedTargetRegressor
            Fitted estimator.

        Raises
        ------
        ValueError, TypeError
            For parameters that do not go together, or targets that cannot be transformed. Also whatever the
            regressor refuses.
        """
        with own_state():
            self._check()
            regressor = self.regressor
            if holds_public_targets(regressor):
                direct = type(regressor).__name__ == "WithPublicRows" and is_empty(X_pub) and is_empty(y_pub)
                if not direct or holds_public_targets(regressor.estimator):
                    raise ValueError(
                        "regressor holds a WithPublicRows, whose y_pub would not be transformed; leave it "
                        "out, and pass X_pub and y_pub to fit."
                    )
                X_pub, y_pub, regressor = regressor.X_pub, regressor.y_pub, regressor.estimator
            public: dict[str, Any] = {}
            known = None
            if not (is_empty(X_pub) and is_empty(y_pub)):
                sources, targets = public_sources(X_pub, y_pub)
                tables = [_table(target, "y_pub") for target in targets]
                known = np.concatenate(tables)
            if self.transformer is None:
                transformer = FunctionTransformer(self.func, self.inverse_func)
            elif known is None:
                raise ValueError(
                    f"transformer={self.transformer!r} is fitted to y_pub; pass public rows, or func and "
                    "inverse_func."
                )
            else:
                with public_code():
                    transformer = clone(self.transformer).fit(known)
            if known is not None:
                mapped = tuple(
                    self._mapped(transformer, table, "y_pub").reshape(np.shape(target))
                    for table, target in zip(tables, targets, strict=True)
                )
                public = {"X_pub": sources, "y_pub": mapped}
            if sample_weight is not None:
                public["sample_weight"] = sample_weight
            table, shape = _table(y, "y"), np.shape(y)
            regressor = clone(regressor)
            regressor.fit(X, self._mapped(transformer, table, "y").reshape(shape), **public)
            self.transformer_, self.regressor_ = transformer, regressor
            copy_fitted(self, regressor, "privacy_")
            return self

    @own_state()
    def predict(self, X: object) -> Array:
        """Predicted targets of each row, in the units of ``y``.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Rows.

        Returns
        -------
        array of shape (n_samples,) or (n_samples, k)
            As ``y`` was in ``fit``.
        """
        check_is_fitted(self)
        predicted = np.asarray(self.regressor_.predict(X))
        table = predicted.reshape(len(predicted), -1)
        return np.asarray(self.transformer_.inverse_transform(table)).reshape(predicted.shape)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        if isinstance(self.regressor, BaseEstimator):
            inner = get_tags(self.regressor)
            tags.input_tags, tags.target_tags = inner.input_tags, inner.target_tags
        return tags

    def _check(self) -> None:
        if not (hasattr(self.regressor, "fit") and hasattr(self.regressor, "predict")):
            raise TypeError(f"regressor={self.regressor!r} must be a regressor, such as MixedDPRidge().")
        if self.transformer is not None and (self.func is not None or self.inverse_func is not None):
            raise ValueError("transformer and func cannot both be given; leave one of them out.")
        if (self.func is None) != (self.inverse_func is None):
            raise ValueError("func and inverse_func need each other; pass both, such as np.log and np.exp.")

    def _mapped(self, transformer: Any, table: Array, name: str) -> Array:
        """Transformed targets; errors and warnings that might quote them are replaced."""
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                mapped = np.asarray(transformer.transform(table), dtype=np.float64)
        except Exception:
            kind = LEFT_OUT
        else:
            if mapped.shape == table.shape and np.all(np.isfinite(mapped)):
                return mapped
            kind = "a result of another shape" if mapped.shape != table.shape else "NaN or infinity"
        raise ValueError(
            f"the transformation of {name} fails with {kind}; choose one that is defined for all targets, "
            "such as np.log1p for targets of at least 0."
        )


def _table(y: object, name: str) -> Array:
    """Targets as floats (n, k)."""
    try:
        table = np.asarray(y, dtype=np.float64)
    except Exception:  # the original message would quote the entry
        raise ValueError(f"{name} must hold real numbers; encode everything else.") from None
    if table.ndim not in (1, 2):
        raise ValueError(
            f"{name} has shape {table.shape}, not (n_samples,) or (n_samples, n_targets); pass one or "
            "several targets per row."
        )
    return table.reshape(len(table), -1)
