"""Pictures and reports of results. Nothing is imported for drawing before something is drawn."""

from ._budgets import LedgerDisplay, PrivacyUtilityDisplay
from ._effects import EffectsDisplay
from ._ensembles import EnsembleReport, ensemble_report
from ._epsilons import AuditDisplay, PerInstanceDisplay
from ._evaluation import ConfusionDisplay, EvaluationDisplay
from ._model_card import ModelCard, model_card
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
