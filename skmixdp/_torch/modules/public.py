"""Public rows and a module: gradients, directions, the scale of the outputs, and the warm start."""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, NoReturn

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from ..._linear.losses import WeightedLoss
from ...components.public import Probe, RandomSource
from .directions import Direction, Seeded, dot, orthonormal
from .forward import (
    LabelledRows,
    Losses,
    ModuleParameters,
    PerSampleLoss,
    differentiable_outputs,
    flat,
    losses_of,
)
from .rows import FloatArray, LossesAt, gradients_of, row_gradients

#: Number of public or made-up rows that show the scale of a module's outputs.
SCALE_ROWS = 256

#: Number of products with random signs whose mean square length is measured.
_DRAWS = 4
#: Number of products in the power method, and the step for the finite difference ``J v``.
_ROUNDS = 10
_STEP = 1e-2

_RATES = (1e-2, 1e-3, 1e-4)
_BATCH = 32
#: One row in five is held out to choose the rate and the number of epochs, if there are at least this number
#: of rows.
_HELD_OUT = 5
_FEWEST_ROWS = 10
_FEW_EPOCHS = 10
#: Most epochs and steps, and epochs without a smaller held-out loss after which a run ends.
_EPOCHS = 100
_STEPS = 1000
_PATIENCE = 10


def mean_gradient(
    parameters: ModuleParameters, loss: PerSampleLoss, rows: LabelledRows, batch: NDArray[np.intp]
) -> list[Tensor]:
    """Mean gradient over a batch of PUBLIC rows; zeros for an empty one."""
    total = [torch.zeros_like(tensor) for tensor in parameters.tensors]
    for x, y in rows.pieces(batch, parameters):
        for part, gradient in zip(total, _gradients(parameters, loss, x, y, len(batch)), strict=True):
            part.add_(gradient)
    return total


def _gradients(
    parameters: ModuleParameters, loss: PerSampleLoss, x: Tensor, y: Tensor, n: int
) -> tuple[Tensor, ...]:
    """Gradients of the summed loss of rows, divided by ``n``."""
    outputs = differentiable_outputs(parameters, x)
    with torch.enable_grad():
        mean = loss(outputs, y).sum() / n
    return torch.autograd.grad(mean, parameters.leaves, materialize_grads=True)


def _pull(parameters: ModuleParameters, outputs: Tensor, weights: Tensor) -> list[Tensor]:
    """``J^T weights``, summed over rows."""
    return [*torch.autograd.grad(outputs, parameters.leaves, weights, materialize_grads=True)]


@dataclass(frozen=True)
class ModuleLoss:
    """A per-sample loss of a module's outputs, with the constants that step rules need.

    If ``weighted``, the labels of private rows carry weights. Public rows count by ``by_class`` (k,), of mean
    1 over them; None stands for ones.
    """

    function: PerSampleLoss
    n_outputs: int
    name: str = "a module's loss"
    curvature: float = 0.5
    noise_per_output: float = 0.75
    quadratic: bool = False
    sum_to_zero: bool = False
    has_classes: bool = True
    lipschitz: float = math.inf
    weighted: bool = False
    by_class: NDArray[np.float64] | None = None

    def of_public(self, outputs: Tensor, y: Tensor) -> Tensor:
        """Weighted loss of each public row."""
        losses = self.function(outputs, y)
        return losses if self.by_class is None else losses * torch.from_numpy(self.by_class).to(losses)[y]

    def residuals(self, Z: FloatArray, y: NDArray[Any]) -> FloatArray:
        """The residual 1 (n, 1) of each row, since a row of first order is the gradient of its own loss."""
        return np.ones_like(Z)

    def values(self, Z: FloatArray, y: NDArray[Any]) -> FloatArray:
        """Loss of each row, shape (n,)."""
        losses = self.function(torch.from_numpy(np.array(Z)), torch.from_numpy(np.array(y, dtype=np.int64)))
        return np.asarray(losses.numpy())


class ModuleData:
    """Labelled public rows of a module.

    ``made_up`` rows take the place of public ones where the scale of the outputs is estimated; None if there
    are public rows, or no rule needs it.
    """

    def __init__(
        self,
        rows: LabelledRows,
        loss: ModuleLoss,
        seed: int,
        parameters: ModuleParameters,
        made_up: Tensor | None = None,
    ) -> None:
        self.rows = rows
        self.parameters = parameters
        self.function = loss.of_public
        self._loss = loss
        self._seed = seed
        self._made_up = made_up
        #: Number of steps that were skipped, since a number would have become infinite.
        self.n_left_out = 0

    @property
    def n_rows(self) -> int:
        """Number of public rows."""
        return len(self.rows)

    @property
    def y(self) -> NDArray[Any]:
        """Class indices of the public rows."""
        return self.rows.y

    def view(self, W: ModuleParameters) -> "ModuleView":
        """The view of the rows at the parameters, valid until these change."""
        return ModuleView(self, W)

    @cached_property
    def sample(self) -> Tensor | None:
        """Some public or made-up rows; None if there are none."""
        if self._made_up is not None or not self.n_rows:
            return self._made_up
        index = np.arange(self.n_rows)[:: math.ceil(self.n_rows / SCALE_ROWS)]
        return next(self.rows.pieces(index, self.parameters, len(index)))[0]

    @cached_property
    def loss(self) -> Any:
        """The loss, scaled by the effect of the parameters on the outputs."""
        loss = self._loss
        if self.sample is not None:
            length = math.sqrt(self._mean_squared_length(self.sample))
            loss = replace(loss, noise_per_output=loss.noise_per_output / max(length, 1e-12))
        return WeightedLoss(loss) if loss.weighted else loss  # type: ignore[arg-type]

    def _mean_squared_length(self, x: Tensor) -> float:
        """Mean squared length of an output's gradient, over rows ``x`` and outputs (unbiased)."""
        generator = torch.Generator(x.device).manual_seed(self._seed)
        total = 0.0
        for _ in range(_DRAWS):
            outputs = differentiable_outputs(self.parameters, x)
            signs = torch.randint(0, 2, outputs.shape, generator=generator, device=x.device) * 2 - 1
            product = _pull(self.parameters, outputs, signs.to(outputs.dtype))
            total += dot(product, product) / outputs.numel()
        return total / _DRAWS

    def largest_second_moment(self, row_norm_bound: float) -> float:
        """Largest eigenvalue of the mean of ``J^T J`` at the start, by power method; infinite if no rows."""
        parameters, x = self.parameters, self.sample
        if x is None:
            return math.inf
        vector = Direction(((1.0, Seeded(self._seed)),)).formed(parameters.tensors)
        value = 0.0
        for _ in range(_ROUNDS):
            length = math.sqrt(dot(vector, vector))
            if length == 0:  # no parameter changes the outputs
                return 0.0
            step = 1 / length * Direction.dense(vector)
            parameters.move(step, _STEP)
            with torch.no_grad():
                above = parameters.module(x)
            parameters.move(step, -2 * _STEP)
            with torch.no_grad():
                below = parameters.module(x)
            parameters.move(step, _STEP)
            outputs = differentiable_outputs(parameters, x)
            vector = _pull(parameters, outputs, (above - below) / (2 * _STEP * len(x)))
            value = math.sqrt(dot(vector, vector))
        return value

    def centred_outputs(self) -> FloatArray:
        """Outputs (n, k) of the sample at the present parameters, less their means; (1, 1) without rows."""
        if self.sample is None:
            return np.zeros((1, 1))
        with torch.no_grad():
            Z = self.parameters.module(self.sample).double().cpu().numpy()
        return np.asarray(Z - Z.mean(axis=1, keepdims=True))

    @property
    def solution(self) -> NoReturn:
        """Not available, since public rows alone do not determine a module."""
        raise ValueError(
            "public_weight='convex' needs the public fit of a linear head; pass a number, 'sample', 'cosine' "
            "or 'coupling' for a module."
        )

    halves = solution


class View:
    """Public rows at a module's parameters."""

    def __init__(self, data: Any, W: Any) -> None:
        self.data = data
        self.W = W

    @property
    def n_parameters(self) -> int:
        """Number of trained parameters."""
        size: int = self.W.size
        return size


class ModuleView(View):
    """Public rows at a module's parameters, for zeroth-order steps; directions are :class:`Direction`."""

    data: ModuleData
    W: ModuleParameters

    @cached_property
    def gradient(self) -> Direction:
        """Mean gradient over all public rows."""
        return self.batch_gradients([np.arange(self.data.n_rows)])[0]

    def random_directions(
        self, source: RandomSource, count: int, radius: float, *, sphere: bool
    ) -> list[Direction]:
        """Directions, stored as seeds, uniform on a sphere or Gaussian of that root mean square length."""
        directions = []
        for draw in source.uniform((count,)):
            direction = Direction(((1.0, Seeded(int(draw * 2**53))),))
            length = direction.norm(self.W.tensors) if sphere else math.sqrt(self.n_parameters)
            directions.append(radius / length * direction)
        return directions

    def combine(self, weights: FloatArray, directions: Sequence[Direction]) -> Direction:
        """``sum_j weights_j directions_j``."""
        return sum(
            (float(weight) * direction for weight, direction in zip(weights, directions, strict=True)),
            start=Direction(()),
        )

    def batch_gradients(self, batches: Sequence[NDArray[np.intp]]) -> list[Direction]:
        """Mean gradient over each batch of public rows."""
        data = self.data
        return [Direction.dense(mean_gradient(self.W, data.function, data.rows, batch)) for batch in batches]

    def orthonormal(self, directions: Sequence[Direction]) -> list[Direction]:
        """Orthonormal directions of the same span, fewer if they are linearly dependent."""
        return orthonormal(directions, self.W.tensors)

    def unit(self, directions: Sequence[Direction]) -> list[Direction]:
        """Each direction at length 1; a direction of zeros stays as it is."""
        return [1 / (direction.norm(self.W.tensors) or 1.0) * direction for direction in directions]

    def probe(self, directions: Sequence[Direction], moves: Sequence[tuple[int, float]]) -> Probe:
        """The query for losses at ``W + step * directions[j]``, for each ``(j, step)`` in ``moves``."""
        return Probe(LossesAt(self.W, directions, moves), lambda losses, y: losses)

    def moved(self, direction: Direction, step: float) -> ModuleParameters:
        """The parameters plus ``step`` times a direction: the same object, changed in place."""
        self.W.move(direction, step)
        return self.W


class GradientData(ModuleData):
    """Labelled public rows of a module, for steps of first order from a head (1, p)."""

    @cached_property
    def gradients(self) -> Losses:
        """A function that computes the gradient of each row."""
        return row_gradients(self.parameters, self._loss.function)

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


def warm_start(
    parameters: ModuleParameters, rows: LabelledRows, loss: PerSampleLoss, source: RandomSource
) -> None:
    """Train the parameters on public rows by Adam, in place.

    Each rate trains without the rows that are held out, until their loss has not fallen for a while. The rate
    and number of epochs with the lowest loss then train the start on all rows; if none lowered it, nothing
    changes. A few rows train for 10 epochs at rate 1e-3.
    """
    everything = np.arange(len(rows))
    start = [tensor.clone() for tensor in parameters.tensors]
    rate, epochs = 1e-3, _FEW_EPOCHS
    if len(rows) >= _FEWEST_ROWS:
        by_class = np.argsort(rows.y, kind="stable")
        held_out = by_class[_HELD_OUT - 1 :: _HELD_OUT]
        trained = np.setdiff1d(everything, held_out)
        lowest, epochs = float(losses_of(parameters, loss, rows, held_out).mean()), 0
        for candidate in _RATES:
            since = 0
            most = min(_EPOCHS, max(1, _STEPS * _BATCH // len(trained)))
            for epoch, _ in enumerate(_train(parameters, rows, loss, trained, candidate, most, source), 1):
                value = float(losses_of(parameters, loss, rows, held_out).mean())
                since += 1
                if value < lowest:
                    lowest, rate, epochs, since = value, candidate, epoch, 0
                if since == _PATIENCE:
                    break
            parameters.assign(start)
    for _ in _train(parameters, rows, loss, everything, rate, epochs, source):
        pass


def _train(
    parameters: ModuleParameters,
    rows: LabelledRows,
    loss: PerSampleLoss,
    index: NDArray[np.intp],
    rate: float,
    epochs: int,
    source: RandomSource,
) -> Iterator[None]:
    """Train by Adam, and yield after each epoch."""
    optimizer = torch.optim.Adam(parameters.leaves, lr=rate)
    for _ in range(epochs):
        order = index[np.argsort(source.uniform((len(index),)))]
        for x, y in rows.pieces(order, parameters, _BATCH):
            gradients = _gradients(parameters, loss, x, y, len(y))
            for parameter, gradient in zip(parameters.leaves, gradients, strict=True):
                parameter.grad = gradient
            optimizer.step()
        optimizer.zero_grad()
        yield
