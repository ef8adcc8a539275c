"""Training algorithms for ``algorithm=``, each with its reference and guarantee.

Those of papers are annexes: each is imported when its name is first used.
"""

from typing import TYPE_CHECKING

from .._utils.registry import Registry, late_names
from ._base import Algorithm
from .adamix import AdaMix
from .auto import Auto
from .noisy_gd import NoisyGD

if TYPE_CHECKING:
    from .._papers.coupling import Coupling
    from .._papers.dope import DOPE
    from .._papers.dpzero import DPZero
    from .._papers.gep import GEP
    from .._papers.modelmix.algorithm import ModelMix
    from .._papers.pazo import PAZO
    from .._papers.pda_dpmd import PDADPMD
else:
    __getattr__, __dir__ = late_names(
        __name__,
        {
            "Coupling": "_papers.coupling",
            "DOPE": "_papers.dope",
            "DPZero": "_papers.dpzero",
            "GEP": "_papers.gep",
            "ModelMix": "_papers.modelmix.algorithm",
            "PAZO": "_papers.pazo",
            "PDADPMD": "_papers.pda_dpmd",
        },
    )

#: Algorithm names that estimators accept, and their classes.
BY_NAME: Registry[type[Algorithm]] = Registry(
    {
        "auto": Auto,
        "noisy-gd": NoisyGD,
        "adamix": AdaMix,
        "coupling": "_papers.coupling:Coupling",
        "pda-dpmd": "_papers.pda_dpmd:PDADPMD",
        "dope-sgd": "_papers.dope:DOPE",
        "gep": "_papers.gep:GEP",
        "modelmix": "_papers.modelmix.algorithm:ModelMix",
    }
)

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
