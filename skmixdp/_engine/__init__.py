"""Transactions, the plan of a run, the driver with the training loop, and the release, which adds noise."""

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
    drawn,
    drive,
    of_rows,
    training,
)
from .plan import Closing, Options, Plan, Recipe, make_plan
from .release import GaussianMechanism, Released, release
from .transaction import ChargedCourse, Start, Transaction, charged, released, reserved, transact
