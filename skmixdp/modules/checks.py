"""Checks of a module, its loss and its rows, each ending in one sentence that names the mend."""

import copy
import math
from collections.abc import Iterable
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from .directions import Direction, Seeded
from .forward import (
    FEWEST_STACKED,
    STACKED_SIZE,
    LabelledRows,
    ModuleParameters,
    PerSampleLoss,
    losses_together,
)

Array = NDArray[Any]


def is_module(value: Any) -> bool:
    """Whether a value is a torch module."""
    return isinstance(value, nn.Module)


def working_copy(module: nn.Module, device: Any) -> nn.Module:
    """A copy in evaluation mode, on a device; the user's module is never moved or trained."""
    return _placed(copy.deepcopy(module), device)


def trained_module(module: nn.Module, device: Any, parameters: ModuleParameters) -> nn.Module:
    """A new copy of a module with the parameters of the one that was trained, and nothing else of it."""
    trained = dict(parameters.module.named_parameters())
    taken = {
        id(given): nn.Parameter(trained[name].detach(), given.requires_grad)
        for name, given in module.named_parameters()
    }
    return _placed(copy.deepcopy(module, taken), device)


def _placed(module: nn.Module, device: Any) -> nn.Module:
    module.eval()
    return module if isinstance(device, str) and device == "auto" else module.to(device)


def trained_batch_norms(module: nn.Module) -> list[str]:
    """Names of batch normalisations that were in training mode."""
    kinds = nn.modules.batchnorm._BatchNorm
    return [name for name, part in module.named_modules() if isinstance(part, kinds) and part.training]


def select_parameters(module: nn.Module, trainable: Any) -> ModuleParameters:
    """The parameters that ``trainable`` names, by default all that require gradients."""
    every = dict(module.named_parameters())
    if not every:
        raise ValueError("module has no parameters, so there is nothing to train; pass one that has.")
    names = _selected([name for name, value in every.items() if value.requires_grad], list(every), trainable)
    short = [name for name in names if every[name].dtype not in (torch.float32, torch.float64)]
    if short:
        raise ValueError(
            f"the parameter {short[0]!r} of module is of dtype {every[short[0]].dtype}, in which small "
            "steps are lost to rounding; convert it to float32, or leave it out by trainable."
        )
    if len({value.device for value in every.values()}) > 1:
        raise ValueError("the parameters of module are on several devices; move them to one.")
    return ModuleParameters(module, names)


def _selected(by_default: list[str], every: list[str], trainable: Any) -> list[str]:
    if trainable is None:
        if not by_default:
            raise ValueError("no parameter of module requires gradients; name those to train in trainable.")
        return by_default
    if callable(trainable):
        names = [name for name in every if trainable(name)]
        if not names:
            raise ValueError(
                f"trainable={trainable!r} selects no parameter of module; it has {_some(every)}."
            )
        return names
    prefixes = [trainable] if isinstance(trainable, str) else trainable
    if not isinstance(prefixes, Iterable) or not all(isinstance(prefix, str) for prefix in prefixes):
        raise ValueError(
            f"trainable={trainable!r} must be None, a list of names of parameters or submodules, or a "
            "function of a name."
        )
    prefixes = list(prefixes)
    chosen = [name for name in every if any(_begins(name, prefix) for prefix in prefixes)]
    idle = [prefix for prefix in prefixes if not any(_begins(name, prefix) for name in every)]
    if idle or not chosen:
        unknown = repr(idle[0]) if idle else "nothing"
        raise ValueError(
            f"trainable names {unknown}, which no parameter of module begins with; it has {_some(every)}."
        )
    return chosen


def _begins(name: str, prefix: str) -> bool:
    """Whether a dotted name is another, or a part of what the other names."""
    return name == prefix or name.startswith(prefix.rstrip(".") + ".")


def _some(names: list[str], limit: int = 8) -> str:
    return ", ".join(map(repr, names[:limit])) + (", ..." if len(names) > limit else "")


def check_forward(
    parameters: ModuleParameters,
    loss: PerSampleLoss,
    rows: LabelledRows,
    n_classes: int,
    private: Array | Tensor,
) -> None:
    """Whether the loss is a number for each row that depends on this row alone.

    It is tried on public rows, or on rows of zeros and ones in the shape of private ones; no private
    row takes part.

    Raises
    ------
    ValueError
        If the module does not take the rows, its outputs are not one for each class, the loss is
        not per sample, or the loss of a row depends on other rows or on chance.
    """
    if len(rows) < 2:
        rows = _made_up(private, n_classes)
    index = np.arange(min(len(rows), 3))
    x, y = next(rows.pieces(index, parameters, 3))
    buffers = [buffer.clone() for buffer in parameters.module.buffers()]
    outputs = _forward(parameters.module, x)
    if not isinstance(outputs, Tensor) or tuple(outputs.shape) != (len(x), n_classes):
        shape = tuple(outputs.shape) if isinstance(outputs, Tensor) else type(outputs).__name__
        raise ValueError(
            f"module turns {len(x)} rows into {shape} and there are {n_classes} classes; its outputs must "
            f"have shape ({len(x)}, {n_classes})."
        )
    together = _losses(loss, outputs, y)
    alone = torch.cat(
        [_losses(loss, _forward(parameters.module, x[i : i + 1]), y[i : i + 1]) for i in range(len(x))]
    )
    near = _tolerance(parameters)
    if not torch.allclose(together, alone, rtol=near, atol=near, equal_nan=True):
        raise ValueError(
            "the loss of a row depends on rows beside it or on chance, so no clip bounds what a row does; "
            "module and loss must treat each row by itself (batch normalisation needs running statistics)."
        )
    if not all(torch.equal(a, b) for a, b in zip(buffers, parameters.module.buffers(), strict=True)):
        raise ValueError(
            "module changes its buffers in evaluation mode, and would keep what private rows left there."
        )
    parameters.stackable = _is_stackable(parameters, loss, rows)


def _made_up(private: Array | Tensor, n_classes: int) -> LabelledRows:
    kind = private.new_zeros if isinstance(private, Tensor) else lambda shape: np.zeros(shape, private.dtype)
    made_up = kind((2, *private.shape[1:]))
    made_up[1] = 1
    return LabelledRows(made_up, np.array([0, n_classes - 1]), 2)


def _forward(module: nn.Module, x: Tensor) -> Any:
    try:
        with torch.no_grad():
            return module(x)
    except Exception as error:
        raise ValueError(
            f"module fails on {len(x)} rows of shape {tuple(x.shape[1:])} and dtype {x.dtype}: {error}"
        ) from error


def _losses(loss: PerSampleLoss, outputs: Tensor, y: Tensor) -> Tensor:
    try:
        losses = loss(outputs, y)
    except Exception as error:
        raise ValueError(f"loss fails on outputs of shape {tuple(outputs.shape)}: {error}") from error
    if not isinstance(losses, Tensor) or losses.shape != y.shape:
        shape = tuple(losses.shape) if isinstance(losses, Tensor) else type(losses).__name__
        raise ValueError(
            f"loss turns the outputs of {len(y)} rows into {shape}; it must give one number for each row, of "
            f"shape ({len(y)},), such as with reduction='none'."
        )
    return losses


def _is_stackable(parameters: ModuleParameters, loss: PerSampleLoss, rows: LabelledRows) -> bool:
    """Whether torch.func gives the losses that forward passes give; some operations it does not know."""
    if FEWEST_STACKED * parameters.size > STACKED_SIZE:
        return False
    moves: list[tuple[Direction, float]] = [(Direction(((1.0, Seeded(0)),)), 0.0)] * 2
    try:
        several = losses_together(parameters, moves, loss, rows, np.arange(1))
    except Exception:  # whatever the operation says of itself
        return False
    with torch.no_grad():
        x, y = next(rows.pieces(np.arange(1), parameters))
        one = loss(parameters.module(x), y).double().cpu().numpy()
    near = _tolerance(parameters)
    return bool(np.allclose(several, one[:, np.newaxis], rtol=near, atol=near))


def _tolerance(parameters: ModuleParameters) -> float:
    """How far a row's loss may differ with the rows beside it: sums in another order."""
    return 4 * math.sqrt(torch.finfo(parameters.dtype).eps)
