"""The guarantee: accounting, calibration, noise and the report.

This package knows no trainer and imports nothing else of ``skmixdp``.
"""

from .accountants import accountant_name, amplified_epsilon, epsilon_of_event
from .calibrate import epsilon_of, mu_of_budget, noise_multiplier_for, steps_for
from .composition import PrivacyFilter, mu_of_event, rdp_of_event
from .events import Event, EventFamily, GaussianEvent, ModelMixEvent, Neighboring, Noise, SelectionEvent
from .ledger import PrivacyLedger
from .ledger_report import Charge, LedgerReport
from .modelmix import modelmix_epsilon
from .noise import HardenedNoise, NoiseSource
from .records import event_from_json, event_to_json, register_event
from .report import PrivacyReport
from .search_report import SearchReport
from .selection import SearchTerms
from .trials import TrialLaw, shape_of

__all__ = [
    "Charge",
    "Event",
    "EventFamily",
    "GaussianEvent",
    "HardenedNoise",
    "LedgerReport",
    "ModelMixEvent",
    "Neighboring",
    "Noise",
    "NoiseSource",
    "PrivacyFilter",
    "PrivacyLedger",
    "PrivacyReport",
    "SearchReport",
    "SearchTerms",
    "SelectionEvent",
    "TrialLaw",
    "accountant_name",
    "amplified_epsilon",
    "epsilon_of",
    "epsilon_of_event",
    "event_from_json",
    "event_to_json",
    "modelmix_epsilon",
    "mu_of_budget",
    "mu_of_event",
    "noise_multiplier_for",
    "rdp_of_event",
    "register_event",
    "shape_of",
    "steps_for",
]
