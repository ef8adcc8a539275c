"""Noisy centre and spread of each column, by histograms of bins, without bounds on the columns."""

import math
from collections.abc import Callable, Generator, Iterator
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..._engine import GaussianMechanism, Procedure, RowsKey, Transaction, bind_rows
from ..._rows.row_map import RowMap
from ..._rows.scaling import IQR, Columns, worth_scaling
from ..._rows.source import BinCounts, Table
from ..._rows.table import ArrayTable
from ..._utils.process import warn_later
from ...components.protocols import FloatArray, PrivateQuery, ReleasedArray
from ...privacy import PrivacyReport
from ...privacy.units import Units
from ..stage import Fit, MappedRows, Price, Stage
from ..statistics import (
    Learner,
    Learning,
    magnitude_threshold,
    noise_threshold,
    sensitivity_of,
    shown_counts,
    thinned,
    windows_of,
)
from ..sums import noisy_sums, table_of
from .mapping import EXPONENT, FEWEST_KNOWN, centres_columns, known_kinds, next_map, scales_columns, unmapped

#: Bins of the second and the third histogram: of the range of a column, and around its centre.
_BINS = (64, 32)
#: Half the width of the third histogram, in spreads.
_REACH = 4.0
#: Up to this spread, in bins, all rows may be in one or two bins.
_TWO_BINS = 0.8
#: Most histograms that look closer at columns far from 0, and the bins of each. An odd number of bins puts
#: the middle of the last window into one bin.
MOST_CLOSER, _CLOSER_BINS = 5, 63
#: Half the width of these histograms, as a multiple of the spread that the histogram before shows.
_REACH_OF_CLOSER = 2.0
#: Most that one of them spends, as a fraction of what one of the first three histograms spends.
_MOST_OF_CLOSER = 0.5
#: Most that all histograms spend, as a multiple of what the first three spend.
MOST_SPENT = 1 + MOST_CLOSER * _MOST_OF_CLOSER / 3
#: A centre farther from 0 than this number of bins counts as far.
_FAR_IN_BINS = 50.0
#: Minimum fraction of rows within a range for its mean and spread to be used.
_SEEN = 0.8
#: The same for a histogram that looks closer: the one before tells a spread that may be many times too large.
_SEEN_CLOSER = 0.5
#: Half the width of the second histogram, in largest magnitudes. Its end bins hold only larger entries.
_MARGIN = 16 / 15
#: If its end bins hold more than this fraction of all rows, the largest magnitude was noise.
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
#: Tables of more columns of unknown kinds get a first release: usually all share a unit, like pixels.
_WIDE = 100
#: Of that release: share of mu squared, fewest rows, noise in a sum as a fraction of it, effective number of
#: columns that counts as few, and what rounding may add to squares.
_CHECK_SHARE, _FEWEST_OF_CHECK, _ERROR_OF_CHECK, _FEW_COLUMNS, _ROUNDED = 0.005, 2_000, 0.05, 6.0, 1e-9
#: Entries are cut at this, so that squares do not overflow: after a release, no row may be refused.
_LARGEST_ENTRY = 1e150
#: Most columns whose spread is estimated: the time of it grows with their square.
MOST_COLUMNS = 2000


def few_dominate(learner: Learner, n_features: int, multiplier: float) -> Learning[bool]:
    """Whether a few columns make up most of the squared length of rows of unit length.

    *Guarantee*: one Gaussian release of this multiplier. A row adds its squared entries, whose sum is at most
    1.
    """
    learner = thinned(learner, 1, multiplier, _FEWEST_OF_CHECK, _ERROR_OF_CHECK)
    stated = ReleasedArray(1 + _ROUNDED)
    query = PrivateQuery(np.eye(n_features), lambda Z, block: (None, _squares(np.asarray(Z))), (stated,))
    squares, noise = yield from learner.ask(multiplier, query)
    # The effective number of columns with a sum of 1, without the mean square of the noise.
    parts, error = squares / learner.n_expected, noise / learner.n_expected
    return bool(np.sum(parts**2) - n_features * error**2 > 1 / _FEW_COLUMNS)


def _squares(Z: FloatArray) -> FloatArray:
    """Squared entries (rows, n_features), whose sum in each row is at most 1; zeros for what is no number."""
    squares = np.nan_to_num(np.square(Z, dtype=np.float64), nan=0.0, posinf=0.0)
    return np.asarray(squares / np.maximum(squares.sum(axis=1, keepdims=True), 1.0))


def columns_share(mu: float, n_rows: int, n_features: int) -> float:
    """Share of mu squared for the first three histograms, from public facts; 0 if noise hides them."""
    error = math.sqrt(n_features) / (mu * n_rows)
    share = min(max(3 * min(error / _COUNT_ERROR, 1.0) ** 2, _LEAST_SHARE), _MOST_SHARE)
    tells = 0 < n_features <= MOST_COLUMNS and error / math.sqrt(share) <= _MOST_OF_ONE
    return share if tells else 0.0


@dataclass(frozen=True)
class NoisyColumns:
    """Estimated centre and spread of each column, (n_features,) each; spread 0 where noise hides it.

    ``unclear`` flags columns that are constant as far as all histograms tell. These spent ``spent`` times the
    squared budget of the first three.
    """

    center: FloatArray
    spread: FloatArray
    unclear: NDArray[np.bool_]
    spent: float = 1.0

    def standardised(self, *, centred: bool, always: bool = False) -> Columns | None:
        """Columns scaled to spread 1 where it is known; None if rows need no scaling, unless ``always``."""
        center = self.center if centred else np.zeros_like(self.center)
        if not (worth_scaling(center, self.spread) or (always and self.spread.any())):
            return None
        return Columns(center, 1 / np.where(self.spread > 0, self.spread, 1.0))


def noisy_columns(
    learner: Learner,
    n_features: int,
    multiplier: float,
    *,
    wanted: NDArray[np.intp] | None = None,
    rows_of: Callable[[RowMap], RowsKey] | None = None,
    n_closer: int = MOST_CLOSER,
    thins: bool = True,
) -> Generator[Any, Any, NoisyColumns]:
    """The centre and the spread of columns of rows (:func:`unmapped`): those ``wanted``, or all.

    ``multiplier`` is that of one Gaussian release as private as the first three histograms, of magnitudes, a
    range and a centre. If noise allows one alone, the centre is 0. Where all rows are in two bins far from 0,
    up to ``n_closer`` more look closer; all spend at most ``MOST_SPENT`` times the squared budget of three.
    ``rows_of`` opens rows after a map, so that offsets are subtracted in double precision; without it, the
    rows are. Many rows are thinned if ``thins``.

    *Guarantee*: one or more Gaussian releases. A row adds 1 to one bin of each column that a histogram is
    about, so its sensitivity is the root of their number. Released numbers alone decide which columns the
    next one is about: Smith and Thakurta 2022, "Fully adaptive composition for Gaussian differential
    privacy".
    """
    places = np.arange(n_features) if wanted is None else wanted
    learner = thinned(learner, len(places), multiplier) if thins else learner
    n_rows = learner.n_expected
    n_stages = 3 if multiplier * math.sqrt(3 * len(places)) <= _MOST_ERROR * n_rows else 1
    mechanism = GaussianMechanism(multiplier * math.sqrt(n_stages), n_stages, learner.noise)

    def histograms(
        bins_of: Callable[[FloatArray], NDArray[Any]],
        n_bins: int,
        chosen: NDArray[np.intp] | slice = slice(None),
        mechanism: GaussianMechanism = mechanism,
        scale: tuple[FloatArray, FloatArray] | None = None,
    ) -> Generator[Any, Any, Any]:
        columns, row_map = places[chosen], unmapped(n_features)
        if scale is not None and rows_of is not None:
            row_map = _in_bins(columns, *scale, n_features)
            bins_of = partial(_bins_between, low=np.zeros(1), width=np.ones(1), n_bins=n_bins)
        query = PrivateQuery(
            np.eye(n_features)[columns],
            lambda Z, block: (None, BinCounts(bins_of(np.asarray(Z)), n_bins)),
            (ReleasedArray(sensitivity_of(len(columns))),),
        )
        asking = learner.ask(mechanism, query)
        counts, noise = yield from asking if rows_of is None else bind_rows(rows_of(row_map), asking)
        return counts.reshape(len(columns), n_bins), noise

    def of_all(
        center: FloatArray, spread: FloatArray, unclear: NDArray[np.bool_] | bool, spent: float
    ) -> NoisyColumns:
        every = (np.zeros(n_features), np.zeros(n_features), np.zeros(n_features, bool))
        for values, own in zip(every, (center, spread, unclear), strict=True):
            values[places] = own
        return NoisyColumns(*every, spent)

    counts, noise = yield from histograms(_magnitudes, 2 * EXPONENT + 3)
    spread, reach = _spread_of_magnitudes(counts, noise, n_rows)
    center, reached = np.zeros(len(places)), reach > 0
    if n_stages == 1 or not reached.any():
        return of_all(center, spread, False, 1 / n_stages)
    # Columns whose magnitudes noise hides are left as they are, and the others have less noise.
    places, center, spread, reach = places[reached], center[reached], spread[reached], reach[reached]
    high = _MARGIN * reach
    low = -high
    for stage, n_bins in enumerate(_BINS):
        width = (high - low) / n_bins
        counts, noise = yield from histograms(
            partial(_bins_between, low=low, width=width, n_bins=n_bins), n_bins
        )
        if stage == 0:
            false = counts[:, 0] + counts[:, -1] > _MOST_BEYOND * n_rows
            spread, reach = np.where(false, 0.0, spread), np.where(false, 0.0, reach)
        visible, mean, deviation = _moments(counts, noise, low, width, n_rows)
        visible &= reach > 0
        center, spread = np.where(visible, mean, center), np.where(visible, deviation, spread)
        low = np.maximum(center - _REACH * spread, low)
        high = np.maximum(np.minimum(center + _REACH * spread, high), low + width)
    unclear = visible & (spread <= _TWO_BINS * width) & (np.abs(center) > _FAR_IN_BINS * width)
    far, spent, middle, near = np.flatnonzero(unclear), 1.0, center.copy(), spread.copy()
    for _ in range(n_closer):
        if not len(far):
            break
        part = min(len(far) / len(places), _MOST_OF_CLOSER)
        spent += part / 3
        low = middle[far] - _REACH_OF_CLOSER * near[far]
        width = 2 * _REACH_OF_CLOSER * near[far] / _CLOSER_BINS
        counts, noise = yield from histograms(
            partial(_bins_between, low=low, width=width, n_bins=_CLOSER_BINS),
            _CLOSER_BINS,
            far,
            GaussianMechanism(multiplier * math.sqrt(3 / part), 1, learner.noise),
            (low, width),
        )
        visible, mean, deviation = _moments(counts, noise, low, width, n_rows, _SEEN_CLOSER)
        # Noise may hide bins if rows are spread over many of them; the coarser histogram was clear then.
        middle[far[visible]], near[far[visible]] = mean[visible], deviation[visible]
        clear = far[~visible | (deviation > _TWO_BINS * width)]
        center[clear], spread[clear], unclear[clear] = middle[clear], near[clear], False
        far = far[unclear[far]]
    if unclear.any():
        warn_later(
            f"the columns {places[unclear][:8].tolist()} of X, counted from 0, are constant, or so "
            "far from 0 that their spread cannot be told; subtract a known typical value from them, or pass "
            "public rows."
        )
    return of_all(center, spread, unclear, spent)


def released_columns(
    X: Table, transaction: Transaction, treated_as_public: tuple[str, ...], units: Units
) -> tuple[NoisyColumns, PrivacyReport]:
    """The centre and the spread of each column of PRIVATE rows (n, n_features), without a fit.

    Persons among the ``units`` add their share of rows to each bin. Otherwise as for :func:`noisy_sums`.
    """
    n_features = X.shape[1]
    queries = partial(noisy_columns, n_features=n_features, n_closer=0)
    table, labels = table_of(X, units), np.zeros(X.shape[0])
    return noisy_sums(table, unmapped(n_features), labels, queries, transaction, treated_as_public)


def _magnitudes(Z: FloatArray) -> NDArray[Any]:
    """Bins (rows, n_features) of absolute values: 0, then powers of two; the last bin is open."""
    # The stored exponent of a float32 is at least 1 for normal numbers, and 0 for zero and subnormal numbers.
    stored = (np.ascontiguousarray(Z, dtype=np.float32).view(np.int32) >> 23) & 0xFF
    bins = np.clip(stored + (EXPONENT - 126), 0, 2 * EXPONENT + 1) + 1
    bins *= stored > 0
    return np.asarray(bins)


def _in_bins(columns: NDArray[np.intp], low: FloatArray, width: FloatArray, n_features: int) -> RowMap:
    """The map to places of some columns in bins of this width, counted from the lowest end."""
    start, factor = np.zeros(n_features), np.ones(n_features)
    start[columns], factor[columns] = low, 1 / width
    return RowMap(None, False, None, columns=Columns(start, factor, cut=2.0 * _CLOSER_BINS))


def _bins_between(Z: FloatArray, low: FloatArray, width: FloatArray, n_bins: int) -> NDArray[Any]:
    """Bins (rows, n_features) of the range of each column; the end bins have the values outside of it."""
    # Unlike np.clip, fmin and fmax replace NaN.
    places = np.fmin(np.fmax((Z - low) / width, 0), n_bins - 1)
    return np.asarray(places.astype(np.intp))


def _spread_of_magnitudes(counts: FloatArray, noise: float, n_rows: float) -> tuple[FloatArray, FloatArray]:
    """Spread about 0 and largest magnitude, (n_features,) each, by counts (n_features, bins); 0 for noise."""
    spread, reach = np.zeros(len(counts)), np.zeros(len(counts))
    certain = magnitude_threshold(counts, noise, n_rows)
    for j, column in enumerate(counts):
        energy, end = 0.0, 0
        # Without the bins of zeros and of values beyond the range.
        for start, width, count in windows_of(column, certain, (0, 1, -1)):
            # The middle of a window represents its magnitudes.
            energy += count / n_rows * 4.0 ** (start + width / 2 - 2 - EXPONENT)
            end = max(end, start + width - 1)
        if end:
            spread[j], reach[j] = math.sqrt(energy), 2.0 ** (end - EXPONENT - 1)
    return spread, reach


def _moments(
    counts: FloatArray, noise: float, low: FloatArray, width: FloatArray, n_rows: float, least: float = _SEEN
) -> tuple[NDArray[np.bool_], FloatArray, FloatArray]:
    """Whether this part of the rows is in range, mean and spread, from histograms (n_features, bins)."""
    n_features, n_bins = counts.shape
    certain = noise_threshold(counts, noise)
    seen = np.stack([shown_counts(column, certain) for column in counts])
    total = seen.sum(axis=1)
    visible = total > least * n_rows
    seen /= np.where(visible, total, 1.0)[:, np.newaxis]
    middles = low[:, np.newaxis] + width[:, np.newaxis] * (np.arange(n_bins) + 0.5)
    mean = (seen * middles).sum(axis=1)
    deviation = np.sqrt((seen * (middles - mean[:, np.newaxis]) ** 2).sum(axis=1))
    cumulated = np.cumsum(seen, axis=1)
    quartiles = np.zeros((2, n_features))
    for j in np.flatnonzero(visible):
        for index, quantile in enumerate((0.25, 0.75)):
            place = int(np.searchsorted(cumulated[j], quantile))
            below = cumulated[j, place - 1] if place else 0.0
            part = (quantile - below) / max(cumulated[j, place] - below, 1e-12)
            quartiles[index, j] = low[j] + width[j] * (place + part)
    spread = np.maximum((quartiles[1] - quartiles[0]) / IQR, deviation)
    return visible, mean, np.maximum(spread, width / 4)


#: Rows of unit length.
_UNIT_ROWS = RowMap(None, True, None, unit_first=True)  # the map of the mean that may follow


class NoisyColumnScales(Stage):
    """How columns are standardised, if few public rows tell it."""

    name = "columns"
    limits = (_LEAST_SHARE, MOST_SPENT * _MOST_SHARE)
    needs = ("default", "divides", "bounded rows", "inexact sums")
    reopens = True

    def price(self, fit: Fit) -> Price | None:
        # A few public rows give a poor estimate of the spread of columns, and so do those that were left out,
        # which may have other units.
        poor = len(fit.public.known) < FEWEST_KNOWN
        if not (poor and scales_columns(fit)) or fit.settings.known_map is not None:
            return None
        share = MOST_SPENT * columns_share(fit.budget.mu, fit.data.n_rows, len(_columns_to_bin(fit)))
        return share + self._share_of_check(fit) if share else None

    def rows(self, fit: Fit) -> MappedRows:
        return fit.data.private.mapped(unmapped(fit.data.n_features))

    def outcomes(self, fit: Fit, price: Price) -> Iterator[Fit]:
        ones = np.ones(fit.data.n_features)
        for columns in (None, Columns(0 * ones, ones, 1.0), Columns(ones, ones, 1.0)):
            yield self._with_columns(fit.spent(self, price, assumed=True), columns)

    def run(self, fit: Fit, price: Price) -> Procedure[Fit]:
        private, n_features, kinds = fit.data.private, fit.data.n_features, known_kinds(fit)
        look = self._share_of_check(fit)
        if look:
            queries = few_dominate(fit.learner, n_features, fit.budget.multiplier(look))
            if not (yield from fit.ask(queries, private.shared_map(_UNIT_ROWS))):
                return self._unscaled(fit.spent(self, look))
        usual = (price - look) / MOST_SPENT
        noisy = yield from noisy_columns(
            fit.learner,
            n_features,
            fit.budget.multiplier(usual),
            wanted=_columns_to_bin(fit),
            rows_of=private.mapped,
        )
        if (declared := fit.settings.rows.declared) is not None:
            hidden = (noisy.spread == 0) & ~np.isnan(declared[0])
            center = np.where(hidden, declared[0], noisy.center)
            noisy = replace(noisy, center=center, spread=np.where(hidden, declared[1], noisy.spread))
        columns = noisy.standardised(centred=centres_columns(fit), always=kinds is not None)
        cost = min(look + usual * noisy.spent, price)
        fit = self._with_columns(fit.spent(self, cost), columns)
        return fit if columns is not None else self._unscaled(fit)

    def _unscaled(self, fit: Fit) -> Fit:
        """The fit with columns as they are."""
        fit, n_features = self._with_columns(fit, None), fit.data.n_features
        if isinstance(fit.data.private.table, ArrayTable):
            return fit
        # A refusal of a row whose length overflows would now reveal that it exists.
        limits = Columns(np.zeros(n_features), np.ones(n_features), cut=_LARGEST_ENTRY)
        return fit.mapped(row_map=replace(fit.mapping.row_map, columns=limits))

    def _share_of_check(self, fit: Fit) -> float:
        """Share of mu squared of a first release that tells whether the columns need histograms."""
        return _CHECK_SHARE if known_kinds(fit) is None and fit.data.n_features > _WIDE else 0.0

    def _with_columns(self, fit: Fit, columns: Columns | None) -> Fit:
        row_map = next_map(fit, columns)
        if columns is None:  # public facts determine it
            row_map = fit.data.private.shared_map(row_map)
        return fit.mapped(row_map=row_map, columns=columns)


def _columns_to_bin(fit: Fit) -> NDArray[np.intp]:
    """The columns that need histograms: numbers that are not declared, or all where noise is small."""
    declared, kinds = fit.settings.rows.declared, known_kinds(fit)
    numbers = np.arange(fit.data.n_features) if kinds is None else np.flatnonzero(kinds.numbers)
    # Declarations are rough, so clear histograms are better.
    if declared is None or 0 < columns_share(fit.budget.mu, fit.data.n_rows, len(numbers)) < _MOST_SHARE:
        return numbers
    return np.asarray(numbers[np.isnan(declared[0, numbers])])
