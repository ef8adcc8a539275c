"""Transactions, the plan of a run, the driver with the training loop, and the release, which adds noise."""

from ..components.protocols import StepContext
from .ahead import charging_steps, future_transaction
from .loop import (
    LostReleaseError,
    NoisyQuery,
    OpenRows,
    Procedure,
    QueryRequest,
    RowsKey,
    answer_step,
    bind_rows,
    draw_batch,
    drive,
    training,
    training_steps,
)
from .plan import Options, Plan, PostTrainingRelease, Recipe, make_plan, sampling_of
from .release import GaussianMechanism, Released, release
from .transaction import ChargedProcedure, Transaction, released, reserved, transact
