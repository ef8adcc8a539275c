"""Training algorithms for ``algorithm=``, each with its reference and guarantee."""

from typing import Any

from ._base import Algorithm
from .adamix import AdaMix, TheoreticalAdaMix
from .auto import Auto
from .coupling import Coupling
from .dope import DOPE
from .dpzero import DPZero
from .gep import GEP
from .noisy_gd import NoisyGD
from .pazo import PAZO
from .pda_dpmd import PDADPMD, CosinePDADPMD

#: Algorithm names that estimators accept; :mod:`skmixdp.modelmix` adds its own.
BY_NAME: dict[str, type[Algorithm]] = {
    "auto": Auto,
    "noisy-gd": NoisyGD,
    "adamix": AdaMix,
    "coupling": Coupling,
    "pda-dpmd": PDADPMD,
    "dope-sgd": DOPE,
    "gep": GEP,
}


def __getattr__(name: str) -> Any:
    """An algorithm that a package built on this one has added to :data:`BY_NAME`, by its class's name."""
    for kind in BY_NAME.values():
        if kind.__name__ == name:
            return kind
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


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
