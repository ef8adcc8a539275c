"""Choosing models without forgetting what the choice costs."""

from ._private_search import PrivateSearchCV
from ._public import public_cross_val_score, public_params, public_score
from ._with_public import WithPublicRows

__all__ = ["PrivateSearchCV", "WithPublicRows", "public_cross_val_score", "public_params", "public_score"]
