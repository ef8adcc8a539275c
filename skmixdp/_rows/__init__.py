"""Sources of private rows, and what all of them promise."""

from .._kernels import EXACT, SumError, one_thread, worker_session
from .answering import n_lanes, rounds
from .memory import LONGEST_ROW, InMemoryRows, check_lengths, sum_resolution
from .source import (
    Batch,
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
    "Batch",
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
    "n_lanes",
    "one_thread",
    "open_rows",
    "rounds",
    "special_table",
    "sum_resolution",
    "truncated",
    "worker_session",
]
