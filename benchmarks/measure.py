"""CPU time and peak memory of cases that are measured side by side."""

import statistics
import time
import tracemalloc
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Literal

#: ``limit``: what a step is compared to; ``roof``: what no step can be faster than; ``step``: one
#: step; ``fit``: a whole fit; ``call``: a function that has no rows, with a time of its own that it
#: must stay below.
Role = Literal["limit", "roof", "step", "fit", "call"]

#: More repetitions would not move a median.
_MOST_REPETITIONS = 200


@dataclass(frozen=True)
class Case:
    """One thing to be measured.

    Attributes
    ----------
    method, variant : str
        The adapter's name, and which of its cases this is.
    role : {"limit", "roof", "step", "fit", "call"}
        What the case is compared to.
    run : callable
        Does it once and returns a note for the table.
    allowed : float or None
        Seconds to which the ratio of a ``call`` refers; None refers to the problem's limit.
    clock : callable
        Seconds spent so far, by this process or by what ``run`` had others do.
    """

    method: str
    variant: str
    role: Role
    run: Callable[[], str]
    allowed: float | None = None
    clock: Callable[[], float] = time.process_time


@dataclass(frozen=True)
class Measurement:
    """What was found: median CPU seconds, peak bytes above the start, and the note."""

    case: Case
    seconds: float
    repetitions: int
    peak_bytes: int
    note: str


def measure(cases: Sequence[Case], seconds: float) -> list[Measurement]:
    """Measure all cases in turns, each until it has used up ``seconds`` or has enough.

    Taking turns exposes all cases to the same disturbances, so that ratios of their medians
    hold on a machine that others use as well. The first two calls of each are not timed. The
    first one warms up: libraries compare their speed in it. The second one's allocations are
    traced, which makes all calls of Python slower.
    """
    for case in cases:
        case.run()
    first = [_peak_bytes(case) for case in cases]
    times: list[list[float]] = [[] for _ in cases]

    def unfinished(spent: list[float]) -> bool:
        return sum(spent) < seconds and len(spent) < _MOST_REPETITIONS

    while waiting := [index for index, spent in enumerate(times) if unfinished(spent)]:
        for index in waiting:
            start = cases[index].clock()
            cases[index].run()
            times[index].append(cases[index].clock() - start)
    return [
        Measurement(case, statistics.median(spent), len(spent), peak, note)
        for case, spent, (peak, note) in zip(cases, times, first, strict=True)
    ]


def _peak_bytes(case: Case) -> tuple[int, str]:
    """Largest memory in use during one call beyond that before it, and the call's note."""
    tracemalloc.start()
    try:
        note = case.run()
        return tracemalloc.get_traced_memory()[1], note
    finally:
        tracemalloc.stop()
