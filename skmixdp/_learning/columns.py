"""Noisy centre and spread of each column, without bounds on the columns.

Each row adds 1 to one bin of a histogram of each column. A first histogram of magnitudes gives a range of
each column, and two further ones give the centre and the spread within it.
"""

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import betaincinv, ndtri

from .._engine import GaussianMechanism, Transaction
from .._rows import IQR, BinCounts, Block, Columns, Contribution, RowMap, Table, worth_scaling
from .._utils.process import warn_later
from ..components.protocols import FloatArray, PrivateQuery, ReleasedArray
from ..components.public import RandomSource
from ..privacy import PrivacyReport
from ..privacy.units import Units
from .noisy_statistics import Learner, Learning, sensitivity_of, share_for
from .noisy_sums import noisy_sums, table_of

#: Bins of magnitudes end at powers of two, from minus this exponent to this exponent.
_EXPONENT = 50

#: Bins of the second and the third histogram: of the range of a column, and around its centre.
_BINS = (64, 32)

#: Half the width of the third histogram, in spreads.
_REACH = 4.0

#: Probability that noise makes an empty bin of any histogram look occupied.
_FALSE_RATE = 0.01
#: The same probability for a histogram of magnitudes, where such a bin does more harm.
_FALSE_MAGNITUDE = 1e-6
#: Largest threshold for magnitudes, as a fraction of the rows, unless ``_FALSE_RATE`` needs a larger one.
_MISSED = 0.05

#: Widths of the windows of neighbouring bins whose sums are tested.
_WIDTHS = (1, 2, 4, 8)

#: Up to this spread, in bins, all rows may be in a single bin of the third histogram.
_SPREAD_OF_ONE_BIN = 0.4
#: A centre farther from 0 than this number of bins counts as far.
_FAR_IN_BINS = 100.0

#: Minimum fraction of rows within a range for its mean and spread to be used.
_SEEN = 0.8

#: Half the width of the second histogram, in largest magnitudes. Its end bins hold only larger entries.
_MARGIN = 16 / 15
#: If these bins hold more than this fraction of all rows, the largest magnitude was noise.
_MOST_BEYOND = 0.5

#: Smallest share of mu squared for centres and spreads.
_LEAST_SHARE = 0.01
#: Largest share of mu squared for centres and spreads.
_MOST_SHARE = 0.2
#: Target for the noise in a count, as a fraction of the rows.
_COUNT_ERROR = 0.02

#: Largest noise in a count with which three histograms are released, as a fraction of the rows.
_MOST_ERROR = 0.07
#: Largest noise in a count with which the first histogram is released alone, as a fraction of the rows.
_MOST_OF_ONE = 0.08

#: Fewest rows, on average, in the part of a large dataset that is used.
_FEWEST_ROWS = 28_000
#: All rows take part if fewer than this times the part are there, since that takes about as long.
_LEAST_STEP = 4
#: The part has enough rows for this noise in a count, as a fraction of them.
_THINNED_ERROR = 0.02

#: Fewest public rows for the check of units.
_FEWEST_PUBLIC = 10
#: Target for the noise in a count of the check of units, as a fraction of the rows.
_UNIT_ERROR = 0.05
#: Largest noise with which the check of units is useful, as a fraction of the rows.
_MOST_UNIT_ERROR = 0.07
#: Smallest and largest share of mu squared for the check of units.
_UNIT_LIMITS = 0.002, 0.02

#: Like ``_FEWEST_ROWS``, for the check of units.
_FEWEST_FOR_UNITS = 5_000
#: Public entries below this size count as 0 in the check of units.
_SMALLEST = 1e-30

#: Number of ranges of a column in the check of units.
_RANGES = 10
#: Units differ if two ranges have more than this fraction of the private rows. This finds a factor of 5, or a
#: shift by two deviations.
_MOST_IN_RANGES = 0.75
#: Probability that public rows of the same unit cause such a fraction by chance.
_SURPRISE = 1e-6
#: Standard deviations of noise that are allowed for in such a fraction.
_SURE_DEVIATIONS = 4.0

#: Most columns that are estimated. Wider tables come from encoders, whose columns share a unit.
_MOST_COLUMNS = 100


def columns_share(mu: float, n_rows: int, n_features: int) -> float:
    """Share of mu squared for :func:`noisy_columns`, from public facts; 0 if noise would hide them."""
    error = math.sqrt(n_features) / (mu * n_rows)
    share = min(max(3 * min(error / _COUNT_ERROR, 1.0) ** 2, _LEAST_SHARE), _MOST_SHARE)
    tells = n_features <= _MOST_COLUMNS and error / math.sqrt(share) <= _MOST_OF_ONE
    return share if tells else 0.0


def unmapped(n_features: int) -> RowMap:
    """The row map for :func:`noisy_columns`: entries are unchanged, but clipped at the largest magnitude."""
    columns = Columns(np.zeros(n_features), np.ones(n_features), cut=2.0**_EXPONENT)
    return RowMap(None, False, None, columns=columns)


@dataclass(frozen=True)
class NoisyColumns:
    """Estimated centre and spread of each column, (n_features,) each; spread 0 where noise hides it."""

    center: FloatArray
    spread: FloatArray

    def standardised(self, *, centred: bool) -> Columns | None:
        """Columns scaled to spread 1, those of spread 0 unchanged; None if rows need no scaling."""
        center = self.center if centred else np.zeros_like(self.center)
        if not worth_scaling(center, self.spread):
            return None
        return Columns(center, 1 / np.where(self.spread > 0, self.spread, 1.0))


def noisy_columns(learner: Learner, n_features: int, multiplier: float) -> Learning[NoisyColumns]:
    """The centre and the spread of each column of rows (:func:`unmapped`).

    ``multiplier`` is that of one Gaussian release which is as private as all histograms together. Three are
    released if their noise allows it, else that of magnitudes alone, and the centre is 0.

    *Guarantee*: one or three Gaussian releases. A row adds 1 to one bin of each column, so the sensitivity of
    each is ``sqrt(n_features)``.
    """
    learner = thinned(learner, n_features, multiplier)
    n_rows = learner.n_expected
    n_stages = 3 if multiplier * math.sqrt(3 * n_features) <= _MOST_ERROR * n_rows else 1
    mechanism = GaussianMechanism(multiplier * math.sqrt(n_stages), n_stages, learner.noise)

    def histograms(bins_of: Callable[[FloatArray], NDArray[Any]], n_bins: int) -> Learning[Any]:
        query = PrivateQuery(
            np.eye(n_features),
            lambda Z, block: (None, BinCounts(bins_of(np.asarray(Z)), n_bins)),
            (ReleasedArray(sensitivity_of(n_features)),),
        )
        counts, noise = yield from learner.ask(mechanism, query)
        return counts.reshape(n_features, n_bins), noise

    counts, noise = yield from histograms(_magnitudes, 2 * _EXPONENT + 3)
    spread, reach = _spread_of_magnitudes(counts, noise, n_rows)
    center = np.zeros(n_features)
    if n_stages == 1:
        return NoisyColumns(center, spread)
    high = np.where(reach > 0, _MARGIN * reach, 1.0)
    low = -high
    for stage, n_bins in enumerate(_BINS):
        width = (high - low) / n_bins
        counts, noise = yield from histograms(partial(_places, low=low, width=width, n_bins=n_bins), n_bins)
        if stage == 0:
            false = counts[:, 0] + counts[:, -1] > _MOST_BEYOND * n_rows
            spread, reach = np.where(false, 0.0, spread), np.where(false, 0.0, reach)
        known, mean, deviation = _moments(counts, noise, low, width, n_rows)
        known &= reach > 0
        hidden = known & (deviation <= _SPREAD_OF_ONE_BIN * width) & (np.abs(mean) > _FAR_IN_BINS * width)
        center, spread = np.where(known, mean, center), np.where(known, deviation, spread)
        low = np.maximum(center - _REACH * spread, low)
        high = np.maximum(np.minimum(center + _REACH * spread, high), low + width)
    if hidden.any():
        warn_later(
            f"the columns {np.flatnonzero(hidden)[:8].tolist()} of X, counted from 0, are constant, or so "
            "far from 0 that their spread cannot be told; subtract a known typical value from them, or pass "
            "public rows."
        )
    return NoisyColumns(center, spread)


def unit_share(mu: float, n_rows: int, n_public: int, n_columns: int) -> float:
    """Share of mu squared for :func:`columns_in_other_units`, from public facts; 0 if it tells nothing."""
    if n_columns > _MOST_COLUMNS or n_public < _FEWEST_PUBLIC:
        return 0.0
    return share_for(mu, n_rows, math.sqrt(n_columns), _UNIT_ERROR, _MOST_UNIT_ERROR, _UNIT_LIMITS)


def columns_in_other_units(
    learner: Learner, X_pub: FloatArray, y_pub: FloatArray, multiplier: float
) -> Learning[NDArray[np.bool_]]:
    """Flags (d + k,) of columns (:func:`unmapped`) and targets that have other units in public rows.

    Public rows divide each column into ten ranges. If most private rows are in two neighbouring ranges, or
    in the first and the last, which hold few public rows, the column has another unit or another centre.
    ``y_pub`` (n_pub, k) are targets; k may be 0.

    *Guarantee*: one Gaussian release of this multiplier. A row adds 1 to one range of each column, so the
    sensitivity is ``sqrt(d + k)``.
    """
    known = np.sort(np.column_stack([X_pub, y_pub]).T)
    known[np.abs(known) < _SMALLEST] = 0.0
    n_columns, n_public = known.shape
    learner = thinned(learner, n_columns, multiplier, _FEWEST_FOR_UNITS, _UNIT_ERROR)
    edges = np.stack([_ends_of_ranges(values) for values in known])
    # Clipped private entries are beyond this limit, so they stay in the first and the last range.
    limit = 0.99 * 2.0**_EXPONENT
    edges[: X_pub.shape[1]] = np.clip(edges[: X_pub.shape[1]], -limit, limit)
    stated = ReleasedArray(sensitivity_of(n_columns))
    query = PrivateQuery(np.eye(X_pub.shape[1]), partial(_ranges, edges=edges), (stated,))
    released, noise = yield from learner.ask(multiplier, query)
    places = [np.searchsorted(ends, values, "right") for ends, values in zip(edges, known, strict=True)]
    public, private = (
        counts + np.roll(counts, 1, axis=1)
        for counts in (
            np.stack([np.bincount(each, minlength=_RANGES) for each in places]),
            released.reshape(n_columns, _RANGES),
        )
    )
    # Upper Clopper-Pearson limit, of confidence ``1 - _SURPRISE``, for the fraction of rows in two ranges.
    largest = 1 - betaincinv(np.maximum(n_public - public, 1), public + 1, _SURPRISE)
    n_rows = learner.n_expected
    of_coins = math.sqrt(n_rows * (1 - n_rows / learner.n_rows))  # the number of rows that they draw
    largest += _SURE_DEVIATIONS * math.hypot(math.sqrt(2) * noise, of_coins) / n_rows
    return np.asarray((private > np.maximum(_MOST_IN_RANGES, largest) * n_rows).any(axis=1))


def _ends_of_ranges(values: FloatArray) -> FloatArray:
    """Ends between ``_RANGES`` ranges of about as many sorted values each, halfway between two values.

    Entries that differ from a constant are in the first or the last range.
    """
    if values[0] == values[-1]:
        rounding = max(1e-5 * abs(values[0]), _SMALLEST)
        return np.asarray(values[0] + np.where(np.arange(1, _RANGES) < _RANGES / 2, -rounding, rounding))
    lower = values[np.round(len(values) * np.arange(1, _RANGES) / _RANGES).astype(int) - 1]
    upper = np.append(values, np.inf)[np.searchsorted(values, lower, "right")]
    return np.asarray(lower + (upper - lower) / 2)


def _ranges(Z: FloatArray, block: Block, edges: FloatArray) -> Contribution:
    """Bins (rows, d + k) of entries and targets; weights in ``y`` after the targets are left out."""
    entries = np.asarray(Z)
    if n_targets := len(edges) - entries.shape[1]:
        entries = np.hstack([entries, np.asarray(block.y)[:, :n_targets]])
    places = np.zeros_like(entries, np.int8)
    largest = np.finfo(entries.dtype).max
    for ends in np.clip(edges.T, -largest, largest).astype(
        entries.dtype
    ):  # faster than a search in each column
        places += entries >= ends
    return None, BinCounts(places, _RANGES)


@dataclass(frozen=True, eq=False, repr=False)
class _Part:
    """The same part of the rows in every query, each of which is in it with probability ``chance``.

    ``taken`` (n_private,) is SECRET. The accounting knows of no chance: given the coins, releases are as
    private as those over all rows.
    """

    taken: NDArray[np.bool_]
    chance: float

    def rate(self, n_private: int) -> float:
        return self.chance

    def draw(self, n_private: int, noise: RandomSource) -> NDArray[np.bool_]:
        return self.taken


def thinned(
    learner: Learner,
    n_features: int,
    multiplier: float,
    fewest: int | None = None,
    error: float = _THINNED_ERROR,
) -> Learner:
    """The learner on a part of the rows, if noise stays small enough; public facts decide.

    At least ``fewest`` rows are left on average, by default ``_FEWEST_ROWS``. ``error`` is the target for the
    noise in a count, as a part of them. A secret coin for each row decides whether it takes part, whatever
    its place and other rows are. The coins hold for all queries of the result. Batches, whose rate is
    accounted for, are left as they are.
    """
    needed = multiplier * math.sqrt(3 * n_features) / error
    least = _FEWEST_ROWS if fewest is None else fewest
    step = int(learner.n_rows // max(needed, least)) if math.isfinite(needed) else 1
    if step < _LEAST_STEP or learner.n_expected < learner.n_rows:
        return learner
    coins = learner.noise.coins(learner.n_rows, 1 / step)
    return replace(learner, sampling=_Part(coins, 1 / step))


def released_columns(
    X: Table, transaction: Transaction, treated_as_public: tuple[str, ...], units: Units
) -> tuple[NoisyColumns, PrivacyReport]:
    """The centre and the spread of each column of PRIVATE rows (n, n_features), without a fit.

    If ``units`` are persons, each of them adds to each bin their share of rows in it. The other
    arguments, the report and the guarantee are those of :func:`noisy_sums`.
    """
    n_features = X.shape[1]
    asked = partial(noisy_columns, n_features=n_features)
    table, labels = table_of(X, units), np.zeros(X.shape[0])
    return noisy_sums(table, unmapped(n_features), labels, asked, transaction, treated_as_public)


def _magnitudes(Z: FloatArray) -> NDArray[Any]:
    """Bins (rows, n_features) of absolute values: 0, then powers of two; the last bin is open."""
    # The stored exponent of a float32 is at least 1 for normal numbers, and 0 for zero and subnormal numbers.
    stored = (np.ascontiguousarray(Z, dtype=np.float32).view(np.int32) >> 23) & 0xFF
    bins = np.clip(stored + (_EXPONENT - 126), 0, 2 * _EXPONENT + 1) + 1
    bins *= stored > 0
    return np.asarray(bins)


def _places(Z: FloatArray, low: FloatArray, width: FloatArray, n_bins: int) -> NDArray[Any]:
    """Bins (rows, n_features) of the range of each column; the end bins have the values outside of it."""
    # Unlike np.clip, fmin and fmax replace NaN.
    places = np.fmin(np.fmax((Z - low) / width, 0), n_bins - 1)
    return np.asarray(places.astype(np.intp))


def _spread_of_magnitudes(counts: FloatArray, noise: float, n_rows: float) -> tuple[FloatArray, FloatArray]:
    """Spread about 0, and the largest magnitude, (n_features,) each, from counts (n_features, bins).

    Both are 0 for a column whose counts may all be noise.
    """
    spread, reach = np.zeros(len(counts)), np.zeros(len(counts))
    certain = certain_of_magnitudes(counts, noise, n_rows)
    for j, column in enumerate(counts):
        taken = np.zeros(len(column), bool)
        taken[[0, 1, -1]] = True  # the bins of zeros and of values beyond the range
        energy, end = 0.0, 0
        for start, width, count in windows_of(column, certain, taken):
            # The middle of a window represents its magnitudes.
            energy += count / n_rows * 4.0 ** (start + width / 2 - 2 - _EXPONENT)
            end = max(end, start + width - 1)
        if end:
            spread[j], reach[j] = math.sqrt(energy), 2.0 ** (end - _EXPONENT - 1)
    return spread, reach


def certain_count(counts: FloatArray, noise: float, false: float = _FALSE_RATE) -> float:
    """Threshold that noise alone exceeds with small probability, in any bin or window of all histograms."""
    return -noise * float(ndtri(false / (len(_WIDTHS) * counts.size)))


def certain_of_magnitudes(counts: FloatArray, noise: float, n_rows: float) -> float:
    """The threshold :func:`certain_count` for histograms of magnitudes of ``n_rows`` rows."""
    most = certain_count(counts, noise, _FALSE_MAGNITUDE)
    return max(min(most, _MISSED * n_rows), certain_count(counts, noise))


def windows_of(
    column: FloatArray, certain: float, taken: NDArray[np.bool_]
) -> Iterator[tuple[int, int, float]]:
    """Start, width and count of the windows of a histogram that hold more rows than noise explains.

    Narrow windows come first; wider ones join bins that are not ``taken`` (bins,) yet.
    """
    for width in _WIDTHS:
        sums = np.convolve(column, np.ones(width), "valid")
        free = np.convolve(taken, np.ones(width), "valid") == 0
        while True:
            sums = np.where(free, sums, -np.inf)
            start = int(sums.argmax())
            if not sums[start] > certain * math.sqrt(width):
                break
            taken[start : start + width] = True
            free[max(start - width + 1, 0) : start + width] = False
            yield start, width, float(sums[start])


def _moments(
    counts: FloatArray, noise: float, low: FloatArray, width: FloatArray, n_rows: float
) -> tuple[NDArray[np.bool_], FloatArray, FloatArray]:
    """Whether most rows are in range, mean and spread, by column, from histograms (n_features, bins)."""
    n_features, n_bins = counts.shape
    seen = np.zeros_like(counts)
    certain = certain_count(counts, noise)
    for column, heights in zip(counts, seen, strict=True):
        for start, size, count in windows_of(column, certain, np.zeros(n_bins, bool)):
            heights[start : start + size] = count / size
    total = seen.sum(axis=1)
    known = total > _SEEN * n_rows
    seen /= np.where(known, total, 1.0)[:, np.newaxis]
    middles = low[:, np.newaxis] + width[:, np.newaxis] * (np.arange(n_bins) + 0.5)
    mean = (seen * middles).sum(axis=1)
    deviation = np.sqrt((seen * (middles - mean[:, np.newaxis]) ** 2).sum(axis=1))
    cumulated = np.cumsum(seen, axis=1)
    quartiles = np.zeros((2, n_features))
    for j in np.flatnonzero(known):
        for index, quantile in enumerate((0.25, 0.75)):
            place = int(np.searchsorted(cumulated[j], quantile))
            below = cumulated[j, place - 1] if place else 0.0
            part = (quantile - below) / max(cumulated[j, place] - below, 1e-12)
            quartiles[index, j] = low[j] + width[j] * (place + part)
    spread = np.maximum((quartiles[1] - quartiles[0]) / IQR, deviation)
    return known, mean, np.maximum(spread, width / 4)
