"""Training algorithms for ``algorithm=``, each with its reference and guarantee.

Those of papers are annexes: each is imported when its name is first used.
"""

from collections.abc import Callable
from typing import TYPE_CHECKING

from .._utils.lazy_imports import annex, late_names
from ._base import Algorithm
from .adamix import AdaMix
from .auto import Auto
from .noisy_gd import NoisyGD

if TYPE_CHECKING:
    from .._papers.first_order import DOPE, GEP, PDADPMD, Coupling
    from .._papers.modelmix.algorithm import ModelMix
    from .._papers.zeroth_order import PAZO, DPZero
else:
    __getattr__, __dir__ = late_names(__name__)

#: Algorithm names that estimators accept, and what makes each with its default settings.
BY_NAME: dict[str, Callable[[], Algorithm]] = {
    "auto": Auto,
    "noisy-gd": NoisyGD,
    "adamix": AdaMix,
    "coupling": lambda: annex("Coupling")(),
    "pda-dpmd": lambda: annex("PDADPMD")(),
    "dope-sgd": lambda: annex("DOPE")(),
    "gep": lambda: annex("GEP")(),
    "modelmix": lambda: annex("ModelMix")(),
}

__all__ = [
    "BY_NAME",
    "DOPE",
    "GEP",
    "PAZO",
    "PDADPMD",
    "AdaMix",
    "Algorithm",
    "Auto",
    "Coupling",
    "DPZero",
    "ModelMix",
    "NoisyGD",
]
