"""Pictures of results. Nothing is imported for drawing before something is drawn."""

from ._ledger import LedgerDisplay
from ._privacy_utility import PrivacyUtilityDisplay

__all__ = ["LedgerDisplay", "PrivacyUtilityDisplay"]
