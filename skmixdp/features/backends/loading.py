"""Loading of networks and their weights, whose hashes are reported, and a check that rows stay apart."""

import hashlib
import socket
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from urllib.parse import urlsplit
from urllib.request import getproxies

import torch
from torch import nn


@contextmanager
def loading(what: str, remedy: str) -> Iterator[None]:
    """A context that loads a network (``what`` in messages), whose random weights are always the same.

    Only downloaded weights are used if the hub cannot be found, since its client would retry for a minute.
    """
    from huggingface_hub import constants

    offline = constants.HF_HUB_OFFLINE
    hosts = getproxies() or _has_address(urlsplit(constants.ENDPOINT).hostname)
    constants.HF_HUB_OFFLINE = offline or not hosts
    try:
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(0)
            yield
    # Unknown names, missing networks and damaged files raise errors of any type.
    except Exception as error:
        reason = " ".join(str(error).split())
        raise ValueError(f"{what} ({reason[:300]}); {remedy}.") from error
    finally:
        constants.HF_HUB_OFFLINE = offline


def _has_address(host: str | None) -> bool:
    try:
        return bool(socket.getaddrinfo(host, 443))
    except OSError:
        return False


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
