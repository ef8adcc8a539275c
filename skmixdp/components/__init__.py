"""Swappable pieces of an algorithm, one family a file; ``contracts`` is what they agree on."""

from .clipping import L2Clip, L2LinfClip, LipschitzClip, PublicQuantileClip
from .mixing import mixable
from .queries import GradientQuery
from .sampling import FullBatch, PoissonBatch
from .steps import BalancedSteps, DecayingSteps
from .subspaces import FullSpace, PublicSubspace
from .updates import SGD, BallProjection, MixingDescent, PolynomialAverage, project_on_ball
from .weighting import SampleWeight

__all__ = [
    "SGD",
    "BalancedSteps",
    "BallProjection",
    "DecayingSteps",
    "FullBatch",
    "FullSpace",
    "GradientQuery",
    "L2Clip",
    "L2LinfClip",
    "LipschitzClip",
    "MixingDescent",
    "PoissonBatch",
    "PolynomialAverage",
    "PublicQuantileClip",
    "PublicSubspace",
    "SampleWeight",
    "mixable",
    "project_on_ball",
]
