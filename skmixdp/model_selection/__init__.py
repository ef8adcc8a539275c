"""Model selection and evaluation whose privacy costs are stated."""

from ._evaluation.groups import GroupedEvaluation
from ._evaluation.private_evaluation import private_evaluation
from ._evaluation.regression_metrics import CountEvaluation, ResidualEvaluation
from ._evaluation.scores import OneVsRestEvaluation, ScoreEvaluation
from ._public import WithPublicRows, public_cross_val_score, public_params, public_score
from ._search.private_search import PrivateSearchCV

__all__ = [
    "CountEvaluation",
    "GroupedEvaluation",
    "OneVsRestEvaluation",
    "PrivateSearchCV",
    "ResidualEvaluation",
    "ScoreEvaluation",
    "WithPublicRows",
    "private_evaluation",
    "public_cross_val_score",
    "public_params",
    "public_score",
]
