"""Knots of the columns of an additive model, from public rows or from noisy histograms of private ones.

What is computed from private rows here is a function of noisy counts, of public edges and of public facts.
"""

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial

import numpy as np
from numpy.typing import NDArray

from .._engine import GaussianMechanism, Procedure, RowsKey, bind_rows
from .._fit.histograms import certain_count, certain_of_magnitudes, thinned, windows_of
from .._fit.stage import Fit, Price, Stage
from .._fit.statistics import Learner, sensitivity_of
from .._linear import FloatArray
from .._rows import IQR, UNCHANGED, BinCounts, Block, Contribution, RowFunction
from ..components.protocols import PrivateQuery, ReleasedArray
from ._basis import Column
from ._piecewise import ColumnFunction

#: Fewest public rows that determine the knots.
ENOUGH = 10

#: Most releases that learn knots from private rows, if there are fewer public ones.
KNOT_RELEASES = 3

#: Share of mu squared for knots.
_SHARE = 0.1
#: Largest noise in a count up to which curves gain, as a fraction of the rows.
_MOST_ERROR = 0.028

#: Ends of the bins of the first histogram: half powers of two, up to 64 on both sides of 1.
_HALVES = 2.0 ** np.arange(-64, 64.5, 0.5)
_SIGNED = np.concatenate([-_HALVES[::-1], _HALVES])

#: Bins of the second histogram that have equal mass in the first.
_EQUAL = 32
#: Bins of the second histogram that have equal width, between two quantiles of the first.
_CENTRAL = 16
#: These quantiles are at this probability and at 1 minus it.
_TAIL = 0.02

#: A value gets knots of its own if it has more than this many times the rows between two knots.
_SPIKE = 1.5
#: Other values get their own quantiles if they are more than this fraction of the rows.
_REST = 0.02

#: Minimum fraction of the rows that a histogram must show for knots.
_SEEN = 0.5
#: Minimum fraction of the rows that a histogram must show to find two values.
_NEARLY_ALL = 0.9

#: Largest width of the bins of a value, if a column has two, as a fraction of their distance.
_NARROW = 0.1

#: Smallest distance of neighbouring knots, relative to their size.
_APART = 1e-6

#: Largest size of knots from public rows, so that nothing overflows.
_FARTHEST = 2.0**100
#: Smallest distance of knots.
_CLOSEST = 2.0**-100

#: Number of quantiles that are kept of each column, and their probabilities.
_N_QUANTILES = 32
_MIDDLES = (np.arange(_N_QUANTILES) + 0.5) / _N_QUANTILES

#: Bin numbers are stored in rows as multiples of this, which no source rounds.
_UNIT = 2.0**-10


def knots_share(mu: float, n_rows: int, n_columns: int) -> float:
    """Largest share of mu squared for :func:`noisy_columns_of`; 0 if noise would hide them."""
    return _SHARE if n_columns and count_error(mu, n_rows, n_columns) <= _MOST_ERROR else 0.0


def count_error(mu: float, n_rows: int, n_columns: int) -> float:
    """Noise in a count of one histogram, as a fraction of the rows."""
    return math.sqrt(KNOT_RELEASES * n_columns / _SHARE) / (mu * n_rows)


def most_knots(n_knots: int) -> int:
    """Most knots that a column may get if ``n_knots`` are wanted."""
    return n_knots + 1 + math.ceil(n_knots / 2) + 1


def public_columns(
    X: FloatArray, n_knots: int, linear: NDArray[np.bool_], *, standardise: bool = False
) -> list[Column]:
    """The columns of public rows (n, d); those that are ``linear`` (d,) have no knots.

    Columns of two values have none, and their linear term has distance 1. ``standardise`` is for linear
    columns of more values too.
    """
    columns = []
    for j, values in enumerate(X.T):
        known = np.clip(values[~np.isnan(values)], -_FARTHEST, _FARTHEST)
        missing = bool(np.isnan(values).any())
        distinct, counts = np.unique(known, return_counts=True)
        values = np.quantile(known, _MIDDLES, method="inverted_cdf") if len(known) else _MIDDLES * np.nan
        told = _with_missing(values, len(known) / len(X))
        if linear[j] and standardise and len(distinct) > 2:
            line = _of_knots(distinct, distinct, counts.astype(np.float64), missing=missing)
            none = np.zeros(0)
            columns.append(replace(line, knots=none, mean=none, quantiles=told))
            continue
        if linear[j] or len(distinct) < 2:
            center = float(distinct[0]) if len(distinct) == 1 and not linear[j] else 0.0
            columns.append(Column(center, missing=missing, quantiles=told))
            continue
        knots = distinct
        if len(distinct) > n_knots + 1:
            chances = np.linspace(0, 1, n_knots + 1)
            knots = np.quantile(known, chances)
            heavy = distinct[counts > _SPIKE * len(known) / n_knots]
            rest = known[~np.isin(known, heavy)]
            if len(heavy) and len(rest) > _REST * len(known):
                few = np.linspace(0, 1, math.ceil(n_knots / 2) + 1)
                knots = np.concatenate([knots, heavy, np.quantile(rest, few)])
        found = _of_knots(knots, known, np.ones(len(known)), missing=missing)
        columns.append(replace(found, quantiles=told))
    return columns


def _with_missing(quantiles: FloatArray, known: float) -> FloatArray:
    """Quantiles of a column of which the fraction ``known`` is not missing, and NaN for the rest."""
    n_known = min(max(round(_N_QUANTILES * known), 1), _N_QUANTILES)
    told = np.full(_N_QUANTILES, np.nan)
    told[:n_known] = quantiles[np.linspace(0, _N_QUANTILES - 1, n_known).round().astype(int)]
    return told


@dataclass(frozen=True, eq=False)
class Bins(ColumnFunction):
    """The bins of some columns of a row, as multiples of a power of two.

    ``edges`` are those of the bins of each of the ``columns``; the first and the last bin take all beyond. A
    missing value is in a bin after those, the last of ``n_bins``.
    """

    columns: NDArray[np.intp]
    edges: tuple[FloatArray, ...]

    @property
    def width(self) -> int:
        return len(self.columns)

    @property
    def n_bins(self) -> int:
        return max(map(len, self.edges)) + 2

    def __call__(self, X: FloatArray) -> FloatArray:
        places = np.empty((len(X), self.width))
        for j, (column, edges) in enumerate(zip(self.columns, self.edges, strict=True)):
            values = X[:, column].astype(np.float64)
            found = np.searchsorted(edges, values, "right")
            places[:, j] = np.where(np.isnan(values), self.n_bins - 1, found)
        return places * _UNIT


def noisy_columns_of(
    learner: Learner,
    rows_of: Callable[[RowFunction], RowsKey],
    columns: NDArray[np.intp],
    n_knots: int,
    multiplier: float,
) -> Procedure[tuple[list[Column], int]]:
    """The columns (m,) of private rows by noisy histograms, and the number of releases.

    ``rows_of`` are the private rows after a function of each row. ``multiplier`` is that of one Gaussian
    release which is as private as ``KNOT_RELEASES`` of these.

    The first histogram has bins of half powers of two. The bins of the second have about equal mass in the
    first, or equal width in the central part of it. A third one does the same for columns of which the second
    has many rows in one bin. Knots are quantiles of the bins with more rows than noise. Columns with two
    values have none. What a release tells decides what the next one asks; see :class:`Knots`.

    *Guarantee*: up to three Gaussian releases. A row adds 1 to one bin of each column that is asked for, so
    the sensitivity of each is at most ``sqrt(m)``.
    """
    learner = thinned(learner, len(columns), multiplier)
    mechanism = GaussianMechanism(multiplier * math.sqrt(KNOT_RELEASES), KNOT_RELEASES, learner.noise)
    places = dict.fromkeys(range(len(columns)), _SIGNED)
    told = [Column()] * len(columns)
    missing = np.zeros(len(columns), dtype=bool)
    n_rows = learner.n_expected
    n_known = np.full(len(columns), float(n_rows))
    for stage in range(KNOT_RELEASES):
        bins = Bins(columns[[*places]], tuple(places.values()))
        query = PrivateQuery(
            points=np.eye(bins.width),  # so that the products are the entries
            contribute=partial(_in_bins, n_bins=bins.n_bins),
            releases=(ReleasedArray(sensitivity_of(bins.width)),),
        )
        released, noise = yield from bind_rows(rows_of(bins), learner.ask(mechanism, query))
        counts = released.reshape(bins.width, bins.n_bins)
        known = certain_count(counts, noise)
        certain = known if stage else certain_of_magnitudes(counts, noise, n_rows)
        asked, places = places, {}
        for (j, edges), column in zip(asked.items(), counts, strict=True):
            # Rows beyond the outermost edges are in no bin.
            histogram = _Histogram(_seen(column[1 : len(edges)], certain), edges)
            if stage == 0 and column[-1] > known:
                missing[j], n_known[j] = True, n_known[j] - column[-1]
            found = histogram.column(n_known[j], n_knots)
            if found is not None:
                quantiles = _with_missing(histogram.at(_MIDDLES), n_known[j] / n_rows)
                told[j] = replace(found, quantiles=quantiles)
            unclear = histogram.seen.any() if stage == 0 else histogram.is_crowded(n_known[j], n_knots)
            if unclear:
                places[j] = histogram.finer()
        if not places:
            break
    return [replace(each, missing=bool(one)) for each, one in zip(told, missing, strict=True)], stage + 1


@dataclass(frozen=True, eq=False)
class Knots(Stage):
    """Knots of the columns that may have curves, and so the basis of an additive model.

    ``asked`` are these columns, with curves of ``n_knots`` pieces. ``on_basis`` is a fit to the basis of
    columns. What noisy knots tell decides what else is released. The squared budgets of adaptive Gaussian
    releases add up as those of fixed ones, if their sum is bounded: Smith and Thakurta 2022, "Fully adaptive
    composition for Gaussian differential privacy".
    """

    asked: NDArray[np.intp]
    n_knots: int
    on_basis: Callable[[Fit, Sequence[Column]], Fit]

    name = "knots"
    limits = (_SHARE / KNOT_RELEASES, _SHARE)

    def price(self, fit: Fit) -> Price | None:
        return knots_share(fit.mu, fit.n_rows, len(self.asked))

    def rows(self, fit: Fit) -> RowsKey:
        return fit.data.private.mapped(None)

    def outcomes(self, fit: Fit, price: Price) -> Iterator[Fit]:
        most = most_knots(self.n_knots)
        widest = Column(knots=np.arange(float(most)), missing=True, mean=np.zeros(most))
        columns = [widest if place in self.asked else Column() for place in range(fit.data.n_features)]
        yield self.on_basis(fit.spent(self, price), columns).foreseen()

    def run(self, fit: Fit, price: Price) -> Procedure[Fit]:
        private, multiplier = fit.data.private, fit.budget.multiplier(price)

        def rows_of(function: RowFunction) -> RowsKey:
            table = private.table.transformed(function)
            return replace(private, table=table).mapped(UNCHANGED)

        seen, n_released = yield from noisy_columns_of(
            fit.learner, rows_of, self.asked, self.n_knots, multiplier
        )
        columns = [Column()] * fit.data.n_features
        for place, column in zip(self.asked.tolist(), seen, strict=True):
            columns[place] = column
        return self.on_basis(fit.spent(self, price * n_released / KNOT_RELEASES), columns)


def _in_bins(Z: FloatArray, block: Block, n_bins: int) -> Contribution:
    """Bins (rows, m) from the entries of rows."""
    return None, BinCounts(np.clip(np.rint(np.asarray(Z) / _UNIT), 0, n_bins - 1).astype(np.intp), n_bins)


def _seen(column: FloatArray, certain: float) -> FloatArray:
    """The counts of a histogram where they exceed the noise, and 0 elsewhere."""
    seen = np.zeros(len(column))
    for start, width, count in windows_of(column, certain, np.zeros(len(column), bool)):
        seen[start : start + width] = count / width
    return seen


@dataclass(frozen=True, eq=False)
class _Histogram:
    """Counts ``seen`` (m,) that exceed the noise, 0 elsewhere; ``ends`` (m + 1,) are those of bins."""

    seen: FloatArray
    ends: FloatArray

    def quantiles(self, n_parts: int, seen: FloatArray | None = None) -> FloatArray:
        """Ends (n_parts + 1,) of parts of equal mass, by other counts if they are given."""
        return self.at(np.linspace(0, 1, n_parts + 1), seen)

    def at(self, chances: FloatArray, seen: FloatArray | None = None) -> FloatArray:
        """Quantiles of the rows in the histogram, or by other counts if they are given."""
        seen = self.seen if seen is None else seen
        first, *_, last = np.flatnonzero(np.append(seen, 0.0) + np.append(0.0, seen))
        cumulated = np.append(0.0, np.cumsum(seen)) / seen.sum()
        return np.interp(chances, cumulated[first : last + 1], self.ends[first : last + 1])

    def finer(self) -> FloatArray:
        """Edges of finer bins where this histogram has rows."""
        held = np.flatnonzero(self.seen)
        low, high = self.ends[held[0]], self.ends[held[-1] + 1]
        first, last = self.at(np.array([_TAIL, 1 - _TAIL])).tolist()
        central = np.linspace(first, last, _CENTRAL + 1)
        return np.unique(np.clip(np.concatenate([[low, high], self.quantiles(_EQUAL), central]), low, high))

    def heavy(self, n_knots: int) -> NDArray[np.bool_]:
        """Flags (m,) of the bins with more rows than a piece of the curve should have."""
        return np.asarray(self.seen > _SPIKE * self.seen.sum() / n_knots)

    def of_two(self, n_rows: float) -> Column | None:
        """A column whose rows have two values, up to narrow bins; None for others."""
        steps = np.diff(np.concatenate([[0], self.seen > 0, [0]]).astype(int))
        lows, highs = self.ends[:-1][steps[:-1] == 1], self.ends[1:][steps[1:] == -1]
        if len(lows) != 2 or self.seen.sum() < _NEARLY_ALL * n_rows:
            return None
        low, high = ((lows + highs) / 2).tolist()
        part = float(self.seen[self.ends[:-1] >= lows[1]].sum() / self.seen.sum())
        narrow = max(highs - lows) <= _NARROW * (high - low)
        return _of_two(low, high, part) if narrow else None

    def is_crowded(self, n_rows: float, n_knots: int) -> bool:
        """Whether a bin holds many rows and perhaps many values, except the bin of 0."""
        away = (self.ends[:-1] > 0) | (self.ends[1:] < 0)
        return self.of_two(n_rows) is None and bool((self.heavy(n_knots) & away).any())

    def column(self, n_rows: float, n_knots: int) -> Column | None:
        """A column by its histograms; None if too few of its rows are seen."""
        total = float(self.seen.sum())
        if total < _SEEN * n_rows or total <= 0:
            return None
        if (two := self.of_two(n_rows)) is not None:
            return two
        held = np.flatnonzero(self.seen)
        if len(held) == 1:  # all are equal, or noise hides their spread
            return Column(float(self.ends[held[0] : held[0] + 2].mean()))
        knots, rest = self.quantiles(n_knots), np.where(self.heavy(n_knots), 0.0, self.seen)
        if _REST * n_rows < rest.sum() < total:
            knots = np.concatenate([knots, self.quantiles(math.ceil(n_knots / 2), rest)])
        return _of_knots(knots, (self.ends[:-1] + self.ends[1:]) / 2, self.seen)


def _of_two(low: float, high: float, part: float, *, missing: bool = False) -> Column:
    """A column of two values; ``part`` is the fraction of the high one."""
    factor = 1 / (high - low) if high - low > _CLOSEST else 1.0
    return Column(low + part * (high - low), factor, missing=missing)


def _of_knots(knots: FloatArray, values: FloatArray, counts: FloatArray, *, missing: bool = False) -> Column:
    """A column with knots, of which those too close to the previous one are left out.

    ``counts`` (m,) are numbers of rows with these ``values`` (m,).
    """
    kept: list[float] = []
    for knot in np.unique(knots).tolist():
        if not kept or knot - kept[-1] > max(_APART * max(abs(knot), abs(kept[-1])), _CLOSEST):
            kept.append(knot)
    if len(kept) < 3:
        part = float(counts[values > kept[0] / 2 + kept[-1] / 2].sum() / counts.sum())
        return _of_two(kept[0], kept[-1], part, missing=missing)
    apart = np.array(kept)
    hats = [np.interp(values, apart, hat) @ counts / counts.sum() for hat in np.eye(len(apart))]
    # The larger of two spreads, as for the columns of linear heads.
    part, order = counts / counts.sum(), np.argsort(values)
    center = float(part @ values)
    low, high = np.interp([0.25, 0.75], np.cumsum(part[order]), values[order])
    spread = max(math.sqrt(part @ (values - center) ** 2), float(high - low) / IQR)
    return Column(center, 1 / spread, apart, np.array(hats), missing)
