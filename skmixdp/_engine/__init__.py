"""Transactions, the plan of a run, the driver with the training loop, and the release, which adds noise."""

from ..components.protocols import StepContext
from .loop import (
    LostReleaseError,
    NoisyQuery,
    OpenRows,
    Options,
    Plan,
    PostTrainingRelease,
    Procedure,
    QueryRequest,
    Recipe,
    RowsKey,
    answer_step,
    bind_rows,
    draw_batch,
    drive,
    make_plan,
    sampling_of,
    training,
    training_steps,
)
from .release import GaussianMechanism, Released, release
from .transaction import (
    ChargedProcedure,
    Transaction,
    charging_steps,
    future_transaction,
    released,
    reserved,
    transact,
)
