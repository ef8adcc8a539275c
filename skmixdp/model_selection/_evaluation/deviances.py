"""Metrics of predicted counts, from noisy histograms of Poisson deviances."""

import math
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from ..._fit.sums import BEYOND, MIDDLES, N_CELLS, end_of
from .cells import Estimate, Evaluation, Floats, first_of_two


@dataclass(frozen=True, repr=False)
class CountEvaluation(Evaluation):
    """Metrics of predicted counts, from noisy histograms of their Poisson deviances.

    :func:`private_evaluation` makes it. A row adds 1 to one cell of each of two histograms: that of the
    deviances of the predictions, and that of the deviances of a constant rate.

    Attributes
    ----------
    privacy : PrivacyReport
        The guarantee of the release.
    rate : float
        The noisy number of events for each unit of exposure, which is the constant rate. With groups, it is
        that of all rows.

    Notes
    -----
    Deviances of more than twice the largest that the noise shows count as 0, and intervals allow for what
    noise may hide there. A cell is 9% wide, which may move D2 by 0.02.
    """

    rate: float

    @cached_property
    def _end(self) -> int:
        return end_of(self.counts, self.noise_scale)

    @cached_property
    def _hidden(self) -> float:
        """The sum of larger deviances that noise hides beyond the last cell that counts, at the level."""
        first = MIDDLES[min(self._end + BEYOND // 2, N_CELLS - 1)]
        return float(self.cells.z * self.noise_scale * math.sqrt(BEYOND) * first)

    @property
    def deviances(self) -> Floats:
        """The deviance (n_cells,) of a row in each cell; 0 far from all rows that are seen."""
        return np.where(np.arange(N_CELLS) < self._end, MIDDLES, 0.0)

    def mean_deviance(self) -> Estimate:
        """Mean Poisson deviance of the predicted counts, ``2 (y log(y / mean) - y + mean)`` of each row."""
        a, rows = first_of_two(self.deviances), first_of_two(np.ones(N_CELLS))
        value, low, high = self.cells.mean(a, 0.0, float(a.max()), rows=rows)
        return Estimate(value, low, high + self._hidden / self.cells.n_rows)

    def d2_score(self) -> Estimate:
        """D2, the fraction of the deviance of a constant rate that is explained; at least -1 is shown.

        The interval takes both deviances of a row as uncorrelated. They mostly correlate positively, which
        would make it shorter.
        """
        deviances = first_of_two(self.deviances)
        unexplained = self.cells.ratio(deviances, deviances[::-1], 0.0, 2.0)
        null = max(float(self.deviances @ self.counts[1]), self._hidden)
        low, high = 1 - unexplained.high, 1 - unexplained.low * null / (null + self._hidden)
        return Estimate(1 - unexplained.value, low, high)

    def summary(self) -> dict[str, Estimate]:
        """The main metrics, by name: value, and low and high end of the interval."""
        return {"mean Poisson deviance": self.mean_deviance(), "D2": self.d2_score()}
