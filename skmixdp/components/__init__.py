"""Swappable pieces of algorithms, one family per file; ``protocols`` holds their interfaces."""

from typing import TYPE_CHECKING

from .._utils.registry import late_names
from .clipping import AutomaticClip, GradientQuery, L2Clip, LipschitzClip, PublicQuantileClip
from .steps import BalancedSteps, ConstantWeight, DecayingSteps, FullBatch, PoissonBatch, SampleWeight
from .subspaces import PublicSubspace
from .updates import (
    SGD,
    BallProjection,
    PolynomialAverage,
    Preconditioned,
    TailAverage,
    TowardsStart,
    UniformAverage,
    project_on_ball,
)

if TYPE_CHECKING:
    from .._papers.dope_query import DopeQuery, deviation_norms
    from .._papers.gep_query import GepQuery
    from .._papers.mirror import MirrorDescent
    from .._papers.modelmix.clipping import L2LinfClip
    from .._papers.weights import ConvexWeight, CosineWeight, CouplingWeight
    from .._papers.zeroth_order import (
        CandidateQuery,
        Descent,
        PublicDirections,
        RandomDirections,
        TwoPointQuery,
    )
else:
    __getattr__, __dir__ = late_names(
        __name__,
        {
            "CandidateQuery": "_papers.zeroth_order",
            "ConvexWeight": "_papers.weights",
            "CosineWeight": "_papers.weights",
            "CouplingWeight": "_papers.weights",
            "Descent": "_papers.zeroth_order",
            "DopeQuery": "_papers.dope_query",
            "GepQuery": "_papers.gep_query",
            "L2LinfClip": "_papers.modelmix.clipping",
            "MirrorDescent": "_papers.mirror",
            "PublicDirections": "_papers.zeroth_order",
            "RandomDirections": "_papers.zeroth_order",
            "TwoPointQuery": "_papers.zeroth_order",
            "deviation_norms": "_papers.dope_query",
        },
    )

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
