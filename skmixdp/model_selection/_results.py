"""What a search may show of its trials, and what it states."""

from copy import deepcopy
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.stats import rankdata
from sklearn.utils import get_tags
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_is_fitted

from ..privacy import SearchReport, TrialLaw
from ._plan import SearchPlan
from ._rows import Rows

Array = NDArray[Any]

_SECRET = "time, logs and memory= tell how many trials there were, which must stay secret"


def best_of(scores: list[float]) -> int:
    """Position of the first of the highest scores; what is not a number is lowest."""
    return int(np.argmax(np.where(np.isnan(scores), -np.inf, scores)))


def results_of(candidates: list[dict[str, Any]], scores: list[float]) -> dict[str, Any]:
    """``cv_results_`` of candidates with one score each, in the form of GridSearchCV.

    There are no times: how long a fit takes may depend on private rows.
    """
    results: dict[str, Any] = {}
    for name in sorted({name for candidate in candidates for name in candidate}):
        values = np.ma.MaskedArray(np.empty(len(candidates), dtype=object), mask=True)
        for i, candidate in enumerate(candidates):
            if name in candidate:
                values[i] = candidate[name]
        results[f"param_{name}"] = values
    tested = np.array(scores, dtype=np.float64)
    return {
        **results,
        "params": candidates,
        "split0_test_score": tested,
        "mean_test_score": tested,
        "std_test_score": np.zeros(len(tested)),
        "rank_test_score": rankdata(-np.nan_to_num(tested, nan=-np.inf), method="min").astype(np.int32),
    }


def report_of(
    search: Any,
    plan: SearchPlan,
    head: Any,
    rows: Rows,
    charge: Any,
    leaks: tuple[str, ...],
    *,
    private: bool,
) -> SearchReport:
    """State the whole; the winner's own report is told that it is not the whole.

    Parameters
    ----------
    search : PrivateSearchCV
        Of which ``delta`` is read.
    plan : SearchPlan
        What was done.
    head : estimator
        The private estimator of the winner, fitted.
    rows : Rows
        On which trials were run.
    charge : Charge or None
        What the ledger recorded.
    leaks : tuple of str
        Known leaks of the search; the winner may add its own.
    private : bool
        Whether the noise of all trials is secret. Trials that are not alike in this, or in the kind of
        noise, were refused, so the winner's kind is that of all.
    """
    inner, trials = head.privacy_, plan.trials
    random = isinstance(trials, TrialLaw)
    multiplier = rows.score_multiplier
    report = SearchReport(
        epsilon=plan.costs[plan.strategy],
        delta=float(search.delta),
        neighboring=plan.terms.neighboring,
        strategy=plan.strategy,
        n_trials=trials.mean if isinstance(trials, TrialLaw) else float(trials),
        distribution=trials.name if isinstance(trials, TrialLaw) else None,
        fit_epsilon=plan.fit_epsilon,
        noise_multiplier=plan.terms.trial_multiplier(plan.fit_epsilon),
        scoring="private" if rows.scorer is None else "public",
        score_noise=None if multiplier is None else multiplier / inner.n_private,
        refit=plan.terms.refit,
        costs=plan.costs,
        affordable=plan.affordable,
        n_private=inner.n_private,
        n_public=rows.n_public,
        n_held_out=rows.n_held_out,
        treated_as_public=(
            *inner.treated_as_public,
            "the candidates, and that they could be fitted",
        ),
        noise=inner.noise if private else "seeded",
        warnings=(*inner.warnings, _SECRET) if random else inner.warnings,
        leaks=tuple(dict.fromkeys((*leaks, *inner.leaks))),
        dataset=None if charge is None else charge.dataset,
        dataset_epsilon=None if charge is None else charge.budget,
        dataset_delta=None if charge is None else charge.delta,
        dataset_spent=None if charge is None else charge.spent,
    )
    part = f"one fit of a search; what was released is ({report.epsilon:.6g}, {search.delta:g})-private"
    head.privacy_ = replace(inner, warnings=(*inner.warnings, part), leaks=report.leaks)
    return report


def _of_winner(name: str, returned: str) -> Any:
    """A method of that name of the winner, where the winner, or else the estimator, has one."""

    def method(self: Any, X: Any) -> Any:
        check_is_fitted(self)
        return getattr(self.best_estimator_, name)(X)

    method.__name__ = name
    method.__qualname__ = f"BestEstimatorMixin.{name}"
    method.__doc__ = f"{returned} of the winner for rows (n_samples, n_features)."
    return available_if(lambda self: hasattr(getattr(self, "best_estimator_", self.estimator), name))(method)


class BestEstimatorMixin:
    """What a fitted search hands on to its winner."""

    estimator: Any
    best_estimator_: Any
    scorer_: Any

    def score(self, X: Any, y: Any = None) -> float:
        """Score of the winner on any rows; on private ones it is a release that no budget accounts for.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Rows.
        y : array-like of shape (n_samples,)
            Their labels or targets.

        Returns
        -------
        float
            By the metric in ``scoring``, or the estimator's own.
        """
        check_is_fitted(self)
        return float(self.scorer_(self.best_estimator_, X, y))

    predict = _of_winner("predict", "Predictions")
    predict_proba = _of_winner("predict_proba", "Class probabilities")
    predict_log_proba = _of_winner("predict_log_proba", "Logarithms of class probabilities")
    decision_function = _of_winner("decision_function", "Decision values")
    transform = _of_winner("transform", "Transformed rows")

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()  # type: ignore[misc]
        inner = get_tags(self.estimator)
        tags.estimator_type = inner.estimator_type
        tags.classifier_tags = deepcopy(inner.classifier_tags)
        tags.regressor_tags = deepcopy(inner.regressor_tags)
        tags.input_tags.sparse = inner.input_tags.sparse
        tags.non_deterministic = True
        return tags
