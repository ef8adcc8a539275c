"""Gradients of a module's losses, one for each row, as the rows of a linear head with one output.

To the queries, a module with p trained parameters is a head ``W`` (1, p). A row is the gradient of its own
loss at ``W``, and its residual is 1. So clips, steps, weights and the stated rounding are those of heads.

Each gradient is that of a pass of one row, mapped over the rows by ``torch.func.vmap``. Passes have the
shapes and places of :mod:`~skmixdp._torch.modules.rows`. So the computed gradient of a row depends on
that row alone, which :func:`~skmixdp._torch.modules.probe.check_forward` tests bit by bit.
"""

from collections.abc import Iterator, Sequence
from functools import cached_property
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch.nn.attention import SDPBackend, sdpa_kernel

from ..._linear.arrays import row_norm_bounds
from ..._linear.products import add_products
from ..._linear.sums import SumError
from ..._rows.blockwise import Arithmetic, Visit, answer
from ..._rows.source import Block, Request, Sums
from .forward import LabelledRows, Losses, ModuleParameters, PerSampleLoss, flat, separately
from .public import ModuleData, ModuleLoss, View, mean_gradient
from .rows import ModuleRows

FloatArray = NDArray[np.float64]


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

    *Guarantee*: weighted gradients are multiplied and added in float64, and :meth:`sum_error` states by how
    much rounding can move the sums. The weights are those of a clip, for upper bounds on the norms.
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


class GradientData(ModuleData):
    """Labelled public rows of a module, for steps of first order from a head (1, p)."""

    def __init__(
        self,
        rows: LabelledRows,
        loss: ModuleLoss,
        seed: int,
        parameters: ModuleParameters,
        made_up: Tensor | None = None,
    ) -> None:
        super().__init__(rows, loss, seed, made_up)
        self._start = parameters
        self.gradients = row_gradients(parameters, loss.function)

    def view(self, W: Any) -> "GradientView":  # type: ignore[override]
        """The view of the rows at a head (1, p)."""
        return GradientView(self, W)


class GradientView(View):
    """Public rows at the parameters ``W`` (1, p) of a module, for steps of first order."""

    data: GradientData
    W: FloatArray

    @cached_property
    def gradient(self) -> FloatArray:
        """Mean gradient (1, p) over all public rows."""
        data = self.data
        data.parameters.place(self.W)
        return flat(mean_gradient(data.parameters, data.function, data.rows, np.arange(data.n_rows)))

    @cached_property
    def gradient_norms(self) -> FloatArray:
        """L2 norm of each row's gradient, shape (n_pub,)."""
        data = self.data
        data.parameters.place(self.W)
        chunks = gradients_of(data.gradients, data.parameters, data.rows, np.arange(data.n_rows))
        return np.concatenate([np.empty(0), *(norms for _, norms in chunks)])
