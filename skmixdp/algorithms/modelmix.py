"""ModelMix: descent from secret mixtures of the last two heads. Experimental."""

from typing import TYPE_CHECKING

from .._utils.lazy_imports import late_names

if TYPE_CHECKING:
    from .._papers.modelmix.algorithm import ModelMix, ModelMixEvent, modelmix_epsilon
else:
    __getattr__, __dir__ = late_names(__name__)

__all__ = ["ModelMix", "ModelMixEvent", "modelmix_epsilon"]
