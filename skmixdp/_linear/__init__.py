"""Linear heads: losses, per-row gradients and their bounds, products and sums with stated rounding."""

from .arrays import Array, astype, dtype_of, empty_in, in_library_of, namespace_of, parts_in_cache, row_dots
from .compiled import ClippedSums, clipped_sums
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
)
from .layout import NARROW, is_narrow, read_ahead, row_memory
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
)
from .objective import PenalizedLoss
from .products import add_products, laid_out, narrow_block, row_products
from .rounding import LONGEST_TERM, SHORTEST_DIFFERENCE, UNDERFLOW_PAD, dot_error, on_grid
from .sums import BLOCK_ROWS, EXACT, PANEL_ROWS, Cascade, SumError, panel_rows_for, sum_error
from .threads import in_parallel, n_parts, one_thread, worker_session

__all__ = [
    "BLOCK_ROWS",
    "EXACT",
    "FARTHEST",
    "LONGEST_TERM",
    "NARROW",
    "PANEL_ROWS",
    "SHORTEST_DIFFERENCE",
    "UNDERFLOW_PAD",
    "Array",
    "Cascade",
    "ClippedSums",
    "GradientEmbedding",
    "LogisticLoss",
    "Loss",
    "PenalizedLoss",
    "SoftmaxLoss",
    "SquaredLoss",
    "SumError",
    "WeightedLoss",
    "add_products",
    "astype",
    "class_indices",
    "classification_loss",
    "clipped_sums",
    "dot_error",
    "drop_subnormal",
    "dtype_of",
    "empty_in",
    "in_library_of",
    "in_parallel",
    "is_narrow",
    "laid_out",
    "largest_entries",
    "largest_singular_value",
    "n_parts",
    "namespace_of",
    "narrow_block",
    "on_grid",
    "one_thread",
    "orthonormal_columns",
    "panel_rows_for",
    "parts_in_cache",
    "predicted_classes",
    "read_ahead",
    "remove_mean_output",
    "row_dots",
    "row_memory",
    "row_norm_bounds",
    "row_norms",
    "row_products",
    "scale_rows",
    "shorten_rows",
    "sum_error",
    "with_weights",
    "worker_session",
]
