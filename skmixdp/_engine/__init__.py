"""The training loop, its plan, and the release that adds noise."""

from ..components.protocols import StepContext
from .geometry import noisy_counts
from .loop import Run, train
from .plan import Budget, Options, Plan, Recipe, as_reported, charge_event, make_plan
from .release import GaussianMechanism, release

__all__ = [
    "Budget",
    "GaussianMechanism",
    "Options",
    "Plan",
    "Recipe",
    "Run",
    "StepContext",
    "as_reported",
    "charge_event",
    "make_plan",
    "noisy_counts",
    "release",
    "train",
]
