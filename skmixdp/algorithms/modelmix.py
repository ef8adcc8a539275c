"""ModelMix: descent from secret mixtures of the last two heads. Experimental."""

from typing import TYPE_CHECKING

from .._utils.annexes import late_names

if TYPE_CHECKING:
    from .._papers.modelmix.algorithm import ModelMix
    from .._papers.modelmix.event import ModelMixEvent, modelmix_epsilon
    from .._papers.modelmix.wrapping import MixingDescent, mixed_query, mixed_steps, mixed_update
else:
    __getattr__, __dir__ = late_names(__name__)

__all__ = [
    "MixingDescent",
    "ModelMix",
    "ModelMixEvent",
    "mixed_query",
    "mixed_steps",
    "mixed_update",
    "modelmix_epsilon",
]
