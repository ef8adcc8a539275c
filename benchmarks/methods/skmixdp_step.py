"""One step of skmixdp with AdaMix's query: from the head to the direction of descent."""

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from skmixdp.components import FullSpace, GradientQuery, PublicQuantileClip, PublicSubspace
from skmixdp.components.contracts import Question, Rounds, StepContext, Subspace
from skmixdp.engine import Door, release
from skmixdp.linear import classification_loss
from skmixdp.privacy import NoiseSource
from skmixdp.public import PublicData
from skmixdp.rows import BFloat16Rows, InMemoryRows, PrivateRows, Request

from ..measure import Case
from ..problems import Problem

Answer = tuple[NDArray[Any], ...]
Ask = Callable[[Question], Answer]


def cases(problem: Problem) -> list[Case]:
    """The sums that a step asks for, and the step without noise, with it, and in a subspace.

    The lengths of the rows and the public rows' principal directions are computed once in a
    fit and are no part of a step.
    """
    size = problem.size
    data = PublicData(problem.X_pub, problem.y_pub, classification_loss(size.k), dtype=problem.X.dtype)
    rows = InMemoryRows(problem.X, problem.y)
    noise = NoiseSource(seed=0)

    half_size = BFloat16Rows([problem.X], problem.y)

    def exact(question: Question) -> Answer:
        (sums,) = rows.private_sums([Request(question.points, question.contribute)])
        return question.assemble(sums)

    def private(question: Question, of: PrivateRows = rows) -> Answer:
        door = Door(1.0, 1, noise)
        door.begin_step(None)
        ((_, answer),) = release(of, [(door, question)])
        return answer

    def rounds(subspace: Subspace) -> Rounds:
        query = GradientQuery(PublicQuantileClip(0.9, floor=0.5), subspace, sum_to_zero=True)
        return query.step(
            StepContext(
                t=1,
                n_steps=1,
                view=data.view(problem.W),
                batch_size=size.n,
                public_weight=size.n_pub / (size.n + size.n_pub),
                step_size=1.0,
                l2=0.0,
                anchor=np.zeros_like(problem.W),
                dtype=problem.X.dtype,
                noise=noise,
                noise_multiplier=1.0,
            )
        )

    def step(subspace: Subspace, ask: Ask) -> str:
        asked = rounds(subspace)
        try:
            question = next(asked)
            while True:
                question = asked.send(ask(question))
        except StopIteration:
            return ""

    first = next(rounds(FullSpace()))

    def sums() -> str:
        exact(first)
        return ""

    half = min(size.d_in, size.n_pub) // 2
    variants = [
        ("sums of private rows", sums),
        ("without noise", partial(step, FullSpace(), exact)),
        ("private", partial(step, FullSpace(), private)),
        (f"private, {half} dimensions", partial(step, PublicSubspace(half), private)),
        ("private, bfloat16", partial(step, FullSpace(), partial(private, of=half_size))),
    ]
    return [Case("skmixdp_step", name, "step", run) for name, run in variants]
