"""Choosing models without forgetting what the choice costs."""

from ._private_search import PrivateSearchCV
from ._public import public_cross_val_score, public_params, public_score

__all__ = ["PrivateSearchCV", "public_cross_val_score", "public_params", "public_score"]
