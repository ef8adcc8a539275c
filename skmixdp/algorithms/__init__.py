"""Algorithms: each a recipe built from components, with its reference."""

from ._base import Algorithm
from .adamix import AdaMix
from .dope import DOPE
from .gep import GEP
from .noisy_gd import NoisyGD

#: Names that estimators accept in place of an object.
BY_NAME: dict[str, type[Algorithm]] = {
    "noisy-gd": NoisyGD,
    "adamix": AdaMix,
    "dope-sgd": DOPE,
    "gep": GEP,
}

__all__ = [
    "BY_NAME",
    "DOPE",
    "GEP",
    "AdaMix",
    "Algorithm",
    "NoisyGD",
]
