"""Training algorithms for ``algorithm=``, each with its reference and guarantee.

Those of papers are annexes: each is imported when its name is first used.
"""

from typing import TYPE_CHECKING

from .._utils.registry import Registry, late_names
from ._base import Algorithm
from .adamix import AdaMix, TheoreticalAdaMix
from .auto import Auto
from .noisy_gd import NoisyGD

if TYPE_CHECKING:
    from .coupling import Coupling
    from .dope import DOPE
    from .dpzero import DPZero
    from .gep import GEP
    from .modelmix import ModelMix
    from .pazo import PAZO
    from .pda_dpmd import PDADPMD, CosinePDADPMD
else:
    __getattr__, __dir__ = late_names(
        __name__,
        {
            "Coupling": "coupling",
            "CosinePDADPMD": "pda_dpmd",
            "DOPE": "dope",
            "DPZero": "dpzero",
            "GEP": "gep",
            "ModelMix": "modelmix",
            "PAZO": "pazo",
            "PDADPMD": "pda_dpmd",
        },
    )

#: Algorithm names that estimators accept, and their classes.
BY_NAME: Registry[type[Algorithm]] = Registry(
    {
        "auto": Auto,
        "noisy-gd": NoisyGD,
        "adamix": AdaMix,
        "coupling": "algorithms.coupling:Coupling",
        "pda-dpmd": "algorithms.pda_dpmd:PDADPMD",
        "dope-sgd": "algorithms.dope:DOPE",
        "gep": "algorithms.gep:GEP",
        "modelmix": "algorithms.modelmix:ModelMix",
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
    "CosinePDADPMD",
    "Coupling",
    "DPZero",
    "ModelMix",
    "NoisyGD",
    "TheoreticalAdaMix",
]
