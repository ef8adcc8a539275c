"""The release: adds the noise, the only code in which sums of private rows become released numbers.

Each training and each other release has a :class:`GaussianMechanism` of its own. In each step, it answers
queries whose shares sum to at most 1. Every released array gets Gaussian noise of standard deviation
``noise_multiplier * sensitivity / sqrt(share)``. Zeroing out one row moves array j by at most
``sensitivity_j``. This includes rounding: the row source states how much rounding can add to the sensitivity
of the clip. A step is therefore ``sqrt(sum_j share_j) / noise_multiplier``-Gaussian-DP. This is at most one
Gaussian release of the plan's noise multiplier, and the plan allows ``n_steps`` of them.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace

import numpy as np
from numpy.typing import NDArray

from .._rows.blockwise import sum_resolution
from .._rows.source import Batch, PrivateQuery, PrivateRows, ReleasedArray, Request
from ..components.protocols import FloatArray
from ..privacy import NoiseSource
from .recording import Observation, RecordedRelease, current_recorder

_ROUNDING = 1e-12


@dataclass(eq=False, repr=False)
class GaussianMechanism:
    """Adds noise to the answers of one run's queries, within the run's plan of ``n_steps`` steps.

    ``noise_multiplier`` is the noise's standard deviation in a step, in units of its sensitivity. A run that
    asks for more than the plan accounts for gets a RuntimeError. ``step`` counts the steps that have begun.
    ``before_noise`` is called once, before the next noise is drawn.
    """

    noise_multiplier: float
    n_steps: int
    noise: NoiseSource
    step: int = 0
    before_noise: Callable[[], None] | None = None
    _share_left: float = 0.0
    _batch: Batch = field(default_factory=Batch)

    def begin_step(self, members: NDArray[np.bool_] | None, batch: Batch | None = None) -> None:
        """Start a step on ``members`` or a batch of them; unused shares of the step before are lost."""
        if self.step >= self.n_steps:
            raise RuntimeError("every step that was accounted for has been taken.")
        self.step += 1
        self._share_left = 1.0
        self._batch = replace(batch or Batch(), members=members)

    def admit(self, query: PrivateQuery, rows: PrivateRows) -> Request:
        """Deduct a query's shares from what is left of the step, and return its request to the rows."""
        for part in query.releases:
            if not (part.share > 0 and 0 <= part.sensitivity < math.inf):
                raise RuntimeError(f"a released array needs a share and a finite sensitivity: {part}.")
        self._share_left -= sum(part.share for part in query.releases)
        if self._share_left < -_ROUNDING:
            raise RuntimeError("the shares of a step's queries sum to more than 1.")
        resolution = None
        if self.noise.needs_grid:
            if rows.grid is None:
                raise RuntimeError("discrete noise needs rows on a grid.")
            bound = max(part.sensitivity for part in query.releases)
            resolution = sum_resolution(rows.n_rows, rows.grid, bound)
        return Request(query, self._batch, resolution)

    def add_noise(
        self, query: PrivateQuery, arrays: Sequence[FloatArray], grid: float | None
    ) -> tuple[FloatArray, ...]:
        """Add noise to each array; discrete noise needs multiples of ``grid``."""
        if len(arrays) != len(query.releases):
            raise RuntimeError("a query must describe each array that it releases.")
        if self.before_noise is not None:
            self.before_noise()
            self.before_noise = None
        noisy = []
        for part, array in zip(query.releases, arrays, strict=True):
            noisy.append(self.noise.add_noise(array, self.noise_scale(part), grid))
        return tuple(noisy)

    def noise_scale(self, part: ReleasedArray) -> float:
        """Standard deviation of the noise for an array."""
        return self.noise_multiplier * part.sensitivity / math.sqrt(part.share)


@dataclass(frozen=True)
class Released:
    """The noisy arrays that answer a query, and the sensitivity of each, rounding of sums included."""

    stated: tuple[ReleasedArray, ...]
    arrays: tuple[FloatArray, ...]


# Warnings of overflow, or errors where the user's settings ask for them, would reveal that a row overflows.
@np.errstate(all="ignore")
def release(rows: PrivateRows, pairs: Sequence[tuple[GaussianMechanism, PrivateQuery]]) -> list[Released]:
    """Noisy answers to the queries of one or several runs, from one pass over the rows."""
    requests = [mechanism.admit(query, rows) for mechanism, query in pairs]
    recorder = current_recorder.get()
    if recorder is not None:
        requests = [recorder.without_absent(request, rows) for request in requests]
    watched: list[Observation] = []
    if rows.record is not None:
        watched = [Observation(request, rows.n_rows) for request in requests]
        requests = [observation.request for observation in watched]
    sums = rows.private_sums(requests)
    answers = []
    for (mechanism, query), request, exact in zip(pairs, requests, sums, strict=True):
        error = rows.sum_error(request)
        stated = replace(query, releases=tuple(part.as_computed(error) for part in query.releases))
        if watched:
            lengths = watched.pop(0).lengths(stated.releases)
            for part, moved in zip(stated.releases, lengths, strict=True):
                rows.record.add(moved, part.sensitivity, mechanism.noise_scale(part))
        # Entries of the sums are integer multiples of the grid.
        grid = None if rows.grid is None or request.resolution is None else rows.grid * request.resolution
        present = [part for part in exact if part is not None]
        noisy = mechanism.add_noise(stated, query.assemble(present), grid)
        if recorder is not None:
            scales = tuple(mechanism.noise_scale(part) for part in stated.releases)
            recorder.releases.append(RecordedRelease(stated, noisy, scales))
        answers.append(Released(stated.releases, noisy))
    return answers
