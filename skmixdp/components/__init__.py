"""Swappable pieces of algorithms, one family per file; ``protocols`` holds their interfaces."""

from .clipping import AutomaticClip, GradientQuery, L2Clip
from .steps import (
    BalancedSteps,
    ConstantWeight,
    ConvexWeight,
    CosineWeight,
    CouplingWeight,
    FullBatch,
    PoissonBatch,
    SampleWeight,
)
from .updates import SGD

__all__ = [
    "SGD",
    "AutomaticClip",
    "BalancedSteps",
    "ConstantWeight",
    "ConvexWeight",
    "CosineWeight",
    "CouplingWeight",
    "FullBatch",
    "GradientQuery",
    "L2Clip",
    "PoissonBatch",
    "SampleWeight",
]
