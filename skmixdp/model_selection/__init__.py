"""Choosing models without forgetting what the choice costs."""

from ._private_search import PrivateSearchCV
from ._public_params import public_params
from ._public_score import public_cross_val_score, public_score

__all__ = ["PrivateSearchCV", "public_cross_val_score", "public_params", "public_score"]
