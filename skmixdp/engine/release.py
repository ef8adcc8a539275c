"""The door: the only place where numbers leave private rows.

A *door* belongs to one run. In each step it lets through questions whose shares sum to at most
1; every released array gets Gaussian noise of standard deviation
``noise_multiplier * sensitivity / sqrt(share)``. With one row zeroed out, array j moves by at
most ``sensitivity_j``, rounding included: the row source states how much that can be, and it is
added to what the clip guarantees. So the step as a whole is ``sqrt(sum_j share_j) / noise_multiplier``-
Gaussian-DP: one Gaussian release of the plan's multiplier, and the plan allows ``n_steps``.
"""

import math
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..components.contracts import Part, Question
from ..privacy import NoiseSource
from ..rows import PrivateRows, Request, sum_resolution

FloatArray = NDArray[np.floating[Any]]

_ROUNDING = 1e-12


class Door:
    """Lets one run's questions through, within its plan.

    Parameters
    ----------
    noise_multiplier : float
        Noise standard deviation of a step, in units of its sensitivity.
    n_steps : int
        Number of steps that were paid for.
    noise : NoiseSource
        Source of the noise.

    Raises
    ------
    RuntimeError
        From any method, if a run asks for more than was paid for.
    """

    def __init__(self, noise_multiplier: float, n_steps: int, noise: NoiseSource) -> None:
        self._noise_multiplier = noise_multiplier
        self._steps_left = n_steps
        self._noise = noise
        self._share_left = 0.0
        self._batch: NDArray[np.bool_] | None = None

    def begin_step(self, batch: NDArray[np.bool_] | None) -> None:
        """Start a step on a batch; what the last step left unused is gone."""
        if self._steps_left < 1:
            raise RuntimeError("every step that was paid for has been taken.")
        self._steps_left -= 1
        self._share_left = 1.0
        self._batch = batch

    def admit(self, question: Question, rows: PrivateRows) -> Request:
        """Charge a question's shares to the step; the request that it makes of the rows."""
        for part in question.parts:
            if not (part.share > 0 and 0 <= part.sensitivity < math.inf):
                raise RuntimeError(f"a released part needs a share and a finite sensitivity: {part}.")
        self._share_left -= sum(part.share for part in question.parts)
        if self._share_left < -_ROUNDING:
            raise RuntimeError("the shares of a step's questions sum to more than 1.")
        resolution = None
        if self._noise.needs_grid:
            if rows.grid is None:
                raise RuntimeError("hardened noise needs rows on a grid.")
            bound = max(part.sensitivity for part in question.parts)
            resolution = sum_resolution(rows.n_rows, rows.grid, bound)
        return Request(
            question.points,
            question.contribute,
            self._batch,
            resolution,
            wide_sums=question.wide_sums,
            n_head=question.n_head,
            run=self,
        )

    def perturb(
        self, question: Question, arrays: Sequence[FloatArray], grid: float | None
    ) -> tuple[FloatArray, ...]:
        """Add each part's noise to its array; hardened noise needs multiples of ``grid``."""
        if len(arrays) != len(question.parts):
            raise RuntimeError("a question must state one part for each array that it releases.")
        noisy = []
        for part, array in zip(question.parts, arrays, strict=True):
            scale = self._noise_multiplier * part.sensitivity / math.sqrt(part.share)
            noisy.append(self._noise.perturb(array, scale, grid))
        return tuple(noisy)


def release(
    rows: PrivateRows, visits: Sequence[tuple[Door, Question]]
) -> list[tuple[tuple[Part, ...], tuple[FloatArray, ...]]]:
    """Noisy answers to the questions of one or several runs, from one pass over the rows.

    Each comes with its parts as they were released: their sensitivities include the rounding of sums.
    """
    requests = [door.admit(question, rows) for door, question in visits]
    sums = rows.private_sums(requests)
    answers = []
    for (door, question), request, answer in zip(visits, requests, sums, strict=True):
        error = rows.sum_error(request)
        stated = replace(question, parts=tuple(part.as_computed(error) for part in question.parts))
        noisy = door.perturb(stated, question.assemble(answer), _grid(rows, request))
        answers.append((stated.parts, noisy))
    return answers


def _grid(rows: PrivateRows, request: Request) -> float | None:
    """Of what the entries of a request's sums are whole multiples."""
    if rows.grid is None or request.resolution is None:
        return None
    return rows.grid * request.resolution
