"""The row source for modules: private rows answer queries with losses or clipped gradients.

The computed contribution of a row depends on that row alone, and the sensitivity includes rounding:

- Passes have the same shapes, with each row in the same place, whatever another row is and whether it is in
  a random batch (:func:`~skmixdp._rows.blockwise.rounds`).
- At a given shape, a module that processes each row separately gives a row the same bits for any values of
  other rows. :func:`~skmixdp._torch.modules.probe.check_forward` tests this. Infinities and NaN stay in
  their row, and so do errors (:func:`~skmixdp._torch.modules.forward.separately`).
- Contributions are clipped in float64, and sums are shortened by more than their rounding.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from ..._linear.sums import EXACT, SumError
from ..._rows.blockwise import n_lanes, rounds
from ..._rows.source import Block, PrivateRows, Request, Sums, truncated
from ..._utils.process import LEFT_OUT
from .directions import Direction
from .forward import LabelledRows, Losses, ModuleParameters, PerSampleLoss, losses_of

#: Most rows in a pass of a random batch.
_BATCH_ROWS = 256

#: The number of lanes of a random batch is a multiple of this; see :func:`~skmixdp._rows.blockwise.n_lanes`.
_LANES = 16

#: Rows in a group that is summed in float64; the sums of groups are added without rounding.
_GROUP_ROWS = 32


@dataclass(frozen=True)
class LossesAt:
    """Points of a query: losses at the parameters plus ``step * directions[j]`` for each of the ``moves``."""

    parameters: ModuleParameters
    directions: Sequence[Direction]
    moves: Sequence[tuple[int, float]]


class ModuleRows(PrivateRows):
    """Private rows that answer with losses, computed by forward passes of a module.

    ``contribute`` gets losses (rows, m), one column for each move, instead of products, and returns
    statistics alone.

    *Guarantee*: rows pass through the module under ``torch.no_grad``, in evaluation mode, and only sums of
    statistics are released. If these are at most B in absolute value, zeroing out one row moves each sum by
    at most B, rounding included. Sums on a grid are ``exact``; :func:`_rounded_sums` computes others.
    """

    #: A function that computes gradients of rows, if queries need them.
    gradients: Losses | None = None

    def __init__(self, rows: LabelledRows, loss: PerSampleLoss, *, exact: bool = False) -> None:
        self._rows = rows
        self._loss = loss
        self.n_rows = len(rows)
        self.grid = 1.0 if exact else None

    def at(self, W: Any) -> ModuleParameters:
        """The parameters at the point ``W`` of a fit; here ``W`` is the parameters."""
        parameters: ModuleParameters = W
        return parameters

    def check(self, parameters: ModuleParameters) -> None:
        """Pass all rows through the module before the charge; that none fails counts as public."""
        failed = False
        try:
            with torch.no_grad():
                for x, y in self._rows.pieces(None, parameters):
                    self._loss(parameters.module(x), y)
        except (MemoryError, torch.OutOfMemoryError):
            raise
        except Exception:  # its message may quote rows
            failed = True
        if failed:
            raise ValueError(
                f"module or loss fails on private rows with {LEFT_OUT}; correct or drop those rows, for "
                "example codes out of range."
            )

    def rows_in_pass(self, rate: float) -> int:
        """Number of rows in a pass, for batches of a sampling rate."""
        size = min(self._rows.chunk_size, self.n_rows)
        return min(n_lanes([rate], self.n_rows, _LANES), _BATCH_ROWS, size) or size

    def order(self, request: Request) -> NDArray[np.intp] | None:
        """Order in which rows pass, :meth:`rows_in_pass` at a time; None is all rows in their order."""
        taking_part, size = request.batch.mask, self.rows_in_pass(request.batch.rate)
        if taking_part is None or not n_lanes([request.batch.rate], self.n_rows, _LANES):
            return None
        return np.concatenate(list(rounds(taking_part, size)))

    def private_sums(self, requests: Sequence[Request]) -> list[Sums]:
        return [self._sums(request) for request in requests]

    def sum_error(self, request: Request) -> SumError:
        return EXACT  # or covered by :func:`_rounded_sums`

    def _sums(self, request: Request) -> Sums:
        batch = request.batch
        index, taking_part, size = self.order(request), batch.mask, self.rows_in_pass(batch.rate)
        y = self._rows.y if index is None else self._rows.y[index]
        # The length of a row does not bound its contribution.
        block = Block(np.empty((len(y), 0)), y, np.full(len(y), math.inf))
        C, S = request.query.contribute(self._losses(request.query.points, index, size), block)
        if C is not None or S is None:
            raise RuntimeError("the rows of a module answer with statistics alone.")
        S = np.asarray(S)
        if taking_part is not None:
            S[~taking_part if index is None else ~taking_part[index]] = 0
        if request.resolution is not None:
            S = truncated(S, request.resolution)
            return None, S.sum(axis=0, dtype=np.float64)
        return None, _rounded_sums(S, self.n_rows)

    def _losses(self, points: LossesAt, index: NDArray[np.intp] | None, size: int) -> NDArray[np.float64]:
        parameters, moves = points.parameters, points.moves
        losses = np.empty((self.n_rows if index is None else len(index), len(moves)))
        for j, direction in enumerate(points.directions):
            # Move directly from one side to the other, since each move draws the direction again.
            at = 0.0
            for column, step in [(c, step) for c, (i, step) in enumerate(moves) if i == j]:
                parameters.move(direction, step - at)
                at = step
                losses[:, column] = losses_of(parameters, self._loss, self._rows, index, size)
            parameters.move(direction, -at)
        return losses


def _rounded_sums(S: NDArray[np.floating[Any]], n_rows: int) -> NDArray[np.float64]:
    """Sums (q,) of the columns of ``S`` (rows, q), shortened by more than rounding may have added.

    Let u = 2**-53 and all entries be at most B in absolute value. Sums of 32 numbers, in any order, have an
    error of at most 31 u 32 B (Higham 2002, section 4.2). ``math.fsum`` rounds the sum of those once, and
    the product below rounds once more: at most 34 u n B in all. Zeroing out one row then moves a result by
    at most (1 - 128 u n) (B + 68 u n B) < B. For ten million rows, the sums are shortened by one part in
    seven million.
    """
    shorter = 1 - n_rows * 2.0**-46
    if not len(S):
        return np.zeros(S.shape[1])
    few = np.add.reduceat(S, np.arange(0, len(S), _GROUP_ROWS), axis=0, dtype=np.float64)
    return np.array([shorter * math.fsum(column) for column in few.T.tolist()])
