"""What noisy Newton steps for regression coefficients share: rows, releases, and the covariance of estimates.

Rows ``x`` have standardised columns and a constant first. Long rows are downweighted by a factor ``v`` that
depends on ``x`` alone, so the root of the estimating equation stays at the true coefficients; rows that were
shortened instead would move it. Each step releases the sum of the rows' scores ``v r x`` and of their
curvatures ``v s x x^T``. After the last step, the estimate is that without privacy, plus noise whose
distribution is known.

Source: Avella-Medina, Bradshaw and Loh 2023, "Differentially private inference via noisy optimization",
Annals of Statistics 51(5).
"""

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .._engine import GaussianMechanism
from .._fit.statistics import Learner, Learning
from .._rows.scaling import IQR
from .._rows.source import BinCounts, OuterStatistics
from ..components.protocols import FloatArray, PrivateQuery, ReleasedArray

#: Share of the squared budget for the outer products of scores (robust errors).
OUTER_SHARE = 0.12

#: An estimate has arrived if its last step is at most this many deviations of its noise. At 3.5, about 1 in
#: 300 regressions of 3 columns was refused by chance.
MOVED_DEVIATIONS = 4.0

#: Minimum number of public rows for centre and spread of columns and targets.
ENOUGH = 30

#: Smallest and largest spread that is taken from public rows or declared.
SPREADS = 1e-15, 9e18

#: Exceeds the rounding of a row's length and weight.
UP = 1 + 1e-12


@dataclass(frozen=True)
class Rows:
    """Standardised rows ``x`` (n, d + 1), and their labels ``y`` (n, m), which may end with sample weights.

    Sample weights ``u`` (n,) are relative to the largest, in [0, 1]; all are 1 unless ``is_weighted``.
    ``v`` (n,) is ``min(1, (R / |x|)^2) u`` with the radius R of the design, so ``v |x|`` is at most R and
    ``v |x|^2`` at most ``R^2``.
    """

    x: FloatArray
    y: FloatArray
    u: FloatArray
    v: FloatArray
    is_weighted: bool

    def histograms(self, *bins: NDArray[np.intp], n_bins: int) -> BinCounts | FloatArray:
        """Histograms of bins (n,) each, to which a row adds its sample weight."""
        counts = BinCounts(np.stack(bins, axis=1), n_bins)
        return np.asarray(counts) * self.u[:, np.newaxis] if self.is_weighted else counts

    def moments(self) -> OuterStatistics:
        """Second moments ``v x x^T`` of the rows, of norm at most ``R^2`` each."""
        return OuterStatistics(self.v[:, np.newaxis] * self.x, self.x)


@dataclass(frozen=True)
class Design:
    """Columns of the model, and how they are standardised: (d,) each.

    Labels end with sample weights if there is a ``largest_weight``, which counts as 1. ``square`` is a mean
    square length of rows; None is the number of their entries.
    """

    columns: NDArray[np.intp]
    center: FloatArray
    spread: FloatArray
    largest_weight: float | None = None
    square: float | None = None

    @property
    def width(self) -> int:
        """Entries of a row, including the constant."""
        return len(self.columns) + 1

    @property
    def radius(self) -> float:
        """Length above which rows are downweighted: that of a row with all entries one spread from 0."""
        return math.sqrt(self.width if self.square is None else self.square)

    def rows(self, entries: FloatArray, labels: NDArray[Any]) -> Rows:
        """Rows from the entries of all features."""
        x = np.ones((len(entries), self.width))
        x[:, 1:] = (entries[:, self.columns] - self.center) / self.spread
        y = np.asarray(labels, np.float64)
        squares = (x * x).sum(axis=1) * UP
        v, u = np.minimum(1.0, self.radius**2 / squares), np.ones(len(x))
        if self.largest_weight is not None:
            u = np.minimum(y[:, -1] / self.largest_weight, 1.0)
        return Rows(x, y, u, v * u, self.largest_weight is not None)


def public_scales(X: FloatArray) -> dict[int, tuple[float, float]]:
    """Centre and spread of the columns of public rows that are not constant."""
    quartiles = np.quantile(X, [0.25, 0.75], axis=0)
    spread = np.maximum(X.std(axis=0), (quartiles[1] - quartiles[0]) / IQR)
    usable = np.flatnonzero((spread >= SPREADS[0]) & (spread <= SPREADS[1]))
    return {int(j): (float(X[:, j].mean()), float(spread[j])) for j in usable}


@dataclass(frozen=True)
class Estimate:
    """Coefficients (p,) of standardised rows, and the parts of their covariance (p, p)."""

    values: FloatArray
    #: The covariances without noise, and of what the releases add.
    sampling: FloatArray
    noise: FloatArray
    #: Directions (p, r) that the noise hides.
    hidden: FloatArray
    #: Weighted means (n_outputs, d + 1) of the standardised rows, infinite where noise hides them.
    centers: FloatArray
    #: The last step (p,) before it was shortened, and its covariance once the steps have arrived.
    moved: FloatArray
    moved_noise: FloatArray
    #: A bound on the sum of what a cut takes from residuals; infinite where the noisy tail allows any.
    cut_off: float
    #: Whether columns tell the classes of nearly all rows, so that slopes grow without end.
    separated: bool = False
    #: Slopes (p,) of which the data tell less and less while they grow.
    fading: NDArray[np.bool_] | bool = False


@dataclass(frozen=True)
class Curvature:
    """A ``released`` symmetric matrix (p, p), and its eigenvalues, of which those below the noise are raised.

    ``scale`` is the standard deviation of the noise in an entry before the matrix is made symmetric.
    """

    released: FloatArray
    values: FloatArray
    vectors: FloatArray
    raised: NDArray[np.bool_]
    scale: float

    @classmethod
    def of(cls, matrix: FloatArray, scale: float) -> "Curvature":
        """The curvature of a noisy sum, which is made symmetric."""
        matrix = (matrix + matrix.T) / 2
        values, vectors = np.linalg.eigh(matrix)
        floor = noise_floor(scale, len(values))
        return cls(matrix, np.maximum(values, floor), vectors, values < floor, scale)

    @property
    def matrix(self) -> FloatArray:
        return np.asarray((self.vectors * self.values) @ self.vectors.T)

    @property
    def inverse(self) -> FloatArray:
        return np.asarray((self.vectors / self.values) @ self.vectors.T)

    def noise(self, step: FloatArray, score_scale: float) -> FloatArray:
        """Covariance (p, p) of the noise in the end of a ``step`` whose scores had noise of this scale."""
        # Noise E in the curvature moves the end by about H^-1 E step.
        by_step = self.scale**2 / 2 * (float(step @ step) * np.eye(len(step)) + np.outer(step, step))
        inverse = self.inverse
        return inverse @ (score_scale**2 * np.eye(len(step)) + by_step) @ inverse

    def estimate(
        self,
        values: FloatArray,
        step: FloatArray,
        score_scale: float,
        outer: FloatArray,
        width: int,
        cut_off: float,
        moved: FloatArray | float = 0.0,
        noise_before: FloatArray | float = 0.0,
    ) -> Estimate:
        """The estimate after a last ``step``, whose scores had noise of this scale.

        ``outer`` (p, p) is the covariance of the exact scores, and ``width`` that of rows. ``moved`` is the
        step before it was shortened, from a start with the covariance ``noise_before``.
        """
        inverse, size = self.inverse, len(step)
        noise = self.noise(step, score_scale)
        # For each output: the first row of its block, divided by the first entry.
        firsts = np.arange(0, size, width)
        rows = np.array([self.released[first, first : first + width] for first in firsts])
        clear = rows[:, :1] > noise_floor(self.scale, size)
        centers = np.where(clear, rows / np.where(clear, rows[:, :1], 1.0), np.inf)
        # This covers a bias by residuals that lose at most ``cut_off`` in all. Rows that lose are taken to be
        # as far from their centre as others are, in the root mean square.
        total = max(float(np.trace(self.matrix[::width, ::width])), noise_floor(self.scale, size))
        bias = cut_off**2 / total * inverse if math.isfinite(cut_off) else 0.0
        return Estimate(
            values,
            inverse @ outer @ inverse,
            noise + bias,
            self.vectors[:, self.raised],
            centers,
            np.zeros(size) + moved,
            noise + noise_before,
            cut_off,
        )


def noise_floor(scale: float, size: int) -> float:
    """Approximate largest eigenvalue of noise alone, in a symmetrised matrix of this size.

    In small matrices, where eigenvalues vary, it is that of a diagonal entry with a probability of 1e-4.
    """
    return scale * max(math.sqrt(2 * size), 4.0)


#: Statistics of rows, and the arrays that make up their sum.
Statistics = OuterStatistics | BinCounts | FloatArray
Split = Callable[[FloatArray], tuple[FloatArray, ...]]

#: The noisy arrays of a query, and the standard deviations of their noise.
Noisy = tuple[list[FloatArray], list[float]]


@dataclass(frozen=True)
class Regression:
    """Private rows, and ``public`` rows as an exact part of the same equations.

    Releases spend shares of a squared budget, of which ``multiplier`` is the whole.
    """

    learner: Learner
    n_features: int
    multiplier: float
    design: Design
    public: Rows

    @property
    def radius(self) -> float:
        """The length of rows that all sensitivities refer to, rounded up."""
        return self.design.radius * UP

    def scale(self, sensitivity: float, share: float) -> float:
        """Standard deviation of the noise of a release, apart from rounding."""
        return self.multiplier * sensitivity / math.sqrt(share)

    def noisy(
        self,
        statistics: Callable[[Rows], Statistics],
        share: float,
        *releases: ReleasedArray,
        split: Split = lambda sums: (sums,),
    ) -> Learning[Noisy]:
        """Noisy sums over the private rows, of which the first arrays of the ``split`` are released."""
        query = PrivateQuery(
            points=np.eye(self.n_features),  # so that the products are the entries
            contribute=lambda Z, block: (None, statistics(self.design.rows(np.asarray(Z), block.y))),
            releases=releases,
            assemble=lambda sums: split(sums[0])[: len(releases)],
        )
        mechanism = GaussianMechanism(self.multiplier / math.sqrt(share), 1, self.learner.noise)
        mechanism.begin_step(self.learner.members)
        released = yield mechanism, query
        return list(released.arrays), [mechanism.noise_scale(part) for part in released.stated]

    def sums(
        self,
        statistics: Callable[[Rows], Statistics],
        share: float,
        *releases: ReleasedArray,
        split: Split = lambda sums: (sums,),
    ) -> Learning[Noisy]:
        """Noisy sums over the private rows, plus the sums over the public ones."""
        arrays, scales = yield from self.noisy(statistics, share, *releases, split=split)
        of_public = split(summed(statistics(self.public)))
        return [array + part for array, part in zip(arrays, of_public, strict=False)], scales


def summed(statistics: Statistics) -> FloatArray:
    """The sums of the statistics of public rows."""
    return statistics.sum(axis=0) if isinstance(statistics, np.ndarray) else statistics.sums()


def square(sums: FloatArray) -> tuple[FloatArray]:
    """The sum of square matrices."""
    size = math.isqrt(sums.size)
    return (sums.reshape(size, size),)


def positive(matrix: FloatArray, scale: float) -> FloatArray:
    """A noisy sum of outer products whose eigenvalues are at least the noise in a diagonal entry."""
    values, vectors = np.linalg.eigh((matrix + matrix.T) / 2)
    return np.asarray((vectors * np.maximum(values, scale)) @ vectors.T)
