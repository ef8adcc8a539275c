"""The plan of a run, its training loop, the release that adds noise, and the driver of several fits."""

from ..components.protocols import StepContext
from .driver import Ask, Asked, Course, OpenRows, Rows, Sources, drive, of_rows
from .loop import Run, train, training
from .plan import Budget, Options, Plan, Recipe, as_reported, charge_event, make_plan
from .release import GaussianMechanism, Released, release
