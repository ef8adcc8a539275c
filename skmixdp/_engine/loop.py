"""The only training loop: sample, query, release, assemble, update.

It trains any number of runs together, each with its own recipe, plan and head. All runs share each pass over
the private rows: they ask one query each, and a release answers all of them. The loop contains no algorithm:
the recipe's query asks the rows, and its update keeps the state.
"""

from collections.abc import Callable, Generator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .._rows import Batch, PrivateRows
from ..components.protocols import FloatArray, PublicInfo, ReleasedArray, Rounds, StepContext
from ..privacy import NoiseSource
from .driver import Asked, OpenRows, drive, of_rows
from .plan import Plan, Recipe
from .release import GaussianMechanism, Released

Callback = Callable[[StepContext, FloatArray], object]


@dataclass(frozen=True)
class Run:
    """The training run of one head, from ``info.view.W`` on.

    ``members`` (n_rows,) is the mask of its ``info.n_private`` rows within the source; None is all rows.
    ``callback(ctx, W)`` is called with every released head; if it returns True, training stops there.
    ``dtype`` is that of the products with private rows.
    """

    recipe: Recipe
    plan: Plan
    info: PublicInfo
    noise: NoiseSource
    dtype: np.dtype[Any]
    members: NDArray[np.bool_] | None = None
    callback: Callback | None = None


def train(runs: Sequence[Run], rows: PrivateRows) -> list[FloatArray]:
    """The trained heads of runs on the rows of one source, each (k, d_in); see :func:`training`."""
    source = OpenRows(rows)
    return drive([of_rows(source, training(run)) for run in runs])


def training(run: Run) -> Generator[Asked, Any, FloatArray]:
    """Ask the queries of a run, step by step, and return the trained head (k, d_in), finite or not."""
    recipe, plan, info = run.recipe, run.plan, run.info
    mechanism = GaussianMechanism(plan.noise_multiplier, plan.n_steps, run.noise)
    W, state = recipe.update.init(info.view.W)
    for t in range(1, plan.n_steps + 1):
        batch = recipe.sampling.draw(info.n_private, run.noise)
        mechanism.begin_step(run.members, _among(run.members, batch, recipe.sampling.rate(info.n_private)))
        view = info.view.data.view(W)
        ctx = StepContext(
            t=t,
            n_steps=plan.n_steps,
            view=view,
            batch_size=info.batch_size,
            public_weight=plan.public_weight(t, view),
            step_size=plan.step_size(t),
            noise_multiplier=plan.noise_multiplier,
            l2=recipe.l2,
            anchor=recipe.anchor,
            dtype=run.dtype,
            noise=run.noise,
        )
        direction = yield from _asked(mechanism, recipe.query.step(ctx), ctx.released)
        W, state = recipe.update.step(ctx, direction, state)
        if run.callback is not None and run.callback(ctx, W) is True:
            break
    if plan.closing_multiplier is None or recipe.closing is None:
        return recipe.update.result(W, state)
    mechanism = GaussianMechanism(plan.closing_multiplier, 1, run.noise)
    mechanism.begin_step(run.members)
    head: FloatArray = yield from _asked(mechanism, recipe.closing(W, state, plan.closing_multiplier), [])
    return head


def _asked(
    mechanism: GaussianMechanism, rounds: Rounds, released: list[ReleasedArray]
) -> Generator[Asked, Any, Any]:
    """Ask the queries of one step, record the releases, and return the result of the step."""
    try:
        query = next(rounds)
        while True:
            answer: Released = yield mechanism, query
            released.extend(answer.stated)
            query = rounds.send(answer.arrays)
    except StopIteration as end:
        return end.value


def _among(members: NDArray[np.bool_] | None, batch: NDArray[np.bool_] | None, rate: float) -> Batch | None:
    """The batch of a run's members, among all rows of the source."""
    if members is None or batch is None:
        return None if batch is None else Batch(batch, rate)
    taken = np.zeros(len(members), dtype=bool)
    taken[members] = batch
    return Batch(taken, rate)
