"""Sensitivity of a module's outputs to its parameters, estimated on public rows.

``J`` is the Jacobian (k, p) of one row's outputs in the trained parameters; for a linear module with
weights (k, d_in) it holds the row itself, once for each output.
"""

import math

import torch
from torch import Tensor

from .directions import Direction, Seeded, dot
from .forward import ModuleParameters, differentiable_outputs

#: Products with random signs whose mean square length is measured.
_DRAWS = 4
#: Products of the power method, and the length of the step that gives ``J v``.
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
    """Largest eigenvalue of the mean of ``J^T J`` over rows, by the power method.

    ``J v`` is a difference of outputs on both sides of the parameters, which works for any module.
    """
    vector = Direction(((1.0, Seeded(seed)),)).formed(parameters.tensors)
    value = 0.0
    for _ in range(_ROUNDS):
        length = math.sqrt(dot(vector, vector))
        if length == 0:  # nothing moves the outputs
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


def _pull(parameters: ModuleParameters, outputs: Tensor, weights: Tensor) -> list[Tensor]:
    """``J^T weights``, summed over rows."""
    gradients = torch.autograd.grad(outputs, parameters.leaves, weights, allow_unused=True)
    return [
        torch.zeros_like(tensor) if gradient is None else gradient
        for tensor, gradient in zip(parameters.tensors, gradients, strict=True)
    ]
