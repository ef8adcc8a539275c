"""How a row becomes what the head sees: centred, whitened, scaled, with a constant column."""

from .blockmap import BlockMap, Measured, finite_rows, widen
from .implicit import (
    ImplicitRows,
    canonical,
    implicit_products,
    implicit_rows,
    implicit_weighted_sum,
    scaled_first,
    whitened_entries,
)
from .row_map import RowMap, TargetMap, column_scale, few_columns_dominate
from .whitening import Whitening

__all__ = [
    "BlockMap",
    "ImplicitRows",
    "Measured",
    "RowMap",
    "TargetMap",
    "Whitening",
    "canonical",
    "column_scale",
    "few_columns_dominate",
    "finite_rows",
    "implicit_products",
    "implicit_rows",
    "implicit_weighted_sum",
    "scaled_first",
    "whitened_entries",
    "widen",
]
