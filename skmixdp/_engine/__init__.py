"""The plan of a run, the driver of fits with the training loop, and the release, which adds noise."""

from ..components.protocols import StepContext
from .loop import (
    Ask,
    Asked,
    Course,
    LostReleaseError,
    OpenRows,
    RowsKey,
    Run,
    Sources,
    drive,
    of_rows,
    training,
)
from .plan import Closing, Options, Plan, Recipe, charge_event, make_plan
from .release import GaussianMechanism, Released, release
