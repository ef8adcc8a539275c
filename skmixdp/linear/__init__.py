"""Mathematics of a linear head. Knows nothing of privacy."""

from .blockmap import BlockMap, Measured, finite_rows, widen
from .embedding import GradientEmbedding
from .geometry import (
    largest_entries,
    largest_singular_value,
    orthonormal_columns,
    remove_mean_output,
    row_norm_bounds,
    row_norms,
    scale_rows,
    weighted_sum,
)
from .implicit import (
    ImplicitRows,
    canonical,
    implicit_products,
    implicit_rows,
    implicit_weighted_sum,
    whitened_entries,
)
from .losses import LogisticLoss, Loss, SoftmaxLoss, SquaredLoss, classification_loss
from .objective import PenalizedLoss
from .onednn import bfloat16_product
from .pools import one_pool
from .preparation import RowMap, TargetMap
from .products import add_products, laid_out, row_products
from .rounding import LONGEST_TERM, SHORTEST_DIFFERENCE, UNDERFLOW_PAD, dot_error, on_grid
from .sums import BLOCK_ROWS, EXACT, PANEL_ROWS, Cascade, SumError, panel_rows_for, sum_error
from .tensors import (
    scale_tensor_rows,
    tensor_dtype,
    tensor_largest_entries,
    tensor_residuals,
    tensor_row_norms,
    where,
)
from .whitening import Whitening

__all__ = [
    "BLOCK_ROWS",
    "EXACT",
    "LONGEST_TERM",
    "PANEL_ROWS",
    "SHORTEST_DIFFERENCE",
    "UNDERFLOW_PAD",
    "BlockMap",
    "Cascade",
    "GradientEmbedding",
    "ImplicitRows",
    "LogisticLoss",
    "Loss",
    "Measured",
    "PenalizedLoss",
    "RowMap",
    "SoftmaxLoss",
    "SquaredLoss",
    "SumError",
    "TargetMap",
    "Whitening",
    "add_products",
    "bfloat16_product",
    "canonical",
    "classification_loss",
    "dot_error",
    "finite_rows",
    "implicit_products",
    "implicit_rows",
    "implicit_weighted_sum",
    "laid_out",
    "largest_entries",
    "largest_singular_value",
    "on_grid",
    "one_pool",
    "orthonormal_columns",
    "panel_rows_for",
    "remove_mean_output",
    "row_norm_bounds",
    "row_norms",
    "row_products",
    "scale_rows",
    "scale_tensor_rows",
    "sum_error",
    "tensor_dtype",
    "tensor_largest_entries",
    "tensor_residuals",
    "tensor_row_norms",
    "weighted_sum",
    "where",
    "whitened_entries",
    "widen",
]
