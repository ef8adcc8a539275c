"""Checks of a module before private rows pass through it. Each error is one sentence with a remedy."""

import copy
from collections.abc import Iterable
from typing import Any

import torch
from torch import nn

from ..._utils.validation import listed
from .forward import ModuleParameters

#: Packages of torch whose modules quantise activations, simulate that, or observe their range.
_QUANTISING = (
    "torch.ao.nn.quantized",
    "torch.ao.nn.qat",
    "torch.ao.nn.intrinsic",
    "torch.ao.nn.quantizable",
    "torch.ao.quantization",
    "torch.nn.quantized",
    "torch.nn.qat",
    "torch.nn.intrinsic",
)


def is_module(value: object) -> bool:
    """Whether a value is a torch module."""
    return isinstance(value, nn.Module)


def working_copy(module: nn.Module, device: object) -> nn.Module:
    """A copy of the user's module on a device, in evaluation mode; the original is never changed."""
    return _on_device(copy.deepcopy(module), device)


def trained_module(module: nn.Module, device: object, parameters: ModuleParameters) -> nn.Module:
    """A new copy of a module with the trained parameters, and nothing else of the trained copy."""
    trained = dict(parameters.module.named_parameters())
    taken = {
        id(parameter): nn.Parameter(trained[name].detach(), parameter.requires_grad)
        for name, parameter in module.named_parameters()
    }
    return _on_device(copy.deepcopy(module, taken), device)


def _on_device(module: nn.Module, device: Any) -> nn.Module:
    module.eval()
    return module if isinstance(device, str) and device == "auto" else module.to(device)


def trained_batch_norms(module: nn.Module) -> list[str]:
    """Names of batch normalisations that were in training mode."""
    kinds = nn.modules.batchnorm._BatchNorm
    return [name for name, part in module.named_modules() if isinstance(part, kinds) and part.training]


def refuse_quantised(module: nn.Module) -> None:
    """Refuse modules with quantised parts, since many of these take their scale from all rows of a pass."""
    for name, part in module.named_modules():
        kind = type(part)
        if kind.__module__.startswith(_QUANTISING):
            where = f"{name!r} ({kind.__module__}.{kind.__name__})"
        elif any(tensor.is_quantized for tensor in _own_tensors(part)):
            where = f"{name!r} ({kind.__name__} with a quantised tensor)"
        else:
            continue
        raise ValueError(
            f"module has a quantised part, {where}, and the scale of quantised numbers may come from all "
            "rows of a pass, so that one row moves the losses of others; pass the module in float32."
        )


def _own_tensors(part: nn.Module) -> list[torch.Tensor]:
    tensors = [*part.parameters(recurse=False), *part.buffers(recurse=False)]
    return tensors + [value for value in vars(part).values() if isinstance(value, torch.Tensor)]


def select_parameters(module: nn.Module, trainable: object) -> ModuleParameters:
    """The parameters selected by ``trainable``, by default all that require gradients."""
    every = dict(module.named_parameters())
    if not every:
        raise ValueError("module has no parameters, so there is nothing to train; pass one with parameters.")
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


def _selected(by_default: list[str], every: list[str], trainable: object) -> list[str]:
    if trainable is None:
        if not by_default:
            raise ValueError("no parameter of module requires gradients; name those to train in trainable.")
        return by_default
    if callable(trainable):
        names = [name for name in every if trainable(name)]
        if not names:
            raise ValueError(
                f"trainable={trainable!r} selects no parameter of module; it has {listed(every)}."
            )
        return names
    prefixes = [trainable] if isinstance(trainable, str) else trainable
    if not isinstance(prefixes, Iterable) or not all(isinstance(prefix, str) for prefix in prefixes):
        raise ValueError(
            f"trainable={trainable!r} must be None, a list of names of parameters or submodules, or a "
            "function of a name."
        )
    prefixes = list(prefixes)
    chosen = [name for name in every if any(_is_within(name, prefix) for prefix in prefixes)]
    idle = [prefix for prefix in prefixes if not any(_is_within(name, prefix) for name in every)]
    if idle or not chosen:
        unknown = repr(idle[0]) if idle else "nothing"
        raise ValueError(
            f"trainable names {unknown}, which no parameter of module begins with; it has {listed(every)}."
        )
    return chosen


def _is_within(name: str, prefix: str) -> bool:
    """Whether a dotted name is ``prefix``, or a part of it."""
    return name == prefix or name.startswith(prefix.rstrip(".") + ".")
