"""What a fitted model does to rows, as a list of operations that each exporter writes in its own form."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .._rows.row_map import RowMap
from ..preprocessing import TableColumn
from ..preprocessing._cells import FARTHEST

Array = NDArray[Any]

#: Infinite numbers are clipped to this.
_LARGEST = 1e300


@dataclass(frozen=True)
class Affine:
    """``(x - center) / scale`` for columns (d,); None skips a part."""

    center: Array | None = None
    scale: Array | None = None


@dataclass(frozen=True)
class Cut:
    """Entries clipped to a range, that of each column (d,) or one for all."""

    low: float | Array
    high: float | Array


@dataclass(frozen=True)
class Marked:
    """Rows (n, d) with 0 in place of NaN, and then 1 for each NaN and 0 for each number, (n, 2 d)."""


@dataclass(frozen=True)
class Take:
    """The columns of these numbers, in this order."""

    places: Array


@dataclass(frozen=True)
class Squared:
    """Rows whose entries from a place on are squared."""

    start: int


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
    """``rest x + x @ factors[0] @ factors[1]``, whose second term is of low rank."""

    factors: tuple[Array, ...]
    rest: float


Operation = Affine | Cut | Marked | Take | Squared | UnitRows | ShortRows | Project | Change
#: Operations in order, each with a name.
Operations = list[tuple[str, Operation]]


def of_row_map(row_map: RowMap) -> Operations:
    """The operations of a row map, without its intercept column."""
    operations: Operations = [] if row_map.basis is None else of_basis(row_map.basis)
    if (columns := row_map.columns) is not None:
        operations += [("columns", Affine(columns.center, 1 / columns.factor)), ("cut", _cut(columns.cut))]
    if row_map.unit_first:
        # The largest entry is divided out first, since the square of a huge or tiny one is inf or 0.
        operations += [("unit_entries", UnitRows("max")), ("unit_length", UnitRows("l2"))]
    if row_map.mean is not None:
        operations.append(("center", Affine(row_map.mean)))
    if row_map.normalize and row_map.bound is None:
        operations.append(("largest_entry", UnitRows("max")))
    if row_map.whitening is not None:
        operations.append(("whiten", Change(tuple(row_map.whitening.factorised), row_map.whitening.rest)))
    if row_map.normalize:
        last = UnitRows("l2") if row_map.bound is None else ShortRows(row_map.bound)
        operations.append(("normalize", last))
    return operations


def of_basis(basis: Any) -> Operations:
    """The basis of an additive model: linear terms, ramps between knots and missing values, and their sums.

    A hat is the difference of two ramps. Missing numbers stand at the first knot, where all ramps are 0, and
    what they would add there is taken away.
    """
    d = len(basis.center)
    start = np.array([k[0] if len(k) else c for k, c in zip(basis.knots, basis.center, strict=True)])
    of_ramps = np.repeat(np.arange(d), [max(len(knots) - 1, 0) for knots in basis.knots])
    places = np.concatenate([np.arange(d), of_ramps, d + np.arange(d)])
    lows = np.concatenate([basis.center, *(knots[:-1] for knots in basis.knots), np.zeros(d)])
    scales = np.concatenate([1 / basis.factor, *map(np.diff, basis.knots), np.ones(d)])
    cut, ends = np.full(d, basis.cut), np.zeros(len(of_ramps) + d)
    weights, constant = np.zeros((basis.n_single, len(places))), np.zeros(basis.n_single)
    weights[np.arange(d), np.arange(d)] = 1.0
    at_start, missing = basis(start[np.newaxis])[0, : basis.n_single], len(places) - d
    for j, (hats, mean) in enumerate(zip(basis.hats, basis.mean, strict=True)):
        rows, ramps = np.arange(hats.start, hats.stop), d + np.flatnonzero(of_ramps == j)
        weights[rows[1:], ramps] = 1.0
        weights[rows[:-1], ramps] = -1.0
        constant[rows] = -mean
        constant[rows[:1]] += 1.0
        own = [j, *rows]
        weights[own, missing + j] = -at_start[own]
        if j in basis.missing_entries:
            weights[basis.missing_entries[j], missing + j] = 1.0
    return [
        ("finite", _cut(_LARGEST)),
        ("start", Affine(start)),
        ("marked", Marked()),
        ("terms", Take(places)),
        ("ramps", Affine(lows - np.append(start, np.zeros(d))[places], scales)),
        ("ends", Cut(np.append(-cut, ends), np.append(cut, ends + 1))),
        ("basis", Project(weights)),
        ("constant", Affine(-constant)),
        *(_products(basis) if basis.pairs else []),
    ]


def _products(basis: Any) -> Operations:
    """The products of pairs of columns: ``4 x y = (x + y)^2 - (x - y)^2``."""
    single = np.eye(basis.n_single)
    factors = [basis.factors(single, pair) for pair in basis.pairs]
    left, right = (np.hstack(each).T for each in zip(*factors, strict=True))
    quarter = np.eye(len(left)) / 4
    zeros = np.zeros((len(single), len(left)))
    sums = np.block([[single, zeros, zeros], [zeros.T, quarter, -quarter]])
    return [
        ("factors", Project(np.vstack([single, left + right, left - right]))),
        ("squares", Squared(len(single))),
        ("products", Project(sums)),
    ]


def of_numbers(column: TableColumn) -> Operations:
    """Numbers or days (n, 1) of a column of a table that are not missing."""
    linear = Affine(np.array([column.center]), np.array([column.scale]))
    return [("whole", _cut(FARTHEST)), ("linear", linear), ("cut", _cut(column.cut))]


def of_categories(column: TableColumn) -> Operations:
    """Zeros and ones (n, width) of a category, and of missing cells, with the entries of rows without one."""
    unknown = np.append(column.of_unknown, [0.0] * column.indicator)
    others = np.eye(len(unknown)) - np.outer(unknown, np.ones(len(unknown)))
    return [("others", Project(others)), ("known", Affine(-unknown))]


def _cut(end: float) -> Cut:
    return Cut(-end, end)


#: Operations of the transformers of this library that consist of them, by class.
OWN: dict[str, Callable[[Any], Operations]] = {
    "NoisyScaler": lambda step: [("scale", Affine(step.mean_, step.scale_))],
    "PublicWhitener": lambda step: [("center", Affine(step.mean_)), ("project", Project(step.components_))],
    "RowNormalizer": lambda step: [("normalize", UnitRows(step.norm))],
}
