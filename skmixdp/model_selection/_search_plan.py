"""From a search's parameters to what each of its fits may cost, before anything is released."""

import math
from dataclasses import dataclass
from numbers import Real
from pathlib import Path
from typing import Any

import numpy as np
from joblib import Memory

from .._params import check
from ..privacy import LEDGER, NoiseSource, SearchTerms, TrialLaw, shape_of
from ._candidates import Candidates

STRATEGIES = ("auto", "grid", "random")

#: Number of trials where neither a grid nor the user says: that of RandomizedSearchCV.
_TRIALS = 10


@dataclass(frozen=True)
class SearchPlan:
    """What a search is going to do, and what that costs.

    Attributes
    ----------
    terms : SearchTerms
        What a trial is.
    options : dict
        Strategy -> a fixed number of trials, or the law of a random one.
    affordable : dict
        Strategy -> epsilon of one fit that the budget pays for.
    strategy : {"grid", "random"}
        The one that is followed.
    """

    terms: SearchTerms
    options: dict[str, int | TrialLaw]
    affordable: dict[str, float]
    strategy: str

    @property
    def trials(self) -> int | TrialLaw:
        """Number of trials, or its law."""
        return self.options[self.strategy]

    @property
    def fit_epsilon(self) -> float:
        """Epsilon of one fit."""
        return self.affordable[self.strategy]

    @property
    def costs(self) -> dict[str, float]:
        """Strategy -> epsilon of a search with fits like these."""
        return {name: self.terms.epsilon(trials, self.fit_epsilon) for name, trials in self.options.items()}

    def draw(self, candidates: Candidates, noise: NoiseSource) -> list[dict[str, Any]]:
        """The candidates to try. A random number of them is secret, and so are all but the best."""

        def uniform() -> float:
            return float(noise.uniform((1,))[0])

        if isinstance(self.trials, TrialLaw):
            return [candidates.at(uniform()) for _ in range(self.trials.number(uniform()))]
        if candidates.size is not None:
            return candidates.every()
        return [candidates.at(uniform()) for _ in range(self.trials)]


def make_plan(
    candidates: Candidates,
    terms: SearchTerms,
    *,
    epsilon: float,
    strategy: str,
    n_trials: float | None,
    distribution: str | float,
) -> SearchPlan:
    """Divide a budget, by the strategy that leaves more to each fit if it may choose.

    Raises
    ------
    ValueError
        If the budget leaves nothing for a fit.
    """
    number = n_trials or candidates.size or _TRIALS
    options: dict[str, int | TrialLaw] = {
        "grid": candidates.size or round(number),
        "random": TrialLaw(float(number), shape_of(distribution)),
    }
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
    return SearchPlan(terms, options, affordable, strategy)


def check_parameters(search: Any) -> None:
    """Check those parameters of a search that need no data.

    Raises
    ------
    ValueError
        In one sentence, for the first parameter outside its range.
    """
    _check(
        search, "epsilon", _is_number(search.epsilon) and 0 < search.epsilon < math.inf, "a positive number"
    )
    _check(search, "delta", _is_number(search.delta) and 0 < search.delta < 1, "a number between 0 and 1")
    for name in ("holdout", "score_share"):
        value = getattr(search, name)
        _check(search, name, _is_number(value) and 0 < value < 1, "a number between 0 and 1")
    _check(search, "strategy", search.strategy in STRATEGIES, f"one of {', '.join(map(repr, STRATEGIES))}")
    shape_of(search.distribution)
    n = search.n_trials
    fits = n is None or (_is_number(n) and 1 <= n < math.inf)
    _check(search, "n_trials", fits, "a number of trials of at least 1, or None")
    _check(search, "refit", isinstance(search.refit, (bool, np.bool_)), "True or False")
    if search.refit and search.scoring == "private":
        raise ValueError(
            "refit=True pays for a fit on all public rows, which every trial has with scoring='private' "
            "anyway; leave it at False."
        )
    places = search.memory is None or isinstance(search.memory, (str, Path, Memory))
    _check(search, "memory", places, "a folder, a joblib.Memory or None")
    check("ledger", search.ledger, None, LEDGER)
    seed_of(search.random_state)


def check_head(head: Any, prefix: str, names: set[str]) -> None:
    """Check that the estimator leaves its budget to the search.

    Raises
    ------
    ValueError
        If it has a ledger, or if candidates vary what the search sets.
    """
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
    if head.epsilon is None or (head.n_steps is not None and head.noise_multiplier is not None):
        raise ValueError(
            f"{prefix}epsilon=None, or n_steps and noise_multiplier together, leave the search no budget to "
            "divide; give the estimator one of the two at the most."
        )


def seed_of(random_state: Any) -> int | None:
    """The seed that a ``random_state`` stands for; None for secure noise."""
    if random_state is None:
        return None
    if (
        isinstance(random_state, (int, np.integer))
        and not isinstance(random_state, bool)
        and random_state >= 0
    ):
        return int(random_state)
    if isinstance(random_state, np.random.RandomState):
        return int(random_state.randint(2**31 - 1))
    raise ValueError(
        f"random_state={random_state!r} must be None for private noise, or a non-negative whole number or "
        "numpy RandomState for a reproducible run that is NOT private."
    )


def _check(search: Any, name: str, fits: bool, what: str) -> None:
    if not fits:
        raise ValueError(f"{name}={getattr(search, name)!r} must be {what}.")


def _is_number(value: Any) -> bool:
    return isinstance(value, Real) and not isinstance(value, (bool, np.bool_))
