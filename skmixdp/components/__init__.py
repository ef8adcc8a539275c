"""Swappable pieces of algorithms, one family per file; ``protocols`` holds their interfaces."""

from .clipping import (
    AutomaticClip,
    GradientQuery,
    L2Clip,
    L2LinfClip,
    LipschitzClip,
    PublicQuantileClip,
    deviation_norms,
)
from .dope import DopeQuery
from .gep import GepQuery
from .steps import BalancedSteps, DecayingSteps, FullBatch, PoissonBatch
from .subspaces import FullSpace, PublicSubspace
from .updates import (
    SGD,
    BallProjection,
    Descent,
    MirrorDescent,
    PolynomialAverage,
    Preconditioned,
    TailAverage,
    TowardsStart,
    UniformAverage,
    project_on_ball,
)
from .weighting import ConstantWeight, ConvexWeight, CosineWeight, CouplingWeight, SampleWeight
from .zeroth_order import CandidateQuery, PublicDirections, RandomDirections, TwoPointQuery

__all__ = [
    "SGD",
    "AutomaticClip",
    "BalancedSteps",
    "BallProjection",
    "CandidateQuery",
    "ConstantWeight",
    "ConvexWeight",
    "CosineWeight",
    "CouplingWeight",
    "DecayingSteps",
    "Descent",
    "DopeQuery",
    "FullBatch",
    "FullSpace",
    "GepQuery",
    "GradientQuery",
    "L2Clip",
    "L2LinfClip",
    "LipschitzClip",
    "MirrorDescent",
    "PoissonBatch",
    "PolynomialAverage",
    "Preconditioned",
    "PublicDirections",
    "PublicQuantileClip",
    "PublicSubspace",
    "RandomDirections",
    "SampleWeight",
    "TailAverage",
    "TowardsStart",
    "TwoPointQuery",
    "UniformAverage",
    "deviation_norms",
    "project_on_ball",
]
