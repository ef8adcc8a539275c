"""Privacy accounting, calibration, noise, ledgers and reports.

This package is independent of the estimators and of training.
"""

from .accounting.budgets import (
    amplified_epsilon,
    epsilon_of,
    epsilon_of_event,
    mu_of_budget,
    noise_multiplier_for,
    steps_for,
)
from .accounting.composition import PrivacyFilter, mu_of_event, rdp_of_event
from .accounting.events import (
    NEIGHBORING,
    NOISE,
    Event,
    EventFamily,
    GaussianEvent,
    Neighboring,
    Noise,
    OtherRelease,
    accountant_name,
)
from .accounting.selection import SearchTerms, SelectionEvent
from .accounting.trials import TrialLaw, shape_of
from .ledger._account import BudgetExceededError
from .ledger._charging import recorded_outcome
from .ledger._ledger import LEDGER, LedgerDataset, PrivacyLedger
from .ledger._records import event_from_json, event_to_json, register_event
from .ledger._report import Charge, LedgerReport
from .noise import DiscreteNoise, NoiseSource, NotPrivateWarning
from .per_instance import PerInstanceRecord
from .report import PrivacyLeakWarning, PrivacyReport, SearchReport

__all__ = [
    "LEDGER",
    "NEIGHBORING",
    "NOISE",
    "BudgetExceededError",
    "Charge",
    "DiscreteNoise",
    "Event",
    "EventFamily",
    "GaussianEvent",
    "LedgerDataset",
    "LedgerReport",
    "Neighboring",
    "Noise",
    "NoiseSource",
    "NotPrivateWarning",
    "OtherRelease",
    "PerInstanceRecord",
    "PrivacyFilter",
    "PrivacyLeakWarning",
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
    "mu_of_budget",
    "mu_of_event",
    "noise_multiplier_for",
    "rdp_of_event",
    "recorded_outcome",
    "register_event",
    "shape_of",
    "steps_for",
]
