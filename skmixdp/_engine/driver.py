"""The driver of fits: it answers what several fits ask, and lets fits that ask the same rows share a pass.

A fit is a *course*: a generator that yields one :class:`Ask` after the other, and returns when it is done.
Asks share a pass if they name the same rows. That follows from public facts: the data as they were passed,
the row map, parameters, and released numbers. Nothing compares or counts private rows.
"""

from collections.abc import Generator, Iterable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from typing import Any, Protocol, TypeVar

import numpy as np

from .._rows import PrivateRows
from ..components.protocols import PrivateQuery
from .release import GaussianMechanism, Released, release

_Result = TypeVar("_Result")

#: A query with the mechanism that answers it.
Asked = tuple[GaussianMechanism, PrivateQuery]


class Rows(Protocol):
    """Names private rows as a fit sees them, by public facts."""

    def same_as(self, other: "Rows") -> bool:
        """Whether these are the same rows, so that one source serves both."""

    def open(self) -> PrivateRows:
        """A new source of these rows; a ValueError tells of rows that cannot be used."""

    def continued(self, earlier: "Rows", source: PrivateRows) -> PrivateRows | None:
        """A source of these rows in the memory of earlier ones; None if that is not possible."""
        return None


@dataclass(frozen=True, eq=False)
class OpenRows(Rows):
    """A source that is open already."""

    source: PrivateRows

    def same_as(self, other: Rows) -> bool:
        return isinstance(other, OpenRows) and self.source is other.source

    def open(self) -> PrivateRows:
        return self.source


@dataclass(frozen=True, eq=False)
class Ask:
    """What a course asks next: a query of some rows."""

    rows: Rows
    mechanism: GaussianMechanism
    query: PrivateQuery


Course = Generator[Ask, Released, _Result]


def of_rows(rows: Rows, asked: Generator[Asked, Released, _Result]) -> Course[_Result]:
    """The queries of a generator, asked of some rows; returns what it returns."""
    answer: Any = None
    try:
        while True:
            mechanism, query = asked.send(answer)
            answer = yield Ask(rows, mechanism, query)
    except StopIteration as end:
        result: _Result = end.value
        return result


class Sources:
    """The open sources of private rows."""

    def __init__(self) -> None:
        self._open: list[tuple[Rows, PrivateRows]] = []

    def of(self, rows: Rows, needed: Iterable[Rows]) -> PrivateRows:
        """The source of some rows. Sources that are needed no more are freed, or their memory is used."""
        for known, source in self._open:
            if known.same_as(rows):
                return source
        wanted = list(needed)
        kept = [(known, source) for known, source in self._open if any(known.same_as(one) for one in wanted)]
        freed = [each for each in self._open if not any(each[1] is source for _, source in kept)]
        self._open = kept
        found = None
        while freed and found is None:
            found = rows.continued(*freed.pop())
        freed.clear()
        self._open.append((rows, rows.open() if found is None else found))
        return self._open[-1][1]


def drive(
    courses: Sequence[Course[_Result]], sources: Sources | None = None, first: Sequence[Any] = ()
) -> list[_Result]:
    """Run courses to their end, and return what each returns.

    Parameters
    ----------
    courses : sequence of generators
        The courses.
    sources : Sources or None, default=None
        Sources that are open.
    first : sequence, default=()
        What to send to each course first, if it has yielded something before. Empty for new generators.
    """
    sources = Sources() if sources is None else sources
    results: dict[int, _Result] = {}
    asks: dict[int, Ask] = {}

    def advance(index: int, answer: Any) -> None:
        try:
            asks[index] = courses[index].send(answer)
        except StopIteration as end:
            asks.pop(index, None)
            results[index] = end.value

    with ExitStack() as ended:
        for course in courses:
            ended.callback(course.close)
        # Heads that diverge are refused at the end.
        ended.enter_context(np.errstate(all="ignore"))
        for index, answer in enumerate(first or [None] * len(courses)):
            advance(index, answer)
        while asks:
            rows = next(iter(asks.values())).rows
            together = {index: ask for index, ask in asks.items() if ask.rows.same_as(rows)}
            source = sources.of(rows, [ask.rows for ask in asks.values()])
            failed = None
            try:
                answers = release(source, [(ask.mechanism, ask.query) for ask in together.values()])
            except Exception as error:
                failed = error
            if failed is not None:  # outside of the handler: a course may withhold the error
                courses[next(iter(together))].throw(failed)
            for index, answer in zip(together, answers, strict=True):
                advance(index, answer)
    return [results[index] for index in range(len(courses))]
