"""Metrics of a regression, from noisy histograms of residuals and targets, or of Poisson deviances."""

import math
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from scipy.optimize import isotonic_regression

from ..._fit.sums import BEYOND, MIDDLES, N_CELLS, end_of
from ..._utils.validation import PROBABILITY, check, number
from .cells import Estimate, Evaluation, Floats, first_of_two

#: Cells of residuals have equal width in arsinh(residual / unit), so that they are finer near 0. The unit is
#: the bound on the residuals divided by this.
FINENESS = 20.0


@dataclass(frozen=True, repr=False)
class ResidualEvaluation(Evaluation):
    """Errors of a regression, from noisy histograms of its residuals and of the targets.

    :func:`private_evaluation` makes it. Residuals are targets minus predictions. They are cut to a public
    bound, and targets to public bounds, so errors are those of cut numbers. A row adds 1 to one cell of each
    of the two histograms.

    Attributes
    ----------
    privacy : PrivacyReport
        The guarantee of the release.
    residual_edges, target_edges : array of shape (n_bins + 1,)
        Edges of the cells, public facts. Those of residuals are finer near 0.
    """

    residual_edges: Floats
    target_edges: Floats

    @property
    def _residuals(self) -> Floats:
        """Middles (n_bins,) of the cells of residuals, on the scale on which cells have equal width."""
        unit = self.residual_edges[-1] / FINENESS
        places = np.arcsinh(self.residual_edges / unit)
        return np.asarray(unit * np.sinh((places[1:] + places[:-1]) / 2))

    def mean_absolute_error(self) -> Estimate:
        """Mean absolute error (MAE)."""
        return self._mean(np.abs(self._residuals), 0.0)

    def mean_residual(self) -> Estimate:
        """Mean of targets minus predictions, which is 0 for predictions that are right on average."""
        return self._mean(self._residuals, -self.residual_edges[-1])

    def root_mean_squared_error(self) -> Estimate:
        """Root mean squared error (RMSE)."""
        return Estimate(*(math.sqrt(end) for end in self._mean(self._residuals**2, 0.0)))

    def _mean(self, values: Floats, low: float, high: float | None = None) -> Estimate:
        rows = first_of_two(np.ones_like(values))
        high = float(values.max()) if high is None else high
        return self.cells.mean(first_of_two(values), float(low), high, rows=rows)

    def r2_score(self) -> Estimate:
        """Coefficient of determination R2; values below -1 are shown as -1.

        The interval takes squared errors and squared targets as uncorrelated. They mostly correlate
        positively, which would make it shorter.
        """
        targets = (self.target_edges[1:] + self.target_edges[:-1]) / 2
        center = float(targets @ self.counts[1] / self.cells.n_rows)
        squares = first_of_two((targets - center) ** 2)[::-1]
        unexplained = self.cells.ratio(first_of_two(self._residuals**2), squares, 0.0, 2.0)
        value, low, high = (1 - end for end in unexplained)
        return Estimate(value, high, low)

    def coverage(self, half_width: float) -> Estimate:
        """Share of the rows whose target is within a distance of its prediction.

        Parameters
        ----------
        half_width : float
            The distance. The nearest edge of a cell is used, see ``residual_edges``.

        Returns
        -------
        Estimate
            The share, with its interval.

        Raises
        ------
        ValueError
            For a distance that is not positive, or beyond the bound of residuals.
        """
        bound = float(self.residual_edges[-1])
        check("half_width", half_width, number(0, bound, closed="right"))
        edges = self.residual_edges[len(self._residuals) // 2 :]
        nearest = edges[np.argmin(np.abs(edges - half_width))]
        return self._mean(1.0 * (np.abs(self._residuals) < nearest), 0.0, 1.0)

    def half_width(self, coverage: float = 0.9) -> float:
        """The distance from a prediction within which a share ``coverage`` of the targets lies.

        Parameters
        ----------
        coverage : float, default=0.9
            Share of the rows.

        Returns
        -------
        float
            An edge of a cell; the bound of residuals if no smaller one reaches the share.

        Raises
        ------
        ValueError
            For a share outside (0, 1).
        """
        check("coverage", coverage, PROBABILITY)
        half = len(self._residuals) // 2
        folded = self.counts[0, half:] + self.counts[0, :half][::-1]
        shares = isotonic_regression(np.cumsum(folded)).x / self.cells.n_rows
        reached = np.append(np.flatnonzero(shares >= coverage), half - 1)
        return float(self.residual_edges[half + 1 + reached[0]])

    def summary(self) -> dict[str, Estimate]:
        """The main metrics, by name: value, and low and high end of the interval."""
        width = self.half_width(0.9)
        return {
            "mean absolute error": self.mean_absolute_error(),
            "root mean squared error": self.root_mean_squared_error(),
            "mean residual": self.mean_residual(),
            "R2": self.r2_score(),
            f"share within {width:.3g}": self.coverage(width),
        }


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
