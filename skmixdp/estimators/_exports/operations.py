"""What a fitted model does to rows, as a list of operations that each exporter writes in its own form."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..._rows import RowMap
from ...preprocessing import TableColumn
from ...preprocessing._cells import FARTHEST

Array = NDArray[Any]


@dataclass(frozen=True)
class Affine:
    """``(x - center) / scale`` for columns (d,); None skips a part."""

    center: Array | None = None
    scale: Array | None = None


@dataclass(frozen=True)
class Cut:
    """Entries clipped to a range."""

    low: float
    high: float


@dataclass(frozen=True)
class UnitRows:
    """Rows divided by their norm, "l1", "l2" or "max"; rows of zeros stay zero."""

    norm: str


@dataclass(frozen=True)
class ShortRows:
    """Rows divided by the larger of their L2 norm and a bound."""

    bound: float


@dataclass(frozen=True)
class Project:
    """``x @ components.T``, with components (k, d)."""

    components: Array


@dataclass(frozen=True)
class Change:
    """``x + x @ factors[0] @ factors[1]``, which is of low rank."""

    factors: tuple[Array, ...]


Operation = Affine | Cut | UnitRows | ShortRows | Project | Change
#: Operations in order, each with a name.
Operations = list[tuple[str, Operation]]


def of_row_map(row_map: RowMap) -> Operations:
    """The operations of a row map, without its intercept column."""
    found: Operations = []
    if (columns := row_map.columns) is not None:
        found += [("columns", Affine(columns.center, 1 / columns.factor)), ("cut", _cut(columns.cut))]
    if row_map.unit_first:
        # The largest entry is divided out first, since the square of a huge or tiny one is inf or 0.
        found += [("unit_entries", UnitRows("max")), ("unit_length", UnitRows("l2"))]
    if row_map.mean is not None:
        found.append(("center", Affine(row_map.mean)))
    if row_map.normalize and row_map.bound is None:
        found.append(("largest_entry", UnitRows("max")))
    if row_map.whitening is not None:
        found.append(("whiten", Change(tuple(row_map.whitening.factorised))))
    if row_map.normalize:
        last = UnitRows("l2") if row_map.bound is None else ShortRows(row_map.bound)
        found.append(("normalize", last))
    return found


def of_numbers(column: TableColumn) -> Operations:
    """Numbers or days (n, 1) of a column of a table that are not missing."""
    linear = Affine(np.array([column.center]), np.array([column.scale]))
    return [("whole", _cut(FARTHEST)), ("linear", linear), ("cut", _cut(column.cut))]


def _cut(end: float) -> Cut:
    return Cut(-end, end)


#: Operations of the transformers of this library that consist of them, by class.
OWN: dict[str, Callable[[Any], Operations]] = {
    "NoisyScaler": lambda step: [("scale", Affine(step.mean_, step.scale_))],
    "PublicCenterer": lambda step: [("center", Affine(step.mean_))],
    "PublicWhitener": lambda step: [("center", Affine(step.mean_)), ("project", Project(step.components_))],
    "RowNormalizer": lambda step: [("normalize", UnitRows(step.norm))],
}
