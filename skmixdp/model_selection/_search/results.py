"""Results and report of a search."""

from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.stats import rankdata

from ..._engine.transaction import Transaction
from ...privacy import SearchReport
from ...privacy.accounting.selection import TrialLaw
from .plan import SearchPlan
from .rows import SearchData

Array = NDArray[Any]

_SECRET = "time, logs and memory= tell how many trials there were, which must stay secret"


def best_of(scores: list[float]) -> int:
    """Position of the first of the highest scores; NaN counts as lowest."""
    return int(np.argmax(np.where(np.isnan(scores), -np.inf, scores)))


def results_of(candidates: list[dict[str, Any]], scores: list[float]) -> dict[str, Any]:
    """``cv_results_`` of candidates with one score each; no times, since they may depend on private rows."""
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


def report_of(transaction: Transaction, plan: SearchPlan, head: Any, rows: SearchData) -> SearchReport:
    """The report of the search, of which the report of the winner (``head``) is marked as a part."""
    inner, trials = head.privacy_, plan.trials
    multiplier = rows.score_multiplier
    report = transaction.search_report(
        epsilon=plan.costs[plan.strategy],
        strategy=plan.strategy,
        n_trials=trials.mean if isinstance(trials, TrialLaw) else float(trials),
        fit_epsilon=plan.fit_epsilon,
        noise_multiplier=plan.terms.trial_multiplier(plan.fit_epsilon),
        scoring="private" if rows.scorer is None else "public",
        score_noise=None if multiplier is None else multiplier / inner.n_private,
        costs=plan.costs,
        affordable=plan.affordable,
        n_private=inner.n_private,
        unit=plan.unit,
        n_public=rows.n_public,
        n_held_out=rows.n_held_out,
        treated_as_public=(*inner.treated_as_public, "the candidates, and that they could be fitted"),
        noise=inner.noise if transaction.is_private else "seeded",
        warnings=(*inner.warnings, _SECRET) if isinstance(trials, TrialLaw) else inner.warnings,
        leaks=tuple(dict.fromkeys((*transaction.leaks, *inner.leaks))),
    )
    part = f"one fit of a search; what was released is ({report.epsilon:.6g}, {report.delta:g})-private"
    head.privacy_ = replace(inner, warnings=(*inner.warnings, part), leaks=report.leaks)
    return report
