"""Privacy accounting, calibration, noise, ledgers and reports.

This package is independent of the estimators and of training.
"""

from .accounting.budgets import epsilon_of, epsilon_of_event, mu_of_budget, noise_multiplier_for, steps_for
from .accounting.composition import PrivacyFilter, mu_of_event, rdp_of_event
from .accounting.events import GaussianEvent, OtherRelease
from .accounting.selection import SelectionEvent
from .ledger._charging import recorded_outcome
from .ledger._ledger import LedgerDataset, PrivacyLedger
from .ledger._ledger_report import Charge
from .ledger._records import event_from_json, event_to_json, register_event
from .noise import NoiseSource
from .per_instance import PerInstanceRecord
from .report import PrivacyReport, SearchReport

__all__ = [
    "Charge",
    "GaussianEvent",
    "LedgerDataset",
    "NoiseSource",
    "OtherRelease",
    "PerInstanceRecord",
    "PrivacyFilter",
    "PrivacyLedger",
    "PrivacyReport",
    "SearchReport",
    "SelectionEvent",
    "epsilon_of",
    "epsilon_of_event",
    "event_from_json",
    "event_to_json",
    "mu_of_budget",
    "mu_of_event",
    "noise_multiplier_for",
    "rdp_of_event",
    "recorded_outcome",
    "register_event",
    "steps_for",
]
