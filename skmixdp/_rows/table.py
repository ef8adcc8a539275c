"""Tables of rows that users pass, before the row map."""

import sys
from collections.abc import Iterator
from typing import Any

import numpy as np
import pandas as pd
import scipy.sparse as sp
from sklearn.utils.validation import validate_data

from .._linear import FloatArray
from .._utils.validation import check_table, n_distinct_rows
from .memory import InMemoryRows, PassingRows
from .row_map import RowMap
from .shards import array_shard
from .source import Labels, PrivateRows, Table
from .sparse import SparseTable
from .streamed import RowFiles, StreamedTable


class ArrayTable(Table):
    """A finite dense table in memory."""

    counts_repeats = True
    is_movable = True
    is_shared = True

    def __init__(self, X: FloatArray) -> None:
        self._X = X
        self.shape: tuple[int, int] = (X.shape[0], X.shape[1])

    def check(self, name: str) -> None:
        """Nothing to do: the array was checked before."""

    def n_distinct(self) -> int:
        return n_distinct_rows(self._X)

    def private_rows(self, y: Labels, row_map: RowMap, dtype: np.dtype[Any], *, exact: bool) -> PrivateRows:
        if exact:
            return InMemoryRows(row_map(self._X, dtype), y, exact=True)
        return InMemoryRows.mapped(self._X, y, row_map, dtype)

    def passing_rows(self, y: Labels, row_map: RowMap, dtype: np.dtype[Any]) -> PrivateRows:
        return PassingRows(self._X, y, row_map, dtype)

    def blocks(self) -> Iterator[Any]:
        yield self._X

    def on_device(self, device: str) -> Table:
        if device == "cpu":
            return self
        from .tensors import TorchTable

        return TorchTable.of_array(self._X, device)


def check_private_rows(estimator: Any, X: Any, *, minimum: int = 2, reset: bool = True) -> Table:
    """A table of at least ``minimum`` rows; ``reset`` sets the estimator's features.

    The values of rows that are not in memory are checked when the rows are mapped, before any charge.
    """
    table = special_table(X)
    if table is None:
        table = ArrayTable(check_table(X, "X", minimum=minimum))
        validate_data(estimator, X, reset=reset, skip_check_array=True)
        return table
    table.check("X")
    n_rows, n_features = table.shape
    if n_rows < minimum:
        raise ValueError(
            f"X has {n_rows} sample(s) while a minimum of {minimum} is required; pass more rows."
        )
    if n_features == 0:
        raise ValueError(f"X has 0 feature(s) (shape={table.shape}) while a minimum of 1 is required.")
    validate_data(estimator, header(table), reset=reset, skip_check_array=True)
    return table


def header(table: Table) -> Any:
    """An object from which scikit-learn reads the number and names of features."""
    if table.names is None:
        return table
    return pd.DataFrame(columns=table.names)


def special_table(X: Any) -> Table | None:
    """The table of sparse, memory-mapped, stored or Dask rows and tensors; None for other dense ones."""
    if isinstance(X, RowFiles):
        return X.for_fit()
    if sp.issparse(X):
        return SparseTable(X)
    if isinstance(X, np.memmap) and X.ndim == 2 and X.dtype.kind in "biuf":
        return StreamedTable([array_shard("X", (X.shape, X.dtype), lambda: X)])
    if is_a(X, "dask.array", "Array"):
        from .dask import DaskTable

        return DaskTable(X)
    if is_a(X, "torch", "Tensor"):
        from .tensors import TorchTable

        return TorchTable(X)
    return None


def is_dask(X: Any) -> bool:
    """Whether these are Dask rows."""
    return is_a(X, "dask.array", "Array")


def is_a(X: Any, module: str, name: str) -> bool:
    """Whether this is an object of a class, without importing its module: who has one has imported it."""
    return isinstance(X, getattr(sys.modules.get(module), name, ()))


def from_device(array: Any) -> Any:
    """A tensor as an array on the host; anything else as it is."""
    if not is_a(array, "torch", "Tensor"):
        return array
    host = array.detach().cpu()
    return (host.float() if host.is_floating_point() and host.element_size() < 4 else host).numpy()
