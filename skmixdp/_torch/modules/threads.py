"""The number of threads for passes through a module: all, or one if that is faster."""

import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from .forward import ModuleParameters, as_input

Array = NDArray[Any]

#: All threads are used if a pass takes at most this fraction of its time on one thread.
_GAIN = 0.8

#: Number of timed passes for each number of threads.
_PASSES = 3
#: Seconds after which one pass is enough.
_LONG = 0.3


def threads_for(parameters: ModuleParameters, X: Array | Tensor, size: int) -> int:
    """Number of threads for passes of ``size`` rows like ``X``: all of torch's, or 1 if that is faster.

    Threads spin while they wait, so for small passes or on busy cores one can be many times as fast.
    """
    usual = torch.get_num_threads()
    if usual == 1 or parameters.device.type != "cpu":
        return usual
    shape = (size, *X.shape[1:])
    zeros = torch.zeros(shape, dtype=X.dtype) if isinstance(X, Tensor) else np.zeros(shape, X.dtype)
    x = as_input(zeros, parameters.device, parameters.dtype)
    try:
        with torch.no_grad():
            parameters.module(x)  # a first pass is slow
            return usual if _seconds(parameters, x, usual) <= _GAIN * _seconds(parameters, x, 1) else 1
    except Exception:  # the checks of the module explain the error
        return usual


def _seconds(parameters: ModuleParameters, x: Tensor, n_threads: int) -> float:
    """The shortest time of a few passes."""
    with limited_threads(n_threads):
        seconds = []
        for _ in range(_PASSES):
            start = time.perf_counter()
            parameters.module(x)
            seconds.append(time.perf_counter() - start)
            if seconds[-1] > _LONG:
                break
    return min(seconds)


@contextmanager
def limited_threads(n_threads: int) -> Iterator[None]:
    """A context in which torch uses this number of threads."""
    before = torch.get_num_threads()
    torch.set_num_threads(n_threads)
    try:
        yield
    finally:
        torch.set_num_threads(before)
