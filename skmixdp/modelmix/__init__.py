"""ModelMix: descent from secret mixtures of the last two heads. Experimental.

This package holds the algorithm, its update and clip, the rules for wrapping, its event and its accountant.
Its amplified epsilon rests on numerical tests, not on a proof, so any version may change or remove it.
Importing this package registers the algorithm name "modelmix" for estimators, and its event for ledgers.

Source: Xiao, Wan and Devadas 2022, "Differentially Private Deep Learning with ModelMix".
"""

from ..algorithms import BY_NAME
from .algorithm import ModelMix
from .clipping import L2LinfClip
from .event import ModelMixEvent, modelmix_epsilon
from .wrapping import MixingDescent, mixed_query, mixed_steps, mixed_update

BY_NAME["modelmix"] = ModelMix

__all__ = [
    "L2LinfClip",
    "MixingDescent",
    "ModelMix",
    "ModelMixEvent",
    "mixed_query",
    "mixed_steps",
    "mixed_update",
    "modelmix_epsilon",
]
