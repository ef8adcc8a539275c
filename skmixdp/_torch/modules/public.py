"""Public rows and a module: gradients, directions and the scale of the outputs."""

import math
from collections.abc import Sequence
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
from .forward import LabelledRows, ModuleParameters, PerSampleLoss, differentiable_outputs
from .rows import LossesAt

#: Number of products with random signs whose mean square length is measured.
_DRAWS = 4
#: Number of products in the power method, and the step for the finite difference ``J v``.
_ROUNDS = 10
_STEP = 1e-2


def mean_squared_length(parameters: ModuleParameters, x: Tensor, seed: int) -> float:
    """Mean squared length of an output's gradient, over rows ``x`` and outputs (unbiased)."""
    generator = torch.Generator(x.device).manual_seed(seed)
    total = 0.0
    for _ in range(_DRAWS):
        outputs = differentiable_outputs(parameters, x)
        signs = torch.randint(0, 2, outputs.shape, generator=generator, device=x.device) * 2 - 1
        product = _pull(parameters, outputs, signs.to(outputs.dtype))
        total += dot(product, product) / outputs.numel()
    return total / _DRAWS


def largest_second_moment(parameters: ModuleParameters, x: Tensor, seed: int) -> float:
    """Largest eigenvalue of the mean of ``J^T J`` over rows, by the power method."""
    vector = Direction(((1.0, Seeded(seed)),)).formed(parameters.tensors)
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


def mean_gradient(
    parameters: ModuleParameters, loss: PerSampleLoss, rows: LabelledRows, batch: NDArray[np.intp]
) -> list[Tensor]:
    """Mean gradient over a batch of PUBLIC rows; zeros for an empty one."""
    total = [torch.zeros_like(tensor) for tensor in parameters.tensors]
    for x, y in rows.pieces(batch, parameters):
        outputs = differentiable_outputs(parameters, x)
        with torch.enable_grad():
            mean = loss(outputs, y).sum() / len(batch)
        gradients = torch.autograd.grad(mean, parameters.leaves, allow_unused=True)
        for part, gradient in zip(total, gradients, strict=True):
            if gradient is not None:
                part.add_(gradient)
    return total


def _pull(parameters: ModuleParameters, outputs: Tensor, weights: Tensor) -> list[Tensor]:
    """``J^T weights``, summed over rows."""
    gradients = torch.autograd.grad(outputs, parameters.leaves, weights, allow_unused=True)
    return [
        torch.zeros_like(tensor) if gradient is None else gradient
        for tensor, gradient in zip(parameters.tensors, gradients, strict=True)
    ]


FloatArray = NDArray[np.floating[Any]]

#: Number of public or made-up rows that show the scale of a module's outputs.
SCALE_ROWS = 256


@dataclass(frozen=True)
class ModuleLoss:
    """A per-sample loss of a module's outputs, with the constants that step rules need.

    ``curvature`` and ``noise_per_output`` are those of :class:`SoftmaxLoss`; the latter is divided by the
    change of an output for a parameter change of length 1.

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

    ``made_up`` are rows of the module's input shape that take the place of public ones where the scale of
    the outputs is estimated; None if there are public rows, or no rule needs it.
    """

    def __init__(
        self, rows: LabelledRows, loss: ModuleLoss, seed: int, made_up: Tensor | None = None
    ) -> None:
        self.rows = rows
        self.function = loss.of_public
        self._loss = loss
        self._seed = seed
        self._made_up = made_up
        self._start: ModuleParameters | None = None
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
        if self._start is None:
            self._start = W
        return ModuleView(self, W)

    @cached_property
    def loss(self) -> Any:
        """The loss, scaled by the effect of the parameters on the outputs."""
        loss = self._loss
        if self._has_sample:
            length = math.sqrt(mean_squared_length(*self._sample, self._seed))
            loss = replace(loss, noise_per_output=loss.noise_per_output / max(length, 1e-12))
        return WeightedLoss(loss) if loss.weighted else loss  # type: ignore[arg-type]

    def largest_second_moment(self, row_norm_bound: float) -> float:
        """Largest eigenvalue of the mean of ``J^T J`` at the start; infinite without rows."""
        return largest_second_moment(*self._sample, self._seed) if self._has_sample else math.inf

    @property
    def _has_sample(self) -> bool:
        return self.n_rows > 0 or self._made_up is not None

    @property
    def _sample(self) -> tuple[ModuleParameters, Tensor]:
        """The start, and some public or made-up rows."""
        return self.parameters, self.sample

    @property
    def parameters(self) -> ModuleParameters:
        """The parameters, which a fit moves in place."""
        assert self._start is not None
        return self._start

    @cached_property
    def sample(self) -> Tensor:
        """Some public or made-up rows, at least one."""
        if self._made_up is not None:
            return self._made_up
        index = np.arange(self.n_rows)[:: math.ceil(self.n_rows / SCALE_ROWS)]
        return next(self.rows.pieces(index, self.parameters, len(index)))[0]

    def centred_outputs(self) -> FloatArray:
        """Outputs (n, k) of the sample at the present parameters, less their means; (1, 1) without rows."""
        if not self._has_sample:
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
