"""Sources of private rows and their interface, the maps from features to rows, and checks of labels."""

from .answering import Visit, answer, n_lanes, rounds, stated_error
from .blockmap import BlockMap, finite_rows, widen
from .columns import IQR, Columns, columns_of, effective_columns, worth_scaling
from .implicit import (
    canonical,
    implicit_products,
    implicit_rows,
    implicit_weighted_sum,
    scaled_first,
    whitened_entries,
)
from .memory import LONGEST_ROW, InMemoryRows, check_lengths, sum_resolution
from .persons import Persons, PersonTable, check_groups, computed_by_blocks, given_groups
from .row_map import RowMap, TargetMap
from .source import (
    Batch,
    BinCounts,
    Block,
    Contribute,
    Contribution,
    MeanClip,
    OuterStatistics,
    PrivateRows,
    Request,
    Sums,
    Table,
    truncated,
)
from .sparse import SparseRows, check_indices
from .streamed import RowFiles, StreamedRows, open_rows
from .table import ArrayTable, check_private_rows, from_device, header, is_dask, special_table
from .whitening import Whitening, n_groups
