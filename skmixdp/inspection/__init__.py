"""Pictures of results. Nothing is imported for drawing before something is drawn."""

from ._audit import AuditDisplay
from ._confusion import ConfusionDisplay
from ._ledger import LedgerDisplay
from ._per_instance import PerInstanceDisplay
from ._privacy_utility import PrivacyUtilityDisplay
from ._steps import GradientNormsDisplay, PublicWeightDisplay, StepHistory

__all__ = [
    "AuditDisplay",
    "ConfusionDisplay",
    "GradientNormsDisplay",
    "LedgerDisplay",
    "PerInstanceDisplay",
    "PrivacyUtilityDisplay",
    "PublicWeightDisplay",
    "StepHistory",
]
