"""A classifier with a decision threshold from private rows that its fit has not seen."""

from dataclasses import KW_ONLY, dataclass, replace
from typing import Any, ClassVar

import numpy as np
import pandas as pd
import scipy.sparse as sp
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, ClassifierMixin, MetaEstimatorMixin, clone
from sklearn.model_selection import train_test_split
from sklearn.pipeline import Pipeline
from sklearn.utils import get_tags
from sklearn.utils.validation import check_consistent_length, check_is_fitted

from ..._engine.transaction import Transaction, same_dataset
from ..._rows import check_classes, check_labels, check_private_rows, encode_labels, groups_of
from ..._utils.frames import n_rows_of, some_rows
from ..._utils.models import last_step, report_of
from ..._utils.process import own_state, warn
from ..._utils.validation import (
    PROBABILITY,
    check,
    check_finite,
    copy_fitted,
    is_empty,
    refuse_arguments,
    shown,
    sources_of,
)
from ...preprocessing import check_pipeline
from ...preprocessing._leaks._rules import kinds, states_budget
from ...privacy import PrivacyReport
from ...privacy.units import Units, units_of
from .._public import public_params
from .._with_public import DelegatingMixin, check_routing
from .private_evaluation import private_evaluation
from .scores import check_goal

#: Upper end of the random seeds for the split.
_SEEDS = 2**32

#: Endings of names of steps that may take missing values or text.
_TAKES_MORE = ("Encoder", "Imputer", "ColumnTransformer", "FeatureUnion", "FunctionTransformer")

#: Sources of noise, from weak to strong.
_NOISES = ("seeded", "cryptographic", "discrete")


@dataclass(eq=False, repr=False)
class PrivateThresholdClassifier(DelegatingMixin, MetaEstimatorMixin, ClassifierMixin, BaseEstimator):  # type: ignore[misc]
    """A binary classifier whose threshold comes from one noisy histogram of held-out PRIVATE rows.

    It replaces scikit-learn's ``TunedThresholdClassifierCV``, which scores private rows without noise. A part
    of the rows is kept out of the fit, and :func:`private_evaluation` releases their scores by label. The
    threshold follows from that release.

    Parameters
    ----------
    estimator : classifier
        A private classifier of this library, or a Pipeline that ends in one and has no other budget. A clone
        is fitted. Ensembles of private classifiers are refused, since their budgets add up.
    goal : {"f1", "precision", "recall", "cost"}, default="f1"
        What the threshold is chosen for, see :meth:`ScoreEvaluation.threshold`.
    value : float, pair of floats or None, default=None
        The wanted precision or recall, or the costs of a false positive and of a false negative.
    epsilon : float, default=1.0
        Privacy budget of the histogram. The fit of the estimator spends its own.
    delta : float, default=1e-5
        The delta of the guarantee. Choose it well below 1/n.
    holdout : float or "prefit", default=0.2
        Share of the rows, or of the persons, that the fit does not see. They are drawn at random, and never
        by their labels. ``"prefit"`` takes a fitted estimator as it is, and all rows for the threshold.
    neighboring : {"add_or_remove_one", "zero_out", "replace_one"}, default="add_or_remove_one"
        Which data sets count as neighbours. The number of private rows is always treated as public.
    noise : {"float", "discrete"}, default="float"
        As for :func:`private_evaluation`.
    ledger : LedgerDataset or None, default=None
        The ledger entry of the data set in ``X``, charged for the histogram. The estimator's own ``ledger``
        is charged for its fit.
    random_state : None, int or RandomState, default=None
        None is private. A seed makes the noise of the histogram known: a NotPrivateWarning and the report say
        so.

    Attributes
    ----------
    estimator_ : classifier
        The fitted classifier.
    threshold_ : float
        Probability of ``classes_[1]`` from which it is predicted. It reaches a wanted precision or recall
        about: ``evaluation_.at(threshold_)`` has the metrics with their intervals.
    evaluation_ : ScoreEvaluation
        The released histogram, with its metrics.
    privacy_ : PrivacyReport
        The guarantee of fit and histogram, if no row, or no person, is in both: that of the one with the
        larger epsilon.
        The histogram's own is ``evaluation_.privacy``, and that of the fit ``estimator_.privacy_``.
    classes_, n_features_in_, feature_names_in_
        Those of the fitted classifier.

    Notes
    -----
    *Guarantee*: the threshold and the evaluation are (epsilon, delta)-differentially private in the held-out
    rows, given the classifier. The split does not depend on the rows, and no row is in both parts. So each
    row is covered by the guarantee of its part alone: that of the fit, or that of the histogram. Both have
    the same delta and neighbours. With ``groups``, persons take the place of rows, and all rows of a person
    are in one part. A ledger cannot know of the split, and adds the two.

    The metrics of ``evaluation_`` are those of held-out rows. At ``threshold_`` they are a little optimistic,
    since it was chosen by the same counts.

    Examples
    --------
    >>> from sklearn.datasets import make_classification
    >>> from skmixdp import MixedDPLogisticRegression
    >>> from skmixdp.model_selection import PrivateThresholdClassifier
    >>> X, y = make_classification(9000, 10, n_informative=5, weights=[0.9], random_state=0)
    >>> head = MixedDPLogisticRegression(epsilon=1.0, classes=[0, 1])
    >>> clf = PrivateThresholdClassifier(head, goal="recall", value=0.8).fit(X[:8000], y[:8000])
    >>> bool(clf.predict(X[8000:])[y[8000:] == 1].mean() > 0.6)
    True
    """

    # Routed to fit by default, without set_fit_request, as for the estimators.
    __metadata_request__fit: ClassVar = {"X_pub": True, "y_pub": True, "groups": True}

    estimator: Any
    _: KW_ONLY
    goal: str = "f1"
    value: Any = None
    epsilon: float = 1.0
    delta: float = 1e-5
    holdout: float | str = 0.2
    neighboring: Any = "add_or_remove_one"
    noise: Any = "float"
    ledger: Any = None
    random_state: Any = None

    def fit(
        self,
        X: Any,
        y: Any = None,
        X_pub: object = None,
        y_pub: object = None,
        groups: Any = None,
        **unsupported: object,
    ) -> "PrivateThresholdClassifier":
        """Fit the classifier to one part of the rows, and choose the threshold by the other.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            PRIVATE rows in memory.
        y : array-like of shape (n_samples,)
            Labels of the private rows, of two classes.
        X_pub : array-like of shape (n_pub, n_features), tuple of such, or None
            Public rows for the fit of the estimator.
        y_pub : array-like of shape (n_pub,), tuple of such, or None
            Labels of the public rows.
        groups : array-like of shape (n_samples,) or None, default=None
            Ids of the persons whose rows these are. The guarantees of the fit and of the histogram are then
            for all rows of one person, and persons are held out, whatever their numbers of rows.

        Returns
        -------
        self : PrivateThresholdClassifier
            Fitted classifier.

        Raises
        ------
        ValueError, TypeError
            For bad input, or an estimator with several budgets. These, the rows, and the labels if their
            classes are declared or public, are checked before the fit.
        BudgetExceededError
            If a ledger does not allow the fit or the histogram. Nothing is charged if it does not allow the
            histogram alone, or after a fit of the same data set whose budget is an epsilon.
        """
        with own_state():
            refuse_arguments(
                self, unsupported, ("X", "y", "X_pub", "y_pub", "groups"), "pass public rows alone"
            )
            terms = {
                name: vars(self)[name] for name in ("epsilon", "delta", "neighboring", "noise", "ledger")
            }
            transaction = Transaction.of_release(type(self).__name__, **terms, random_state=self.random_state)
            check_goal(self.goal, self.value)
            check("holdout", self.holdout, PROBABILITY, "prefit")
            _check_two_classes(y, n_rows_of(X))
            _check_budgets(self.estimator)
            _check_terms(self)
            passed = {}
            if not (is_empty(X_pub) and is_empty(y_pub)):
                check_routing(self.estimator)
                passed = public_params(X_pub, y_pub)
            groups = groups_of(X, groups)
            units = units_of(groups, len(y), self.noise)
            if self.holdout == "prefit":
                check_is_fitted(self.estimator)
                leaks: tuple[str, ...] = ()
                fitted = self.estimator
            else:
                leaks = check_pipeline(self.estimator).in_words("leak", "uncounted")
                _check_rows(self.estimator, X)
                _check_known_labels(self.estimator, y, y_pub)
                _check_ledger(transaction, self.estimator, units.unit)
                seed = int(transaction.noise.uniform((1,))[0] * _SEEDS)
                split = {"test_size": self.holdout, "random_state": seed}
                if units.codes is None:
                    X_fit, X, y_fit, y = train_test_split(X, y, **split)
                else:
                    check_routing(self.estimator, "groups")
                    (X_fit, y_fit, own), (X, y, groups) = _split_persons(X, y, units, split)
                    passed["groups"] = own
                fitted = clone(self.estimator).fit(X_fit, y_fit, **passed)
            _check_number(fitted.classes_)
            report = report_of(last_step(fitted))
            if report is None:
                if self.holdout != "prefit":
                    leaks = leaks or (f"{type(fitted).__name__}: a fit to private rows that has no report",)
            elif report.unit != units.unit:
                raise ValueError(
                    f"the fit protects {shown(report.unit)} and the threshold {shown(units.unit)}, which no "
                    "report can state in one; pass the same groups to both."
                )
            else:
                leaks = tuple(dict.fromkeys((*leaks, *report.leaks)))
            released = private_evaluation(
                fitted, X, y, groups=groups, **terms, random_state=self.random_state
            )
            self.evaluation_ = replace(released, privacy=replace(released.privacy, leaks=leaks))
            self.privacy_ = _weaker(self.evaluation_.privacy, report, self.holdout == "prefit")
            self.threshold_, message = released.chosen(self.goal, self.value)
            self.estimator_ = fitted
            copy_fitted(self, fitted, "classes_")
        if message:
            warn(message)
        return self

    @own_state()
    def predict(self, X: object) -> NDArray[Any]:
        """Predicted classes (n_samples,): ``classes_[1]`` if its probability is ``threshold_`` or more."""
        check_is_fitted(self)
        positive = self.estimator_.predict_proba(X)[:, 1] >= self.threshold_
        return np.asarray(self.classes_[positive.astype(np.intp)])

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.classifier_tags.multi_class = False
        tags.input_tags.sparse = get_tags(self.estimator).input_tags.sparse
        tags.non_deterministic = True
        return tags


def _check_budgets(estimator: BaseEstimator) -> None:
    """Refuse budgets of other steps than the last one, whose report does not count them."""
    path, head = "", estimator
    while "FrozenEstimator" not in kinds(head) and (
        isinstance(head, Pipeline) or "WithPublicRows" in kinds(head)
    ):
        name, head = head.steps[-1] if isinstance(head, Pipeline) else ("estimator", head.estimator)
        path += f"{name}__"
    if "FrozenEstimator" in kinds(head):
        raise TypeError(
            "the estimator is frozen, and may have been fitted to the same rows; pass the fitted estimator "
            "itself, with holdout='prefit'."
        )
    inside = path if states_budget(head) else None
    for name, part in estimator.get_params().items():
        own = inside is not None and (f"{name}__".startswith(inside) or inside.startswith(f"{name}__"))
        if not own and (states_budget(part) or report_of(part) is not None):
            raise TypeError(
                f"{name} of the estimator has a budget that no report of a last step counts; pass a private "
                "estimator of this library, or a Pipeline whose last step alone has a budget."
            )


def _check_terms(owner: PrivateThresholdClassifier) -> None:
    """Refuse an estimator with another delta or other neighbours, since one guarantee cannot state both."""
    terms = {"delta": owner.delta, "neighboring": owner.neighboring}
    for path, value in owner.estimator.get_params().items():
        name = path.split("__")[-1]
        if name in terms and value != terms[name]:
            raise ValueError(
                f"{name}={terms[name]!r} differs from {path}={value!r} of the estimator; pass the same to "
                "both."
            )


def _check_ledger(transaction: Transaction, estimator: BaseEstimator, unit: str) -> None:
    """Refuse a histogram that the ledger would refuse after the fit, if the event of the fit is known."""
    account = getattr(transaction.ledger, "account", None)
    if account is None:
        return
    estimator = last_step(estimator)
    events = [transaction.budget.whole]
    if hasattr(estimator, "_check_parameters") and same_dataset(estimator.ledger, transaction.ledger):
        fit = estimator._check_parameters()
        events += [fit.whole] if fit.is_divisible else []
    for event in reversed(events):
        # Slightly less noise is more than enough: rounding must not refuse what the ledger would admit.
        event = replace(event, noise_multiplier=event.noise_multiplier * (1 + 1e-9))
        account = account.after(event, transaction.budget.neighboring, unit=unit)


def _split_persons(X: object, y: object, persons: Units, split: dict[str, Any]) -> tuple[Any, Any]:
    """Rows, labels and ids of the persons to fit to, and those of the persons held out."""
    check_consistent_length(X, y)
    # By index, so that the number of rows of one person does not affect who else is drawn.
    seen, _ = train_test_split(np.arange(persons.n_units), **split)
    own = np.isin(persons.codes, seen)
    ids = pd.Series(persons.codes, name=persons.unit)
    parts = [(some_rows(X, np.flatnonzero(part)), np.asarray(y)[part], ids[part]) for part in (own, ~own)]
    return parts[0], parts[1]


def _weaker(own: PrivacyReport, fit: Any, prefit: bool) -> Any:
    """The report with the larger epsilon, which holds for both, since they share no row or person."""
    if fit is None:
        part = "the threshold alone; the fit of the classifier has no report"
        return replace(own, warnings=(*own.warnings, part))
    first = max(own, fit, key=lambda report: report.epsilon)
    unit = "row" if own.unit == "row" else "person"
    part = (
        f"no {unit} is in both the fit, of epsilon {fit.epsilon:.6g}, and the threshold, of epsilon "
        f"{own.epsilon:.6g}"
    )
    # Without an exact mu of both releases, that of the first does not hold for both.
    exact = own.mu is not None and fit.mu is not None
    inexact = {} if exact or not isinstance(first, PrivacyReport) else {"mu": None}
    return replace(
        first,
        **inexact,
        n_private=own.n_private + fit.n_private,
        n_public=fit.n_public,
        treated_as_public=tuple(dict.fromkeys((*fit.treated_as_public, *own.treated_as_public))),
        warnings=(
            *dict.fromkeys((*fit.warnings, *own.warnings)),
            f"this holds only if {part}" if prefit else part,
        ),
        leaks=own.leaks,
        noise=min(own.noise, fit.noise, key=_NOISES.index),
    )


def _check_two_classes(y: object, n_rows: int) -> None:
    """Refuse PRIVATE labels that are not those of at most two classes."""
    labels = check_labels(y, "y", n_rows, "X")
    if len(np.unique(labels)) > 2:
        raise ValueError("y has more than two classes, and a threshold needs two; leave the threshold out.")


def _check_number(classes: Any) -> None:
    """Refuse other numbers of classes than two."""
    if len(classes) != 2:
        raise ValueError(
            f"the estimator has {len(classes)} classes; a threshold needs two, so list two in classes."
        )


def _check_known_labels(estimator: BaseEstimator, y: Any, y_pub: Any) -> None:
    """Refuse PRIVATE labels that are none of the declared or public classes, before rows are held out."""
    sources = [*estimator.get_params().items(), ("y_pub", y_pub)]
    passed = {name.split("__")[-1]: value for name, value in sources if not is_empty(value)}
    if "classes" in passed:
        source, classes = "classes", check_classes(passed["classes"])
    elif "y_pub" in passed:
        source, parts = "y_pub", sources_of(passed["y_pub"])
        classes = np.unique(np.concatenate([np.ravel(part) for part in parts]))
    else:
        return
    _check_number(classes)
    encode_labels(np.ravel(y), classes, "y", private=True, source=source)


def _check_rows(estimator: BaseEstimator, X: object) -> None:
    """Refuse PRIVATE rows that the fitted estimator cannot predict for, before some are held out."""
    # What a Pipeline takes depends on its steps: finite numbers, if none of them encodes or imputes.
    names = [type(part).__name__ for part in (estimator, *estimator.get_params().values())]
    if not any(name.endswith("Pipeline") for name in names):
        check_private_rows(clone(estimator), X)
    elif not any(name.endswith(_TAKES_MORE) for name in names):
        table = np.asarray(X.tocsr().data if sp.issparse(X) else X)  # type: ignore[attr-defined]
        check_finite(table.dtype.kind != "f" or np.all(np.isfinite(table)), "X")
