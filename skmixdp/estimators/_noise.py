"""What ``noise`` and ``random_state`` stand for, and what a report has to say of them."""

from typing import Any

import numpy as np

from ..privacy import HardenedNoise, Noise, NoiseSource
from ._checks import seed_of

_FLOAT_WARNING = (
    "the noise is drawn as floating-point numbers; attacks on their low-order bits are not covered"
)
_SEED_WARNING = "random_state is set: anyone who knows it can remove the noise"


def check_noise(noise: Noise, random_state: Any) -> None:
    """Refuse a seed that is none, and one beside noise that takes none."""
    if noise == "hardened" and random_state is not None:
        raise ValueError(
            f"random_state={random_state!r} cannot seed noise='hardened'; leave it at None, "
            "or use noise='float' for a reproducible run that is NOT private."
        )
    if not isinstance(random_state, np.random.RandomState):  # which would move on
        seed_of(random_state)


def noise_source(noise: Noise, random_state: Any) -> NoiseSource:
    """A fresh source of noise."""
    return HardenedNoise() if noise == "hardened" else NoiseSource(seed_of(random_state))


def noise_caveats(noise: NoiseSource, delta: float, n_private: int) -> tuple[str, ...]:
    """What a reader must know of the noise, and of a delta that promises a row little."""
    caveats = []
    if noise.kind == "seeded":
        caveats.append(_SEED_WARNING)
    if noise.kind != "hardened":
        caveats.append(_FLOAT_WARNING)
    if delta >= 1 / n_private:
        caveats.append("delta is not below 1/n")
    return tuple(caveats)
