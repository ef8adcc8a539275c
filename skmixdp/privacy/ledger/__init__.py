"""Privacy ledgers: lasting records of the budgets and charges of private data sets."""

from ._ledger import LEDGER, LedgerDataset, PrivacyLedger
from ._records import event_from_json, event_to_json, register_event
from ._report import Charge, LedgerReport

__all__ = [
    "LEDGER",
    "Charge",
    "LedgerDataset",
    "LedgerReport",
    "PrivacyLedger",
    "event_from_json",
    "event_to_json",
    "register_event",
]
