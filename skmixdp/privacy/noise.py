"""Where the randomness of a fit comes from.

AES-128 in counter mode (the ``randomgen`` package) drives NumPy's samplers: a stream that
an adversary who sees part of it cannot continue, at the speed of NumPy's own generator.
"""

import secrets
from typing import Any

import numpy as np
from numpy.typing import NDArray
from randomgen import AESCounter

FloatArray = NDArray[np.floating[Any]]


class NoiseSource:
    """Gaussian and uniform draws for one fit.

    Parameters
    ----------
    seed : int or None, default=None
        None takes a fresh 128-bit key from the operating system. A seed makes the draws
        reproducible, and a run that anyone can reproduce hides nothing: ``secure`` is
        False and the report says that the result is not private.

    Notes
    -----
    The samples are floating-point numbers. Attacks on their low-order bits (Mironov 2012)
    are outside the guarantee, and the report says so.
    """

    def __init__(self, seed: int | None = None) -> None:
        self.secure = seed is None
        key = secrets.randbits(128) if seed is None else _key_from(seed)
        self._generator = np.random.Generator(AESCounter(key=key))

    def normal(self, shape: tuple[int, ...]) -> FloatArray:
        """Independent standard normal float64 draws of the given shape."""
        return self._generator.standard_normal(shape)

    def uniform(self, shape: tuple[int, ...]) -> FloatArray:
        """Independent float64 draws from [0, 1) of the given shape."""
        return self._generator.random(shape)


def _key_from(seed: int) -> int:
    """Spread a seed over a 128-bit key, so that near seeds give unrelated streams."""
    words = np.random.SeedSequence(seed).generate_state(2, np.uint64)
    return int(words[0]) << 64 | int(words[1])
