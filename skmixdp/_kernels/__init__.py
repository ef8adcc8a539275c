"""Products of rows with a few points and their sums, with stated rounding."""

from .compiled import ClippedSums, clipped_sums
from .layout import NARROW, is_narrow, read_ahead, row_memory
from .products import add_products, laid_out, narrow_block, row_products
from .rounding import LONGEST_TERM, SHORTEST_DIFFERENCE, UNDERFLOW_PAD, dot_error, on_grid
from .sums import BLOCK_ROWS, EXACT, PANEL_ROWS, Cascade, SumError, panel_rows_for, sum_error
from .threads import in_parallel, n_parts, one_thread, worker_session

__all__ = [
    "BLOCK_ROWS",
    "EXACT",
    "LONGEST_TERM",
    "NARROW",
    "PANEL_ROWS",
    "SHORTEST_DIFFERENCE",
    "UNDERFLOW_PAD",
    "Cascade",
    "ClippedSums",
    "SumError",
    "add_products",
    "clipped_sums",
    "dot_error",
    "in_parallel",
    "is_narrow",
    "laid_out",
    "n_parts",
    "narrow_block",
    "on_grid",
    "one_thread",
    "panel_rows_for",
    "read_ahead",
    "row_memory",
    "row_products",
    "sum_error",
    "worker_session",
]
