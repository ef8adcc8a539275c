"""Estimates with intervals from noisy histograms. All of it is post-processing."""

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtri

from ..._utils.documents import Document, Section
from ..._utils.lazy_imports import annex
from ..._utils.validation import FLAG, PROBABILITY, check
from ...privacy import PrivacyReport
from ...privacy.report import counted

Floats = NDArray[np.float64]


class Estimate(NamedTuple):
    """An estimate with its interval. The value is NaN where noise hides it."""

    value: float
    low: float
    high: float

    def __str__(self) -> str:
        shown = "hidden by the noise" if math.isnan(self.value) else f"{self.value:.3f}"
        return f"{shown} ({self.low:.3f} to {self.high:.3f})"


@dataclass(frozen=True)
class NoisyCells:
    """Noisy numbers of rows (h, m) in the cells of h histograms; each row is in one cell of each."""

    # A person counts 1 in all, spread over the cells of their rows. Intervals hold for persons too: a mean
    # over several rows varies no more than one row.
    counts: Floats
    noise_scale: float
    n_rows: float
    level: float = 0.95
    sampling: bool = True
    #: Whether the number of rows is noisy, as that of a group is. Means are then ratios of noisy sums.
    noisy: bool = False

    @property
    def z(self) -> float:
        """Half-length of an interval in standard deviations."""
        return float(ndtri((1 + self.level) / 2))

    @property
    def total_scale(self) -> float:
        """Standard deviation of the noise in the total number of rows, averaged over the histograms."""
        h, m = self.counts.shape
        return self.noise_scale * math.sqrt(m / h)

    @cached_property
    def spread(self) -> Floats:
        """Counts (h, m) for the sampling variance: the nearest ones that are not negative and sum to n."""
        if not self.sampling:
            return np.zeros_like(self.counts)
        return np.stack([_on_simplex(part, self.n_rows) for part in self.counts])

    def mean(self, a: Floats, low: float, high: float, rows: Floats | None = None) -> Estimate:
        """The mean of the cells' values ``a`` (h, m) over the rows."""
        # ``rows`` (h, m) are 1 in the cells that make up all rows; by default, all cells of one histogram.
        rows = np.ones_like(a) if rows is None else rows
        if self.noisy:
            return self.ratio(a, rows, low, high)
        total, noise = float(np.sum(a * self.counts)), self.noise_scale**2 * float(np.sum(a * a))

        def excess(mean: float) -> float:
            variance = noise + np.sum(self.spread * (a - mean * rows) ** 2)
            return (total - mean * self.n_rows) ** 2 - self.z**2 * variance

        return interval(total / self.n_rows, excess, low, high)

    def ratio(self, a: Floats, b: Floats, low: float = 0.0, high: float = 1.0) -> Estimate:
        """The ratio of two sums over rows, of ``a`` and ``b`` (h, m), with the interval of Fieller (1954)."""
        over, under = float(np.sum(a * self.counts)), float(np.sum(b * self.counts))

        def excess(ratio: float) -> float:
            variance = np.sum((self.noise_scale**2 + self.spread) * (a - ratio * b) ** 2)
            return (over - ratio * under) ** 2 - self.z**2 * float(variance)

        return interval(over / under if under > 0 else math.nan, excess, low, high)


def interval(value: float, excess: Callable[[float], float], low: float, high: float) -> Estimate:
    """The numbers in [low, high] at which a quadratic ``excess`` is not positive."""
    # If the value is outside of [low, high], it moves to the nearest end and takes its interval along. An
    # unbounded set means that noise hides the denominator. Then the interval is all of [low, high].
    middle, half = (low + high) / 2, (high - low) / 2
    left, center, right = excess(low), excess(middle), excess(high)
    bend, slope = (left + right) / 2 - center, (right - left) / 2
    if not (bend > 0 and math.isfinite(value)):
        return Estimate(math.nan, low, high)
    root = math.sqrt(max(slope**2 - 4 * bend * center, 0.0))
    ends = [middle + half * (-slope + sign * root) / (2 * bend) for sign in (-1, 1)]
    moved = min(max(value, low), high) - value
    return Estimate(*(min(max(end + moved, low), high) for end in (value, *ends)))


def first_of_two(values: Floats) -> Floats:
    """Values (m,) of the cells of the first of two histograms, with zeros for the second, (2, m)."""
    return np.stack([values, np.zeros_like(values)])


def _on_simplex(counts: Floats, total: float) -> Floats:
    """The nearest numbers (m,) to ``counts`` that are at least 0 and have this sum."""
    falling = np.sort(counts)[::-1]
    shifts = (np.cumsum(falling) - total) / np.arange(1, len(counts) + 1)
    return np.asarray(np.maximum(counts - shifts[np.flatnonzero(falling > shifts)[-1]], 0.0))


@dataclass(frozen=True, repr=False)
class Evaluation(Document):
    """Base of evaluations: noisy cells, with the report of their release."""

    cells: NoisyCells
    privacy: PrivacyReport

    @property
    def counts(self) -> Floats:
        """The released noisy counts, from which all metrics are computed."""
        return self.cells.counts

    @property
    def noise_scale(self) -> float:
        """Standard deviation of the noise in each count, in rows, or in persons."""
        return self.cells.noise_scale

    @property
    def no_guarantee(self) -> str:
        """The first line of the text, which names known leaks; empty without leaks."""
        return self.privacy.no_guarantee

    def with_intervals(self, level: float = 0.95, *, sampling: bool = True) -> Self:
        """The same evaluation with other intervals, at no cost.

        Parameters
        ----------
        level : float, default=0.95
            Probability with which an interval covers.
        sampling : bool, default=True
            Whether intervals are for other rows drawn like these. If False, they are for these rows, and
            only noise moves the estimates.

        Returns
        -------
        Evaluation
            Of the same class.

        Raises
        ------
        ValueError
            For a level outside (0, 1).
        """
        check("level", level, PROBABILITY)
        check("sampling", sampling, FLAG)
        return replace(self, cells=replace(self.cells, level=float(level), sampling=bool(sampling)))

    def summary(self) -> dict[str, Estimate]:
        """The main metrics, by name: value, and low and high end of the interval."""
        raise NotImplementedError

    def plot(self, ax: object = None) -> Any:
        """Draw by :class:`~skmixdp.inspection.EvaluationDisplay`, on ``ax`` or a new figure."""
        return annex("EvaluationDisplay").from_evaluation(self, ax=ax)

    @property
    def _terms(self) -> str:
        """The level of the intervals, what they cover, and the noise, as text."""
        cells, units = self.cells, "rows" if self.privacy.unit == "row" else "persons"
        whose = f"{units} drawn like these" if cells.sampling else f"these {units}"
        return f"{100 * cells.level:g}% intervals for {whose}; noise {cells.noise_scale:.3g} {units} a cell"

    def _sections(self) -> list[Section]:
        notes = self._terms, cost_of(self.privacy)
        return [Section(self._heading, [*self.summary().items()], notes=notes)]

    __repr__ = Document.__str__

    @property
    def _heading(self) -> str:
        """What was evaluated, as text."""
        n_rows, unit = self.cells.n_rows, self.privacy.unit
        number = f"{n_rows:.0f} private rows" if unit == "row" else counted(round(n_rows), unit)
        return f"{type(self).__name__} of {f'about {number}' if self.cells.noisy else number}"


def cost_of(report: PrivacyReport) -> str:
    """The budget of an evaluation, as text."""
    return f"epsilon {report.epsilon:.4g}, delta {report.delta:.3g}"
