"""Noisy sums and histograms without a fit, each with a budget of its own."""

from collections.abc import Callable, Iterator
from functools import partial
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray
from scipy.special import xlogy

from .._engine import Transaction, released
from .._linear.arrays import row_slices
from .._rows.persons import PersonTable
from .._rows.row_map import UNCHANGED, RowMap
from .._rows.source import BinCounts, Block, Contribution, Labels, PrivateRows, Table
from .._rows.table import ArrayTable, finite_rows, groups_of, header, special_table
from .._utils.frames import numeric_frame
from .._utils.validation import check_finite, check_size, check_table
from ..components import L2Clip
from ..components.protocols import FloatArray, PrivateQuery, ReleasedArray
from ..privacy import PrivacyReport
from ..privacy.units import Units
from .statistics import Learner, Learning, noise_threshold, sensitivity_of, windows_of

_Result = TypeVar("_Result")

#: Private rows in memory or in files.
PrivateTable = Table

#: Cells of counts, exposures and deviances: how many for each doubling, and the logarithms of their ends.
_PER_OCTAVE, _LOWEST, _HIGHEST = 8, -10, 20
#: The number of these cells; the first is for smaller numbers.
N_CELLS = 1 + _PER_OCTAVE * (_HIGHEST - _LOWEST)
#: Their upper ends and their middles.
_ENDS = 2.0 ** (np.arange(N_CELLS) / _PER_OCTAVE + _LOWEST)
MIDDLES = np.append(0.0, np.sqrt(_ENDS[1:] * _ENDS[:-1]))
#: The mean of the whole numbers in each cell, or else its middle.
WHOLE_MIDDLES = np.where(
    np.ceil(_ENDS) > np.ceil(np.append(0.0, _ENDS[:-1])) + (np.arange(N_CELLS) == 0),
    (np.ceil(_ENDS) + np.ceil(np.append(0.0, _ENDS[:-1])) - 1) / 2,
    MIDDLES,
)
#: Share of the squared budget for histograms of counts and exposures.
_OF_RATE = 0.2
#: Probability that noise shows rows in cells far out, where a few would count much.
_FALSE = 1e-4
#: Number of cells after the last that is seen in which rows count: they are few, and noise hides them.
BEYOND = 8

#: Rows of which contributions are computed at a time.
_BLOCK_ROWS = 2**12


def private_table(X: object, groups: object) -> tuple[PrivateTable, object, object]:
    """A table of at least two PRIVATE rows, an object with their columns, and the ids of persons or None."""
    groups = groups_of(X, groups)
    table = special_table(X) if isinstance(X, (Table, np.memmap)) else None
    if table is None:
        X = numeric_frame(X, "X")
        return ArrayTable(check_table(X, "X", minimum=2)), X, groups
    check_size(table.shape, "X", 2)
    return table, header(table), groups


class ComputedTable(Table):
    """What a function makes of the finite rows of a table, (n_rows, width), each of them by itself."""

    def __init__(self, table: PrivateTable, function: Callable[[FloatArray], FloatArray], width: int) -> None:
        self._table = table
        self._function = function
        self.shape = (table.shape[0], width)

    def private_rows(self, y: Labels, row_map: RowMap, dtype: np.dtype[Any], *, exact: bool) -> PrivateRows:
        results, start = self._table.memory(*self.shape), 0
        for part in self.blocks():
            results[start : start + len(part)] = part
            start += len(part)
        return ArrayTable(results).private_rows(y, row_map, dtype, exact=exact)

    def blocks(self) -> Iterator[FloatArray]:
        for X in (
            block[part] for block in self._table.blocks() for part in row_slices(len(block), _BLOCK_ROWS)
        ):
            check_finite(finite_rows(X).all(), "X")
            yield self._function(X)


def noisy_sum(
    contributions: FloatArray | Table,
    bound: float,
    transaction: Transaction,
    treated_as_public: tuple[str, ...],
    units: Units,
) -> tuple[FloatArray, PrivacyReport]:
    """The noisy sum (m,) of ``contributions`` (n_samples, m) of PRIVATE rows, and its report.

    A person among the ``units`` contributes the mean over its rows. Contributions longer than ``bound``, a
    public number, are scaled down to it.

    *Guarantee*: that of :func:`noisy_sums`, with one release of L2 sensitivity ``bound``, by the clip.
    """
    clip = L2Clip(bound)
    table = table_of(contributions, units)

    def contribute(Z: FloatArray, block: Block) -> Contribution:
        return clip.weights(block.norms, lambda: block.max_abs)[:, np.newaxis], None

    def queries(learner: Learner, *, multiplier: float) -> Learning[FloatArray]:
        stated = ReleasedArray(clip.sensitivity(learner.dtype))
        query = PrivateQuery(np.zeros((0, table.shape[1])), contribute, (stated,))
        total, _ = yield from learner.ask(multiplier, query)
        return np.asarray(total[0])

    labels = np.zeros(contributions.shape[0], np.int8)
    return noisy_sums(table, UNCHANGED, labels, queries, transaction, treated_as_public)


def table_of(X: FloatArray | Table, units: Units) -> Table:
    """Rows (n_rows, n_features) as a table of rows or of persons."""
    rows = X if isinstance(X, Table) else ArrayTable(X)
    return rows if units.codes is None else PersonTable(rows, *units)


@np.errstate(all="ignore")
def noisy_sums(
    table: Table,
    row_map: RowMap,
    labels: Labels,
    learn: Callable[..., Learning[_Result]],
    transaction: Transaction,
    treated_as_public: tuple[str, ...],
) -> tuple[_Result, PrivacyReport]:
    """The result of ``learn``, which queries PRIVATE rows for noisy sums, and the report.

    ``learn(learner, multiplier=multiplier)`` yields queries of rows after the map that are together as
    private as one Gaussian release. If the ledger does not admit the releases, nothing is charged or
    released.

    *Guarantee*: (epsilon, delta)-differentially private in the rows, by releases of ``_engine/release.py``.
    """
    multiplier, noise = transaction.budget.whole.noise_multiplier, transaction.noise
    source = table.private_rows(labels, row_map, np.dtype(np.float64), exact=noise.needs_grid)
    learner = Learner(source.n_rows, None, noise, np.dtype(np.float64))
    result = released(transaction, source, table.unit, learn(learner, multiplier=multiplier))
    return result, transaction.report(treated_as_public)


def noisy_histograms(
    bins: NDArray[np.intp],
    n_bins: int,
    transaction: Transaction,
    treated_as_public: tuple[str, ...],
    units: Units,
) -> tuple[NDArray[np.float64], float, PrivacyReport]:
    """Histograms (h, n_bins) of PRIVATE rows, the standard deviation of their noise, and the report.

    ``bins`` (n_rows, h) are the cells to which a row adds 1, and a person the shares of its rows.

    *Guarantee*: one Gaussian release of the budget, of sensitivity ``sqrt(h)``.
    """
    queries = partial(histograms_of, bins_of=lambda y: y, n_histograms=bins.shape[1], n_bins=n_bins)
    table = table_of(np.empty((len(bins), 0)), units)  # histograms need no features
    histograms, report = noisy_sums(table, UNCHANGED, bins, queries, transaction, treated_as_public)
    return *histograms, report


def histograms_of(
    learner: Learner,
    bins_of: Callable[[NDArray[Any]], NDArray[np.intp]],
    n_histograms: int,
    n_bins: int,
    multiplier: float,
) -> Learning[tuple[NDArray[np.float64], float]]:
    """Noisy histograms (h, n_bins) of cells (rows, h) of labels, and the standard deviation of their noise.

    *Guarantee*: one Gaussian release of this multiplier, of sensitivity ``sqrt(h)``.
    """

    def contribute(Z: FloatArray, block: Block) -> Contribution:
        return None, BinCounts(bins_of(block.y), n_bins)

    query = PrivateQuery(np.zeros((0, 0)), contribute, (ReleasedArray(sensitivity_of(n_histograms)),))
    counts, scale = yield from learner.ask(multiplier, query)
    return np.asarray(counts, dtype=np.float64).reshape(n_histograms, n_bins), scale


def noisy_deviances(
    values: NDArray[np.float64],
    has_exposures: bool,
    number: int,
    transaction: Transaction,
    treated_as_public: tuple[str, ...],
    units: Units,
) -> tuple[NDArray[np.float64], float, float, PrivacyReport]:
    """Histograms (2, number * N_CELLS) of Poisson deviances, their noise's scale, a rate, and the report.

    ``values`` (n_rows, 4) are counts, exposures, predicted counts and the index of one of a ``number`` of
    groups of PRIVATE rows, each of which has cells of its own. The first histogram is of the predictions, the
    second of the constant rate, which noisy histograms of counts and exposures tell first.

    *Guarantee*: two Gaussian releases of sensitivity ``sqrt(2)`` at most that share the budget.
    """

    def queries(learner: Learner, **_whole: float) -> Learning[tuple[NDArray[np.float64], float, float]]:
        counted, multiplier = 1 + has_exposures, transaction.budget.multiplier
        counts, scale = yield from histograms_of(
            learner, lambda y: cells_of(y[:, :counted]), counted, N_CELLS, multiplier(_OF_RATE)
        )
        totals = [
            float(part @ np.where(np.arange(N_CELLS) < end_of(part[np.newaxis], scale), middles, 0.0))
            for part, middles in zip(counts, (WHOLE_MIDDLES, MIDDLES), strict=False)
        ]
        # Where noise hides all counts, the rate is that of one row.
        rate = max(totals[0], 1.0) / max(totals[1] if has_exposures else learner.n_rows, 1e-9)

        def deviances(y: NDArray[Any]) -> NDArray[np.intp]:
            means = np.column_stack([y[:, 2], rate * y[:, 1]])
            return cells_of(poisson_deviances(y[:, :1], means)) + N_CELLS * y[:, 3:].astype(np.intp)

        n_cells, left = N_CELLS * number, multiplier(1 - _OF_RATE)
        histograms = yield from histograms_of(learner, deviances, 2, n_cells, left)
        return *histograms, rate

    table = table_of(np.empty((len(values), 0)), units)
    released_numbers, report = noisy_sums(table, UNCHANGED, values, queries, transaction, treated_as_public)
    return *released_numbers, report


def end_of(counts: NDArray[np.float64], scale: float) -> int:
    """The cell of noisy histograms (h, N_CELLS) from which on rows count nothing, far from all others."""
    certain = noise_threshold(counts, scale, _FALSE)
    windows = [window for part in counts for window in windows_of(part, certain)]
    return max((start + width for start, width, _ in windows), default=1) + BEYOND


def poisson_deviances(counts: NDArray[Any], means: NDArray[Any]) -> NDArray[np.float64]:
    """The unit deviances of counts from positive means; infinite where they are no numbers."""
    deviances = 2 * (xlogy(counts, counts / means) - counts + means)
    return np.where(np.isnan(deviances), np.inf, np.maximum(deviances, 0.0))


def cells_of(values: NDArray[Any]) -> NDArray[np.intp]:
    """Cells of numbers of at least 0: equal in their logarithms, but for the first and the last."""
    places = np.floor(_PER_OCTAVE * (np.log2(values) - _LOWEST)) + 1
    return np.asarray(np.fmin(np.fmax(places, 0), N_CELLS - 1).astype(np.intp))
