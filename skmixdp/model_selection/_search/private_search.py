"""A search over parameters within one privacy budget."""

from contextlib import ExitStack
from copy import deepcopy
from dataclasses import KW_ONLY, dataclass, replace
from functools import partial
from typing import Any, ClassVar

import joblib
import numpy as np
from scipy.stats import rankdata
from sklearn.base import BaseEstimator, MetaEstimatorMixin
from sklearn.metrics import check_scoring
from sklearn.utils import get_tags
from sklearn.utils.parallel import Parallel, delayed
from sklearn.utils.validation import check_is_fitted

from ..._engine.transaction import Transaction, charged
from ..._utils.process import own_state, progress_bar, public_code
from ..._utils.validation import check_params, copy_fitted, is_empty, refuse_arguments
from ...preprocessing import check_pipeline
from ...privacy import LedgerDataset, SearchReport
from ...privacy.accounting.budgets import Budget
from ...privacy.accounting.selection import SearchTerms, TrialLaw
from ...privacy.noise import warn_of_seed
from ...privacy.notebook import GuaranteeBoxMixin
from ...privacy.units import unit_of
from .._public import DelegatingMixin, check_routing, delegated
from .plan import ALLOWED, Candidates, SearchPlan, check_head, make_plan
from .resume import Progress, interrupted_plan, progress_of
from .trials import (
    SearchData,
    draw_trials,
    fitted_side_by_side,
    head_of,
    is_seeded,
    metric_of,
    rows_of,
    run_secret_trial,
    run_trial,
    trial_of,
    verbosity_of,
    with_candidate,
)
from .warnings import Key, quiet, recorded, show

#: What is shown in place of a bar.
_NO_BAR = "PrivateSearchCV is running; it shows no bar, since the number of its trials stays secret."

_SECRET = "time, logs and memory= tell how many trials there were, which must stay secret"

#: Parameters that the cache key leaves out.
_NOT_IN_KEY = frozenset({"ledger", "memory", "n_jobs", "verbose"})


@dataclass(eq=False, repr=False)
class PrivateSearchCV(DelegatingMixin, GuaranteeBoxMixin, MetaEstimatorMixin, BaseEstimator):  # type: ignore[misc]
    """Search over parameters with one privacy budget for all fits, all scores and the choice.

    It has the attributes and methods of ``GridSearchCV``. There are no folds: every trial is fitted to all
    private rows.

    Parameters
    ----------
    estimator : estimator
        A private estimator of this library, or a Pipeline that ends in one. The search sets its ``epsilon``
        and ``delta``.
    param_grid : dict or list of dict
        Maps parameters to lists of values, or to distributions with ``rvs``.
    epsilon : float, default=1.0
        Privacy budget of the whole search.
    delta : float, default=1e-5
        The guarantee's delta, well below 1/n.
    scoring : "private", "public", str or callable, default="private"
        ``"private"`` calls ``private_score``: a noisy accuracy on the private rows, or the noisy closeness of
        a regression. ``"public"`` keeps some public rows out of the fits, and calls the estimator's ``score``
        on them. The name of a metric, or a scorer, selects another score on these rows.
    score_share : float, default=0.05
        Fraction of each trial's squared budget (``mu**2``) that a noisy score takes.
    holdout : float, default=0.2
        Share of each class's public rows that is kept for scoring: at least one row, and not all.
    strategy : {"auto", "grid", "random"}, default="auto"
        ``"grid"`` tries every candidate, and releases all scores. ``"random"`` tries a secret random number
        of randomly drawn candidates, and releases only the best. ``"auto"`` takes the one that leaves more
        of the budget to each fit.
    n_trials : float or None, default=None
        Mean of the random number of trials, which is geometrically distributed. If ``param_grid`` has
        distributions, also the number of candidates that ``"grid"`` tries. None is the size of the grid, or
        10 for distributions.
    n_jobs : int or None, default=None
        Number of trials that run at a time. Each process gets a copy of the rows in its memory; none is
        written to a file.
    memory : str, Path, joblib.Memory or None, default=None
        Folder on a local disk that keeps an interrupted search, which a call with the same input resumes
        without a second charge. Until it ends, the search has a folder there that only its owner can read,
        with unreleased results and a hash of the rows; an interruption leaves it there, so protect it.
    ledger : LedgerDataset or None, default=None
        The ledger entry of the data set in ``X``, such as ``PrivacyLedger("ledger.sqlite")["patients"]``.
        The whole search is charged once, before the first trial.
    random_state : None, int or RandomState, default=None
        None is private. A seed here or in the estimator makes the search reproducible and NOT private: a
        NotPrivateWarning, the report and the ledger say so. If neither has a seed, candidates with a seed
        are refused.
    verbose : int, default=0
        1 shows a progress bar at once, in any output. 0 shows it on terminals after 2 seconds. A random
        search shows none, since it would count the trials.

    Attributes
    ----------
    best_estimator_ : estimator
        The fitted estimator of the best trial.
    best_params_, best_score_, best_index_
        Its parameters, its score, and its index in ``cv_results_``.
    cv_results_ : dict of arrays
        Parameters and scores: of all candidates for ``"grid"``, of the best trial alone for ``"random"``.
        It holds no times.
    privacy_ : SearchReport
        The guarantee of the whole search, the epsilon of one fit, and what each strategy costs.
    scorer_ : callable
        The scorer that :meth:`score` calls.
    n_splits_ : int
        Always 1.
    classes_, n_features_in_, feature_names_in_
        Those of ``best_estimator_``.

    Notes
    -----
    *Guarantee*: ``best_estimator_``, ``cv_results_`` and everything else that the fitted search holds are
    together (epsilon, delta)-differentially private in the rows of ``X, y``, or in the persons of ``groups``.
    The charge comes after the input of every candidate was checked, and before anything is released. Fits
    must be full-batch with Gaussian noise. Others are refused.

    A random search shows only its best trial: no progress, and no warnings or errors of other trials. A
    trial that fails after the charge is never chosen. The guarantee does not cover what a step or a metric
    of your own prints, logs or writes, nor the time that the search takes.

    References
    ----------
    Papernot and Steinke 2022, "Hyperparameter Tuning with Renyi Differential Privacy", Theorem 2.

    Examples
    --------
    >>> from sklearn.datasets import load_digits
    >>> from skmixdp import MixedDPLogisticRegression
    >>> from skmixdp.model_selection import PrivateSearchCV
    >>> X, y = load_digits(return_X_y=True)
    >>> grid = {"algorithm": ["adamix", "noisy-gd"]}
    >>> search = PrivateSearchCV(MixedDPLogisticRegression(), grid, epsilon=1.0, strategy="grid")
    >>> search = search.fit(X[100:1400], y[100:1400], X_pub=X[:100], y_pub=y[:100])
    >>> 0.999 < search.privacy_.epsilon <= 1 and search.privacy_.fit_epsilon < 0.71
    True
    >>> bool(search.score(X[1400:], y[1400:]) > 0.8)
    True
    """

    # Routed to fit by default, without set_fit_request, as for the estimators.
    __metadata_request__fit: ClassVar = {"X_pub": True, "y_pub": True, "groups": True, "X_unlabeled": True}
    _fitted: ClassVar[str] = "best_estimator_"

    estimator: Any
    param_grid: Any
    _: KW_ONLY
    epsilon: float = 1.0
    delta: float = 1e-5
    scoring: Any = "private"
    score_share: float = 0.05
    holdout: float = 0.2
    strategy: str = "auto"
    n_trials: float | None = None
    n_jobs: int | None = None
    memory: Any = None
    ledger: Any = None
    random_state: Any = None
    verbose: int = 0

    def fit(
        self,
        X: object,
        y: object = None,
        X_pub: object = None,
        y_pub: object = None,
        groups: object = None,
        X_unlabeled: object = None,
        **unsupported: object,
    ) -> "PrivateSearchCV":
        """Run the search, and keep the best estimator.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            PRIVATE rows.
        y : array-like of shape (n_samples,)
            Labels of the private rows.
        X_pub : array-like of shape (n_pub, n_features), tuple of such, or None
            Public rows: one array, or a tuple of several sources.
        y_pub : array-like of shape (n_pub,), tuple of such, or None
            Labels of the public rows.
        groups : array-like of shape (n_samples,) or None, default=None
            Ids of the persons whose rows these are. All fits and noisy scores, and so the guarantee, are then
            for all rows of one person.
        X_unlabeled : array-like of shape (n_unlabeled, n_features), tuple of such, or None, default=None
            Public rows without labels, for all fits of a head that takes them.

        Returns
        -------
        self : PrivateSearchCV
            Fitted search.

        Raises
        ------
        ValueError, TypeError
            For bad input, before any noise is drawn or budget charged.
        BudgetExceededError
            If the ledger's budget does not cover the search; nothing is released.
        RuntimeError
            If every trial of a random search failed. The budget is then spent. Also if another process runs
            the same search.
        """
        with own_state():
            arguments = ("X", "y", "X_pub", "y_pub", "groups", "X_unlabeled")
            refuse_arguments(self, unsupported, arguments, "pass public rows alone")
            check_params(self, ALLOWED)
            candidates = Candidates(self.param_grid)
            prefix, head = head_of(self.estimator)
            for name, value in (("X_pub", X_pub), ("groups", groups), ("X_unlabeled", X_unlabeled)):
                if not is_empty(value):
                    check_routing(self.estimator, name)
            check_head(head, prefix, candidates.names, self.scoring)
            warn_of_seed(self.random_state, head.random_state)
            with public_code():
                scorer = check_scoring(self.estimator, scoring=metric_of(self.scoring))
            rows = rows_of(self, X, y, X_pub, y_pub, groups, X_unlabeled, head)
            share = self.score_share if rows.scorer is None else 0.0
            plan = make_plan(
                candidates,
                SearchTerms(self.delta, head.neighboring, head.noise, share),
                epsilon=self.epsilon,
                strategy=self.strategy,
                n_trials=self.n_trials,
                unit=unit_of(groups),
            )
            rows = replace(rows, score_multiplier=plan.terms.score_multiplier(plan.fit_epsilon))
            key = self._key(X, y, X_pub, y_pub, groups, X_unlabeled)
            transaction = Transaction(
                Budget(self.epsilon, self.delta, None, None, head.neighboring, head.noise),
                f"PrivateSearchCV of {type(head).__name__}",
                self.ledger,
                self.random_state,
                seeded=is_seeded(self),
                event=plan.terms.event(plan.trials, plan.fit_epsilon),
                unit=plan.unit,
            )
            with progress_of(self.memory, key) as progress, ExitStack() as charge:
                shown: set[Key] = set()
                drawn, transaction.charge = interrupted_plan(self, progress)
                if drawn is None:
                    drawn = draw_trials(self, plan, candidates, rows, transaction, shown)
                    progress.save(drawn)
                token, tried, seeds, transaction.leaks = drawn
                if isinstance(self.ledger, LedgerDataset):
                    transaction.key = token
                with progress.ended_by_errors():
                    charge.enter_context(charged([transaction]))
                trials = [(trial_of(self, plan, *pair), rows) for pair in zip(tried, seeds, strict=True)]
                outcomes, caught = self._run(plan, token, trials, progress)
                # A secret trial that failed has no score, and loses to any other.
                succeeded = [i for i, outcome in enumerate(outcomes) if outcome is not None]
                scores = [outcomes[i][0] for i in succeeded]
                if not succeeded:
                    progress.finish()
                    raise RuntimeError(
                        "every trial failed, so there is no result, and the budget is spent all the same; "
                        "why stays secret, so fit the candidates to rows that are public to find out."
                    )
                # The first of the highest scores; NaN counts as lowest.
                winner = succeeded[int(np.argmax(np.where(np.isnan(scores), -np.inf, scores)))]
                _, best, winner_warnings = outcomes[winner]
                caught = winner_warnings if plan.strategy == "random" else caught
                progress.finish()
            if plan.strategy == "random":  # the number of trials and the other ones stay secret
                best.set_params(**verbosity_of(with_candidate(self.estimator, tried[winner], {})))
                tried, scores, winner = [tried[winner]], [outcomes[winner][0]], 0
            self.cv_results_ = results_of(tried, scores)
            self.best_index_ = winner
            self.best_params_, self.best_score_ = tried[winner], scores[winner]
            self.best_estimator_ = best
            self.scorer_ = scorer
            self.n_splits_ = 1
            self.multimetric_ = False
            report = report_of(transaction, plan, head_of(best)[1], rows)
            self.privacy_ = report
            copy_fitted(self, best, "classes_")
            # Shown last: if a filter turns a warning into an error, the charged result is not lost.
            show(caught, shown)
            return self

    @own_state()
    def score(self, X: object, y: object = None) -> float:
        """Score of the winner on any rows. A score on private rows is a release that no budget accounts for.

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

    transform = delegated("transform", "Transformed rows")

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        inner = get_tags(self.estimator)
        tags.estimator_type = inner.estimator_type
        tags.classifier_tags = deepcopy(inner.classifier_tags)
        tags.regressor_tags = deepcopy(inner.regressor_tags)
        tags.input_tags.sparse = inner.input_tags.sparse
        tags.non_deterministic = True
        return tags

    def _known_leaks(self) -> tuple[str, ...]:
        return check_pipeline(self).in_words("leak")

    def _run(
        self, plan: SearchPlan, token: str, trials: list[Any], progress: Progress
    ) -> tuple[list[Any], list[Warning]]:
        """Outcomes and warnings of trials, from the cache or run; None for a secret one that failed."""
        with quiet(), recorded() as together, progress.ended_by_errors():
            # Sums of shared passes have other last bits, which would show that there are several trials.
            if self.memory is None and self.n_jobs in (None, 1) and plan.strategy == "grid":
                trials = fitted_side_by_side(trials)
            cached = progress.cached(run_trial, ["estimator", "rows"])
            is_secret = plan.strategy == "random"
            run = partial(run_secret_trial, cached) if is_secret else cached
            jobs = (delayed(run)(token, number, *trial) for number, trial in enumerate(trials))
            # verbose=0, since messages of joblib would count the trials. max_nbytes=None, since joblib would
            # otherwise write the rows to files, which others can read and which stay if its processes are
            # killed.
            parallel = Parallel(n_jobs=self.n_jobs, return_as="generator", verbose=0, max_nbytes=None)
            results = parallel(jobs)
            # A progress bar would count the trials, whose number is secret.
            options = {"total": len(trials), "desc": type(self).__name__, "unit": "fit"}
            hidden = _NO_BAR if is_secret else None
            outcomes = list(progress_bar(results, verbose=self.verbose, hidden=hidden, **options))
        caught = [warning for outcome in outcomes if outcome is not None for warning in outcome[2]]
        return outcomes, [*together, *caught]

    def _key(self, *rows: object) -> str:
        """Cache key, which is equal for equal parameters and rows."""
        if self.memory is None:
            return ""
        params = self.get_params(deep=False)
        settings = {name: value for name, value in params.items() if name not in _NOT_IN_KEY}
        return str(joblib.hash((settings, repr(self.ledger), rows)))


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
    multiplier, n_fitted = rows.score_multiplier, 0 if rows.public is None else len(rows.public[1])
    n_held_out = 0 if rows.scorer is None else len(rows.scorer.y)
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
        n_public=n_fitted + n_held_out,
        n_held_out=n_held_out,
        treated_as_public=(*inner.treated_as_public, "the candidates, and that they could be fitted"),
        noise=inner.noise if transaction.is_private else "seeded",
        warnings=(*inner.warnings, _SECRET) if isinstance(trials, TrialLaw) else inner.warnings,
        leaks=tuple(dict.fromkeys((*transaction.leaks, *inner.leaks))),
    )
    part = f"one fit of a search; what was released is ({report.epsilon:.6g}, {report.delta:g})-private"
    head.privacy_ = replace(inner, warnings=(*inner.warnings, part), leaks=report.leaks)
    return report
