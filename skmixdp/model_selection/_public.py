"""Public rows in tools of scikit-learn: as parameters that are not split, in scores, and in an estimator."""

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import sklearn
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, MetaEstimatorMixin, clone, is_classifier
from sklearn.metrics import check_scoring
from sklearn.model_selection import check_cv
from sklearn.pipeline import Pipeline
from sklearn.utils import get_tags
from sklearn.utils.metaestimators import available_if
from sklearn.utils.parallel import Parallel, delayed
from sklearn.utils.validation import check_is_fitted

from .._utils.frames import n_rows_of, some_rows
from .._utils.process import own_state, public_code
from .._utils.validation import copy_fitted, is_empty, join_rows, public_sources

Array = NDArray[Any]
Indices = NDArray[np.intp]


def public_params(X_pub: object, y_pub: object) -> dict[str, Any]:
    """Public rows as keyword arguments that cross-validation does not split.

    scikit-learn's model selection takes the training rows of a fold from every argument that is as long as
    ``X``. With as many public rows as private ones, each fit would silently lose some public rows. A tuple
    of one array has length 1, so it is passed whole, and ``Pipeline(transform_input=["X_pub"])`` transforms
    what is in it.

    Parameters
    ----------
    X_pub : array-like of shape (n_pub, n_features), or tuple of such
        Public rows: one array, or a tuple of several sources.
    y_pub : array-like of shape (n_pub,), or tuple of such
        Labels of the public rows, in the same form.

    Returns
    -------
    dict
        ``{"X_pub": (X_pub,), "y_pub": (y_pub,)}``, for ``fit(X, y, **...)`` or for
        ``cross_val_score(..., params=...)``. Tuples of several sources are returned as they are.

    Raises
    ------
    ValueError
        If one of the two is missing, or if they hold different numbers of sources.

    Notes
    -----
    *Guarantee*: nothing here sees a private row. Each fit of a search spends the estimator's
    budget, and each score on private rows is a release that no budget accounts for.

    A tuple of exactly as many sources as there are private rows would itself be split, and the
    fits would fail. Join the sources into one array in that case.

    Examples
    --------
    >>> import numpy as np
    >>> from skmixdp.model_selection import public_params
    >>> params = public_params(np.eye(3), [0, 1, 2])
    >>> len(params["X_pub"]), params["y_pub"]
    (1, ([0, 1, 2],))
    """
    rows, labels = public_sources(X_pub, y_pub)
    return {"X_pub": rows, "y_pub": labels}


@dataclass(eq=False, repr=False)
class PublicScorer:
    """A scorer of :func:`public_score` that scores its own public rows, and no others."""

    X: Any
    y: Array
    scoring: Any

    @public_code()
    def __call__(self, estimator: BaseEstimator, X: object = None, y: object = None) -> float:
        """Score of a fitted estimator on the public rows; ``X`` and ``y`` are ignored."""
        return float(check_scoring(estimator, scoring=self.scoring)(estimator, self.X, self.y))

    def __repr__(self) -> str:
        return f"public_score(<{len(self.y)} public rows>, scoring={self.scoring!r})"


def public_score(X_pub: object, y_pub: object, *, scoring: object = None) -> PublicScorer:
    """A scorer for scikit-learn's searches that scores on public rows and ignores private ones.

    Parameters
    ----------
    X_pub : array-like of shape (n_pub, n_features), or tuple of such
        Public rows that take part in no fit.
    y_pub : array-like of shape (n_pub,), or tuple of such
        Their labels or targets.
    scoring : str, callable or None, default=None
        Name of a scikit-learn metric, a scorer, or None for the estimator's own ``score``.

    Returns
    -------
    PublicScorer
        To be passed as ``scoring=``: ``scorer(estimator, X, y)`` is the score on the public rows.

    Raises
    ------
    ValueError
        If rows or labels are missing, or if their numbers differ.

    Notes
    -----
    *Guarantee*: the score costs no privacy. Each fit spends its own budget. Give ``GridSearchCV`` one split
    that trains on all private rows, ``cv=[(range(len(X)), [0])]``: there is then one fit for each
    candidate, and one more at the end unless ``refit=False``.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.dummy import DummyClassifier
    >>> from skmixdp.model_selection import public_score
    >>> scorer = public_score(np.zeros((4, 1)), [0, 1, 1, 1])
    >>> scorer(DummyClassifier(strategy="constant", constant=1).fit([[0], [0]], [0, 1]))
    0.75
    """
    public = public_params(X_pub, y_pub)
    X = join_rows(public["X_pub"][0], public["X_pub"])
    y = np.concatenate([np.asarray(part) for part in public["y_pub"]])
    n_rows = n_rows_of(X)
    if len(y) != n_rows:
        raise ValueError(f"y_pub has {len(y)} labels and X_pub {n_rows} rows; pass one label for each row.")
    return PublicScorer(X, y, scoring)


def public_cross_val_score(
    estimator: BaseEstimator,
    X: object,
    y: object,
    X_pub: object,
    y_pub: object,
    *,
    cv: object = 5,
    scoring: object = None,
    n_jobs: int | None = None,
) -> Array:
    """Scores of a cross-validation over public rows; no private row is ever scored.

    Each fold of the public rows is scored by a fit on ALL private rows and the other folds.

    Parameters
    ----------
    estimator : estimator
        Estimator whose ``fit`` takes ``X_pub`` and ``y_pub``; a Pipeline of such needs metadata routing.
    X : array-like of shape (n_samples, n_features)
        PRIVATE rows.
    y : array-like of shape (n_samples,)
        Their labels or targets.
    X_pub : array-like of shape (n_pub, n_features), or tuple of such
        Public rows.
    y_pub : array-like of shape (n_pub,), or tuple of such
        Their labels or targets.
    cv : int, splitter or iterable, default=5
        How the public rows are split; an int stratifies by class for classifiers.
    scoring : str, callable or None, default=None
        Name of a scikit-learn metric, a scorer, or None for the estimator's own ``score``.
    n_jobs : int or None, default=None
        Number of fits at a time.

    Returns
    -------
    array of shape (n_folds,)
        One score for each fold.

    Notes
    -----
    *Guarantee*: the scores cost nothing beyond the fits, and there is a fit for each fold: all of them
    compose. A ledger in the estimator is charged for each.
    """
    scorer = public_score(X_pub, y_pub, scoring=scoring)
    splitter = check_cv(cv, scorer.y, classifier=is_classifier(estimator))

    jobs = (
        delayed(_fit_and_score)(clone(estimator), X, y, scorer, train, test)
        for train, test in splitter.split(np.zeros(len(scorer.y)), scorer.y)
    )
    # Otherwise joblib writes the private rows to files that others can read.
    return np.array(Parallel(n_jobs=n_jobs, max_nbytes=None)(jobs))


def _fit_and_score(
    estimator: BaseEstimator, X: Any, y: Any, public: PublicScorer, train: Indices, test: Indices
) -> float:
    rows, held_out = ((some_rows(public.X, part), public.y[part]) for part in (train, test))
    estimator.fit(X, y, **public_params(*rows))
    return PublicScorer(*held_out, public.scoring)(estimator)


def hold_out(y: Array, fraction: float, *, stratify: bool) -> tuple[Indices, Indices]:
    """Sorted row numbers to fit on, and to score on: a ``fraction`` of each class with two rows or more."""
    by_class = stratify and y.ndim == 1  # rows with several labels are one class
    groups = [np.flatnonzero(y == label) for label in np.unique(y)] if by_class else [np.arange(len(y))]
    test = []
    for group in groups:
        n = min(max(round(fraction * len(group)), 1), len(group) - 1)
        test.append(group[((np.arange(n) + 0.5) * len(group) / max(n, 1)).astype(np.intp)])
    held_out = np.sort(np.concatenate(test))
    return np.setdiff1d(np.arange(len(y)), held_out), held_out


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
