"""ModelMix: descent from secret mixtures of the last two heads. Experimental.

Everything about it is here: the algorithm, its update and clip, what it can wrap, its event and accountant.
Its amplified epsilon rests on numerical tests, not on a proof, so it may change or go in any version.
Importing this package makes "modelmix" a name that estimators accept, and its events ones that ledgers read.

Source: Xiao, Wan and Devadas 2022, "Differentially Private Deep Learning with ModelMix".
"""

from ..algorithms import BY_NAME
from ..privacy import EXTENSIONS
from .algorithm import ModelMix
from .clipping import L2LinfClip
from .event import ModelMixEvent, modelmix_epsilon
from .wrapping import MixingDescent, mixed_query, mixed_steps, mixed_update

BY_NAME["modelmix"] = ModelMix
EXTENSIONS.update(ModelMixEvent=ModelMixEvent, modelmix_epsilon=modelmix_epsilon)

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
