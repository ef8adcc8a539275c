"""Tables, labels and targets that users pass, checked before the row map.

Each error is one sentence that names the remedy.
"""

import math
import sys
from collections.abc import Iterable, Iterator
from typing import Any

import numpy as np
import pandas as pd
import scipy.sparse as sp
from numpy.typing import NDArray
from sklearn.base import BaseEstimator
from sklearn.utils import get_tags
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import column_or_1d, validate_data

from .._linear.arrays import FloatArray, row_slices
from .._utils.frames import is_frame, numeric_frame
from .._utils.lazy_imports import annex
from .._utils.validation import check_size, check_table, listed, shown, sources_of
from .blockwise import InMemoryRows
from .row_map import UNCHANGED, RowMap
from .source import Labels, PrivateRows, Table, declared_type
from .sparse import SparseTable

Array = NDArray[Any]

#: Integer labels within a smaller range are looked up in a table, which is many times as fast.
_FEW_VALUES = 2**12

#: Rows of a frame that are widened at a time.
_BLOCK_ROWS = 2**12

_HALF_EXPONENT = np.uint16(0x7C00)

#: Tables of annexes, by the class of the object that a user passes. If one is None, the rows are dense.
_TYPES = {
    "dask.array.Array": "DaskTable",
    "dask.dataframe.DataFrame": "DaskTable",
    "numpy.memmap": "table_of_map",
    "torch.Tensor": "TorchTable",
}


class _Widened:
    """Rows (n, d_in) that are held in single precision and read in double precision, some at a time."""

    dtype = np.dtype(np.float64)

    def __init__(self, rows: FloatArray) -> None:
        self._rows, self.shape = rows, rows.shape

    def __len__(self) -> int:
        return len(self._rows)

    def __getitem__(self, rows: slice) -> FloatArray:
        return self._rows[rows].astype(self.dtype)


class ArrayTable(Table):
    """A finite dense table in memory; of a frame, rows of float64: one private cell may choose its type."""

    is_movable = True
    is_shared = True

    def __init__(self, X: FloatArray, *, of_frame: bool = False) -> None:
        self._X: Any = _Widened(X) if of_frame and X.dtype == np.float32 else X
        self.declared = declared_type(self._X.dtype)
        self.shape: tuple[int, int] = (X.shape[0], X.shape[1])

    @property
    def rows(self) -> FloatArray:
        """All rows in one array."""
        return np.asarray(self._X[:])

    def private_rows(self, y: Labels, row_map: RowMap, dtype: np.dtype[Any], *, exact: bool) -> PrivateRows:
        if exact:
            return InMemoryRows(row_map(self.rows, dtype), y, exact=True)
        if row_map is UNCHANGED and self._X.dtype == dtype:
            return InMemoryRows(self.rows, y)
        return InMemoryRows.mapped(self._X, y, row_map, dtype)

    def blocks(self) -> Iterator[Any]:
        step = _BLOCK_ROWS if isinstance(self._X, _Widened) else max(len(self._X), 1)
        return (self._X[rows] for rows in row_slices(len(self._X), step))

    def on_device(self, device: str) -> Table:
        if device == "cpu":
            return self
        moved: Table = annex("TorchTable").of_array(self.rows, device)
        return moved


def check_private_rows(estimator: BaseEstimator, X: object, *, minimum: int = 2, reset: bool = True) -> Table:
    """A table of at least ``minimum`` rows; those not in memory are checked when mapped, before a charge."""
    table, finite = special_table(X), not get_tags(estimator).input_tags.allow_nan
    if table is None:
        X = numeric_frame(X, "X", compact=True)
        rows = check_table(X, "X", minimum=minimum, finite=finite, compact=True)
        table = ArrayTable(rows, of_frame=is_frame(X))
        validate_data(estimator, X, reset=reset, skip_check_array=True)
        return table
    table.check("X", finite=finite)
    if not finite:
        # Maps that take missing cells are learned after the charge. What cannot be read ends here.
        for _ in table.blocks():
            pass
    check_size(table.shape, "X", minimum)
    validate_data(estimator, header(table), reset=reset, skip_check_array=True)
    return table


def header(table: Table) -> Any:
    """An object from which scikit-learn reads the number and names of features."""
    return table if table.names is None else pd.DataFrame(columns=table.names)


def special_table(X: object) -> Table | None:
    """The table of sparse, memory-mapped, stored or Dask rows and tensors; None for dense rows."""
    if isinstance(X, Table):
        return X.for_fit()
    if sp.issparse(X):
        return SparseTable(X)
    for name, kind in _TYPES.items():
        if is_a(X, *name.rsplit(".", 1)):
            table: Table | None = annex(kind)(X)
            return table
    return None


def finite_rows(X: FloatArray) -> NDArray[np.bool_]:
    """Whether all entries of each row are finite, shape (n,)."""
    half = X.dtype == np.float16
    finite = (X.view(np.uint16) & _HALF_EXPONENT) != _HALF_EXPONENT if half else np.isfinite(X)
    return np.asarray(finite.all(axis=1))


def is_dask(X: object) -> bool:
    """Whether ``X`` is a Dask array or Dask DataFrame."""
    return is_a(X, "dask.array", "Array") or is_a(X, "dask.dataframe", "DataFrame")


def is_a(X: object, module: str, name: str) -> bool:
    """Whether an object is of a class, without importing the module of the class."""
    return isinstance(X, getattr(sys.modules.get(module), name, ()))


def from_device(array: Any) -> Any:
    """A tensor as an array on the host; other objects unchanged."""
    if not is_a(array, "torch", "Tensor"):
        return array
    host = array.detach().cpu()
    return (host.float() if host.is_floating_point() and host.element_size() < 4 else host).numpy()


def labels_of(X: object, y: object) -> Any:
    """``y`` in host memory, or the labels in the files of ``X`` if ``y`` is None."""
    return X.labels if y is None and isinstance(X, Table) else from_device(y)


def groups_of(X: object, groups: object) -> Any:
    """Ids of persons in host memory: passed ones, or those in the files of ``X``; None without ids."""
    in_files = X.groups if isinstance(X, Table) else None
    if in_files is not None and groups is not None and groups is not in_files:
        raise ValueError(
            f"X was opened with group={in_files.name!r}, so its files have the groups; leave one of them out."
        )
    return from_device(groups) if in_files is None else in_files


def check_labels(y: object, name: str, n_rows: int, rows_name: str) -> Array:
    """Labels of classes as a flat array of ``n_rows`` entries of one kind, none of them missing."""
    if y is None:
        raise ValueError(f"fit requires {name} to be passed, but the target {name} is None.")
    try:
        shape = np.asarray(y).shape
    except Exception:
        raise ValueError(
            f"{name} should be a 1d array of labels of one type, with text in UTF-8; pass one label per row."
        ) from None
    if len(shape) != 1 and shape[1:] != (1,):
        raise ValueError(
            f"{name} should be a 1d array, got an array of shape {shape}; pass one label per row."
        )
    labels = np.asarray(column_or_1d(y, warn=True))
    if len(labels) != n_rows:
        raise ValueError(
            f"{name} has {len(labels)} labels and {rows_name} {n_rows} rows; pass one label for each row."
        )
    if has_missing(labels):
        raise ValueError(f"{name} contains NaN, None or infinity; drop the rows without a label.")
    kinds = {isinstance(label, str) for label in labels.tolist()} if labels.dtype.kind == "O" else {True}
    try:
        if len(kinds) > 1:
            raise ValueError("text and numbers")
        # Each label twice: scikit-learn warns if more than half of the labels are distinct, which would
        # reveal something of private labels.
        twice = np.repeat(np.unique(labels), 2)
        with np.errstate(invalid="ignore"):  # labels beyond 64 bits are converted to integers
            check_classification_targets(twice)
    except Exception:
        raise ValueError(
            f"Unknown label type: {name} holds continuous values or labels of mixed types; pass integers, "
            "bools or strings."
        ) from None
    return labels


def has_missing(labels: Array) -> bool:
    """Whether a label is NaN, None, NaT or infinite."""
    if labels.dtype.kind == "f":
        return not np.all(np.isfinite(labels))
    # Comparing pandas.NA raises an error, so pandas checks it.
    return labels.dtype.kind == "O" and bool(pd.isna(labels).any())


def check_targets(y: object, name: str, n_rows: int, rows_name: str, noun: str = "target") -> Array:
    """Targets (or the ``noun`` of messages) as a finite float64 table (n_rows, k); a flat array is k = 1."""
    if y is None:
        raise ValueError(f"fit requires {name} to be passed, but the target {name} is None.")
    try:
        values = np.asarray(y)
    except Exception:  # targets differ in length
        raise ValueError(
            f"{name} must hold the same number of {noun}s in each row; pass a table of real numbers."
        ) from None
    if values.dtype.kind not in "biufO":
        raise ValueError(f"{name} must hold real numbers; encode text, dates and complex numbers first.")
    try:
        targets = values.astype(np.float64)
    except Exception:  # the original message would quote an entry
        raise ValueError(f"{name} must hold real numbers; encode everything else first.") from None
    if targets.ndim not in (1, 2) or targets.shape[1:] == (0,):
        raise ValueError(
            f"{name} has shape {targets.shape}, not (n_samples,) or (n_samples, n_{noun}s); pass one or "
            f"several {noun}s per row."
        )
    if len(targets) != n_rows:
        raise ValueError(
            f"{name} has {len(targets)} {noun}s and {rows_name} {n_rows} rows; pass {noun}s for each row."
        )
    if not np.all(np.isfinite(targets)):
        raise ValueError(f"{name} contains NaN or infinity; drop the rows without one.")
    return targets.reshape(n_rows, -1)


def check_target(y: object, name: str, n_rows: int, rows_name: str, noun: str = "target") -> Array:
    """Targets (n_rows,), of which each row has one."""
    targets = check_targets(y, name, n_rows, rows_name, noun)
    if targets.shape[1] > 1:
        raise ValueError(f"{name} has {targets.shape[1]} {noun}s per row; pass one at a time.")
    return targets[:, 0]


def check_counts(y: object, name: str, n_rows: int, rows_name: str) -> Array:
    """Counts (n_rows,), or other numbers of 0 or more."""
    counts = check_target(y, name, n_rows, rows_name)
    if not np.all(counts >= 0):
        raise ValueError(f"{name} holds a negative number; pass counts, which are 0 or more.")
    return counts


def check_exposure(exposure: object, name: str, n_rows: int, rows_name: str) -> Array:
    """Positive exposures (n_rows,), which are 1 if there are none."""
    if exposure is None:
        return np.ones(n_rows)
    exposures = check_target(exposure, name, n_rows, rows_name, "exposure")
    if not np.all(exposures > 0):
        raise ValueError(f"{name} must hold positive numbers; leave out rows without exposure.")
    return exposures


def check_classes(classes: object) -> Array:
    """The declared classes, checked and sorted."""
    return np.unique(_flat_labels(classes))


def _flat_labels(classes: object) -> Array:
    labels = np.asarray(classes)
    mixed = len({type(label) for label in labels.ravel().tolist()}) > 1
    if labels.ndim != 1 or len(labels) == 0 or mixed or has_missing(labels):
        raise ValueError(
            f"classes={shown(classes)} must be a flat list of labels of one type, without missing values."
        )
    return labels


def encode_labels(
    y: Array, classes: Array, name: str, *, private: bool, source: str = "classes"
) -> NDArray[np.intp]:
    """Index of each label in the sorted ``classes``, which come from ``source``."""
    firsts = [labels[:1].tolist()[0] for labels in (y, classes)]
    kinds = ["text" if isinstance(label, (str, bytes)) else "numbers" for label in firsts]
    if kinds[0] != kinds[1]:
        raise ValueError(
            f"{name} holds {kinds[0]} and {source} holds {kinds[1]}; write all labels in one way, as numbers "
            "or as text."
        )
    # pandas and NumPy turn integers into floats if one label is a fraction, which makes large integers equal.
    exact = 2 / float(np.finfo(y.dtype).eps) if y.dtype.kind == "f" else math.inf
    if kinds[1] == "numbers" and any(abs(label) >= exact for label in classes.tolist()):
        raise ValueError(
            f"{name} holds real numbers, of which different labels as large as those of {source} are "
            "equal; pass integers or strings."
        )
    # Compared as Python objects: True equals 1, and "1" does not.
    places = {label: place for place, label in enumerate(classes.tolist())}
    low, high = (int(y.min()), int(y.max())) if y.dtype.kind in "iu" and len(y) else (0, _FEW_VALUES)
    if high - low < _FEW_VALUES and high <= np.iinfo(np.int64).max:
        table = np.array([places.get(label, -1) for label in range(low, high + 1)], dtype=np.intp)
        index = table[y.astype(np.int64) - low]
    else:
        index = np.array([places.get(label, -1) for label in y.tolist()], dtype=np.intp)
    unknown = index < 0
    if np.any(unknown):
        # The message must not quote a private label or its row, which may come from a wrong column.
        row = int(np.argmax(unknown))
        label = f"{name} holds a label that" if private else f"{name}[{row}] = {y.tolist()[row]!r}"
        names = f"the classes {listed(classes, 20)}"
        if source == "y_pub":
            raise ValueError(
                f"{label} is not one of {names} of y_pub, so the public rows lack a class; list every class "
                "in classes=[...], or spell both alike."
            )
        raise ValueError(f"{label} is not one of {names}; list every class in classes.")
    return index


def is_indicator(y: Any) -> bool:
    """Whether labels have two columns or more, or are sparse; their values are not read."""
    try:
        return sp.issparse(y) or np.shape(y)[1:] > (1,)
    except Exception:  # rows differ in length
        return False


def check_indicator(
    y: object, name: str, n_rows: int, rows_name: str, labels: Iterable[object] | None = None
) -> Array:
    """Labels as a table (n_rows, k) of zeros and ones in int8; ``labels`` are their names, if known."""
    if y is None:
        raise ValueError(f"fit requires {name} to be passed, but the target {name} is None.")
    if sp.issparse(y):
        raise ValueError(f"{name} is a sparse matrix; pass {name}.toarray(), with one column for each label.")
    if not is_indicator(y):
        raise ValueError(
            f"{name} has one label per row and y has several; pass zeros and ones, one column for each label."
        )
    values = np.asarray(y)
    try:
        table = values.astype(np.float64)
    except Exception:  # the original message would quote an entry
        table = np.full(values.shape, np.nan)
    if table.ndim != 2 or not np.all((table == 0) | (table == 1)):
        fault = " with other values than zeros and ones" if table.ndim == 2 else ""
        raise ValueError(
            f"{name} should be a 1d array of labels, got an array of shape {values.shape}{fault}; pass one "
            "label per row, or zeros and ones, one column for each label."
        )
    if len(table) != n_rows:
        raise ValueError(
            f"{name} has {len(table)} rows of labels and {rows_name} {n_rows} rows; pass labels for each row."
        )
    if labels is not None:
        check_columns(y, labels, "this classifier has")
    return table.astype(np.int8)


def check_columns(y: object, names: Iterable[object], whose: str) -> None:
    """Refuse a frame of labels or targets whose columns have other names, or the same ones elsewhere."""
    if not is_frame(y):
        return
    frame: Any = y
    columns, wanted = [str(name) for name in frame.columns], [str(name) for name in names]
    if columns != wanted and columns != [str(place) for place in range(len(columns))]:
        raise ValueError(
            f"y has the columns {listed(columns)} and {whose} {listed(wanted)}; pass the same columns in the "
            "same order."
        )


def named_columns(y: object, y_pub: object) -> list[list[Any]]:
    """Names of the columns of private and public labels or targets, of those that are data frames."""
    sources = (y, *sources_of(y_pub))
    columns = [list(source.columns) for source in sources if is_frame(source)]
    if any(names != columns[0] for names in columns):
        raise ValueError(
            f"y and y_pub differ in their columns, {listed(columns[0])} and others; pass the same columns in "
            "the same order."
        )
    return columns


def names_of_labels(declared: object, y: object, y_pub: object, n_labels: int) -> tuple[Array, str]:
    """Names (k,) of the columns of labels, in order, and their origin for the report."""
    columns = named_columns(y, y_pub)
    if declared is None:
        return (np.asarray(columns[0]), "columns of y") if columns else (np.arange(n_labels), "numbered")
    names = _flat_labels(declared)
    if len(np.unique(names)) != n_labels or len(names) != n_labels:
        raise ValueError(
            f"classes={shown(declared)} must name the {n_labels} columns of y in their order, each once."
        )
    check_columns(y, names, "classes names")
    return names, "declared"
