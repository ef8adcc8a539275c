"""The parameters and buffers of a trained module as arrays, and back."""

import copy
from collections.abc import Mapping
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

#: Types that NumPy lacks, and types for their bits.
_AS_BITS = {torch.bfloat16: torch.int16}


def state_of(module: torch.nn.Module) -> dict[str, tuple[str, NDArray[Any]]]:
    """Name of the type, and values, of each parameter and buffer of a module."""
    state = {}
    for name, tensor in module.state_dict().items():
        if not isinstance(tensor, torch.Tensor):
            raise TypeError(
                f"module has state {name!r} of type {type(tensor).__name__}, and a saved model holds tensors "
                "alone; keep it with torch.save."
            )
        host = tensor.detach().cpu().contiguous()
        kind = str(host.dtype).removeprefix("torch.")
        state[name] = kind, np.array(host.view(_AS_BITS.get(host.dtype, host.dtype)).numpy())
    return state


def with_state(module: torch.nn.Module, state: Mapping[str, tuple[str, NDArray[Any]]]) -> torch.nn.Module:
    """A copy of a module with the parameters and buffers of :func:`state_of`, in evaluation mode."""
    own = module.state_dict()
    tensors = {}
    for name, (kind, array) in state.items():
        tensor = torch.from_numpy(np.array(array, order="C"))
        dtype = getattr(torch, kind)
        tensors[name] = tensor.view(dtype) if dtype in _AS_BITS else tensor
    described = {name: (tuple(t.shape), t.dtype) for name, t in tensors.items()}
    expected = {name: (tuple(t.shape), t.dtype) for name, t in own.items()}
    if described != expected:
        name = sorted(name for name in {*own, *state} if described.get(name) != expected.get(name))[0]
        raise ValueError(
            f"module is not of the architecture that was trained: they differ in {name!r}, which is "
            f"{expected.get(name, 'missing')} in module and {described.get(name, 'missing')} in the file; "
            "pass a module that is built as for the fit."
        )
    trained = copy.deepcopy(module)
    trained.load_state_dict(tensors)
    return trained.eval()
