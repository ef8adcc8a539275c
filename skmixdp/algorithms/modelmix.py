"""ModelMix: descent from secret mixtures of the last two heads. Experimental."""

from typing import TYPE_CHECKING

from .._utils.registry import late_names

if TYPE_CHECKING:
    from .._papers.modelmix import (
        MixingDescent,
        ModelMix,
        ModelMixEvent,
        mixed_query,
        mixed_steps,
        mixed_update,
        modelmix_epsilon,
    )

__all__ = [
    "MixingDescent",
    "ModelMix",
    "ModelMixEvent",
    "mixed_query",
    "mixed_steps",
    "mixed_update",
    "modelmix_epsilon",
]

if not TYPE_CHECKING:
    __getattr__, __dir__ = late_names(__name__, dict.fromkeys(__all__, "_papers.modelmix"))
