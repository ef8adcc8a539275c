"""Linear heads: losses, per-row gradients and their bounds, products and sums with stated rounding."""

from .arrays import (
    Array,
    FloatArray,
    astype,
    dtype_of,
    empty_in,
    in_library_of,
    namespace_of,
    parts_in_cache,
    row_dots,
    row_slices,
)
from .compiled import ClippedSums, MeanGradients, clipped_sums, mean_gradients, work_of_pass
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
from .losses import (
    LogisticLoss,
    Loss,
    MultilabelLoss,
    SoftmaxLoss,
    SquaredLoss,
    WeightedLoss,
    class_indices,
    classification_loss,
    predicted_classes,
    with_weights,
)
from .objective import PenalizedLoss
from .products import (
    NARROW,
    add_products,
    is_narrow,
    read_ahead,
    row_memory,
    row_products,
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
from .threads import in_parallel, n_parts, one_thread, worker_session
