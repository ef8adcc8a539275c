"""Rows on disk, in parts (shards).

A shard is a part of the rows: a memory-mapped ``.npy`` file (of which the system reads the pages that are
needed), an ``.npz`` archive, a file of text, a row group of a Parquet file, a record batch of an Arrow file.
Messages about rows name the file alone, since the part and the row depend on private values.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from .._utils.frames import entries_of
from .._utils.validation import listed, respelt
from .formats import ArrayFile, TableFile, opened
from .text import TextForm, number_of

Array = NDArray[Any]


@dataclass(frozen=True)
class Shard:
    """A part of the rows; what reads them raises a ValueError that names the shard."""

    where: str  # its name in messages
    file: str  # its name in messages about rows
    n_rows: int
    n_features: int
    dtype: np.dtype[Any]
    rows: Callable[[], Iterator[Array]]  # reads the features (n_rows, n_features) piece by piece
    labels: Callable[[], Array] | None = None
    is_mapped: bool = False  # whether the one piece is an array that nothing decodes
    names: tuple[str, ...] | None = None  # of the features
    ids: "Callable[[], pd.Series[Any]] | None" = None  # of persons, (n_rows,)
    frame: Callable[[], pd.DataFrame] | None = None  # reads the features as cells


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
            f"{where} holds {entries_of(dtype)} of shape {shape}; save a 2-D array of real numbers, one "
            "row per sample."
        )
    return Shard(where, where, shape[0], shape[1], dtype, lambda: iter([rows()]), labels, is_mapped)


@dataclass(frozen=True)
class Wanted:
    """What to take from files: labels, ids of persons, and features; None of ``columns`` is all others."""

    label: str | None = None
    group: str | None = None
    columns: Sequence[str] | None = None
    exclude: Sequence[str] = ()

    def features(self, names: Sequence[str], index: Sequence[str], where: str) -> list[str]:
        """The features among the columns of a file, without an index of pandas."""
        available = set(names)
        for what, wanted in (("columns", self.columns or ()), ("exclude", self.exclude)):
            if absent := [name for name in wanted if name not in available]:
                raise ValueError(f"{what} names {listed(absent)}, which {where} lacks; name its columns.")
        if self.label is not None and self.label not in names:
            remedy = respelt(self.label, names, "name the column that holds the labels")
            raise ValueError(f"label={self.label!r} is no column of {where}; {remedy}")
        if self.group is not None and (self.group == self.label or self.group not in names):
            remedy = respelt(self.group, names, "name the column that holds the ids of persons")
            raise ValueError(f"group={self.group!r} is no column of {where} other than the labels; {remedy}")
        others = {self.label, self.group, *self.exclude, *index}
        features = list(self.columns) if self.columns else [name for name in names if name not in others]
        if not features or {self.label, self.group} & set(features):
            raise ValueError(f"{where} has no columns but labels and ids; name features of its own.")
        return features


def file_shards(path: Any, wanted: Wanted, form: TextForm, folders: Mapping[str, str]) -> list[Shard]:
    """The parts of a file; ``folders`` are columns in the names of its folders, with their values."""
    file = opened(path, path.name, form)
    if isinstance(file, TableFile):
        return _table_shards(file, wanted, folders)
    assert isinstance(file, ArrayFile)
    if wanted.columns is not None or wanted.exclude:
        raise ValueError(f"{file.where} has no names of columns; leave columns and exclude out.")
    label, group = wanted.label, wanted.group
    labels = label or "y"
    if label is not None and label not in file.headers:
        raise ValueError(
            f"label={label!r} is no array of {file.where}; name the array of labels, or pass y to fit."
        )
    read_labels = (lambda: file.read(labels)) if labels in file.headers else None
    read = partial(file.read, "X", mapped=file.is_mapped)
    shard = array_shard(file.where, file.headers["X"], read, read_labels, is_mapped=file.is_mapped)
    if group is None:
        return [shard]
    if file.headers.get(group, ((), None))[0] != (shard.n_rows,):
        raise ValueError(
            f"group={group!r} is no flat array of {shard.n_rows} ids in {file.where}; name the array of ids, "
            "or pass groups to fit."
        )
    return [replace(shard, ids=lambda: pd.Series(file.read(group)))]


def _table_shards(file: TableFile, wanted: Wanted, folders: Mapping[str, str]) -> list[Shard]:
    own = [name for name in file.names if name not in folders]
    features = wanted.features([*own, *folders], file.index, file.where)
    inside = [name for name in features if name not in folders]
    fixed = {name: _number(folders[name], name, file.where) for name in features if name in folders}
    layout = file.layout(inside)

    def shard(i: int, n_rows: int) -> Shard:
        def rows() -> Iterator[Array]:
            for piece in file.numbers(i, inside, layout):
                columns = [np.full((len(piece), 1), value) for value in fixed.values()]
                yield np.hstack([piece, *columns]) if columns else piece

        def cells(name: str) -> "pd.Series[Any]":
            if name in folders:
                return pd.Series([folders[name]] * n_rows, dtype="str")
            return file.cells(i, name)

        label, group = wanted.label, wanted.group
        return Shard(
            file.part_where(i),
            file.where,
            n_rows,
            layout.width + len(fixed),
            np.dtype(float) if fixed else layout.dtype,
            rows,
            None if label is None else lambda: file.labels(cells(label)),
            names=(*layout.names, *fixed),
            ids=None if group is None else lambda: cells(group),
            frame=lambda: pd.DataFrame({name: file.written(cells(name)) for name in features}),
        )

    return [shard(i, n) for i, n in enumerate(file.sizes) if n]


def _number(value: str, name: str, where: str) -> float:
    """The number in the name of a folder, which is the value for all rows in it."""
    number = number_of(value)
    if number is None or not np.isfinite(number):
        raise ValueError(
            f"{where} lies in a folder {name}=..., which is no number; name {name!r} in exclude, or as "
            "label or group."
        )
    return number


def check_alike(shards: Sequence[Shard]) -> None:
    """Refuse shards of different width, dtype or names, or of which only some have labels."""
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
    """Labels of all shards, concatenated; None if they have none."""
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
