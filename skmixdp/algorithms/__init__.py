"""Algorithms: each a recipe built from components, with its reference."""

from ._base import Algorithm
from .adamix import AdaMix, TheoreticalAdaMix
from .auto import Auto
from .coupling import Coupling
from .dope import DOPE
from .dpzero import DPZero
from .gep import GEP
from .modelmix import ModelMix
from .noisy_gd import NoisyGD
from .pazo import PAZO
from .pda_dpmd import PDADPMD, CosinePDADPMD

#: Names that estimators accept in place of an object.
BY_NAME: dict[str, type[Algorithm]] = {
    "auto": Auto,
    "noisy-gd": NoisyGD,
    "adamix": AdaMix,
    "modelmix": ModelMix,
    "coupling": Coupling,
    "pda-dpmd": PDADPMD,
    "dope-sgd": DOPE,
    "gep": GEP,
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
    "CosinePDADPMD",
    "Coupling",
    "DPZero",
    "ModelMix",
    "NoisyGD",
    "TheoreticalAdaMix",
]
