"""Mathematics of a linear head: losses, per-row gradients in closed form, and their bounds."""

from .embedding import GradientEmbedding
from .gradients import (
    largest_entries,
    largest_singular_value,
    orthonormal_columns,
    remove_mean_output,
    row_norm_bounds,
    row_norms,
    scale_rows,
    weighted_sum,
)
from .losses import LogisticLoss, Loss, SoftmaxLoss, SquaredLoss, classification_loss
from .objective import PenalizedLoss
from .tensors import (
    scale_tensor_rows,
    tensor_dtype,
    tensor_largest_entries,
    tensor_residuals,
    tensor_row_norms,
    where,
)

__all__ = [
    "GradientEmbedding",
    "LogisticLoss",
    "Loss",
    "PenalizedLoss",
    "SoftmaxLoss",
    "SquaredLoss",
    "classification_loss",
    "largest_entries",
    "largest_singular_value",
    "orthonormal_columns",
    "remove_mean_output",
    "row_norm_bounds",
    "row_norms",
    "scale_rows",
    "scale_tensor_rows",
    "tensor_dtype",
    "tensor_largest_entries",
    "tensor_residuals",
    "tensor_row_norms",
    "weighted_sum",
    "where",
]
