"""A cache of encoders, since these are slow to load and clones can share them."""

import os
from collections import OrderedDict
from collections.abc import Mapping
from importlib import import_module
from threading import Lock
from typing import Any

from .._utils.validation import how_to_install
from ._protocols import Encoder

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
