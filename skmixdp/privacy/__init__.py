"""The guarantee: accounting, calibration, noise and the report.

This package knows no trainer and imports nothing else of ``skmixdp``.
"""

from .accountants import accountant_name, amplified_epsilon, epsilon_of_event
from .calibrate import epsilon_of, mu_of_budget, noise_multiplier_for, steps_for
from .events import Event, EventFamily, GaussianEvent, ModelMixEvent, Neighboring, Noise
from .modelmix import modelmix_epsilon
from .noise import HardenedNoise, NoiseSource
from .report import PrivacyReport

__all__ = [
    "Event",
    "EventFamily",
    "GaussianEvent",
    "HardenedNoise",
    "ModelMixEvent",
    "Neighboring",
    "Noise",
    "NoiseSource",
    "PrivacyReport",
    "accountant_name",
    "amplified_epsilon",
    "epsilon_of",
    "epsilon_of_event",
    "modelmix_epsilon",
    "mu_of_budget",
    "noise_multiplier_for",
    "steps_for",
]
