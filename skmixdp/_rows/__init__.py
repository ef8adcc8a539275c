"""Sources of private rows, and what all of them promise."""

from .._kernels import EXACT, SumError, one_thread, worker_session
from .bfloat import BFloat16Rows
from .memory import LONGEST_ROW, InMemoryRows, check_lengths, sum_resolution
from .source import (
    Block,
    Contribute,
    Contribution,
    OuterStatistics,
    PrivateRows,
    Request,
    Sums,
    Table,
    truncated,
)
from .sparse import SparseRows, check_indices
from .streamed import RowFiles, StreamedRows, open_rows
from .table import ArrayTable, from_device, is_dask, is_tensor, special_table

__all__ = [
    "EXACT",
    "LONGEST_ROW",
    "ArrayTable",
    "BFloat16Rows",
    "Block",
    "Contribute",
    "Contribution",
    "InMemoryRows",
    "OuterStatistics",
    "PrivateRows",
    "Request",
    "RowFiles",
    "SparseRows",
    "StreamedRows",
    "SumError",
    "Sums",
    "Table",
    "check_indices",
    "check_lengths",
    "from_device",
    "is_dask",
    "is_tensor",
    "one_thread",
    "open_rows",
    "special_table",
    "sum_resolution",
    "truncated",
    "worker_session",
]
