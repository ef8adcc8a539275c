"""The only training loop: sample, query, release, assemble, update.

It trains any number of runs together, each with its own recipe, plan and head. All runs share each pass over
the private rows. The loop contains no algorithm: the recipe's query asks the rows, and its update keeps the
state.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .._rows import PrivateRows
from ..components.protocols import PrivateQuery, PublicInfo, StepContext
from ..privacy import NoiseSource
from .plan import Plan, Recipe
from .release import GaussianMechanism, Released, release

FloatArray = NDArray[np.floating[Any]]
Callback = Callable[[StepContext, FloatArray], object]


@dataclass(frozen=True)
class Run:
    """The training run of one head.

    Attributes
    ----------
    recipe : Recipe
        The algorithm's pieces.
    plan : Plan
        Noise, steps and step sizes.
    info : PublicInfo
        Public facts; ``info.view.W`` is the start.
    noise : NoiseSource
        Random source of this run.
    dtype : dtype
        Dtype of the products with private rows.
    members : boolean array (n_rows,) or None
        Mask of this run's private rows within the source, ``info.n_private`` of them. None is all rows. The
        run does not use the other rows.
    callback : callable or None
        Called as ``callback(ctx, W)`` with every released head. If it returns True, training stops there.
    """

    recipe: Recipe
    plan: Plan
    info: PublicInfo
    noise: NoiseSource
    dtype: np.dtype[Any]
    members: NDArray[np.bool_] | None = None
    callback: Callback | None = None


def train(runs: Sequence[Run], rows: PrivateRows) -> list[FloatArray]:
    """The trained heads of all runs, each (k, d_in). Entries of a head that diverged may not be finite."""
    with rows.training(), np.errstate(over="ignore", invalid="ignore"):
        active = [_Active(run) for run in runs]
        for t in range(1, max((run.plan.n_steps for run in runs), default=0) + 1):
            live = [a for a in active if t <= a.run.plan.n_steps and not a.stopped]
            for a in live:
                a.begin(t)
            while waiting := [(a, a.query) for a in live if a.query is not None]:
                answers = release(rows, [(a.mechanism, query) for a, query in waiting])
                for (a, _), answer in zip(waiting, answers, strict=True):
                    a.advance(answer)
            for a in live:
                a.finish()
        return [a.close(rows) for a in active]


class _Active:
    """The state of a run during training."""

    def __init__(self, run: Run) -> None:
        self.run = run
        self.mechanism = GaussianMechanism(run.plan.noise_multiplier, run.plan.n_steps, run.noise)
        self.W, self.state = run.recipe.update.init(run.info.view.W)
        self.query: PrivateQuery | None = None
        self.stopped = False

    def begin(self, t: int) -> None:
        recipe, info = self.run.recipe, self.run.info
        batch = recipe.sampling.draw(info.n_private, self.run.noise)
        self.mechanism.begin_step(_among(self.run.members, batch))
        view = info.view.data.view(self.W)
        self.ctx = StepContext(
            t=t,
            n_steps=self.run.plan.n_steps,
            view=view,
            batch_size=info.batch_size,
            public_weight=self.run.plan.public_weight(t, view),
            step_size=self.run.plan.step_size(t),
            noise_multiplier=self.run.plan.noise_multiplier,
            l2=recipe.l2,
            anchor=recipe.anchor,
            dtype=self.run.dtype,
            noise=self.run.noise,
        )
        self.rounds = recipe.query.step(self.ctx)
        self.advance(None)

    def advance(self, answer: Released | None) -> None:
        """Run the step to its next query, or to the direction that it returns; None begins it."""
        try:
            if answer is None:
                self.query = next(self.rounds)
            else:
                self.ctx.released.extend(answer.stated)
                self.query = self.rounds.send(answer.arrays)
        except StopIteration as end:
            self.query, self.direction = None, end.value

    def finish(self) -> None:
        self.W, self.state = self.run.recipe.update.step(self.ctx, self.direction, self.state)
        if self.run.callback is not None:
            self.stopped = self.run.callback(self.ctx, self.W) is True

    def close(self, rows: PrivateRows) -> FloatArray:
        """The head to return, after the closing release if there is one."""
        recipe, multiplier = self.run.recipe, self.run.plan.closing_multiplier
        if multiplier is None or recipe.closing is None:
            return recipe.update.result(self.W, self.state)
        mechanism = GaussianMechanism(multiplier, 1, self.run.noise)
        mechanism.begin_step(self.run.members)
        closing = recipe.closing(self.W, self.state, multiplier)
        try:
            query = next(closing)
            while True:
                (answer,) = release(rows, [(mechanism, query)])
                query = closing.send(answer.arrays)
        except StopIteration as end:
            W: FloatArray = end.value
            return W


def _among(members: NDArray[np.bool_] | None, batch: NDArray[np.bool_] | None) -> NDArray[np.bool_] | None:
    """The batch of a run's members, as a mask of all rows of the source."""
    if members is None or batch is None:
        return batch if members is None else members
    taking_part = np.zeros(len(members), dtype=bool)
    taking_part[members] = batch
    return taking_part
