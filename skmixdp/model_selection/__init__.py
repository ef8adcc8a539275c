"""Choosing models without forgetting what the choice costs."""

from ._public_params import public_params

__all__ = ["public_params"]
