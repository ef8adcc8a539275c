"""Noisy Newton steps for regression coefficients, and the covariance of the estimates.

Rows ``x`` have standardised columns and a constant first. Long rows are downweighted by a factor ``v`` that
depends on ``x`` alone, so the root of the estimating equation stays at the true coefficients; rows that were
shortened instead would move it. Each step releases the sum of the rows' scores ``v r x`` and of their
curvatures ``v s x x^T``. After the last step, the estimate is that without privacy, plus noise whose
distribution is known.

Each function is a generator: it yields queries with the mechanisms that answer them, and returns what it has
learned from the noisy answers.

Source: Avella-Medina, Bradshaw and Loh 2023, "Differentially private inference via noisy optimization",
Annals of Statistics 51(5).
"""

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .._engine import GaussianMechanism
from .._fit.statistics import Learner, Learning, counts_query, in_class
from .._rows import BinCounts, Block, OuterStatistics
from ..components.protocols import FloatArray, PrivateQuery, ReleasedArray

#: Shares of the squared budget for scores in each step of a logistic regression. Chosen in simulations.
_SCORES = 0.02, 0.03, 0.05, 0.08, 0.14, 0.33
#: The same for curvatures. The last step uses the curvature of the step before.
_CURVATURES = 0.03, 0.05, 0.07, 0.1, 0.1, 0.0

#: Share of the squared budget for class counts.
_COUNTS = 0.02
#: Share of the squared budget for the outer products of scores (robust errors).
_OUTER = 0.12

#: Share of the squared budget for the curvature of a least squares regression.
_CURVATURE = 0.22
#: Shares of the squared budget for the scores of each of its steps.
_STEPS = 0.05, 0.1, 0.45
#: Shares for the histograms of absolute residuals before its second and its third step.
_HISTOGRAMS = 0.04, 0.06
#: Share for the variance of its residuals.
_VARIANCE = 0.08

#: Edges of the histogram of absolute residuals, in spreads of the targets: quarters of a power of two.
_EDGES = 2.0 ** np.arange(-30, 12.25, 0.25)

#: Residuals are cut where the loss changes a score by less than this fraction of the noise.
_CUT_OFF = 0.1

#: Cut of residuals before the first histogram, in spreads of the targets.
_FIRST_CUT = 4.0
#: Smallest cut, in spreads of the residuals.
_LEAST_CUT = 2.0

#: Cut of residuals for their variance, in standard deviations.
_VARIANCE_CUT = 6.0

#: A bin counts if it exceeds this many standard deviations of its noise.
_SURE_DEVIATIONS = 4.0

#: Cut of targets, in spreads, so that squares stay finite.
_FARTHEST = 1e30

#: Largest root mean square change of the linear predictors in a step of a logistic regression.
_LONGEST_STEP = 2.0

#: Classes count as separated if the last step changed the slopes by more than this, plus noise.
_UNSETTLED = 0.5
#: Standard deviations of the noise that are allowed for in this change.
_MOVED_DEVIATIONS = 4.0
#: Classes also count as separated if the slopes of standardised columns are together longer than this.
_LONGEST_SLOPES = 10.0

#: Exceeds the rounding of a row's length and weight.
_UP = 1 + 1e-12


@dataclass(frozen=True)
class Design:
    """Columns of the model, and how they are standardised: (d,) each.

    Labels of private rows carry sample weights as a last column, if there is a ``largest_weight``, which
    counts as 1.
    """

    columns: NDArray[np.intp]
    center: FloatArray
    spread: FloatArray
    largest_weight: float | None = None

    @property
    def width(self) -> int:
        """Entries of a row, including the constant."""
        return len(self.columns) + 1

    @property
    def radius(self) -> float:
        """Length above which rows are downweighted: that of a row with all entries one spread from 0."""
        return math.sqrt(self.width)

    def rows(self, entries: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Rows (n, d + 1) from entries of all features, and their weights (n,).

        ``v`` is ``min(1, (R / |x|)^2)`` with the radius R, so ``v |x|`` is at most R and ``v |x|^2`` at most
        ``R^2``.
        """
        x = np.ones((len(entries), self.width))
        x[:, 1:] = (entries[:, self.columns] - self.center) / self.spread
        squares = (x * x).sum(axis=1) * _UP
        return x, np.minimum(1.0, self.radius**2 / squares)

    def relative(self, weights: FloatArray) -> FloatArray:
        """Sample weights relative to the largest, in [0, 1]; without a largest one, all are 1."""
        largest = self.largest_weight
        return np.ones(len(weights)) if largest is None else np.minimum(weights / largest, 1.0)

    def private(self, Z: FloatArray, block: Block) -> tuple[FloatArray, FloatArray]:
        """Private rows and their weights ``v``, times the relative sample weights."""
        x, v = self.rows(Z)
        return x, v if self.largest_weight is None else v * self.of_block(block)

    def of_block(self, block: Block) -> FloatArray:
        """Relative sample weights (rows,) of a block of private rows."""
        return self.relative(np.asarray(block.y, np.float64).reshape(len(block.y), -1)[:, -1])


@dataclass(frozen=True)
class Known:
    """Public rows (m, d + 1) as a known part of the equations, and their labels or targets.

    ``v`` (m,) are their weights, among which are the relative sample weights ``u`` (m,).
    """

    x: FloatArray
    v: FloatArray
    y: NDArray[Any]
    u: FloatArray


@dataclass(frozen=True)
class Estimate:
    """Coefficients (p,) of standardised rows, and the parts of their covariance (p, p).

    ``sampling`` is that without noise, ``noise`` what the releases add. ``hidden`` (p,) is the part of each
    coefficient in directions that the noise hides. ``centers`` (n_outputs, d + 1) are weighted means of the
    standardised rows, infinite where noise hides them. ``separated`` says that the columns tell the classes
    of nearly all rows, so that slopes grow without end.
    """

    values: FloatArray
    sampling: FloatArray
    noise: FloatArray
    hidden: FloatArray
    centers: FloatArray
    separated: bool = False


@dataclass(frozen=True)
class Curvature:
    """A ``released`` curvature (p, p) with its eigenvalues, of which those below the noise are raised.

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

    def estimate(
        self, values: FloatArray, step: FloatArray, score_scale: float, outer: FloatArray, width: int
    ) -> Estimate:
        """The estimate after a last ``step``, whose scores had noise of this scale.

        ``outer`` (p, p) is the covariance of the exact scores, and ``width`` that of rows. Noise E in the
        curvature moves the root by about ``H^-1 E step``.
        """
        inverse = self.inverse
        by_step = self.scale**2 / 2 * (float(step @ step) * np.eye(len(step)) + np.outer(step, step))
        added = score_scale**2 * np.eye(len(step)) + by_step
        hidden = (self.vectors[:, self.raised] ** 2).sum(axis=1)
        # For each output: the first row of its block, divided by the first entry.
        firsts = np.arange(0, len(step), width)
        rows = np.array([self.released[first, first : first + width] for first in firsts])
        told = rows[:, :1] > noise_floor(self.scale, len(step))
        centers = np.where(told, rows / np.where(told, rows[:, :1], 1.0), np.inf)
        return Estimate(values, inverse @ outer @ inverse, inverse @ added @ inverse, hidden, centers)


def noise_floor(scale: float, size: int) -> float:
    """Approximate largest eigenvalue of noise alone, in a symmetrised matrix of this size."""
    return scale * math.sqrt(2 * size)


#: Statistics of rows' entries (rows, n_features) and labels, and the arrays that make up their sum.
Statistics = Callable[[FloatArray, Block], OuterStatistics | BinCounts | FloatArray]
Split = Callable[[FloatArray], tuple[FloatArray, ...]]

#: The noisy arrays of a query, and the standard deviations of their noise.
Noisy = tuple[tuple[FloatArray, ...], list[float]]


@dataclass(frozen=True)
class Mechanisms:
    """Gaussian mechanisms for shares of a squared budget, of which ``multiplier`` is the whole."""

    learner: Learner
    n_features: int
    multiplier: float

    def scale(self, sensitivity: float, share: float) -> float:
        """Standard deviation of the noise of a release, apart from rounding."""
        return self.multiplier * sensitivity / math.sqrt(share)

    def ask(self, query: PrivateQuery, share: float) -> Learning[Noisy]:
        """The noisy arrays of a query."""
        mechanism = GaussianMechanism(self.multiplier / math.sqrt(share), 1, self.learner.noise)
        mechanism.begin_step(self.learner.members)
        released = yield mechanism, query
        return released.arrays, [mechanism.noise_scale(part) for part in released.stated]

    def sums(
        self,
        statistics: Statistics,
        share: float,
        *releases: ReleasedArray,
        split: Split = lambda sums: (sums,),
    ) -> Learning[Noisy]:
        """The noisy sums of statistics of rows, of which the first arrays of the ``split`` are released."""
        query = PrivateQuery(
            points=np.eye(self.n_features),  # so that the products are the entries
            contribute=lambda Z, block: (None, statistics(np.asarray(Z), block)),
            releases=releases,
            assemble=lambda sums: split(sums[0])[: len(releases)],
        )
        return self.ask(query, share)


def square(sums: FloatArray) -> tuple[FloatArray]:
    """The sum of square matrices."""
    size = math.isqrt(sums.size)
    return (sums.reshape(size, size),)


# -- logistic regression ---------------------------------------------------------------------


@dataclass(frozen=True)
class Logistic:
    """Log-odds of each class against the first, ``n_classes - 1`` outputs per row."""

    n_classes: int

    @property
    def n_outputs(self) -> int:
        return self.n_classes - 1

    @property
    def residual_bound(self) -> float:
        """Bound on the length of a row's residuals ``p - e``."""
        return 1.0 if self.n_classes == 2 else math.sqrt(2) * _UP

    @property
    def curvature_bound(self) -> float:
        """Bound on the Frobenius norm of ``diag(p) - p p^T`` without the first class."""
        return 0.25 if self.n_classes == 2 else 0.5

    def residuals(self, x: FloatArray, y: NDArray[Any], beta: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Residuals (rows, k) and curvatures (rows, k, k) at coefficients (k d_in,)."""
        # Computed entry by entry, so that a row has the same result at any place.
        outputs = [(x * each).sum(axis=1) for each in beta.reshape(self.n_outputs, -1)]
        eta = np.column_stack([np.zeros(len(x)), *outputs])
        eta -= eta.max(axis=1, keepdims=True)
        p = np.exp(eta)
        p = (p / p.sum(axis=1, keepdims=True))[:, 1:]
        curvature = -p[:, :, np.newaxis] * p[:, np.newaxis, :]
        k = np.arange(self.n_outputs)
        # p (1 - p), where 1 - p is a sum of the other probabilities, so that rounding does not make it
        # negative.
        curvature[:, k, k] = p * (1 - np.minimum(p, 1.0))
        return p - (np.asarray(y)[:, np.newaxis] == 1 + k), curvature

    def statistics(self, x: FloatArray, v: FloatArray, y: NDArray[Any], beta: FloatArray) -> OuterStatistics:
        """Scores and curvatures of rows, as factors of their entries."""
        residuals, curvature = self.residuals(x, y, beta)
        weighted = v[:, np.newaxis, np.newaxis] * curvature
        products = weighted[:, :, :, np.newaxis] * x[:, np.newaxis, np.newaxis, :]
        products = products.reshape(len(x), math.prod(products.shape[1:]))  # also for a block without rows
        return OuterStatistics(np.hstack([v[:, np.newaxis] * residuals, products]), x)

    def split(self, sums: FloatArray, width: int) -> tuple[FloatArray, FloatArray]:
        """The sum (p,) of scores and the sum (p, p) of curvatures."""
        k = self.n_outputs
        table = sums.reshape(k + k * k * width, width)
        # (output, output, entry, entry) to (output, entry, output, entry)
        curvature = table[k:].reshape(k, k, width, width).transpose(0, 2, 1, 3)
        return table[:k].ravel(), curvature.reshape(k * width, k * width)

    def outer(self, x: FloatArray, v: FloatArray, y: NDArray[Any], beta: FloatArray) -> OuterStatistics:
        """Outer products of the scores of rows, or of the mean scores of persons."""
        residuals, _ = self.residuals(x, y, beta)
        scores = (v[:, np.newaxis] * residuals)[:, :, np.newaxis] * x[:, np.newaxis, :]
        scores = scores.reshape(len(x), math.prod(scores.shape[1:]))
        return OuterStatistics(scores, scores, of_means=True)


def logistic_shares(robust: bool) -> tuple[FloatArray, FloatArray, float]:
    """Shares of scores and curvatures of each step, and of outer products of scores."""
    outer = _OUTER if robust else 0.0
    left = (1 - _COUNTS - outer) / (sum(_SCORES) + sum(_CURVATURES))
    return left * np.array(_SCORES), left * np.array(_CURVATURES), outer


def logistic_steps(
    mechanisms: Mechanisms, design: Design, n_classes: int, known: Known, *, robust: bool
) -> Learning[Estimate]:
    """Coefficients of a logistic regression, from the noisy log-odds of the classes.

    *Guarantee*: one Gaussian release of the mechanisms' multiplier. A row adds at most 1 to one class count,
    a score of length at most R (``sqrt(2) R`` for more than two classes), a curvature of norm at most ``R^2 /
    4`` (``R^2 / 2``), and an outer product of its score, where R is the radius of the design.
    """
    family = Logistic(n_classes)
    split = partial(family.split, width=design.width)

    def at(statistics: Callable[..., OuterStatistics], beta: FloatArray) -> Statistics:
        return lambda Z, block: statistics(*design.private(Z, block), block.classes, beta)

    def weighted_classes(Z: FloatArray, block: Block) -> FloatArray:
        return in_class(Z, block, n_classes) * design.of_block(block)[:, np.newaxis]

    query = counts_query(np.zeros((0, mechanisms.n_features)), weighted_classes)
    (counts,), (scale,) = yield from mechanisms.ask(query, _COUNTS)
    counts = counts + np.bincount(known.y.astype(np.intp), known.u, minlength=n_classes)
    counts = np.maximum(counts, max(3 * scale, 1))
    start = np.zeros((n_classes - 1, design.width))
    start[:, 0] = np.log(counts[1:] / counts[0])
    beta: FloatArray = start.ravel()
    score_shares, curvature_shares, outer_share = logistic_shares(robust)
    longest_score = family.residual_bound * design.radius * _UP
    longest_curvature = family.curvature_bound * design.radius**2 * _UP
    outer: FloatArray | None = None
    curvature: Curvature | None = None
    for score_share, curvature_share in zip(score_shares, curvature_shares, strict=True):
        whole = score_share + curvature_share
        releases = [ReleasedArray(longest_score, score_share / whole)]
        if curvature_share:
            releases.append(ReleasedArray(longest_curvature, curvature_share / whole))
        arrays, scales = yield from mechanisms.sums(
            at(family.statistics, beta), whole, *releases, split=split
        )
        of_known = split(family.statistics(known.x, known.v, known.y, beta).sums())
        if curvature_share:
            curvature = Curvature.of(arrays[1] + of_known[1], scales[1])
        elif robust:
            largest = ReleasedArray(longest_score**2)
            found = yield from mechanisms.sums(at(family.outer, beta), outer_share, largest, split=square)
            known_outer = family.outer(known.x, known.v, known.y, beta).sums()
            outer = positive(found[0][0] + square(known_outer)[0], found[1][0])
        assert curvature is not None
        step = -curvature.inverse @ (arrays[0] + of_known[0])
        change = math.sqrt(float(step @ curvature.matrix @ step) / float(counts.sum()))
        step *= min(1.0, _LONGEST_STEP / change) if change > 0 else 1.0
        beta = beta + step
    assert curvature is not None
    outer = curvature.matrix if outer is None else outer
    estimate = curvature.estimate(beta, step, scales[0], outer, design.width)
    # If columns separate the classes, each step lengthens the slopes by about 1.
    slopes = np.arange(len(beta)) % design.width > 0
    by_noise = math.sqrt(float(np.diag(estimate.noise)[slopes].sum()))
    moved, length = (float(np.linalg.norm(each[slopes])) for each in (step, beta))
    return replace(
        estimate, separated=moved > _UNSETTLED + _MOVED_DEVIATIONS * by_noise or length > _LONGEST_SLOPES
    )


def positive(matrix: FloatArray, scale: float) -> FloatArray:
    """A noisy sum of outer products whose eigenvalues are at least the noise in a diagonal entry."""
    values, vectors = np.linalg.eigh((matrix + matrix.T) / 2)
    return np.asarray((vectors * np.maximum(values, scale)) @ vectors.T)


# -- least squares ---------------------------------------------------------------------------


def least_squares_shares(robust: bool) -> tuple[float, FloatArray, FloatArray, float]:
    """Shares of curvature, steps, histograms, and of the variance, or of outer products if ``robust``."""
    last = _OUTER if robust else _VARIANCE
    left = (1 - last) / (_CURVATURE + sum(_STEPS) + sum(_HISTOGRAMS))
    return left * _CURVATURE, left * np.array(_STEPS), left * np.array(_HISTOGRAMS), last


def least_squares_steps(
    mechanisms: Mechanisms, design: Design, target: tuple[float, float], known: Known, *, robust: bool
) -> Learning[Estimate]:
    """Coefficients of least squares, for targets relative to their centre, in units of their spread.

    ``target`` is this centre and spread; those of ``known`` rows are in these units already. Residuals are
    cut where noise outweighs what is cut off: a noisy histogram of their sizes tells where.

    Rows with sample weights need robust errors.

    *Guarantee*: one Gaussian release of the mechanisms' multiplier. A row adds a curvature ``v x x^T`` of
    norm at most ``R^2``, scores of length at most R times the cut, 1 to one bin of each histogram, and a
    squared residual up to its cut or an outer product of its score.
    """
    curvature_share, step_shares, histogram_shares, last_share = least_squares_shares(robust)
    radius = design.radius * _UP

    def curvatures(Z: FloatArray, block: Block) -> OuterStatistics:
        x, v = design.private(Z, block)
        return OuterStatistics(v[:, np.newaxis] * x, x)

    def residuals(x: FloatArray, block: Block, beta: FloatArray) -> FloatArray:
        y = (np.asarray(block.y, np.float64)[:, 0] - target[0]) / target[1]
        return np.asarray(np.clip(y, -_FARTHEST, _FARTHEST) - (x * beta).sum(axis=1))

    def bins(Z: FloatArray, block: Block, beta: FloatArray) -> BinCounts | FloatArray:
        x, _ = design.rows(Z)
        found = BinCounts(bins_of(residuals(x, block, beta))[:, np.newaxis], len(_EDGES) + 1)
        if design.largest_weight is None:
            return found
        return np.asarray(found) * design.of_block(block)[:, np.newaxis]

    def scores(Z: FloatArray, block: Block, beta: FloatArray, cut: float) -> FloatArray:
        x, v = design.private(Z, block)
        return (v * np.clip(residuals(x, block, beta), -cut, cut))[:, np.newaxis] * x

    def outer_products(Z: FloatArray, block: Block) -> OuterStatistics:
        rows = scores(Z, block, beta, cut)
        return OuterStatistics(rows, rows, of_means=True)

    def squares(Z: FloatArray, block: Block) -> FloatArray:
        x, _ = design.rows(Z)
        return np.minimum(residuals(x, block, beta) ** 2, cut**2)[:, np.newaxis]

    largest = ReleasedArray(radius**2)
    (noisy,), (scale,) = yield from mechanisms.sums(curvatures, curvature_share, largest, split=square)
    curvature = Curvature.of(noisy + (known.v[:, np.newaxis] * known.x).T @ known.x, scale)

    beta, cut, spread = np.zeros(design.width), _FIRST_CUT, 1.0
    for number, share in enumerate(step_shares):
        if number:
            part = histogram_shares[number - 1]
            (counts,), (scale,) = yield from mechanisms.sums(
                partial(bins, beta=beta), part, ReleasedArray(1.0)
            )
            sizes = np.where(counts > _SURE_DEVIATIONS * scale, counts, 0.0)
            sizes += np.bincount(bins_of(known.y - known.x @ beta), known.u, minlength=len(_EDGES) + 1)
            spread, cut = cut_of(sizes, mechanisms.scale(radius, share))
        (score,), (score_scale,) = yield from mechanisms.sums(
            partial(scores, beta=beta, cut=cut), share, ReleasedArray(radius * cut)
        )
        cut_known = np.clip(known.y - known.x @ beta, -cut, cut)
        step = curvature.inverse @ (score + (known.v * cut_known) @ known.x)
        beta = beta + step

    cut = min(cut, _VARIANCE_CUT * spread)
    cut_known = np.clip(known.y - known.x @ beta, -cut, cut)
    if robust:
        largest = ReleasedArray((radius * cut) ** 2)
        (noisy,), (scale,) = yield from mechanisms.sums(outer_products, last_share, largest, split=square)
        scored = (known.v * cut_known)[:, np.newaxis] * known.x
        outer = positive(noisy + scored.T @ scored, scale)
    else:
        (total,), (scale,) = yield from mechanisms.sums(squares, last_share, ReleasedArray(cut**2))
        n_rows = mechanisms.learner.n_rows + len(known.y)
        outer = curvature.matrix * max(float(total[0]) + float(cut_known @ cut_known), scale) / n_rows
    return curvature.estimate(beta, step, score_scale, outer, design.width)


def bins_of(residuals: FloatArray) -> NDArray[np.intp]:
    """Bins of absolute residuals (rows,); the end bins have all other values."""
    return np.searchsorted(_EDGES, np.abs(residuals), side="right")


def cut_of(sizes: FloatArray, noise_of_unit: float) -> tuple[float, float]:
    """The spread of residuals, and the cut for them.

    ``sizes`` are counts of rows in each bin. ``noise_of_unit`` is the noise in a score whose residuals are
    cut at 1. The cut is the smallest that loses less than a part of the noise and of the sampling error of a
    score.
    """
    middles = np.r_[_EDGES[0] / 2, _EDGES[:-1] * 2**0.125, _EDGES[-1] * 2**0.125]
    total = sizes.sum()
    if not total:
        return 1.0, float(_FIRST_CUT)
    spread = math.sqrt(float(sizes @ middles**2) / total)
    cuts = _EDGES[_LEAST_CUT * spread <= _EDGES]
    if not len(cuts):
        return spread, float(_EDGES[-1])
    lost = (sizes * np.maximum(middles - cuts[:, np.newaxis], 0)).sum(axis=1)
    noise = np.sqrt(total * spread**2 + (cuts * noise_of_unit) ** 2)
    enough = lost <= _CUT_OFF * noise
    return spread, float(cuts[enough.argmax()] if enough.any() else cuts[-1])
