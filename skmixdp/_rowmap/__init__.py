"""How a row becomes what the head sees: centred, whitened, scaled, with a constant column."""

from .blockmap import BlockMap, Measured, finite_rows, widen
from .implicit import (
    ImplicitRows,
    canonical,
    implicit_products,
    implicit_rows,
    implicit_weighted_sum,
    whitened_entries,
)
from .row_map import RowMap, TargetMap
from .whitening import Whitening

__all__ = [
    "BlockMap",
    "ImplicitRows",
    "Measured",
    "RowMap",
    "TargetMap",
    "Whitening",
    "canonical",
    "finite_rows",
    "implicit_products",
    "implicit_rows",
    "implicit_weighted_sum",
    "whitened_entries",
    "widen",
]
