"""The guarantee: accounting, calibration, noise and the report.

This package knows no trainer and imports nothing else of ``skmixdp``.
"""

from .accountants import accountant_name, epsilon_of_event
from .calibrate import epsilon_of, mu_of_budget, noise_multiplier_for, steps_for
from .events import GaussianEvent, Neighboring, Noise
from .noise import HardenedNoise, NoiseSource
from .report import PrivacyReport

__all__ = [
    "GaussianEvent",
    "HardenedNoise",
    "Neighboring",
    "Noise",
    "NoiseSource",
    "PrivacyReport",
    "accountant_name",
    "epsilon_of",
    "epsilon_of_event",
    "mu_of_budget",
    "noise_multiplier_for",
    "steps_for",
]
