"""What a search states when it ends."""

from dataclasses import replace
from typing import Any

from ..privacy import SearchReport, TrialLaw
from ._search_plan import SearchPlan
from ._search_rows import Rows

_SECRET = "time, logs and memory= tell how many trials there were, which must stay secret"


def report_of(
    search: Any, plan: SearchPlan, head: Any, rows: Rows, charge: Any, *, private: bool
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
        dataset=None if charge is None else charge.dataset,
        dataset_epsilon=None if charge is None else charge.budget,
        dataset_delta=None if charge is None else charge.delta,
        dataset_spent=None if charge is None else charge.spent,
    )
    part = f"one fit of a search; what was released is ({report.epsilon:.6g}, {search.delta:g})-private"
    head.privacy_ = replace(inner, warnings=(*inner.warnings, part))
    return report
