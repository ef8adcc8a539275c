"""Swappable pieces of an algorithm, one family a file; ``contracts`` is what they agree on."""

from .centred import CentredQuery
from .clipping import L2Clip, LipschitzClip, PublicQuantileClip, deviation_norms
from .embedded import EmbeddedQuery
from .queries import GradientQuery
from .sampling import FullBatch, PoissonBatch
from .steps import BalancedSteps, DecayingSteps
from .subspaces import FullSpace, PublicSubspace
from .updates import SGD, BallProjection, PolynomialAverage, project_on_ball
from .weighting import SampleWeight

__all__ = [
    "SGD",
    "BalancedSteps",
    "BallProjection",
    "CentredQuery",
    "DecayingSteps",
    "EmbeddedQuery",
    "FullBatch",
    "FullSpace",
    "GradientQuery",
    "L2Clip",
    "LipschitzClip",
    "PoissonBatch",
    "PolynomialAverage",
    "PublicQuantileClip",
    "PublicSubspace",
    "SampleWeight",
    "deviation_norms",
    "project_on_ball",
]
