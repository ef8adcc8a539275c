"""Sources of private rows, and what all of them promise."""

from .contract import Block, Contribute, Contribution, PrivateRows, Request, Sums
from .memory import InMemoryRows, sum_resolution
from .sparse import SparseRows
from .streamed import RowFiles, StreamedRows, open_rows
from .tables import ArrayTable, Table, is_dask, special_table

__all__ = [
    "ArrayTable",
    "Block",
    "Contribute",
    "Contribution",
    "InMemoryRows",
    "PrivateRows",
    "Request",
    "RowFiles",
    "SparseRows",
    "StreamedRows",
    "Sums",
    "Table",
    "is_dask",
    "open_rows",
    "special_table",
    "sum_resolution",
]
