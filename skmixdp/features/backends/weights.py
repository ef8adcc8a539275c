"""Hashes of a module's weights, and a check that a module treats rows independently."""

import hashlib
from pathlib import Path

import torch
from torch import nn


def weights_hash(module: nn.Module) -> str:
    """SHA-256 over names, types, shapes and bytes of all parameters and buffers, in any file format."""
    hasher = hashlib.sha256()
    for name, tensor in sorted(module.state_dict().items()):
        hasher.update(f"{name} {tensor.dtype} {tuple(tensor.shape)}\n".encode())
        data = tensor.detach().cpu().contiguous().reshape(-1).view(torch.uint8)
        hasher.update(data.numpy().tobytes())
    return hasher.hexdigest()


def file_hash(path: str | Path) -> str:
    """SHA-256 of a file, as ``sha256sum`` prints it."""
    with Path(path).open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def check_row_wise(module: nn.Module, name: str) -> None:
    """Refuse a module whose rows of a batch influence each other even in evaluation mode."""
    for path, layer in module.named_modules():
        if isinstance(layer, nn.modules.batchnorm._BatchNorm) and layer.running_mean is None:
            raise ValueError(
                f"model {name!r} has the layer {path} that normalises by the statistics of its batch also in "
                "evaluation mode, so that rows influence each other; use a model with running statistics."
            )
