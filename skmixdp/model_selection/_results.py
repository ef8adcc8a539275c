"""Results and report of a search."""

from copy import deepcopy
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.stats import rankdata
from sklearn.utils import get_tags
from sklearn.utils.validation import check_is_fitted

from ..privacy import SearchReport, TrialLaw
from ._plan import SearchPlan
from ._rows import Rows
from ._with_public import delegated

Array = NDArray[Any]

_SECRET = "time, logs and memory= tell how many trials there were, which must stay secret"


def best_of(scores: list[float]) -> int:
    """Position of the first of the highest scores; NaN is lowest."""
    return int(np.argmax(np.where(np.isnan(scores), -np.inf, scores)))


def results_of(candidates: list[dict[str, Any]], scores: list[float]) -> dict[str, Any]:
    """``cv_results_`` of candidates with one score each, without times, which may depend on private rows."""
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
    """The report of the search; the report of the winner (``head``) is marked as a part of it."""
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
        unit=plan.unit,
        n_public=rows.n_public,
        n_held_out=rows.n_held_out,
        treated_as_public=(*inner.treated_as_public, "the candidates, and that they could be fitted"),
        noise=inner.noise if private else "seeded",
        warnings=(*inner.warnings, _SECRET) if random else inner.warnings,
        leaks=tuple(dict.fromkeys((*leaks, *inner.leaks))),
        dataset=None if charge is None else charge.dataset,
        dataset_epsilon=None if charge is None else charge.budget,
        dataset_delta=None if charge is None else charge.delta,
        dataset_spent=None if charge is None else charge.spent,
        dataset_purpose=None if charge is None else charge.purpose,
    )
    part = f"one fit of a search; what was released is ({report.epsilon:.6g}, {search.delta:g})-private"
    head.privacy_ = replace(inner, warnings=(*inner.warnings, part), leaks=report.leaks)
    return report


class BestEstimatorMixin:
    """Methods of a fitted search that call those of its best estimator."""

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

    predict = delegated("predict", "best_estimator_", "Predictions of the winner")
    predict_proba = delegated("predict_proba", "best_estimator_", "Class probabilities of the winner")
    predict_log_proba = delegated(
        "predict_log_proba", "best_estimator_", "Logarithms of the winner's class probabilities"
    )
    decision_function = delegated("decision_function", "best_estimator_", "Decision values of the winner")
    transform = delegated("transform", "best_estimator_", "Transformed rows of the winner")

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()  # type: ignore[misc]
        inner = get_tags(self.estimator)
        tags.estimator_type = inner.estimator_type
        tags.classifier_tags = deepcopy(inner.classifier_tags)
        tags.regressor_tags = deepcopy(inner.regressor_tags)
        tags.input_tags.sparse = inner.input_tags.sparse
        tags.non_deterministic = True
        return tags
