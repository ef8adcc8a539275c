"""The plan of a run, the driver of fits, and the only training loop: sample, query, release, combine, update.

A fit is a *procedure*: a generator that yields one :class:`QueryRequest` after the other. :func:`drive`
answers the requests of several. Those whose keys name the same objects share a pass; no rows are compared.

:func:`training` contains no algorithm: the query of a recipe states what is computed of the rows.
"""

import math
from collections.abc import Callable, Generator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field, replace
from typing import Any, Literal, Protocol, TypeVar

import numpy as np
from numpy.typing import NDArray

from .._rows.source import Batch, PrivateRows
from ..components import FullBatch, PoissonBatch
from ..components.clipping import weighted_query
from ..components.protocols import (
    FloatArray,
    PrivateQuery,
    PublicInfo,
    PublicView,
    Query,
    ReleasedArray,
    ReleaseFacts,
    Rounds,
    Sampling,
    StepContext,
    Steps,
    Update,
    Weighting,
)
from ..privacy import GaussianEvent, NoiseSource, epsilon_of_event, noise_multiplier_for, steps_for
from ..privacy.accounting.budgets import Budget, warn_of_epsilon
from ..privacy.accounting.events import EventFamily
from .release import GaussianMechanism, Released, release


@dataclass(frozen=True)
class Options:
    """Settings of the user that every algorithm respects; ``l2`` and rates are those of the mean objective.

    An ``l2`` of None is 0 in most algorithms. ``exact_sums`` stay on their grid, without projections before
    the noise. ``balancing_intercept`` is the constant of the intercept column, if public rows may balance
    classes.
    """

    learning_rate: float | Literal["auto"]
    l2: float | None
    sampling: Sampling
    exact_sums: bool
    balancing_intercept: float | None = None


@dataclass(frozen=True)
class PostTrainingRelease:
    """A release over all rows after the last step, for a share of the squared budget.

    ``ask(W, state, multiplier)`` yields queries whose shares sum to at most 1, and returns the head.
    """

    share: float
    ask: Callable[[FloatArray, Any, float], Rounds]


@dataclass(frozen=True)
class Recipe:
    """The pieces of one algorithm, and the regulariser ``l2 / 2 |W - anchor|^2``.

    ``event`` makes the event for accounting, which no threshold changes. ``comparison`` returns the head
    instead of the update's ``result``, if the budget can be divided. Released numbers do not tell how a fit
    went if it ``draws`` other random numbers than batches and noise.
    """

    sampling: Sampling
    query: Query
    weighting: Weighting
    steps: Steps
    update: Update
    l2: float
    anchor: FloatArray
    event: EventFamily = GaussianEvent
    comparison: PostTrainingRelease | None = None
    draws: bool = False


@dataclass(frozen=True)
class Plan:
    """A run of one algorithm from ``info.view.W`` on, with numbers that are fixed before its first step."""

    recipe: Recipe
    info: PublicInfo
    dtype: np.dtype[Any]
    noise_multiplier: float
    n_steps: int
    event: GaussianEvent
    step_size: Callable[[int], float]
    public_weight: Callable[[int, PublicView], float]
    share: float = 1.0


def sampling_of(batch_size: int | None, n_rows: int) -> Sampling:
    """The rule that draws the private rows of a step."""
    if batch_size is None or batch_size == n_rows:
        return FullBatch()
    if batch_size > n_rows:
        raise ValueError(
            f"batch_size={batch_size} exceeds the {n_rows} private rows; pass a smaller number, or None for "
            "the full batch."
        )
    return PoissonBatch(batch_size)


def make_plan(
    budget: Budget, recipe: Recipe, info: PublicInfo, dtype: np.dtype[Any], share: float = 1.0
) -> Plan:
    """The plan of a run: the number of its steps, their noise and step sizes.

    ``share`` of the squared budget is left for the steps. Below 1, it must be divisible, the steps must be
    full-batch Gaussian releases, and the plan's event is that of the whole budget.
    """
    rate = recipe.sampling.rate(info.n_private)
    sensitivity = recipe.query.sensitivity(info.view, dtype)
    n_steps, sigma = budget.n_steps, budget.noise_multiplier
    info_of_steps = info if share == 1 else replace(info, mu=budget.mu * math.sqrt(share))
    if share < 1:
        n_steps = recipe.steps.count(info_of_steps, sensitivity)
        sigma = budget.multiplier(share, n_steps)
    elif budget.epsilon is not None:
        terms: dict[str, Any] = {
            "sampling_rate": rate,
            "neighboring": budget.neighboring,
            "noise": budget.noise,
            "family": recipe.event,
        }
        if sigma is not None:
            n_steps = steps_for(budget.epsilon, budget.delta, noise_multiplier=sigma, **terms)
        elif n_steps is None:
            n_steps = recipe.steps.count(info_of_steps, sensitivity)
        # The number of steps was rounded down, so noise for the whole budget is a little less than given.
        sigma = noise_multiplier_for(budget.epsilon, budget.delta, n_steps=n_steps, **terms)
    assert n_steps is not None and sigma is not None
    facts = ReleaseFacts(sigma, n_steps, sensitivity)
    public_weight = recipe.weighting.bind(info_of_steps, facts)
    private = [1 - public_weight(t, info_of_steps.view) for t in range(1, n_steps + 1)]
    facts = replace(facts, private_weight=float(np.sqrt(np.mean(np.square(private)))))
    event = budget.whole if share < 1 else recipe.event(sigma, n_steps, rate, budget.noise)
    if budget.epsilon is None:
        warn_of_epsilon(epsilon_of_event(event, budget.delta, budget.neighboring))
    return Plan(
        recipe,
        info,
        dtype,
        noise_multiplier=sigma,
        n_steps=n_steps,
        event=event,
        step_size=recipe.steps.bind(info_of_steps, facts),
        public_weight=public_weight,
        share=share,
    )


Callback = Callable[[StepContext, FloatArray], object]
_Result = TypeVar("_Result")

#: A query with the mechanism that adds noise to its answer.
NoisyQuery = tuple[GaussianMechanism, PrivateQuery]


class RowsKey(Protocol):
    """A key for private rows after their map: those with equal keys share one open source and its passes."""

    def open(self) -> PrivateRows:
        """A new source of these rows; a ValueError if they cannot be used."""


@dataclass(frozen=True)
class OpenRows(RowsKey):
    """A source that is open already."""

    source: PrivateRows

    def open(self) -> PrivateRows:
        return self.source


@dataclass(frozen=True, eq=False)
class QueryRequest:
    """A query of some private rows, with its mechanism: what a procedure yields."""

    rows: RowsKey
    mechanism: GaussianMechanism
    query: PrivateQuery


Procedure = Generator[QueryRequest, Released, _Result]


class LostReleaseError(RuntimeError):
    """Raised in a procedure, by ``resumable``, if its answer was lost and may not be drawn again."""


def bind_rows(rows: RowsKey, queries: Generator[NoisyQuery, Released, _Result]) -> Procedure[_Result]:
    """Send the queries of a generator to some rows, and return its result."""
    go_on: Callable[[Any], NoisyQuery] = queries.send
    answer: Any = None
    while True:
        try:
            mechanism, query = go_on(answer)
        except StopIteration as end:
            result: _Result = end.value
            return result
        try:
            go_on, answer = queries.send, (yield QueryRequest(rows, mechanism, query))
        except LostReleaseError as error:
            go_on, answer = queries.throw, error


@dataclass(eq=False, repr=False)
class Sources:
    """The open sources of private rows."""

    _open: list[tuple[RowsKey, PrivateRows]] = field(default_factory=list)

    def of(self, rows: RowsKey, needed: Sequence[RowsKey]) -> PrivateRows:
        """The source of some rows. Before a new one opens, those not ``needed`` are freed."""
        opened = [source for key, source in self._open if key == rows]
        if not opened:
            self._open = [each for each in self._open if each[0] in needed]
            opened = [rows.open()]
            self._open.append((rows, opened[0]))
        return opened[0]


def drive(
    procedures: Sequence[Procedure[_Result]], sources: Sources | None = None, first: Sequence[Any] = ()
) -> list[_Result]:
    """Run procedures to their end, and return their results.

    ``sources`` are open already. ``first`` is what to send to each procedure, if it has yielded something.
    """
    sources = Sources() if sources is None else sources
    results: dict[int, _Result] = {}
    requests: dict[int, QueryRequest] = {}
    answers: dict[int, Any] = dict(enumerate(first or [None] * len(procedures)))
    with ExitStack() as ended:
        for procedure in procedures:
            ended.callback(procedure.close)
        # No warnings of overflow, since heads that diverge are refused at the end.
        ended.enter_context(np.errstate(all="ignore"))
        while answers:
            for index, answer in answers.items():
                try:
                    requests[index] = procedures[index].send(answer)
                except StopIteration as end:
                    requests.pop(index, None)
                    results[index] = end.value
            if not requests:
                break
            rows = next(iter(requests.values())).rows
            together = {index: each for index, each in requests.items() if each.rows == rows}
            source = sources.of(rows, [each.rows for each in requests.values()])
            failed = None
            try:
                released = release(source, [(each.mechanism, each.query) for each in together.values()])
            except Exception as error:
                failed = error
            del source  # can be freed before the next one is opened
            # Outside of the handler, so that this error is not the context of one that the procedure raises.
            if failed is not None:
                procedures[next(iter(together))].throw(failed)
                raise failed  # even if the procedure caught it, since there is no answer to send
            answers = dict(zip(together, released, strict=True))
    return [results[index] for index in range(len(procedures))]


# -- training --------------------------------------------------------------------------------


def draw_batch(
    sampling: Sampling, n_rows: int, noise: NoiseSource, members: NDArray[np.bool_] | None
) -> Batch | None:
    """The batch of a step, among the ``n_rows`` members of the source; None is all of them."""
    taken = sampling.draw(n_rows, noise)
    if taken is not None and members is not None:
        among_members, taken = taken, np.zeros(len(members), dtype=bool)
        taken[members] = among_members
    return None if taken is None else Batch(taken, sampling.rate(n_rows))


def training(
    plan: Plan, noise: NoiseSource, members: NDArray[np.bool_] | None = None, callback: Callback | None = None
) -> Generator[NoisyQuery, Any, FloatArray]:
    """Yield the queries of a run, and return the trained head (k, d_in), finite or not."""
    W, state = yield from training_steps(plan, noise, members, callback)
    result: FloatArray = plan.recipe.update.result(W, state)
    return result


def training_steps(
    plan: Plan, noise: NoiseSource, members: NDArray[np.bool_] | None = None, callback: Callback | None = None
) -> Generator[NoisyQuery, Any, tuple[FloatArray, Any]]:
    """Yield the queries of a run, and return its last head (k, d_in) and the state of its update.

    ``members`` (n_rows,) masks the run's rows within the source; None is all. ``callback(ctx, W)`` gets every
    released head; if it returns True, training stops there.
    """
    recipe, info = plan.recipe, plan.info
    mechanism = GaussianMechanism(plan.noise_multiplier, plan.n_steps, noise)
    W, state = recipe.update.init(info.view.W)
    for t in range(1, plan.n_steps + 1):
        mechanism.begin_step(members, draw_batch(recipe.sampling, info.n_private, noise, members))
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
            dtype=plan.dtype,
            noise=noise,
        )
        try:
            rounds = recipe.query.step(ctx)
            direction = yield from answer_step(mechanism, rounds, ctx.released, info, of_gradients=True)
        except LostReleaseError:
            continue
        W, state = recipe.update.step(ctx, direction, state)
        if callback is not None and callback(ctx, W) is True:
            break
    return W, state


def answer_step(
    mechanism: GaussianMechanism,
    rounds: Rounds,
    released: list[ReleasedArray],
    info: PublicInfo,
    *,
    of_gradients: bool = False,
) -> Generator[NoisyQuery, Any, Any]:
    """Yield the queries of one step, record the releases, and return the result of the step."""
    try:
        query = next(rounds)
        while True:
            query = weighted_query(query, info.view.data.loss, of_gradients=of_gradients)
            answer: Released = yield mechanism, query
            released.extend(answer.stated)
            query = rounds.send(answer.arrays)
    except StopIteration as end:
        return end.value
