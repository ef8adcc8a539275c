"""Noisy histograms outside of any fit: each private row, or person, adds 1 to each of them."""

import numpy as np
from numpy.typing import NDArray

from .._rows import ArrayTable, BinCounts, InMemoryRows, Persons, PersonTable, PrivateRows
from ..components.protocols import PrivateQuery, ReleasedArray
from ..privacy import NoiseSource, PrivacyReport
from ..privacy.sums import SumBudget
from .comparison import sensitivity_of
from .geometry import Learner, Learning
from .noisy_sum import noisy_sums


def noisy_histograms(
    bins: NDArray[np.intp],
    n_bins: int,
    budget: SumBudget,
    treated_as_public: tuple[str, ...],
    persons: Persons | None,
) -> tuple[NDArray[np.float64], float, PrivacyReport]:
    """Histograms (h, n_bins) of PRIVATE rows, the standard deviation of their noise, and the report.

    ``bins`` (n_rows, h) are the cells to which a row adds 1. With ``persons``, each of them adds 1 to each
    histogram, divided among the cells as their rows are.

    *Guarantee*: one Gaussian release of the budget, of sensitivity ``sqrt(h)``.
    """
    n_histograms = bins.shape[1]
    n_rows, unit = (len(bins), "row") if persons is None else persons[1:]
    nothing = np.empty((len(bins), 0))  # cells need no features

    def rows(exact: bool) -> PrivateRows:
        if persons is None:
            return InMemoryRows(nothing, bins, exact=exact)
        return PersonTable(ArrayTable(nothing), *persons).label_rows(bins, nothing.dtype)

    def asked(multiplier: float, noise: NoiseSource) -> Learning[tuple[NDArray[np.float64], float]]:
        query = PrivateQuery(
            points=np.zeros((0, 0)),
            contribute=lambda Z, block: (None, BinCounts(block.y, n_bins)),
            releases=(ReleasedArray(sensitivity_of(n_histograms)),),
        )
        learner = Learner(n_rows, None, noise, np.dtype(np.float64))
        counts, scale = yield from learner.ask(learner.mechanism(multiplier), query)
        return np.asarray(counts, dtype=np.float64).reshape(n_histograms, n_bins), scale

    released, report = noisy_sums(rows, asked, budget, treated_as_public, "private_evaluation", unit=unit)
    return *released, report
