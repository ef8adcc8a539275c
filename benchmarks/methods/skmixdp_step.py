"""One step of skmixdp with AdaMix's query: from the head to the direction of descent."""

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from skmixdp._engine import GaussianMechanism, release
from skmixdp._linear.losses import classification_loss
from skmixdp._rows.blockwise import InMemoryRows
from skmixdp._rows.source import Request
from skmixdp.components import GradientQuery
from skmixdp.components.clipping import PublicQuantileClip
from skmixdp.components.protocols import PrivateQuery, Rounds, StepContext, Subspace
from skmixdp.components.public import PublicData
from skmixdp.components.subspaces import PublicSubspace
from skmixdp.privacy import NoiseSource

from ..measure import Case
from ..problems import Problem

Answer = tuple[NDArray[Any], ...]
Ask = Callable[[PrivateQuery], Answer]


def cases(problem: Problem) -> list[Case]:
    """The sums that a step asks for, and the step without noise, with it, and in a subspace.

    The lengths of the rows and the public rows' principal directions are computed once in a
    fit and are no part of a step.
    """
    size = problem.size
    data = PublicData(problem.X_pub, problem.y_pub, classification_loss(size.k), dtype=problem.X.dtype)
    rows = InMemoryRows(problem.held(), problem.y)
    noise = NoiseSource(seed=0)

    def exact(query: PrivateQuery) -> Answer:
        (sums,) = rows.private_sums([Request(query)])
        return query.assemble([part for part in sums if part is not None])

    def private(query: PrivateQuery) -> Answer:
        mechanism = GaussianMechanism(1.0, 1, noise)
        mechanism.begin_step(None)
        return release(rows, [(mechanism, query)])[0].arrays

    def rounds(subspace: Subspace | None) -> Rounds:
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

    def step(subspace: Subspace | None, ask: Ask) -> str:
        asked = rounds(subspace)
        try:
            query = next(asked)
            while True:
                query = asked.send(ask(query))
        except StopIteration:
            return ""

    first = next(rounds(None))

    def sums() -> str:
        exact(first)
        return ""

    half = min(size.d_in, size.n_pub) // 2
    variants = [
        ("sums of private rows", sums),
        ("without noise", partial(step, None, exact)),
        ("private", partial(step, None, private)),
        (f"private, {half} dimensions", partial(step, PublicSubspace(half), private)),
    ]
    return [Case("skmixdp_step", name, "step", run) for name, run in variants]
