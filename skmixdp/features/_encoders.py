"""Encoders: their interface, and a cache of them, since these are slow to load and clones can share them.

Tensors are PyTorch's, but typed as ``Any``, so that this file does not import PyTorch.
"""

import os
from collections import OrderedDict
from collections.abc import Mapping
from dataclasses import dataclass
from importlib import import_module
from threading import Lock
from typing import Any, Protocol

from .._utils.validation import how_to_install


class Encoder(Protocol):
    """A frozen network and the preparation of its input.

    Attributes
    ----------
    module : torch.nn.Module
        Moved to the device and put into evaluation mode before each extraction.
    preparation : object
        Turns items into the network's input, and is pickled to the loader's workers. ``one(item)`` prepares
        one item, and ``stack(prepared)`` makes a batch: a tensor, or a dict of tensors, whose first axis
        counts items. ``many(pixels)`` makes one of a uint8 tensor (n, height, width, channels), or None.
    n_outputs : int
        Number of features of a row.
    description : dict
        Everything except the item that determines a row, as JSON: the model, the preprocessing,
        and ``weights``, a mapping with their ``origin`` and ``sha256``. Without the origin it is
        the key of the cache.
    """

    module: Any
    preparation: Any
    n_outputs: int
    description: dict[str, Any]

    def forward(self, batch: Any) -> Any:
        """Rows (n, n_outputs) of a batch; each depends on its own item alone."""


@dataclass(frozen=True)
class Settings:
    """How to run an encoder; ``precision`` is ``"float32"``, or the type of automatic mixed precision."""

    device: str
    precision: str
    batch_size: int
    n_workers: int


@dataclass(frozen=True)
class Skipped:
    """An item that could not be read: its position, its name and the reason."""

    index: int
    name: str
    reason: str


#: Number of encoders to keep: one of images and one of texts.
_KEPT = 2
_loaded: OrderedDict[str, Encoder] = OrderedDict()
_lock = Lock()


def load_backend(name: str, extra: str) -> Any:
    """A module of ``backends``; if a package that it imports is missing, the error names it."""
    try:
        return import_module(f".backends.{name}", __package__)
    except ModuleNotFoundError as error:
        raise ImportError(
            f"features need the package {error.name}, which is not installed; {how_to_install(extra)}."
        ) from error


def load_encoder(backend: str, extra: str, settings: Mapping[str, Any]) -> Encoder:
    """A cached encoder, or a new one of the module ``backend`` with these settings."""
    module = load_backend(backend, extra)
    # A changed file needs a new encoder.
    key = repr((backend, sorted(settings.items()), [_size_and_time(value) for value in settings.values()]))
    with _lock:
        if key not in _loaded:
            while len(_loaded) >= _KEPT:
                _loaded.popitem(last=False)
            _loaded[key] = module.load(**settings)
        _loaded.move_to_end(key)
        return _loaded[key]


def _size_and_time(value: object) -> tuple[int, int] | None:
    if isinstance(value, (str, os.PathLike)):
        try:
            status = os.stat(value)  # noqa: PTH116
        except (OSError, ValueError):
            return None
        return status.st_size, status.st_mtime_ns
    return None
