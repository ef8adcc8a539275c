"""Model selection and evaluation whose privacy costs are stated."""

from ._evaluation.deviances import CountEvaluation
from ._evaluation.groups import GroupedEvaluation
from ._evaluation.one_vs_rest import OneVsRestEvaluation
from ._evaluation.private_evaluation import private_evaluation
from ._evaluation.residuals import ResidualEvaluation
from ._evaluation.scores import ScoreEvaluation
from ._public import public_cross_val_score, public_params, public_score
from ._search.private_search import PrivateSearchCV
from ._with_public import WithPublicRows

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
