"""Mathematics of a linear head: losses, per-row gradients in closed form, and their bounds."""

from .arrays import Array, astype, dtype_of, empty_in, in_library_of, namespace_of, parts_in_cache, row_dots
from .embedding import GradientEmbedding
from .gradients import (
    FARTHEST,
    drop_subnormal,
    largest_entries,
    largest_singular_value,
    orthonormal_columns,
    remove_mean_output,
    row_norm_bounds,
    row_norms,
    scale_rows,
    shorten_rows,
    weighted_sum,
)
from .losses import (
    LogisticLoss,
    Loss,
    SoftmaxLoss,
    SquaredLoss,
    WeightedLoss,
    class_indices,
    classification_loss,
    predicted_classes,
    with_weights,
    without_weights,
)
from .objective import PenalizedLoss

__all__ = [
    "FARTHEST",
    "Array",
    "GradientEmbedding",
    "LogisticLoss",
    "Loss",
    "PenalizedLoss",
    "SoftmaxLoss",
    "SquaredLoss",
    "WeightedLoss",
    "astype",
    "class_indices",
    "classification_loss",
    "drop_subnormal",
    "dtype_of",
    "empty_in",
    "in_library_of",
    "largest_entries",
    "largest_singular_value",
    "namespace_of",
    "orthonormal_columns",
    "parts_in_cache",
    "predicted_classes",
    "remove_mean_output",
    "row_dots",
    "row_norm_bounds",
    "row_norms",
    "scale_rows",
    "shorten_rows",
    "weighted_sum",
    "with_weights",
    "without_weights",
]
