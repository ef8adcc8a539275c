"""Pictures and reports of results. Nothing is imported for drawing before something is drawn."""

from ._audit import AuditDisplay
from ._confusion import ConfusionDisplay
from ._effects import EffectsDisplay
from ._ensembles import EnsembleReport, ensemble_report
from ._evaluation import EvaluationDisplay
from ._ledger import LedgerDisplay
from ._model_card import ModelCard, model_card
from ._privacy_utility import PrivacyUtilityDisplay
from ._sorted_epsilons import PerInstanceDisplay
from ._steps import GradientNormsDisplay, PublicWeightDisplay, StepHistory

__all__ = [
    "AuditDisplay",
    "ConfusionDisplay",
    "EffectsDisplay",
    "EnsembleReport",
    "EvaluationDisplay",
    "GradientNormsDisplay",
    "LedgerDisplay",
    "ModelCard",
    "PerInstanceDisplay",
    "PrivacyUtilityDisplay",
    "PublicWeightDisplay",
    "StepHistory",
    "ensemble_report",
    "model_card",
]
