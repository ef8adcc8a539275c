"""An estimator that carries its public rows with it."""

from dataclasses import dataclass
from typing import Any, ClassVar

import sklearn
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, MetaEstimatorMixin, clone
from sklearn.pipeline import Pipeline
from sklearn.utils import get_tags
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_is_fitted

from .._utils.process import own_state
from .._utils.validation import copy_fitted, is_empty
from ._public import public_params

Array = NDArray[Any]


def delegated(name: str, returned: str) -> Any:
    """A method that calls that of the fitted estimator, and exists if the estimator has it."""

    @own_state()
    def method(self: Any, X: object) -> Any:
        check_is_fitted(self)
        return getattr(vars(self)[self._fitted], name)(X)

    method.__name__, method.__doc__ = name, f"{returned} for rows (n_samples, n_features)."
    return available_if(lambda self: hasattr(vars(self).get(self._fitted, self.estimator), name))(method)


class DelegatingMixin:
    """Mixin whose methods are those of the fitted estimator, if that has them."""

    #: The attribute with the fitted estimator.
    _fitted: ClassVar[str] = "estimator_"

    predict = delegated("predict", "Predictions, (n_samples,) or (n_samples, k),")
    predict_proba = delegated("predict_proba", "Probabilities (n_samples, n_classes)")
    predict_log_proba = delegated("predict_log_proba", "Logarithms (n_samples, n_classes) of probabilities")
    decision_function = delegated("decision_function", "Logits, (n_samples, n_classes) or (n_samples,),")


@dataclass(eq=False, repr=False)
class WithPublicRows(DelegatingMixin, MetaEstimatorMixin, BaseEstimator):  # type: ignore[misc]
    """A private estimator with its public rows, for wrappers that do not pass them on.

    ``fit(X, y)`` fits the estimator to these private rows and to the public rows given here. It works within
    every tool of scikit-learn that accepts ``fit(X, y)``, without metadata routing, and no splitter cuts the
    public rows.

    Parameters
    ----------
    estimator : estimator
        An estimator whose ``fit`` takes ``X_pub`` and ``y_pub``, such as ``MixedDPLogisticRegression()``. A
        Pipeline of such still needs metadata routing and ``transform_input=["X_pub"]``.
    X_pub : array-like of shape (n_pub, n_features), tuple of such, or None, default=None
        Public rows: one array, or a tuple of several sources.
    y_pub : array-like of shape (n_pub,), tuple of such, or None, default=None
        Labels or targets of the public rows.

    Attributes
    ----------
    estimator_ : estimator
        The fitted estimator.
    privacy_, classes_, coef_, intercept_, n_iter_, n_features_in_, feature_names_in_
        Those of the fitted estimator, if it has them.

    Notes
    -----
    *Guarantee*: that of each fit of the estimator. What a wrapper does besides is not covered.

    ``get_params`` does not list the ``random_state`` of the estimator. Ensembles such as
    ``BaggingClassifier`` set every parameter of that name in their members, and with a known seed a fit is
    not private.

    Clones share the public rows.

    Examples
    --------
    >>> from sklearn.datasets import load_digits
    >>> from sklearn.ensemble import BaggingClassifier
    >>> from skmixdp import MixedDPLogisticRegression
    >>> from skmixdp.model_selection import WithPublicRows
    >>> X, y = load_digits(return_X_y=True)
    >>> head = WithPublicRows(MixedDPLogisticRegression(), X[:100], y[:100])
    >>> heads = BaggingClassifier(head, n_estimators=2, bootstrap=False, max_samples=0.5)
    >>> bool(heads.fit(X[100:1500], y[100:1500]).score(X[1500:], y[1500:]) > 0.7)
    True
    """

    estimator: Any
    X_pub: Any = None
    y_pub: Any = None

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """Parameters of this object and, if ``deep``, of the estimator.

        Parameters
        ----------
        deep : bool, default=True
            Whether to list the parameters of the estimator, as ``estimator__<name>``.

        Returns
        -------
        dict
            Values by name; those called ``random_state`` are left out.
        """
        parameters = super().get_params(deep)
        return {name: value for name, value in parameters.items() if name.split("__")[-1] != "random_state"}

    def fit(self, X: object, y: object = None, sample_weight: object = None) -> "WithPublicRows":
        """Fit the estimator to private rows and to the public rows of this object.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            PRIVATE rows.
        y : array-like of shape (n_samples,)
            Their labels or targets.
        sample_weight : array-like of shape (n_samples,) or None
            Weights of the private rows, for estimators that take them.

        Returns
        -------
        self : WithPublicRows
            Fitted estimator.

        Raises
        ------
        ValueError, TypeError
            Whatever the estimator refuses.
        """
        with own_state():
            params = {} if sample_weight is None else {"sample_weight": sample_weight}
            if not (is_empty(self.X_pub) and is_empty(self.y_pub)):
                check_routing(self.estimator)
                params |= public_params(self.X_pub, self.y_pub)
            self.estimator_ = clone(self.estimator).fit(X, y, **params)
            copy_fitted(self, self.estimator_, "privacy_", "classes_", "coef_", "intercept_", "n_iter_")
            return self

    @available_if(lambda self: hasattr(vars(self).get("estimator_", self.estimator), "score"))  # type: ignore[untyped-decorator]
    @own_state()
    def score(self, X: object, y: object, sample_weight: object = None) -> float:
        """Score of the fitted estimator on rows and their labels or targets."""
        check_is_fitted(self)
        return float(self.estimator_.score(X, y, sample_weight=sample_weight))

    def __sklearn_clone__(self) -> "WithPublicRows":
        return type(self)(clone(self.estimator), self.X_pub, self.y_pub)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        if isinstance(self.estimator, BaseEstimator):
            inner = get_tags(self.estimator)
            for name in ("estimator_type", "classifier_tags", "regressor_tags", "input_tags", "target_tags"):
                setattr(tags, name, getattr(inner, name))
        return tags


def check_routing(estimator: BaseEstimator, name: str = "X_pub") -> None:
    """Refuse public rows or groups for a Pipeline without metadata routing, which does not pass them on."""
    if getattr(estimator, "_sets_routing", False):
        return
    if isinstance(estimator, Pipeline) and not sklearn.get_config()["enable_metadata_routing"]:
        then = " and pass transform_input=['X_pub'] to the Pipeline" if name == "X_pub" else ""
        raise ValueError(
            f"{name} reaches the steps of a Pipeline only with metadata routing; make it by "
            f"skmixdp.private_pipeline(...), or call sklearn.set_config(enable_metadata_routing=True){then}."
        )
