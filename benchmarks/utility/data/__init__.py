"""Data sets, one adapter each: ``load(cache, **options) -> Rows``.

A new one is a module with that function, a line in :data:`ADAPTERS`, and an entry of ``data`` in
the configuration.
"""

import json
from collections.abc import Callable
from functools import lru_cache
from pathlib import Path
from typing import Any

from ..problems import Rows
from . import (
    adult,
    banking77,
    digits,
    fashion_mnist,
    held_out,
    long_tail,
    mixture,
    regression,
    table,
    two_classes,
)

ADAPTERS: dict[str, Callable[..., Rows]] = {
    "adult": adult.load,
    "banking77": banking77.load,
    "digits": digits.load,
    "fashion_mnist": fashion_mnist.load,
    "held_out": held_out.load,
    "long_tail": long_tail.load,
    "mixture": mixture.load,
    "regression": regression.load,
    "table": table.load,
    "two_classes": two_classes.load,
}


@lru_cache(maxsize=1)
def _load(adapter: str, cache: Path, options: str) -> Rows:
    return ADAPTERS[adapter](cache, **json.loads(options))


def load(adapter: str, cache: Path, **options: Any) -> Rows:
    """The rows of a data set; the last one asked for is kept.

    Parameters
    ----------
    adapter : str
        A key of :data:`ADAPTERS`.
    cache : Path
        Folder for what takes long to compute.
    **options
        The adapter's own.

    Raises
    ------
    FileNotFoundError
        If the files are not there.
    """
    return _load(adapter, cache, json.dumps(options, sort_keys=True))
