"""The trials of a search: how they are drawn, checked, fitted and scored, and on which rows."""

import math
import uuid
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from itertools import chain
from typing import Any

import joblib
from sklearn.base import BaseEstimator, clone, is_classifier
from sklearn.pipeline import Pipeline

from ..._engine.transaction import Transaction
from ..._utils.frames import some_rows
from ..._utils.models import callbacks_of
from ..._utils.process import no_bars, public_code
from ..._utils.validation import is_empty, shown
from ...privacy import GaussianEvent
from ...privacy.accounting.events import Neighboring, Noise
from .._public import PublicScorer, hold_out, public_params, public_score
from .plan import SEEDS, Candidates, SearchPlan
from .warnings import Key, common, quiet, recorded, show

#: Parameters that a search needs to divide the budget of an estimator.
_NEEDED = frozenset({"epsilon", "delta", "neighboring", "noise", "ledger"})

#: Relative rounding error of the cost of a fit.
_ROUNDING = 1e-9


@dataclass(frozen=True, repr=False)
class SearchData:
    """Private rows, public rows to fit on, and how a trial is scored."""

    X: Any
    y: Any
    public: tuple[Any, Any] | None
    #: Without a scorer, a noisy sum of noise multiplier ``score_multiplier`` scores private rows.
    scorer: PublicScorer | None
    score_multiplier: float | None
    groups: Any = None
    #: Whether estimators have been fitted already, side by side.
    fitted: bool = False
    X_unlabeled: Any = None

    def fit(self, estimator: BaseEstimator) -> Any:
        """Fit an estimator on the rows, unless it was fitted with others."""
        return estimator if self.fitted else estimator.fit(self.X, self.y, **self.passed)

    @property
    def passed(self) -> dict[str, Any]:
        """Keyword arguments of a fit."""
        passed = {} if self.public is None else public_params(*self.public)
        more = {"groups": self.groups, "X_unlabeled": self.X_unlabeled}
        return passed | {name: value for name, value in more.items() if value is not None}

    def score(self, estimator: BaseEstimator) -> float:
        """The score by the scorer for public rows, or else by one noisy sum over the private rows."""
        if self.scorer is not None:
            return self.scorer(estimator)
        X, head = self.X, estimator
        while isinstance(head, Pipeline):
            X = head[:-1].transform(X) if len(head.steps) > 1 else X
            head = head.steps[-1][1]
        persons = {} if self.groups is None else {"groups": self.groups}
        return float(head.private_score(X, self.y, noise_multiplier=self.score_multiplier, **persons))


def metric_of(scoring: object) -> Any:
    """The metric that ``scoring`` names; None is the estimator's own."""
    return None if isinstance(scoring, str) and scoring in ("public", "private") else scoring


def rows_of(
    search: Any,
    X: object,
    y: object,
    X_pub: object,
    y_pub: object,
    groups: object,
    X_unlabeled: object,
    head: object,
) -> SearchData:
    """The rows of the trials."""
    public = None
    if not (is_empty(X_pub) and is_empty(y_pub)):
        joined = public_score(X_pub, y_pub)
        public = joined.X, joined.y
    everything = SearchData(X, y, public, None, None, groups, X_unlabeled=X_unlabeled)
    scoring = search.scoring
    if isinstance(scoring, str) and scoring == "private":
        if not hasattr(head, "private_score"):
            raise ValueError(
                f"scoring='private' needs noisy scores, which {type(head).__name__} does not have; "
                "pass scoring='public' and public rows."
            )
        return everything
    if public is None:
        raise ValueError(
            f"scoring={scoring!r} needs public rows to score on; pass X_pub and y_pub to fit, or "
            "scoring='private'."
        )
    train, test = hold_out(public[1], search.holdout, stratify=is_classifier(search.estimator))
    if len(test) == 0:
        raise ValueError(
            f"scoring={scoring!r} keeps public rows for scoring, and no class has two of them; pass more "
            "public rows, or scoring='private'."
        )
    rows, labels = public
    scorer = PublicScorer(some_rows(rows, test), labels[test], metric_of(scoring))
    return replace(everything, public=(some_rows(rows, train), labels[train]), scorer=scorer)


class Rehearsed(Exception):  # noqa: N818
    """Raised when a rehearsed fit reaches its first release; it holds the known leaks."""


@dataclass(frozen=True)
class Allowance:
    """Replaces the data set of a ledger in a trial: a fit may cost at most ``mu`` (Gaussian DP)."""

    # Nothing is recorded, since the whole search is charged at once.
    mu: float
    neighboring: Neighboring
    noise: Noise
    unit: str = "row"
    private: bool = field(default=True, kw_only=True)
    #: Whether each fit stops at its first release.
    rehearsal: bool = field(default=False, kw_only=True)

    def charge(
        self,
        event: object,
        *,
        neighboring: object,
        private: bool,
        leaks: tuple[str, ...],
        unit: str,
        **unused: object,
    ) -> None:
        """Refuse a fit that costs more, or that is not full batches of Gaussian noise as in the search."""
        if type(event) is not GaussianEvent or event.sampling_rate != 1:
            raise ValueError(
                f"a search cannot divide its budget into fits like {event!r}, only into full batches of "
                "Gaussian noise; pass batch_size=None and an algorithm other than ModelMix."
            )
        pairs = {"neighboring": (neighboring, self.neighboring), "noise": (event.noise, self.noise)}
        for name, (value, own) in pairs.items():
            if value != own:
                raise ValueError(
                    f"{name}={value!r} of a candidate differs from {name}={own!r} of the estimator; a search "
                    "needs one for all its fits."
                )
        if unit != self.unit:
            raise ValueError(
                f"the fit of a candidate protects {shown(unit)}, and the search {shown(self.unit)}; let the "
                "last step of the Pipeline request groups."
            )
        if private != self.private:
            raise ValueError(
                "random_state of a candidate is set, which would take the guarantee from the whole search; "
                "leave it at None, or pass random_state to PrivateSearchCV for a search that is reproducible "
                "and NOT private."
                if self.private
                else "random_state=None of a candidate differs from that of the estimator, which is set; "
                "give a seed to all of them, or to none for a search that is private."
            )
        if math.sqrt(event.n_steps) / event.noise_multiplier > self.mu * (1 + _ROUNDING):
            raise RuntimeError(f"a fit asked for {event!r}, more than was set aside: mu={self.mu:g}.")
        if self.rehearsal:
            raise Rehearsed(*leaks)


def head_of(estimator: BaseEstimator) -> tuple[str, Any]:
    """The private estimator (itself, or the last step of a Pipeline), and the prefix of its parameters."""
    prefix, head = "", estimator
    while isinstance(head, Pipeline):
        name, head = head.steps[-1]
        prefix += f"{name}__"
    if not (hasattr(head, "_fit_many") and set(head.get_params(deep=False)) >= _NEEDED):
        raise TypeError(
            f"estimator={shown(estimator)} must be a private estimator of this library, such as "
            "MixedDPLogisticRegression(), or a Pipeline that ends in one."
        )
    spending = {name for name in estimator.get_params() if name.split("__")[-1] == "epsilon"}
    if others := sorted(spending - {f"{prefix}epsilon"}):
        raise TypeError(
            f"{others[0]} of the estimator is a budget next to that of its last step, and a search divides "
            "only the latter; fit that step beforehand."
        )
    return prefix, head


@public_code()
def with_candidate(estimator: BaseEstimator, candidate: dict[str, Any], settings: dict[str, Any]) -> Any:
    """A clone of the estimator with the parameters of a candidate and the settings of its head."""
    trial = clone(estimator).set_params(**{name: clone(v, safe=False) for name, v in candidate.items()})
    prefix, head = head_of(trial)
    if record := vars(head).get("record_per_instance"):
        raise ValueError(
            f"record_per_instance={record!r} would record one trial and leave out the rest of the search; "
            "pass False, and record a fit of its own."
        )
    return trial.set_params(**{prefix + name: value for name, value in settings.items()})


def verbosity_of(estimator: BaseEstimator) -> dict[str, Any]:
    """The parameters ``verbose`` of an estimator and of its parts."""
    return {
        name: value for name, value in estimator.get_params().items() if name.split("__")[-1] == "verbose"
    }


def silenced(estimator: BaseEstimator) -> Any:
    """The estimator without prints, progress bars and callbacks, which would show the number of trials."""
    for part in (estimator, *estimator.get_params().values()):
        if callbacks_of(part):
            part.set_callbacks()
    shown = verbosity_of(estimator)
    return estimator.set_params(**{name: type(value)(0) for name, value in shown.items() if value})


def rehearse(estimator: BaseEstimator, rows: SearchData) -> tuple[str, ...]:
    """Run a fit up to its first release; return its known leaks."""
    try:
        rows.fit(estimator)
    except Rehearsed as stopped:
        return stopped.args
    raise RuntimeError(f"{estimator!r} was fitted without asking its ledger; a search cannot account for it.")


#: Score of a trial, the fitted estimator, and its warnings.
Outcome = tuple[float, Any, list[Warning]]


def run_trial(token: str, number: int, estimator: BaseEstimator, rows: SearchData) -> Outcome:
    """Fit and score one candidate; ``token`` and ``number`` identify the trial in a cache."""
    with no_bars(), recorded() as caught:
        rows.fit(estimator)
        prefix, _ = head_of(estimator)
        estimator.set_params(**{f"{prefix}ledger": None})
        score = rows.score(estimator)
    return score, estimator, caught


def run_secret_trial(run: Callable[..., Outcome], *trial: object) -> Outcome | None:
    """A trial whose failure stays secret: its outcome is then None."""
    try:
        return run(*trial)
    except Exception:  # an error would show that this candidate was tried
        return None


#: Last arguments of :func:`run_trial`: estimator and rows.
Trial = tuple[Any, SearchData]


def fitted_side_by_side(trials: list[Trial]) -> list[Trial]:
    """The trials, fitted in shared passes over the rows if all are heads without a Pipeline."""
    estimators = [estimator for estimator, _ in trials]
    if trials and all(hasattr(estimator, "_fit_many") for estimator in estimators):
        rows = trials[0][1]
        estimators[0]._fit_many(estimators, rows.X, rows.y, **rows.passed)
        trials = [(estimator, replace(rows, fitted=True)) for estimator, rows in trials]
    return trials


def draw_trials(
    search: Any,
    plan: SearchPlan,
    candidates: Candidates,
    rows: SearchData,
    transaction: Transaction,
    shown: set[Key],
) -> tuple[str, list[dict[str, Any]], list[int | None], tuple[str, ...]]:
    """Draw the trials and check them; return token, candidates, seeds and leaks."""
    noise, seeded = transaction.noise, search.random_state is not None
    tried = plan.draw(candidates, noise)
    seeds = [int(u * SEEDS) if seeded else None for u in noise.uniform((len(tried),))]
    # All candidates of a grid are checked, drawn or not: neither errors nor time depend on what was drawn.
    # Otherwise a fixed candidate comes first, so that bad input raises the same error for every draw.
    checked = candidates.settings or [candidates.at(0.0), *tried]
    warned, leaks = [], []
    with quiet():
        for candidate in {joblib.hash(setting): setting for setting in checked}.values():
            with recorded() as caught:
                leaks.append(rehearse(trial_of(search, plan, candidate, seeds[0], rehearsal=True), rows))
            warned.append(caught)
    if plan.strategy == "grid":
        show((warning for caught in warned for warning in caught), shown)
    elif candidates.settings:  # what all candidates have in common reveals none
        show(common(warned), shown)
    # Leaks of drawn candidates would reveal which were drawn.
    common_leaks = leaks if candidates.settings else leaks[:1]
    common_leaks.append(search._known_leaks())
    return uuid.uuid4().hex, tried, seeds, tuple(dict.fromkeys(chain.from_iterable(common_leaks)))


def trial_of(
    search: Any, plan: SearchPlan, candidate: dict[str, Any], seed: int | None, *, rehearsal: bool = False
) -> Any:
    """A candidate as an estimator that can spend only its share of the budget."""
    terms, epsilon = plan.terms, plan.fit_epsilon
    allowance = Allowance(
        terms.fit_mu(epsilon),
        terms.neighboring,
        terms.noise,
        plan.unit,
        private=not is_seeded(search),
        rehearsal=rehearsal,
    )
    settings = {"epsilon": epsilon, "delta": search.delta, "ledger": allowance}
    if seed is not None:
        settings["random_state"] = seed
    trial = with_candidate(search.estimator, candidate, settings)
    if plan.strategy == "random":
        return silenced(trial)
    _check_memory(search.memory, trial)
    return trial


def _check_memory(memory: object, trial: Any) -> None:
    """Refuse callbacks in a search that can be resumed, since they would see trials twice."""
    if memory is None or getattr(memory, "location", memory) is None:
        return
    for part in (trial, *trial.get_params().values()):
        if callbacks_of(part):
            raise ValueError(
                f"memory={memory!r} lets a search run an interrupted trial again, and the callbacks of "
                f"{type(part).__name__} would see both runs for one charge; pass memory=None, or remove them "
                "with set_callbacks()."
            )


def is_seeded(search: Any) -> bool:
    """Whether all noise comes from seeds, which must hold for all trials or none."""
    seeded: bool = search.random_state is not None
    return seeded or head_of(search.estimator)[1].random_state is not None
