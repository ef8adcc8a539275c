"""A lasting record of what was spent on which private rows."""

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
