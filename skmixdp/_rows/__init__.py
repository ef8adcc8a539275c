"""Sources of private rows and their interface, maps from features to rows, checks of tables and labels."""

from .blockwise import (
    LONGEST_ROW,
    Arithmetic,
    InMemoryRows,
    Visit,
    answer,
    check_lengths,
    n_lanes,
    rounds,
    sum_resolution,
)
from .centered_sparse import centered_products, centered_sparse_rows, scaled_first
from .persons import PersonTable, computed_by_blocks
from .row_map import UNCHANGED, RowFunction, RowMap, TargetMap
from .scaling import (
    IQR,
    Columns,
    Whitening,
    columns_of,
    effective_columns,
    is_spread_out,
    n_groups,
    second_moment,
    worth_scaling,
)
from .source import (
    LESS_CUT,
    Batch,
    BinCounts,
    Block,
    Contribute,
    Contribution,
    Labels,
    Lengths,
    LostRowsError,
    MeanClip,
    OuterStatistics,
    PrivateQuery,
    PrivateRows,
    ReleasedArray,
    Request,
    Sums,
    Table,
    term_lengths,
    truncated,
)
from .sparse import SparseRows, SparseTable, check_indices
from .table import (
    ArrayTable,
    check_classes,
    check_columns,
    check_counts,
    check_exposure,
    check_indicator,
    check_labels,
    check_private_rows,
    check_target,
    check_targets,
    encode_labels,
    finite_rows,
    from_device,
    groups_of,
    header,
    is_dask,
    is_indicator,
    labels_of,
    named_columns,
    names_of_labels,
    special_table,
)
