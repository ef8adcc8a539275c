"""The plan of a search: candidates, number of trials, and cost of each fit."""

from collections.abc import Iterable, Mapping, Sized
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from joblib import Memory
from sklearn.model_selection import ParameterGrid, ParameterSampler

from ..._utils.validation import POSITIVE, PROBABILITY, SEED, Kind, number
from ...privacy import NoiseSource
from ...privacy.accounting.selection import SearchTerms, TrialLaw
from ...privacy.ledger._ledger import LEDGER

#: Upper end of random seeds.
SEEDS = 2**32

#: Default number of trials for distributions, as in RandomizedSearchCV.
_TRIALS = 10


class Candidates:
    """Parameter settings: a grid of lists, or distributions to draw from."""

    def __init__(self, space: object) -> None:
        parts = [space] if isinstance(space, Mapping) else space
        if not isinstance(parts, (list, tuple)) or not parts or not all(map(_is_part, parts)):
            raise TypeError(
                f"param_grid={space!r} must be a dict, or a list of dicts, from names of parameters to lists "
                "of values or distributions with rvs."
            )
        for part in parts:
            for name, values in part.items():
                if isinstance(values, Sized) and len(values) == 0:
                    raise ValueError(f"param_grid[{name!r}]={values!r} is empty; list at least one value.")
        self._space = [dict(part) for part in parts]
        #: The parameters that vary.
        self.names = {name for part in parts for name in part}
        drawn = any(_is_distribution(values) for part in parts for values in part.values())
        #: All settings of a grid; None if some are drawn from distributions.
        self.settings: list[dict[str, Any]] | None = None if drawn else list(ParameterGrid(self._space))

    def at(self, u: float) -> dict[str, Any]:
        """The setting for a uniform number ``u`` in [0, 1); all settings of a grid are equally likely."""
        if self.settings is not None:
            return dict(self.settings[int(u * len(self.settings))])
        return dict(next(iter(ParameterSampler(self._space, 1, random_state=int(u * SEEDS)))))


@dataclass(frozen=True)
class SearchPlan:
    """The strategy of a search, the number of trials or its law, and the epsilon of one fit, by strategy."""

    terms: SearchTerms
    options: dict[str, int | TrialLaw]
    affordable: dict[str, float]
    strategy: str
    unit: str

    @property
    def trials(self) -> int | TrialLaw:
        """Number of trials, or the distribution of a random one."""
        return self.options[self.strategy]

    @property
    def fit_epsilon(self) -> float:
        """Epsilon of one fit."""
        return self.affordable[self.strategy]

    @property
    def costs(self) -> dict[str, float]:
        """Epsilon of a search with fits of ``fit_epsilon``, by strategy."""
        return {name: self.terms.epsilon(trials, self.fit_epsilon) for name, trials in self.options.items()}

    def draw(self, candidates: Candidates, noise: NoiseSource) -> list[dict[str, Any]]:
        """The candidates to try. If their number is random, only the best one may be shown."""

        def uniform() -> float:
            return float(noise.uniform((1,))[0])

        if isinstance(self.trials, TrialLaw):
            return [candidates.at(uniform()) for _ in range(self.trials.number(uniform()))]
        if candidates.settings is not None:
            return candidates.settings
        return [candidates.at(uniform()) for _ in range(self.trials)]


def make_plan(
    candidates: Candidates,
    terms: SearchTerms,
    *,
    epsilon: float,
    strategy: str,
    n_trials: float | None,
    unit: str,
) -> SearchPlan:
    """Divide a budget; strategy "auto" is the one with the larger budget per fit."""
    size = len(candidates.settings or ())
    number = n_trials or size or _TRIALS
    options: dict[str, int | TrialLaw] = {"grid": size or round(number), "random": TrialLaw(float(number))}
    affordable = {}
    for name, trials in options.items():
        try:
            affordable[name] = terms.fit_epsilon(trials, epsilon)
        except ValueError:
            if strategy in (name, "auto"):
                raise
            affordable[name] = 0.0
    if strategy == "auto":
        strategy = max(affordable, key=lambda name: affordable[name])
    return SearchPlan(terms, options, affordable, strategy, unit)


#: Allowed values of the parameters of a search.
ALLOWED = {
    "epsilon": (POSITIVE,),
    "delta": (PROBABILITY,),
    "holdout": (PROBABILITY,),
    "score_share": (PROBABILITY,),
    "scoring": (Kind("a string, a scorer", lambda value: isinstance(value, str) or callable(value)), None),
    "strategy": ("auto", "grid", "random"),
    "n_trials": (number(1, closed="left"), None),
    "memory": (Kind("a folder, a joblib.Memory", lambda value: isinstance(value, (str, Path, Memory))), None),
    "ledger": (None, LEDGER),
    "random_state": (SEED,),
}


def check_head(head: Any, prefix: str, names: set[str], scoring: object) -> None:
    """Check that budget, ledger and seed are left to the search, and that private scores have one unit."""
    if head.ledger is not None:
        raise ValueError(
            f"{prefix}ledger of the estimator is set, which would be charged for each fit; pass it "
            "to PrivateSearchCV, which charges the whole search at once."
        )
    for name in ("epsilon", "delta", "neighboring", "noise", "ledger", "random_state"):
        if prefix + name in names:
            raise ValueError(
                f"param_grid varies {prefix + name}, which the search sets for all its fits; take it out."
            )
    if prefix + "target_scale" in names and isinstance(scoring, str) and scoring == "private":
        raise ValueError(
            f"param_grid varies {prefix}target_scale, the unit of private scores, which then differ; "
            "take it out, or score on public rows."
        )
    if head.epsilon is None or (head.n_steps is not None and head.noise_multiplier is not None):
        raise ValueError(
            f"{prefix}epsilon=None, or n_steps and noise_multiplier together, leave the search no budget to "
            "divide; give the estimator one of the two at the most."
        )


def _is_distribution(values: object) -> bool:
    return hasattr(values, "rvs")


def _is_part(part: object) -> bool:
    return isinstance(part, Mapping) and all(
        _is_distribution(values) or (isinstance(values, Iterable) and not isinstance(values, str))
        for values in part.values()
    )
