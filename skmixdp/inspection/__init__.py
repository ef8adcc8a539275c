"""Pictures and reports of results. Nothing is imported for drawing before something is drawn."""

from ._ensembles import EnsembleReport, ensemble_report
from ._ledger import LedgerDisplay
from ._model_card import ModelCard, model_card
from ._privacy_utility import PrivacyUtilityDisplay

__all__ = [
    "EnsembleReport",
    "LedgerDisplay",
    "ModelCard",
    "PrivacyUtilityDisplay",
    "ensemble_report",
    "model_card",
]
