"""Rows on disk, shard by shard.

A shard is a part of the rows: a memory-mapped ``.npy`` file (of which the system reads the pages that are
needed), an ``.npz`` archive, a row group of a Parquet file, a record batch of an Arrow file. Messages about
rows name the file alone, since the part and the row depend on private values.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from .files import IN_PARTS, ArrayFile, ArrowFile, NpyFile, format_of

Array = NDArray[Any]


@dataclass(frozen=True)
class Shard:
    """A part of the rows, named ``where`` in messages; messages about rows name its ``file`` alone.

    ``rows`` reads the features (n_rows, n_features) piece by piece, ``labels`` the labels (n_rows,), and
    ``ids`` those of persons (n_rows,); ValueErrors name the shard. If ``is_mapped``, the one piece is an
    array that nothing decodes. ``labels``, ``ids`` and the ``names`` of features may be None.
    """

    where: str
    file: str
    n_rows: int
    n_features: int
    dtype: np.dtype[Any]
    rows: Callable[[], Iterator[Array]]
    labels: Callable[[], Array] | None = None
    is_mapped: bool = False
    names: tuple[str, ...] | None = None
    ids: "Callable[[], pd.Series[Any]] | None" = None


def array_shard(
    where: str,
    header: tuple[tuple[int, ...], np.dtype[Any]],
    rows: Callable[[], Array],
    labels: Callable[[], Array] | None = None,
    *,
    is_mapped: bool = True,
) -> Shard:
    """A shard of rows that are one array, of the shape and dtype in ``header``."""
    shape, dtype = header
    if len(shape) != 2 or dtype.kind not in "biuf":
        raise ValueError(
            f"{where} holds rows of shape {shape} and type {dtype}; save a 2-D array of real numbers, one "
            "row per sample."
        )
    return Shard(where, where, shape[0], shape[1], dtype, lambda: iter([rows()]), labels, is_mapped)


def file_shards(path: Path, label: str | None, group: str | None) -> list[Shard]:
    """The parts of a file, with labels in the column or array ``label`` and ids of persons in ``group``."""
    file = format_of(path, path.name, IN_PARTS)(path, path.name)
    if isinstance(file, ArrowFile):
        return _table_shards(file, label, group)
    assert isinstance(file, ArrayFile)
    labels = label or "y"
    if label is not None and label not in file.headers:
        raise ValueError(
            f"label={label!r} is no array of {file.where}; name the array of labels, or pass y to fit."
        )
    read_labels = (lambda: file.read(labels)) if labels in file.headers else None
    mapped = isinstance(file, NpyFile)
    read = partial(file.read, "X", mapped=mapped)
    shard = array_shard(file.where, file.headers["X"], read, read_labels, is_mapped=mapped)
    if group is None:
        return [shard]
    if file.headers.get(group, ((), None))[0] != (shard.n_rows,):
        raise ValueError(
            f"group={group!r} is no flat array of {shard.n_rows} ids in {file.where}; name the array of ids, "
            "or pass groups to fit."
        )
    return [replace(shard, ids=lambda: pd.Series(file.read(group)))]


def _table_shards(file: ArrowFile, label: str | None, group: str | None) -> list[Shard]:
    if label is not None and label not in file.schema.names:
        raise ValueError(
            f"label={label!r} is no column of {file.where}; name the column that holds the labels."
        )
    if group is not None and (group == label or group not in file.schema.names):
        raise ValueError(
            f"group={group!r} is no column of {file.where} other than the labels; name the column that "
            "holds the ids of persons."
        )
    layout = _Layout.of(file.schema, {label, group}, file.where)
    names = None if layout.listed else tuple(layout.columns)

    def shard(i: int) -> Shard:
        return Shard(
            file.part_where(i),
            file.where,
            file.sizes[i],
            layout.n_features,
            layout.dtype,
            lambda: (layout.rows(piece, file.where) for piece in file.pieces(i, layout.columns)),
            None if label is None else lambda: _labels(file.pieces(i, [label]), file.where),
            names=names,
            ids=None if group is None else lambda: _ids(file.pieces(i, [group])),
        )

    return [shard(i) for i in range(len(file.sizes)) if file.sizes[i]]


@dataclass(frozen=True)
class _Layout:
    """Features as one column each, or all in one column of lists of one length.

    The lists have the type that the schema declares. Columns are float64: pandas, which may have written
    them, gives each a type by all of its cells.
    """

    columns: list[str]
    n_features: int
    dtype: np.dtype[Any]
    listed: bool

    @classmethod
    def of(cls, schema: Any, others: set[str | None], where: str) -> "_Layout":
        import pyarrow as pa

        fields = [field for field in schema if field.name not in others]
        if len(fields) == 1 and pa.types.is_fixed_size_list(fields[0].type):
            inner, width, listed = [fields[0].type.value_type], fields[0].type.list_size, True
        else:
            inner, width, listed = [field.type for field in fields], len(fields), False
        text = [
            field.name
            for field, kind in zip(fields, inner, strict=True)
            if not (pa.types.is_floating(kind) or pa.types.is_integer(kind) or pa.types.is_boolean(kind))
        ]
        if text or not fields:
            raise ValueError(
                f"{where} has the column {text[0] if text else None!r}, which does not hold numbers; pass "
                "the label column as label, that of persons as group, and leave out what is no feature, or "
                "read the file as a data frame for private_pipeline(TableEncoder(), ...)."
            )
        dtypes = [np.dtype(np.uint8 if pa.types.is_boolean(t) else t.to_pandas_dtype()) for t in inner]
        declared = listed and dtypes[0].kind == "f"
        return cls([f.name for f in fields], width, dtypes[0] if declared else np.dtype(float), listed)

    def rows(self, table: Any, where: str) -> Array:
        if any(column.null_count for column in table.columns):
            raise ValueError(f"{where} has an empty value; drop the row or fill it.")
        if self.listed:
            flat = table.column(0).combine_chunks().flatten()
            if len(flat) != len(table) * self.n_features or flat.null_count:
                raise ValueError(f"{where} has lists with empty values; drop their rows or fill them.")
            return np.asarray(flat, dtype=self.dtype).reshape(len(table), self.n_features)
        rows = np.empty((len(table), self.n_features), dtype=self.dtype)
        for j, column in enumerate(table.columns):
            rows[:, j] = column.to_numpy()
        return rows


def check_alike(shards: Sequence[Shard]) -> None:
    """Shards of one width, one dtype, one set of names, all with labels or none."""
    first = shards[0]
    for shard in shards[1:]:
        if (shard.n_features, shard.dtype) != (first.n_features, first.dtype):
            raise ValueError(
                f"{shard.where} has {shard.n_features} features of dtype {shard.dtype} and {first.where} has "
                f"{first.n_features} of dtype {first.dtype}; save all shards alike."
            )
        if shard.names != first.names:
            raise ValueError(
                f"{shard.where} has other columns than {first.where}; save all shards with the same columns "
                "in the same order."
            )
        if (shard.labels is None) != (first.labels is None):
            without = shard if shard.labels is None else first
            raise ValueError(f"{without.where} has no labels and other shards do; save all shards alike.")


def read_labels(shards: Sequence[Shard]) -> Array | None:
    """Labels of all shards, one after the other; None where they have none."""
    parts = []
    for shard in shards:
        if shard.labels is None:
            return None
        y = shard.labels()
        if y.shape[:1] != (shard.n_rows,):
            raise ValueError(
                f"{shard.where} has {shard.n_rows} rows and {len(y)} labels; save one for each row."
            )
        parts.append(y)
    return np.concatenate(parts)


def _labels(pieces: Iterable[Any], where: str) -> Array:
    """The labels (n_rows,) in tables of one column."""
    import pyarrow as pa

    column = pa.concat_tables(pieces).column(0)
    if column.null_count:
        raise ValueError(f"{where} has rows without a label; drop them.")
    return np.asarray(column.to_pandas().to_numpy())


def _ids(pieces: Iterable[Any]) -> "pd.Series[Any]":
    """The ids (n_rows,) of persons in tables of one column."""
    import pyarrow as pa

    ids: pd.Series[Any] = pa.concat_tables(pieces).column(0).to_pandas()
    return ids
