"""Private rows answer queries with losses of a module, or with clipped gradients of losses.

The computed contribution of a row depends on that row alone, and the sensitivity includes rounding:

- Passes have the same shapes, with each row in the same place, whatever another row is and whether it is in
  a random batch (:func:`~skmixdp._rows.blockwise.rounds`).
- At a given shape, a module that processes each row separately gives a row the same bits for any values of
  other rows. :func:`~skmixdp._torch.modules.probe.check_forward` tests this. Infinities and NaN stay in
  their row, and so do errors (:func:`~skmixdp._torch.modules.forward.separately`).
- Contributions are clipped in float64, and sums are shortened by more than their rounding, or the stated
  rounding covers them.

For gradients, a module with p trained parameters is a head ``W`` (1, p) with one output. A row is the
gradient of its own loss at ``W``, mapped over the rows by ``torch.func.vmap``, and its residual is 1. So
clips, steps, weights and the stated rounding are those of heads.
"""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch.nn.attention import SDPBackend, sdpa_kernel

from ..._linear.arrays import row_norm_bounds
from ..._linear.products import add_products
from ..._linear.sums import EXACT, SumError
from ..._rows.blockwise import Arithmetic, Visit, answer, n_lanes, rounds
from ..._rows.source import Block, PrivateRows, Request, Sums, truncated
from ..._utils.process import LEFT_OUT
from .directions import Direction
from .forward import LabelledRows, Losses, ModuleParameters, PerSampleLoss, losses_of, separately

FloatArray = NDArray[np.float64]

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
    statistics alone. *Guarantee*: if these are at most B in absolute value, zeroing out one row moves each
    sum by at most B, rounding included. Sums on a grid are ``exact``; :func:`_rounded_sums` computes others.
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
    error of at most 31 u 32 B (Higham 2002, section 4.2). ``math.fsum`` and the product below round once
    each: at most 34 u n B in all. Zeroing out one row then moves a result by at most
    (1 - 128 u n) (B + 68 u n B) < B.
    """
    shorter = 1 - n_rows * 2.0**-46
    if not len(S):
        return np.zeros(S.shape[1])
    few = np.add.reduceat(S, np.arange(0, len(S), _GROUP_ROWS), axis=0, dtype=np.float64)
    return np.array([shorter * math.fsum(column) for column in few.T.tolist()])


def row_gradients(parameters: ModuleParameters, loss: PerSampleLoss) -> Losses:
    """A function of rows and class indices: the gradients (n, p) of losses at the present parameters."""
    values = dict(zip(parameters.names, parameters.tensors, strict=True))

    def loss_of_row(values: dict[str, Tensor], x: Tensor, y: Tensor) -> Tensor:
        return loss(torch.func.functional_call(parameters.module, values, (x[None],)), y[None]).sum()

    of_rows = torch.func.vmap(torch.func.grad(loss_of_row), in_dims=(None, 0, 0))

    def gradients(x: Tensor, y: Tensor) -> Tensor:
        # The default kernels of attention do not support vmap.
        with torch.no_grad(), sdpa_kernel(SDPBackend.MATH):
            by_name = of_rows(values, x, y)
        return torch.cat([by_name[name].flatten(1) for name in parameters.names], dim=1)

    return gradients


def gradients_of(
    gradients: Losses,
    parameters: ModuleParameters,
    rows: LabelledRows,
    index: NDArray[np.intp],
    chunk_size: int | None = None,
) -> Iterator[tuple[FloatArray, FloatArray]]:
    """Gradients (rows, p) in float64 of some rows, chunk by chunk, with upper bounds (rows,) on their norms.

    A gradient that cannot be computed, or whose norm is not finite, is zero.
    """
    for x, y in rows.pieces(index, parameters, chunk_size):
        G = separately(gradients, x, y, (parameters.size,))
        norms = row_norm_bounds(G)
        finite = norms < np.inf
        G[~finite] = 0
        yield G, np.where(finite, norms, 0.0)


class GradientRows(ModuleRows):
    """Private rows that answer with clipped gradients, computed by forward and backward passes of a module.

    *Guarantee*: gradients are weighted, by a clip for upper bounds on their norms, and added in float64, and
    :meth:`sum_error` states by how much rounding can move the sums.
    """

    def __init__(self, rows: LabelledRows, loss: PerSampleLoss, parameters: ModuleParameters) -> None:
        super().__init__(rows, loss)
        self.gradients = self._gradients = row_gradients(parameters, loss)
        self._parameters = parameters

    def at(self, W: Any) -> ModuleParameters:
        """The parameters, set to a head (1, p)."""
        self._parameters.place(W)
        return self._parameters

    def private_sums(self, requests: Sequence[Request]) -> list[Sums]:
        arithmetic = Arithmetic(np.float64)
        return [answer([request], self._visits(request), arithmetic)[0] for request in requests]

    def sum_error(self, request: Request) -> SumError:
        block_rows = self.rows_in_pass(request.batch.rate)
        return Arithmetic(np.float64, block_rows=block_rows).error(request, self.n_rows)

    def _visits(self, request: Request) -> Iterator[Visit]:
        parameters, size = self.at(request.query.points), self.rows_in_pass(request.batch.rate)
        index = self.order(request)
        index = np.arange(self.n_rows) if index is None else index
        chunks = gradients_of(self._gradients, parameters, self._rows, index, size)
        for start, (G, norms) in zip(range(0, len(index), size), chunks, strict=True):
            rows = index[start : start + size]
            yield _visit(rows, G, Block(G, self._rows.labels(rows), norms))


def _visit(rows: NDArray[np.intp], G: FloatArray, block: Block) -> Visit:
    """Gradients ``G`` (rows, p) as a block of rows whose residuals are 1, with the sums of ``G``."""

    def add_sum(C: Any, total: Any, panel_rows: int) -> None:
        add_products(G, C, total)

    return Visit(rows, block, lambda points: np.zeros((len(G), 1)), add_sum)
