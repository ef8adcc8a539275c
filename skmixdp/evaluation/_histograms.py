"""The release: each private row, or person, adds 1 to each histogram."""

import math

import numpy as np
from numpy.typing import NDArray

from .._engine.noisy_sum import SumBudget, noisy_sums
from .._learning.comparison import sensitivity_of
from .._learning.geometry import Learner, Learning
from .._rows import ArrayTable, BinCounts, InMemoryRows, Persons, PersonTable, PrivateRows
from ..components.protocols import FloatArray, PrivateQuery, ReleasedArray
from ..privacy import NoiseSource, PrivacyReport
from ._cells import NoisyCells

Bins = NDArray[np.intp]

#: Fewest and most cells by rule.
_FEWEST, _MOST = 16, 256


def number_of_bins(n_bins: int | str, n_rows: int, budget: SumBudget, n_histograms: int) -> int:
    """Number of cells for a score; ``"auto"`` is a power of two, by public facts.

    Noise in a sum over all cells grows as the root of their number, and the error by their width falls as its
    square. So the number grows as the power 2/5 of the rows over the noise; the factor was found by trials.
    """
    if not isinstance(n_bins, str):
        return int(n_bins)
    signal = n_rows / (budget.event.noise_multiplier * sensitivity_of(n_histograms))
    return min(max(1 << max(0, round(math.log2(2.2 * signal**0.4))), _FEWEST), _MOST)


def bins_of(values: FloatArray, low: float, high: float, n_bins: int) -> Bins:
    """Cells of equal width in a public range; what lies outside is in the first or last, NaN in the first."""
    # Unlike np.clip, these leave no NaN.
    places = np.fmin(np.fmax((values - low) / (high - low) * n_bins, 0), n_bins - 1)
    return np.asarray(places.astype(np.intp))


def released(
    bins: Bins,
    n_bins: int,
    budget: SumBudget,
    treated_as_public: tuple[str, ...],
    persons: Persons | None,
) -> tuple[NoisyCells, PrivacyReport]:
    """Noisy histograms of PRIVATE rows that each add 1 to one of ``n_bins`` cells of each, and the report.

    ``bins`` (n_rows, h) are numbers of cells. With ``persons``, each of them adds 1 to each histogram, in
    cells as their rows are.

    *Guarantee*: one Gaussian release of the budget, of sensitivity ``sqrt(h)``.
    """
    n_histograms = bins.shape[1]
    n_rows, unit = (len(bins), "row") if persons is None else persons[1:]
    nothing = np.empty((len(bins), 0))  # cells need no features

    def rows(exact: bool) -> PrivateRows:
        if persons is None:
            return InMemoryRows(nothing, bins, exact=exact)
        return PersonTable(ArrayTable(nothing), *persons).label_rows(bins, nothing.dtype)

    def asked(multiplier: float, noise: NoiseSource) -> Learning[NoisyCells]:
        query = PrivateQuery(
            points=np.zeros((0, 0)),
            contribute=lambda Z, block: (None, BinCounts(block.y, n_bins)),
            releases=(ReleasedArray(sensitivity_of(n_histograms)),),
        )
        learner = Learner(n_rows, None, noise, np.dtype(np.float64))
        counts, scale = yield from learner.ask(learner.mechanism(multiplier), query)
        noisy = np.asarray(counts, dtype=np.float64).reshape(n_histograms, n_bins)
        return NoisyCells(noisy, scale, n_rows)

    return noisy_sums(rows, asked, budget, treated_as_public, "private_evaluation", unit=unit)
