"""Private rows as users hold them: before the row map, and whatever holds them."""

import sys
from collections.abc import Iterator
from typing import Any, Protocol

import numpy as np
import scipy.sparse as sp

from .._rowmap import RowMap
from .memory import InMemoryRows
from .source import FloatArray, Labels, PrivateRows
from .sparse import SparseTable
from .streamed import RowFiles, StreamedTable, memory_mapped


class Table(Protocol):
    """Rows that an estimator has been given for ``X``.

    Those which another device can hold have a method ``on_device(name)``, which returns the table
    whose private rows are there; those which are on one say so in ``device``.

    Attributes
    ----------
    shape : tuple of int
        ``(n_rows, n_features)``.
    names : list of str or None
        Names of the features, where the rows bring them along.
    counts_repeats : bool
        Whether :meth:`n_distinct` can tell; it would take too much memory for some.
    """

    shape: tuple[int, int]
    names: list[str] | None
    counts_repeats: bool

    def check(self, name: str) -> None:
        """Refuse what cannot be rows, as far as that is seen without reading them all."""

    def n_distinct(self) -> int:
        """Number of distinct rows; all of them where they are not counted."""

    def private_rows(self, y: Labels, row_map: RowMap, dtype: np.dtype[Any], *, exact: bool) -> PrivateRows:
        """The source that answers queries; a ValueError tells of rows that are not finite."""

    def blocks(self) -> Iterator[Any]:
        """The features, a part of the rows after the other: dense arrays or CSR."""


class ArrayTable:
    """A finite dense table in memory."""

    names: list[str] | None = None
    counts_repeats = True

    def __init__(self, X: FloatArray) -> None:
        self._X = X
        self.shape: tuple[int, int] = (X.shape[0], X.shape[1])

    def check(self, name: str) -> None:
        """Checked when it was made."""

    def n_distinct(self) -> int:
        return len({hash(row.tobytes()) for row in np.ascontiguousarray(self._X)})

    def private_rows(self, y: Labels, row_map: RowMap, dtype: np.dtype[Any], *, exact: bool) -> PrivateRows:
        return InMemoryRows(row_map(self._X, dtype), y, exact=exact)

    def blocks(self) -> Iterator[Any]:
        yield self._X

    def on_device(self, device: str) -> Table:
        """The table whose private rows are held on a device."""
        if device == "cpu":
            return self
        from .device_table import TorchTable

        return TorchTable.of_array(self._X, device)


def special_table(X: Any) -> Table | None:
    """The table of sparse, memory-mapped, stored or Dask rows and tensors; None for other dense ones."""
    if isinstance(X, RowFiles):
        return X
    if sp.issparse(X):
        return SparseTable(X)
    if memory_mapped(X):
        return StreamedTable.of_memmap(X)
    if is_dask(X):
        from .dask import DaskTable

        return DaskTable(X)
    if is_tensor(X):
        from .device_table import TorchTable

        return TorchTable(X)
    return None


def is_dask(X: Any) -> bool:
    """Whether these are Dask rows; Dask is not imported for the question."""
    module = sys.modules.get("dask.array")
    return module is not None and isinstance(X, module.Array)


def is_tensor(X: Any) -> bool:
    """Whether this is a torch tensor; torch is not imported for the question."""
    module = sys.modules.get("torch")
    return module is not None and isinstance(X, module.Tensor)


def from_device(array: Any) -> Any:
    """A tensor as an array on the host; anything else as it is."""
    if not is_tensor(array):
        return array
    host = array.detach().cpu()
    return (host.float() if host.is_floating_point() and host.element_size() < 4 else host).numpy()
