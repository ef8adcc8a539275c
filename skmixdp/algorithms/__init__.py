"""Algorithms: each a recipe built from components, with its reference."""

from importlib import import_module
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


def __getattr__(name: str) -> Any:
    """``ModelMix``, which has a package of its own that builds on this one."""
    if name == "ModelMix":
        return import_module("skmixdp.modelmix").ModelMix
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


#: Names that estimators accept in place of an object; :mod:`skmixdp.modelmix` adds its own.
BY_NAME: dict[str, type[Algorithm]] = {
    "auto": Auto,
    "noisy-gd": NoisyGD,
    "adamix": AdaMix,
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
