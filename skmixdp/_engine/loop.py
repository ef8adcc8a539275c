"""The driver of fits, and the only training loop: sample, query, release, combine, update.

A fit is a *course*: a generator that yields one :class:`Ask` after the other, and returns when it is done.
:func:`drive` answers what several courses ask, and lets those that ask the same rows share a pass. Which rows
are the same is known before: their keys name the same objects. Nothing compares or counts private rows.

:func:`training` is the part of a course that trains a head, with its recipe and plan. It contains no
algorithm: the recipe's query asks the rows, and its update keeps the state.
"""

from collections.abc import Callable, Generator, Iterable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from typing import Any, Protocol, TypeVar

import numpy as np
from numpy.typing import NDArray

from .._rows import Batch, PrivateRows
from ..components.clipping import weighted_query
from ..components.protocols import (
    FloatArray,
    PrivateQuery,
    PublicInfo,
    ReleasedArray,
    Rounds,
    Sampling,
    StepContext,
)
from ..privacy import NoiseSource
from .plan import Plan, Recipe
from .release import GaussianMechanism, Released, release

Callback = Callable[[StepContext, FloatArray], object]
_Result = TypeVar("_Result")

#: A query with the mechanism that answers it.
Asked = tuple[GaussianMechanism, PrivateQuery]


class RowsKey(Protocol):
    """A key for private rows after their map: asks with equal keys share one open source and its passes.

    Keys are equal if they name the same objects. Nothing compares private rows.
    """

    def open(self) -> PrivateRows:
        """A new source of these rows; a ValueError tells of rows that cannot be used."""


@dataclass(frozen=True)
class OpenRows(RowsKey):
    """A source that is open already."""

    source: PrivateRows

    def open(self) -> PrivateRows:
        return self.source


@dataclass(frozen=True, eq=False)
class Ask:
    """What a course asks next: a query of some rows."""

    rows: RowsKey
    mechanism: GaussianMechanism
    query: PrivateQuery


Course = Generator[Ask, Released, _Result]


class LostReleaseError(RuntimeError):
    """Raised in a course, by ``resumable``, if its answer was lost and may not be drawn again."""


def of_rows(rows: RowsKey, asked: Generator[Asked, Released, _Result]) -> Course[_Result]:
    """Ask the queries of a generator of some rows, and return its result."""
    go_on: Callable[[Any], Asked] = asked.send
    answer: Any = None
    while True:
        try:
            mechanism, query = go_on(answer)
        except StopIteration as end:
            result: _Result = end.value
            return result
        try:
            go_on, answer = asked.send, (yield Ask(rows, mechanism, query))
        except LostReleaseError as error:
            go_on, answer = asked.throw, error


@dataclass(eq=False, repr=False)
class Sources:
    """The open sources of private rows."""

    _open: list[tuple[RowsKey, PrivateRows]] = field(default_factory=list)

    def of(self, rows: RowsKey, needed: Iterable[RowsKey]) -> PrivateRows:
        """The source of some rows. Those that are not ``needed`` are freed before a new one is opened."""
        found = [source for known, source in self._open if known == rows]
        if not found:
            wanted = list(needed)
            self._open = [each for each in self._open if each[0] in wanted]
            found = [rows.open()]
            self._open.append((rows, found[0]))
        return found[0]


def drive(
    courses: Sequence[Course[_Result]], sources: Sources | None = None, first: Sequence[Any] = ()
) -> list[_Result]:
    """Run courses to their end, and return their results.

    Parameters
    ----------
    courses : sequence of generators
        The courses.
    sources : Sources or None, default=None
        Sources that are open already.
    first : sequence, default=()
        What to send to each course first, if it has yielded something before. Empty for new generators.
    """
    sources = Sources() if sources is None else sources
    results: dict[int, _Result] = {}
    asks: dict[int, Ask] = {}
    answers: dict[int, Any] = dict(enumerate(first or [None] * len(courses)))
    with ExitStack() as ended:
        for course in courses:
            ended.callback(course.close)
        # Overflow is not warned of here: heads that diverge are refused at the end.
        ended.enter_context(np.errstate(all="ignore"))
        while answers:
            for index, answer in answers.items():
                try:
                    asks[index] = courses[index].send(answer)
                except StopIteration as end:
                    asks.pop(index, None)
                    results[index] = end.value
            if not asks:
                break
            rows = next(iter(asks.values())).rows
            together = {index: ask for index, ask in asks.items() if ask.rows == rows}
            source = sources.of(rows, [ask.rows for ask in asks.values()])
            failed = None
            try:
                released = release(source, [(ask.mechanism, ask.query) for ask in together.values()])
            except Exception as error:
                failed = error
            del source  # so that it can be freed before the next one is opened
            # Outside of the handler, so that an error of the course is not chained to this one.
            if failed is not None:
                courses[next(iter(together))].throw(failed)
                raise failed  # the failed request has no answer
            answers = dict(zip(together, released, strict=True))
    return [results[index] for index in range(len(courses))]


# -- training --------------------------------------------------------------------------------


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


def drawn(
    sampling: Sampling, n_rows: int, noise: NoiseSource, members: NDArray[np.bool_] | None
) -> Batch | None:
    """The batch of a step, among the ``n_rows`` members of the source; None is all of them."""
    taken = sampling.draw(n_rows, noise)
    if taken is not None and members is not None:
        among_members, taken = taken, np.zeros(len(members), dtype=bool)
        taken[members] = among_members
    return None if taken is None else Batch(taken, sampling.rate(n_rows))


def training(run: Run) -> Generator[Asked, Any, FloatArray]:
    """Ask the queries of a run, step by step, and return the trained head (k, d_in), finite or not."""
    recipe, plan, info = run.recipe, run.plan, run.info
    mechanism = GaussianMechanism(plan.noise_multiplier, plan.n_steps, run.noise)
    W, state = recipe.update.init(info.view.W)
    for t in range(1, plan.n_steps + 1):
        mechanism.begin_step(run.members, drawn(recipe.sampling, info.n_private, run.noise, run.members))
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
        try:
            rounds = recipe.query.step(ctx)
            direction = yield from _answered_step(mechanism, rounds, ctx.released, info, of_gradients=True)
        except LostReleaseError:
            continue
        W, state = recipe.update.step(ctx, direction, state)
        if run.callback is not None and run.callback(ctx, W) is True:
            break
    if recipe.closing is None or not plan.closings:
        W = recipe.update.result(W, state)
    for closing, multiplier in plan.closings:
        mechanism = GaussianMechanism(multiplier, 1, run.noise)
        mechanism.begin_step(run.members)
        rounds = closing.ask(W, state, multiplier)
        W = yield from _answered_step(mechanism, rounds, [], info)
    return W


def _answered_step(
    mechanism: GaussianMechanism,
    rounds: Rounds,
    released: list[ReleasedArray],
    info: PublicInfo,
    *,
    of_gradients: bool = False,
) -> Generator[Asked, Any, Any]:
    """Ask the queries of one step, record the releases, and return the result of the step.

    Rows count by the weights that their labels may carry.
    """
    try:
        query = next(rounds)
        while True:
            query = weighted_query(query, info.view.data.loss, of_gradients=of_gradients)
            answer: Released = yield mechanism, query
            released.extend(answer.stated)
            query = rounds.send(answer.arrays)
    except StopIteration as end:
        return end.value
