"""Mathematics of a linear head. Knows nothing of privacy."""

from .geometry import orthonormal_columns, remove_mean_output, row_norms, weighted_sum
from .losses import LogisticLoss, Loss, SoftmaxLoss, SquaredLoss, classification_loss
from .objective import PenalizedLoss
from .preparation import RowMap, TargetMap

__all__ = [
    "LogisticLoss",
    "Loss",
    "PenalizedLoss",
    "RowMap",
    "SoftmaxLoss",
    "SquaredLoss",
    "TargetMap",
    "classification_loss",
    "orthonormal_columns",
    "remove_mean_output",
    "row_norms",
    "weighted_sum",
]
