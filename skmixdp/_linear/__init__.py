"""Linear heads: losses, per-row gradients and their bounds, products and sums with stated rounding."""

from .arrays import (
    FARTHEST,
    Array,
    FloatArray,
    astype,
    drop_subnormal,
    dtype_of,
    empty_in,
    finite,
    in_library_of,
    largest_entries,
    largest_singular_value,
    namespace_of,
    orthonormal_columns,
    parts_in_cache,
    remove_mean_output,
    row_dots,
    row_norm_bounds,
    row_norms,
    row_slices,
    scale_rows,
    shorten_rows,
)
from .embedding import GradientEmbedding
from .losses import (
    LogisticLoss,
    Loss,
    MultilabelLoss,
    SoftmaxLoss,
    SquaredLoss,
    WeightedLoss,
    classification_loss,
    predicted_classes,
    with_weights,
)
from .objective import PenalizedLoss
from .products import (
    NARROW,
    MeanGradients,
    add_products,
    clipped_sums,
    is_narrow,
    mean_gradients,
    read_ahead,
    row_memory,
    row_products,
    work_of_pass,
)
from .sums import (
    BLOCK_ROWS,
    EXACT,
    LONGEST_TERM,
    PANEL_ROWS,
    SHORTEST_DIFFERENCE,
    UNDERFLOW_PAD,
    Cascade,
    SumError,
    dot_error,
    on_grid,
    panel_rows_for,
    sum_error,
)
