"""Algorithms: each a recipe built from components, with its reference."""

from ._base import Algorithm
from .adamix import AdaMix
from .modelmix import ModelMix
from .noisy_gd import NoisyGD

#: Names that estimators accept in place of an object.
BY_NAME: dict[str, type[Algorithm]] = {
    "noisy-gd": NoisyGD,
    "adamix": AdaMix,
    "modelmix": ModelMix,
}

__all__ = [
    "BY_NAME",
    "AdaMix",
    "Algorithm",
    "ModelMix",
    "NoisyGD",
]
