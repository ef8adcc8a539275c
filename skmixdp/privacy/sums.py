"""Budgets of noisy sums outside of any fit."""

from dataclasses import dataclass, field
from typing import Any

from .._utils.validation import check
from .accounting.budgets import Budget
from .accounting.events import GaussianEvent, Neighboring, Noise
from .ledger._ledger import LEDGER
from .noise import check_noise


@dataclass(frozen=True)
class SumBudget:
    """The budget of one noisy sum, checked when made; the ``ledger`` is charged before the release."""

    epsilon: float
    delta: float
    neighboring: Neighboring
    noise: Noise
    random_state: Any
    ledger: Any = None
    event: GaussianEvent = field(init=False)

    def __post_init__(self) -> None:
        if self.epsilon is None:
            raise ValueError("epsilon=None does not determine the noise; pass a positive number.")
        budget = Budget(self.epsilon, self.delta, None, None, self.neighboring, self.noise)
        check_noise(self.noise, self.random_state)
        check("ledger", self.ledger, None, LEDGER)
        vars(self).update(event=budget.whole)
