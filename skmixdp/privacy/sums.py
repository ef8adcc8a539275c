"""Budgets of noisy sums outside of any fit."""

from dataclasses import dataclass
from typing import Any

from .._utils.validation import check
from .accounting.events import Budget, GaussianEvent, Neighboring, Noise, noise_multiplier_for
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

    def __post_init__(self) -> None:
        if self.epsilon is None:
            raise ValueError("epsilon=None does not determine the noise; pass a positive number.")
        Budget(self.epsilon, self.delta, 1, None, self.neighboring, self.noise)  # checks them
        check_noise(self.noise, self.random_state)
        check("ledger", self.ledger, None, LEDGER)

    @property
    def event(self) -> GaussianEvent:
        """The event of the release, for accounting."""
        multiplier = noise_multiplier_for(
            self.epsilon, self.delta, n_steps=1, neighboring=self.neighboring, noise=self.noise
        )
        return GaussianEvent(multiplier, 1, noise=self.noise)
