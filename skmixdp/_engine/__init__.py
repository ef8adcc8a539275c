"""The training loop, the plan that it follows, and the release that adds noise."""

from .charging import as_reported, charge_event, check_ledger
from .counting import noisy_count
from .loop import Run, train
from .plan import Budget, Plan, make_plan
from .recipe import Options, Recipe
from .release import GaussianMechanism, release

__all__ = [
    "Budget",
    "GaussianMechanism",
    "Options",
    "Plan",
    "Recipe",
    "Run",
    "as_reported",
    "charge_event",
    "check_ledger",
    "make_plan",
    "noisy_count",
    "release",
    "train",
]
