"""Rows on disk, shard by shard: what each file format needs to be read in parts.

A shard is a part of the rows that is read at once: a memory-mapped ``.npy`` file (of which the system
reads the pages that are needed), an ``.npz`` archive, a row group of a Parquet file, a record batch of
an Arrow file. Messages of what is in the rows name the file alone: which part of it, and which row, depends
on private values.
"""

import zipfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

Array = NDArray[Any]

_CUT = "is damaged or cut short; copy it again"


@dataclass(frozen=True)
class Shard:
    """A part of the rows.

    Attributes
    ----------
    where : str
        What messages call it.
    n_rows, n_features : int
        Its shape.
    dtype : dtype
        Of its features.
    rows : callable
        Reads the features, (n_rows, n_features); a ValueError names the shard if it cannot.
    labels : callable or None
        Reads the labels, (n_rows,); None where it has none.
    names : tuple of str or None
        Names of the features.
    part_of : str or None
        Name of the file of which it is a part; None where it is all of one.
    """

    where: str
    n_rows: int
    n_features: int
    dtype: np.dtype[Any]
    rows: Callable[[], Array]
    labels: Callable[[], Array] | None = None
    names: tuple[str, ...] | None = None
    part_of: str | None = None

    @property
    def file(self) -> str:
        """What messages call the file: what is said of rows does not tell which part they are in."""
        return self.where if self.part_of is None else self.part_of


def mapped_shard(X: Array, where: str) -> Shard:
    """A shard of rows that are an array already, such as a memory map."""
    _check_shape(X.shape, X.dtype, where)
    return Shard(where, X.shape[0], X.shape[1], X.dtype, lambda: X)


def npy_shards(path: Path, label: str | None) -> list[Shard]:
    """The one shard of a ``.npy`` file, memory-mapped."""
    if label is not None:
        raise ValueError(
            f"label={label!r} has no meaning for {path.name}, which has no names; pass y to fit."
        )
    try:
        X = np.load(path, mmap_mode="r")
    except Exception:  # of a damaged header, which may be of any kind and may quote it
        raise ValueError(f"{path.name} {_CUT}, or save it with numpy.save and without objects.") from None
    return [mapped_shard(X, path.name)]


def npz_shards(path: Path, label: str | None) -> list[Shard]:
    """The one shard of an ``.npz`` archive: array ``X`` and, unless ``label`` says otherwise, ``y``."""
    try:
        with zipfile.ZipFile(path) as archive:
            headers = {name: _header(archive, name) for name in archive.namelist()}
    except Exception:  # as above
        raise ValueError(f"{path.name} {_CUT}, or save it with numpy.savez and without objects.") from None
    if "X.npy" not in headers:
        raise ValueError(f"{path.name} has no array X; save its rows as numpy.savez(path, X=..., y=...).")
    labels = label or "y"
    if label is not None and f"{label}.npy" not in headers:
        raise ValueError(f"label={label!r} is no array of {path.name}; name the array that holds the labels.")
    shape, dtype = headers["X.npy"]
    _check_shape(shape, dtype, path.name)
    read_labels = (lambda: _member(path, labels)) if f"{labels}.npy" in headers else None
    return [Shard(path.name, shape[0], shape[1], dtype, lambda: _member(path, "X"), read_labels)]


def arrow_shards(path: Path, label: str | None) -> list[Shard]:
    """The row groups of a Parquet file, or the record batches of an Arrow (Feather) file."""
    try:
        import pyarrow as pa
        import pyarrow.ipc
        import pyarrow.parquet
    except ImportError as error:
        raise ImportError(f"{path.name} needs the pyarrow package; install skmixdp[parquet].") from error
    try:
        if path.suffix == ".parquet":
            file = pyarrow.parquet.ParquetFile(path, memory_map=True)
            schema, n_groups = file.schema_arrow, file.num_row_groups
            sizes = [file.metadata.row_group(i).num_rows for i in range(n_groups)]

            def read(i: int, columns: list[str]) -> Any:
                return file.read_row_group(i, columns=columns, use_threads=False)

        else:
            opened = pa.ipc.open_file(pa.memory_map(str(path)))
            schema, n_groups = opened.schema, opened.num_record_batches
            sizes = [opened.get_batch(i).num_rows for i in range(n_groups)]

            def read(i: int, columns: list[str]) -> Any:
                return pa.table(opened.get_batch(i)).select(columns)

    except (pa.ArrowInvalid, OSError):
        raise ValueError(f"{path.name} {_CUT}.") from None
    if label is not None and label not in schema.names:
        raise ValueError(
            f"label={label!r} is no column of {path.name}; name the column that holds the labels."
        )
    layout = _Layout.of(schema, label, path.name)
    part = "row group" if path.suffix == ".parquet" else "batch"

    def shard(i: int) -> Shard:
        where = f"{path.name} ({part} {i})"

        def table(columns: list[str]) -> Any:
            try:
                return read(i, columns)
            except (pa.ArrowException, OSError):
                raise ValueError(f"{where} {_CUT}.") from None

        return Shard(
            where,
            sizes[i],
            layout.n_features,
            layout.dtype,
            lambda: layout.rows(table(layout.columns), path.name),
            None if label is None else lambda: _labels(table([label])[label], path.name),
            None if layout.listed else tuple(layout.columns),
            path.name,
        )

    return [shard(i) for i in range(n_groups) if sizes[i]]


@dataclass(frozen=True)
class _Layout:
    """Features as one column each, or all in one column of lists of one length."""

    columns: list[str]
    n_features: int
    dtype: np.dtype[Any]
    listed: bool

    @classmethod
    def of(cls, schema: Any, label: str | None, where: str) -> "_Layout":
        import pyarrow as pa

        fields = [field for field in schema if field.name != label]
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
                "the label column as label, and leave out what is no feature."
            )
        dtypes = [np.dtype(np.uint8 if pa.types.is_boolean(t) else t.to_pandas_dtype()) for t in inner]
        dtype = np.result_type(*dtypes)
        return cls([f.name for f in fields], width, dtype if dtype.kind == "f" else np.dtype(float), listed)

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


def _check_shape(shape: tuple[int, ...], dtype: np.dtype[Any], where: str) -> None:
    if len(shape) != 2 or dtype.kind not in "biuf":
        raise ValueError(
            f"{where} holds rows of shape {shape} and type {dtype}; save a 2-D array of real numbers, one "
            "row per sample."
        )


def _header(archive: zipfile.ZipFile, name: str) -> tuple[tuple[int, ...], np.dtype[Any]]:
    """Shape and dtype of an array in an archive, without reading it."""
    with archive.open(name) as member:
        version = np.lib.format.read_magic(member)
        read = (
            np.lib.format.read_array_header_1_0 if version == (1, 0) else np.lib.format.read_array_header_2_0
        )
        shape, _, dtype = read(member)
    return shape, dtype


def _member(path: Path, name: str) -> Array:
    try:
        with np.load(path) as archive:
            return np.asarray(archive[name])
    except Exception:  # as above
        raise ValueError(f"{path.name} {_CUT}.") from None


def _labels(column: Any, where: str) -> Array:
    if column.null_count:
        raise ValueError(f"{where} has rows without a label; drop them.")
    return np.asarray(column.to_pandas().to_numpy())
