"""Knots of the columns of an additive model, from public rows or from noisy histograms of private ones.

What is computed from private rows here is a function of noisy counts, of public edges and of public facts.
"""

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property, partial

import numpy as np
from numpy.typing import NDArray

from .._engine import GaussianMechanism, Procedure, RowsKey, bind_rows
from .._fit.stage import Fit, Price, Stage
from .._fit.stages.columns import MOST_SPENT, noisy_columns
from .._fit.statistics import (
    Learner,
    magnitude_threshold,
    noise_threshold,
    sensitivity_of,
    shown_counts,
    thinned,
)
from .._linear.arrays import FloatArray
from .._rows.row_map import UNCHANGED, RowFunction
from .._rows.scaling import IQR
from .._rows.source import BinCounts, Block, Contribution
from ..components.protocols import PrivateQuery, ReleasedArray
from ._basis import MIDDLES, NORMAL, Column, unchanged
from ._piecewise import ColumnFunction

#: Fewest public rows that determine the knots.
ENOUGH = 10

#: Most releases that learn knots from private rows, if there are fewer public ones.
KNOT_RELEASES = 3

#: Share of mu squared for knots.
_SHARE = 0.1
#: The same for centres and spreads of lines, and the largest noise in a count for them.
_LINES_SHARE, _MOST_LINES_ERROR = 0.01, 0.07
#: Least squared spread of a column of zeros and ones of mean p, divided by p (1 - p), and the most of it.
_OF_ZEROS_AND_ONES, _MOST_OF_THEM = 0.7, 0.6
#: Largest noise in a count up to which curves gain, as a fraction of the rows.
_MOST_ERROR = 0.028

#: Ends of the bins of the first histogram: half powers of two, up to 64 on both sides of 1.
_HALVES = 2.0 ** np.arange(-64, 64.5, 0.5)
_SIGNED = np.concatenate([-_HALVES[::-1], _HALVES])

#: Bins of the second histogram that have equal mass in the first, and that have equal width between two of
#: its quantiles: of the last number, and of 1 minus it.
_EQUAL, _CENTRAL, _TAIL = 32, 16, 0.02
#: A run of adjacent occupied bins is divided into this many bins of equal width, if runs are few.
_OF_RUN = 8
#: Bins of the last histogram, and all rows are in fewer neighbouring bins than this: a column far from 0.
_OF_FAR, _FAR = 512, 2

#: A value is an *atom*, with one knot of its own, if it has more than this many times the rows of a piece.
#: Between it and the nearest quantile of other values are at least this many times the rows of a piece.
_SPIKE, _BETWEEN = 1.5, 0.5
#: Other values get quantiles of their own if they are more than this fraction of the rows.
_REST = 0.02

#: Minimum fraction of the rows that a histogram must show for knots, and to find few values.
_SEEN, _NEARLY_ALL = 0.5, 0.9

#: Bins of a value are at most this fraction of the gap to the next value: in columns of two, or of few.
_NARROW, _NARROW_OF_FEW = 0.1, 0.6

#: The rows of a bin may count as equal if it is at most this part of the range of most rows.
_FINE = 0.01

#: Smallest distance of neighbouring knots: the first number times the range of most rows, or the second times
#: the size of the knots if that is smaller, but at least the last number times the range.
_APART, _APART_IN_SIZES, _CLOSE = 0.005, 0.02, 1e-4
#: Most rows are those between these quantiles.
_MOST = (0.05, 0.95)

#: Largest size of knots from public rows, and smallest distance of knots, so that nothing overflows.
_FARTHEST, _CLOSEST = 2.0**100, 2.0**-100

#: Bin numbers are stored in rows as multiples of this, which no source rounds.
_UNIT = 2.0**-10


def knots_share(mu: float, n_rows: int, n_columns: int) -> float:
    """Largest share of mu squared for :func:`noisy_columns_of`; 0 if noise would hide them."""
    return _SHARE if n_columns and count_error(mu, n_rows, n_columns) <= _MOST_ERROR else 0.0


def lines_share(mu: float, n_rows: int, n_columns: int) -> float:
    """Largest share of mu squared for centres and spreads of lines; 0 if noise would hide them."""
    clear = math.sqrt(n_columns / _LINES_SHARE) <= _MOST_LINES_ERROR * mu * n_rows
    return MOST_SPENT * _LINES_SHARE if n_columns and clear else 0.0


def line(center: float, spread: float) -> Column:
    """A standardised column without a curve; as it is if its spread is hidden, or like that of 0 and 1."""
    least = _OF_ZEROS_AND_ONES * center * (1 - center)
    if spread <= _CLOSEST or (0 < center < 1 and least <= spread**2 <= _MOST_OF_THEM):
        return Column()
    return Column(center, 1 / spread, quantiles=center + spread * NORMAL)


def count_error(mu: float, n_rows: int, n_columns: int) -> float:
    """Noise in a count of one histogram, as a fraction of the rows."""
    return math.sqrt(KNOT_RELEASES * n_columns / _SHARE) / (mu * n_rows)


def most_knots(n_knots: int) -> int:
    """Most knots that a column may get if ``n_knots`` are wanted."""
    return n_knots + 1 + math.ceil(n_knots / 2) + 1


def public_columns(
    X: FloatArray, n_knots: int, linear: NDArray[np.bool_], *, standardise: bool = False
) -> list[Column]:
    """The columns of public rows (n, d), without knots if they are ``linear`` (d,) or have two values.

    The two values are at distance 1. Other linear columns keep their units, unless ``standardise``.
    """
    columns = []
    for j, values in enumerate(X.T):
        present = np.clip(values[~np.isnan(values)], -_FARTHEST, _FARTHEST)
        missing = bool(np.isnan(values).any())
        distinct, counts = np.unique(present, return_counts=True)
        values = np.quantile(present, MIDDLES, method="inverted_cdf") if len(present) else MIDDLES * np.nan
        shown = _with_missing(values, len(present) / len(X))
        if linear[j] and standardise and len(distinct) > 2:
            curved = _of_knots(distinct, distinct, counts.astype(np.float64))
            column = Column(curved.center, curved.factor)
        elif linear[j] or len(distinct) < 2:
            column = Column(float(distinct[0]) if len(distinct) == 1 and not linear[j] else 0.0)
        else:
            knots = distinct
            if len(distinct) > n_knots + 1:
                atoms = distinct[counts > _SPIKE * len(present) / n_knots]
                rest = np.sort(present[~np.isin(present, atoms)])
                inner = rest[[0, -1]]
                if len(rest) > _REST * len(present):
                    below = np.searchsorted(rest, atoms) / len(rest)
                    inner = np.quantile(rest, _between_atoms(len(rest) / len(present), below, n_knots))
                knots = np.concatenate([atoms, inner])
            column = _of_knots(knots, present, np.ones(len(present)))
        columns.append(replace(column, missing=missing, quantiles=shown))
    return columns


def _between_atoms(part: float, below: FloatArray, n_knots: int) -> FloatArray:
    """Probabilities of the quantiles that become knots, among the ``part`` of the rows that are no atoms.

    The fractions ``below`` of these lie below the atoms.
    """
    n_pieces = math.ceil(n_knots * max(part, 0.5))
    chances = np.linspace(0, 1, n_pieces + 1)
    near = np.abs(chances - below[:, np.newaxis]) < _BETWEEN / n_pieces
    return np.asarray(chances[~near.any(axis=0)])


def _with_missing(quantiles: FloatArray, present: float) -> FloatArray:
    """Quantiles of a column of which the fraction ``present`` is not missing, and NaN for the rest."""
    n_known = min(max(round(len(MIDDLES) * present), 1), len(MIDDLES))
    with_missing = np.full(len(MIDDLES), np.nan)
    with_missing[:n_known] = quantiles[np.linspace(0, len(MIDDLES) - 1, n_known).round().astype(int)]
    return with_missing


@dataclass(frozen=True, eq=False)
class Bins(ColumnFunction):
    """The bin between ``edges`` that each of some columns of a row is in, as a multiple of a power of two.

    The first and the last bin take all beyond. A missing value is in one more, the last of ``n_bins``.
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
            bins = np.searchsorted(edges, values, "right")
            places[:, j] = np.where(np.isnan(values), self.n_bins - 1, bins)
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
    has many rows in one bin. Knots are quantiles of the bins with more rows than noise.

    *Guarantee*: up to three Gaussian releases. A row adds 1 to one bin of each column that is asked for, so
    the sensitivity of each is at most ``sqrt(m)``.
    """
    learner = thinned(learner, len(columns), multiplier)
    mechanism = GaussianMechanism(multiplier * math.sqrt(KNOT_RELEASES), KNOT_RELEASES, learner.noise)
    places = dict.fromkeys(range(len(columns)), _SIGNED)
    learned = [Column()] * len(columns)
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
        clear = noise_threshold(counts, noise)
        certain = clear if stage else magnitude_threshold(counts, noise, n_rows)
        previous, places = places, {}
        for (j, edges), column in zip(previous.items(), counts, strict=True):
            # Rows beyond the outermost edges are in no bin.
            histogram = _Histogram(shown_counts(column[1 : len(edges)], certain), edges)
            if stage == 0 and column[-1] > clear:
                missing[j], n_known[j] = True, n_known[j] - column[-1]
            shaped = histogram.column(n_known[j], n_knots)
            if shaped is not None:
                quantiles = _with_missing(histogram.at(MIDDLES), n_known[j] / n_rows)
                learned[j] = replace(shaped, quantiles=quantiles)
            if histogram.seen.any() and (stage == 0 or histogram.is_crowded(n_known[j], n_knots)):
                places[j] = histogram.finer(n_known[j], n_knots, last=stage > 0)
        if not places:
            break
    return [replace(each, missing=bool(flag)) for each, flag in zip(learned, missing, strict=True)], stage + 1


@dataclass(frozen=True, eq=False)
class Knots(Stage):
    """Knots of the columns that may have curves, and so the basis of an additive model.

    Of the ``straight`` columns, centres and spreads are released. What noisy knots tell decides what else is
    released. The squared budgets of adaptive Gaussian releases add up as those of fixed ones, if their sum is
    bounded: Smith and Thakurta 2022, "Fully adaptive composition for Gaussian differential privacy".
    """

    curved: NDArray[np.intp]
    n_knots: int
    on_basis: Callable[[Fit, Sequence[Column]], Fit]
    straight: NDArray[np.intp]
    declared: dict[int, Column]

    name = "knots"
    limits = (_SHARE / KNOT_RELEASES, _SHARE + MOST_SPENT * _LINES_SHARE)

    def price(self, fit: Fit) -> Price | None:
        return knots_share(fit.budget.mu, fit.data.n_rows, len(self.curved)) + lines_share(
            fit.budget.mu, fit.data.n_rows, len(self.straight)
        )

    def rows(self, fit: Fit) -> RowsKey:
        return fit.data.private.mapped(None)

    def outcomes(self, fit: Fit, price: Price) -> Iterator[Fit]:
        most = most_knots(self.n_knots)
        widest = Column(knots=np.arange(float(most)), missing=True, mean=np.zeros(most))
        columns = [widest if place in self.curved else Column() for place in range(fit.data.n_features)]
        yield self.on_basis(fit.spent(self, price, assumed=True), columns)

    def run(self, fit: Fit, price: Price) -> Procedure[Fit]:
        share = knots_share(fit.budget.mu, fit.data.n_rows, len(self.curved))
        private, multiplier = fit.data.private, fit.budget.multiplier(share)

        def rows_of(function: RowFunction) -> RowsKey:
            table = private.table.transformed(function)
            return replace(private, table=table).mapped(UNCHANGED)

        seen, n_released = yield from noisy_columns_of(
            fit.learner, rows_of, self.curved, self.n_knots, multiplier
        )
        columns = [self.declared.get(place, Column()) for place in range(fit.data.n_features)]
        for place, column in zip(self.curved.tolist(), seen, strict=True):
            columns[place] = column
        cost = share * n_released / KNOT_RELEASES
        if price > share:
            noisy = yield from noisy_columns(
                fit.learner,
                len(columns),
                fit.budget.multiplier(_LINES_SHARE),
                wanted=self.straight,
                rows_of=replace(private, table=private.table.transformed(unchanged(len(columns)))).mapped,
            )
            for place in self.straight.tolist():
                columns[place] = line(float(noisy.center[place]), float(noisy.spread[place]))
            cost += _LINES_SHARE * noisy.spent
        return self.on_basis(fit.spent(self, min(cost, price)), columns)


def _in_bins(Z: FloatArray, block: Block, n_bins: int) -> Contribution:
    """Bins (rows, m) from the entries of rows."""
    return None, BinCounts(np.clip(np.rint(np.asarray(Z) / _UNIT), 0, n_bins - 1).astype(np.intp), n_bins)


@dataclass(frozen=True, eq=False)
class _Histogram:
    """Counts ``seen`` (m,) that exceed the noise, 0 elsewhere; ``ends`` (m + 1,) are those of bins."""

    seen: FloatArray
    ends: FloatArray

    def at(self, chances: FloatArray, seen: FloatArray | None = None) -> FloatArray:
        """Quantiles by the counts of the bins, or by other counts ``seen`` of the same bins."""
        seen = self.seen if seen is None else seen
        first, *_, last = np.flatnonzero(np.append(seen, 0.0) + np.append(0.0, seen))
        cumulated = np.append(0.0, np.cumsum(seen)) / seen.sum()
        return np.interp(chances, cumulated[first : last + 1], self.ends[first : last + 1])

    def finer(self, n_rows: float, n_knots: int, *, last: bool) -> FloatArray:
        """Edges of finer bins where this histogram has rows, of the ``last`` histogram or another."""
        filled = np.flatnonzero(self.seen)
        low, high = float(self.ends[filled[0]]), float(self.ends[filled[-1] + 1])
        if last and filled[-1] - filled[0] < _FAR:
            return np.linspace(low, high, _OF_FAR + 1)
        start, stop = self.at(np.array([_TAIL, 1 - _TAIL])).tolist()
        edges = [np.array([low, high]), np.linspace(start, stop, _CENTRAL + 1)]
        atoms = self.heavy(n_knots) & self.fine
        edges += [self.ends[:-1][atoms], self.ends[1:][atoms]]
        coarse = np.where(atoms, 0.0, self.seen)
        if coarse.any():
            edges.append(self.at(np.linspace(0, 1, _EQUAL + 1), coarse))
        if self.is_of_values(n_rows, n_knots, 1.0):
            edges.append(np.linspace(*self.runs[:2], _OF_RUN + 1).ravel())
        return np.unique(np.clip(np.concatenate(edges), low, high))

    def heavy(self, n_knots: int) -> NDArray[np.bool_]:
        """Flags (m,) of the bins with more rows than a piece of the curve should have."""
        return np.asarray(self.seen > _SPIKE * self.seen.sum() / n_knots)

    @property
    def fine(self) -> NDArray[np.bool_]:
        """Flags (m,) of bins that are so narrow that their rows may count as equal."""
        low, high = self.at(np.array(_MOST)).tolist()
        return np.asarray(np.diff(self.ends) <= _FINE * (high - low))

    @cached_property
    def runs(self) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Lower ends, upper ends and rows of the runs of neighbouring bins with rows, (n_runs,) each."""
        steps = np.diff(np.concatenate([[0], self.seen > 0, [0]]).astype(int))
        first, last = np.flatnonzero(steps == 1), np.flatnonzero(steps == -1)
        return self.ends[first], self.ends[last], np.add.reduceat(self.seen, first)

    def is_of_values(self, n_rows: float, n_knots: int, width: float | None = None) -> bool:
        """Whether the column seems to have few values: nearly all rows are in few narrow runs of bins."""
        lows, highs, _ = self.runs
        if width is None:
            width = _NARROW if len(lows) == 2 else _NARROW_OF_FEW
        gaps = np.concatenate([[np.inf], lows[1:] - highs[:-1], [np.inf]])
        apart = np.all(highs - lows <= width * np.minimum(gaps[1:], gaps[:-1]))
        return 1 < len(lows) <= n_knots + 1 and self.seen.sum() >= _NEARLY_ALL * n_rows and bool(apart)

    def is_crowded(self, n_rows: float, n_knots: int) -> bool:
        """Whether a bin holds many rows and perhaps many values, or runs may be values."""
        if self.is_of_values(n_rows, n_knots, _NARROW):
            return False
        unresolved = self.heavy(n_knots) & ~self.fine
        return bool(unresolved.any()) or self.is_of_values(n_rows, n_knots, 1.0)

    def column(self, n_rows: float, n_knots: int) -> Column | None:
        """A column by its histograms; None if too few of its rows are seen."""
        total = float(self.seen.sum())
        if total < _SEEN * n_rows or total <= 0:
            return None
        if self.is_of_values(n_rows, n_knots):
            lows, highs, counts = self.runs
            values = np.array([*map(_roundest, lows.tolist(), highs.tolist())])
            return _of_knots(values, values, counts)
        filled = np.flatnonzero(self.seen)
        if len(filled) == 1:  # all are equal, or noise hides their spread
            return Column(float(self.ends[filled[0] : filled[0] + 2].mean()))
        atoms, values = self.heavy(n_knots) & self.fine, (self.ends[:-1] + self.ends[1:]) / 2
        for place in np.flatnonzero(atoms):
            values[place] = _roundest(*self.ends[place : place + 2].tolist())
        rest = np.where(atoms, 0.0, self.seen)
        knots: list[FloatArray] = [values[atoms], values[[filled[0], filled[-1]]]]
        if rest.sum() > _REST * n_rows:
            below = (np.cumsum(rest) / rest.sum())[atoms]
            knots[1] = self.at(_between_atoms(float(rest.sum()) / total, below, n_knots), rest)
        return _of_knots(np.concatenate(knots), values[filled], self.seen[filled])


def _roundest(low: float, high: float) -> float:
    """The number from low to high (low < high) with the fewest digits, as repeated values have."""
    if low <= 0 <= high:
        return 0.0
    size = math.floor(math.log10(max(-low, high)))
    for exponent in range(size, size - 18, -1):
        unit = Fraction(10) ** exponent
        nearest = round((Fraction(low) + Fraction(high)) / 2 / unit) * unit
        if low <= (value := float(nearest)) <= high:
            return value
    return low / 2 + high / 2


def _of_knots(knots: FloatArray, values: FloatArray, counts: FloatArray) -> Column:
    """A column by ``counts`` (m,) of ``values`` (m,); knots too close to the previous one are left out."""
    part, order = counts / counts.sum(), np.argsort(values)
    low, first, third, high = np.interp(
        [_MOST[0], 0.25, 0.75, _MOST[1]], np.cumsum(part[order]), values[order]
    ).tolist()
    reach = high - low if high > low else float(np.ptp(values))
    ordered: list[float] = []
    for knot in np.unique(np.where(np.abs(knots) < _CLOSE * reach, 0.0, knots)).tolist():
        apart = max(min(_APART * reach, _APART_IN_SIZES * abs(knot)), _CLOSE * reach, _CLOSEST)
        if not ordered or knot - ordered[-1] > apart:
            ordered.append(knot)
    if len(ordered) < 3:  # two values
        low, high = ordered[0], ordered[-1]
        above = float(part[values > low / 2 + high / 2].sum())
        factor = 1 / (high - low) if high - low > _CLOSEST else 1.0
        return Column(low + above * (high - low), factor)
    chosen = np.array(ordered)
    hats = [np.interp(values, chosen, hat) @ part for hat in np.eye(len(chosen))]
    # The larger of two spreads, as for the columns of linear heads.
    center = float(part @ values)
    spread = max(math.sqrt(part @ (values - center) ** 2), (third - first) / IQR)
    return Column(center, 1 / spread, chosen, np.array(hats))
