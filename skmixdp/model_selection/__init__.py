"""Model selection and evaluation whose privacy costs are stated."""

from ._groups import GroupedEvaluation
from ._one_vs_rest import OneVsRestEvaluation
from ._private_evaluation import private_evaluation
from ._private_search import PrivateSearchCV
from ._public import public_cross_val_score, public_params, public_score
from ._residuals import ResidualEvaluation
from ._scores import ScoreEvaluation
from ._threshold import PrivateThresholdClassifier
from ._with_public import WithPublicRows

__all__ = [
    "GroupedEvaluation",
    "OneVsRestEvaluation",
    "PrivateSearchCV",
    "PrivateThresholdClassifier",
    "ResidualEvaluation",
    "ScoreEvaluation",
    "WithPublicRows",
    "private_evaluation",
    "public_cross_val_score",
    "public_params",
    "public_score",
]
