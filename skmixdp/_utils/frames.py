"""Data frames of pandas or polars and tables of pyarrow as rows of numbers, and columns of lists as columns.

Messages name columns, and never a cell, its row, or how many cells are odd.
"""

from abc import ABC, abstractmethod
from collections.abc import Iterable
from typing import Any, TypeGuard

import numpy as np
import pandas as pd
import scipy.sparse as sp
from numpy.typing import NDArray

Array = NDArray[np.float64]

#: Texts that count as missing numbers and ids of persons, as in pandas.
MISSING = frozenset(
    {"", "#N/A", "#N/A N/A", "#NA", "-1.#IND", "-1.#QNAN", "-NaN", "-nan", "1.#IND", "1.#QNAN", "<NA>"}
    | {"N/A", "NA", "NULL", "NaN", "None", "n/a", "nan", "null"}
)

#: The remedy for cells that are not numbers.
ENCODE = "encode them as numbers by private_pipeline(TableEncoder(), ...)."


def names_of_list(name: object, length: int) -> list[str]:
    """Names of the columns into which a column of lists of this length is split."""
    return [f"{name}[{place}]" for place in range(length)]


def is_list(column: Any) -> bool:
    """Whether a column of pandas, polars or pyarrow holds lists: by its type, or by the cells of objects."""
    kind = dtype_of(column) or column.type
    if str(kind) == "object":
        return any(isinstance(cell, (list, tuple, np.ndarray)) for cell in column)
    return str(kind).lower().startswith(("list", "large_list", "fixed_size_list", "array("))


def stacked_lists(column: Any, where: str, length: int | None = None) -> Array:
    """Lists of numbers of one length, or of the first's, of pandas, polars or pyarrow, as rows (n, length).

    Other cells are refused. ``where`` names the column, as in "the column 'emb' of X".
    """
    try:
        column = column.to_arrow() if hasattr(column, "to_arrow") else column  # of polars
        if hasattr(column, "type"):
            rows = _of_arrow(column)
        else:
            rows = np.array([*column]) if len(column) else np.empty((0, length or 1))
        fits = rows.ndim == 2 and rows.dtype.kind in "biuf" and rows.shape[1] == (length or rows.shape[1])
    except Exception:  # lists differ in length, or a cell is of another class
        fits = False
    if not fits or 0 in rows.shape[1:]:
        expected = "one length" if length is None else f"length {length}"
        raise ValueError(
            f"{where} must hold lists of numbers of {expected} without missing values; leave out other rows, "
            "so that np.stack(column) makes one table."
        )
    return np.asarray(rows, dtype=np.float64)


def _of_arrow(column: Any) -> Any:
    """Lists of a column of pyarrow as rows."""
    import pyarrow as pa
    import pyarrow.compute as pc

    lengths, values = pc.list_value_length(column), pc.list_flatten(column)
    if lengths.null_count or values.null_count or len(pc.unique(lengths)) > 1:
        raise ValueError("values are missing, or lengths differ")
    if pa.types.is_boolean(values.type):
        values = values.cast(pa.uint8())
    return values.to_numpy().reshape(len(column), lengths[0].as_py() if len(column) else 1)


class CellSource(ABC):
    """Rows that are no frame, but can be read as one."""

    @abstractmethod
    def frame(self) -> pd.DataFrame:
        """All columns as cells in memory."""


def pandas_frame(X: Any, **options: bool) -> Any:
    """A table of pyarrow as a data frame of pandas; other objects unchanged."""
    if not is_arrow(X):
        return X
    # Dates stay as they are: Python has none after year 9999, and an error would quote the year.
    return X.to_pandas(
        types_mapper=lambda kind: pd.ArrowDtype(kind) if str(kind).startswith("date") else None, **options
    )


def is_plain(X: pd.DataFrame) -> bool:
    """Whether a frame of pandas has columns of plain numbers and truth values alone."""
    return all(isinstance(dtype, np.dtype) and dtype.kind in "biuf" for dtype in X.dtypes)


def is_compact(types: Iterable[object]) -> bool:
    """Whether all columns are of float32, in the words of pandas, polars or pyarrow."""
    return all(str(each).lower() in ("float32", "float") for each in types)


def numeric_frame(X: Any, name: str, *, compact: bool = False) -> Any:
    """A table of pandas, polars or pyarrow as a data frame of float64, with a column for each entry of lists.

    A ``compact`` frame may hold columns of float32 as they are. Arrays and frames of plain or sparse columns
    stay as they are. So do tables with other cells than numbers, which ``check_table`` refuses.
    """
    if not is_frame(X):
        return X
    arrow = is_arrow(X)
    names = X.column_names if arrow else [*X.columns]
    if len(set(names)) < len(names):
        twice = [label for place, label in enumerate(names) if label in names[:place]]
        raise ValueError(f"{name} has several columns of the names {twice[:8]}; give each its own name.")
    if isinstance(X, pd.DataFrame):
        if is_plain(X) or any(isinstance(dtype, pd.SparseDtype) for dtype in X.dtypes):
            return X
        columns = [X.iloc[:, place] for place in range(X.shape[1])]
    elif arrow or hasattr(X, "get_columns"):  # of polars
        columns = X.columns if arrow else X.get_columns()
    else:
        return X
    lists = {
        place: stacked_lists(column, f"the column {names[place]!r} of {name}")
        for place, column in enumerate(columns)
        if is_list(column)
    }
    width = len(names) - len(lists) + sum(block.shape[1] for block in lists.values())
    # Columns are written one by one, since all of them together would be one more copy of the table.
    types = (dtype_of(column) or column.type for column in columns)
    held_as = np.float32 if compact and is_compact(types) else np.float64
    rows, dates = np.empty((len(X), width), held_as), []
    labels: list[Any] = []
    for place, (label, column) in enumerate(zip(names, columns, strict=True)):
        first = len(labels)
        if place in lists:
            labels += names_of_list(label, lists[place].shape[1])
            rows[:, first : len(labels)] = lists[place]
            continue
        values = numbers_of(column)
        if values is None:
            return pandas_frame(X)
        if values.dtype.kind in "mM":
            dates.append(label)
        rows[:, first] = values
        labels.append(label)
    if dates:
        raise ValueError(f"{name} holds dates or durations in the columns {dates[:8]}; {ENCODE}")
    if len(labels) > len(names):
        labels = [*map(str, labels)]
    return pd.DataFrame(rows, columns=labels, copy=False)


def numbers_of(column: Any) -> Any:
    """A column (n,) of numbers with NaN for missing ones, or of dates; None for any other column."""
    if hasattr(column, "type"):
        column = column.to_pandas()
    elif not isinstance(column, pd.Series):
        column = pd.Series(column.to_numpy())
    kind = letter_of(column.dtype)
    if kind in "mM":
        return column.to_numpy(dtype=f"{kind}8[s]")
    if kind == "c" or (kind == "O" and any(isinstance(cell, (str, bytes)) for cell in column)):
        return None
    try:
        return column.to_numpy(dtype=np.float64, na_value=np.nan)
    except Exception:  # a cell may be of any class
        return None


def is_frame(X: object) -> TypeGuard[Any]:
    """Whether rows are a table with named columns, of pandas, polars, pyarrow or Dask."""
    return hasattr(X, "columns")


def is_arrow(X: object) -> TypeGuard[Any]:
    """Whether rows are a table of pyarrow."""
    return hasattr(X, "column_names")


def dtype_of(column: object) -> Any:
    """The type of the entries of an array, a column or a tensor; None for others."""
    return getattr(column, "dtype", None)


def letter_of(dtype: object) -> str:
    """NumPy's letter for a type of NumPy or pandas; that of objects for another one."""
    return getattr(dtype, "kind", "O")


#: What entries are, by NumPy's letter for their type.
_KINDS = dict.fromkeys("iuf", "numbers") | dict.fromkeys("USTa", "text") | dict.fromkeys("mM", "dates")
_KINDS |= {"b": "truth values", "c": "complex numbers", "V": "records"}


def entries_of(dtype: object) -> str:
    """What entries of a type are. The type itself may tell the longest text among private cells."""
    return _KINDS.get(letter_of(dtype), "objects")


def n_rows_of(X: Any) -> int:
    """The number of rows of an array, a frame, a sparse matrix, a tensor or a list."""
    n_rows: int = X.shape[0] if hasattr(X, "shape") else len(X)
    return n_rows


def some_rows(X: Any, places: NDArray[np.intp]) -> Any:
    """Some rows of an array, a frame, a sparse matrix, a tensor or a list."""
    if isinstance(X, list):
        return [X[place] for place in places]
    rows = getattr(X, "iloc", X)
    return (rows.tocsr() if sp.issparse(X) else rows)[places]
