"""Noisy Newton steps for log-odds of classes, and for logs of rates of counts; see ``_estimating``."""

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .._fit.statistics import Learning, counts_query, in_class, likely_part, sensitivity_of
from .._rows.source import BinCounts, Block, OuterStatistics
from ..components.protocols import FloatArray, ReleasedArray
from ._estimating import (
    MOVED_DEVIATIONS,
    OUTER_SHARE,
    UP,
    Curvature,
    Design,
    Estimate,
    Known,
    Mechanisms,
    noise_floor,
    positive,
    square,
)
from ._tails import N_BINS, Tail, bins_of

#: Shares of the squared budget for scores in each step. Chosen in simulations.
_SCORES = 0.01, 0.015, 0.02, 0.025, 0.03, 0.045, 0.07, 0.13, 0.33
#: The same for curvatures. The last step uses the curvature of the step before.
_CURVATURES = 0.015, 0.02, 0.03, 0.035, 0.04, 0.05, 0.065, 0.07, 0.0

#: Number of steps.
N_STEPS = len(_SCORES)

#: Share of the squared budget for class counts.
_COUNTS = 0.02
#: Shares of the squared budget for histograms of counts and exposures, and for their rate.
_OF_RATE = 0.02, 0.02
#: Share of the squared budget for histograms of residuals and means of counts.
_RESIDUALS = 0.05
#: Shares of all releases but steps, by family.
_OTHERS = {"logistic": _COUNTS, "poisson": sum(_OF_RATE) + _RESIDUALS}
#: These histograms are released before this number of last steps, and tell where residuals and means are cut.
_STEPS_AFTER = 3
#: Before the histograms, means are cut at this many times the mean of the longest exposure.
_TIMES = 3.0
#: Smallest cut of means.
_LEAST_MEAN = 2.0**-20

#: Longest step of standardised coefficients.
_LONGEST_STEP = 0.5
#: Number of shortened steps in about one direction after which each further one may be twice as long.
_SHORTENED = 2
#: Least cosine of the angle between such steps.
_SAME_DIRECTION = 0.9

#: Classes count as separated if the last step would have changed the slopes by more than this, plus noise.
_UNSETTLED = 0.5
#: They also count as separated if the slopes of standardised columns are together longer than this.
_LONGEST_SLOPES = 10.0
#: And if they are longer than this and still grow.
_LONG_SLOPES = 5.0

#: A slope fades if the variance by the curvature grows by more than this factor in the last steps but one.
#: Where a group has no event, it grows by e in each step.
_FADING = 4.0
#: The number of steps over which that growth is measured.
_LATE_STEPS = 4

#: Shares of the squared budget for second moments of rows, and for the level, where rates are predicted.
_MOMENT, _LEVEL = 0.12, 0.15
#: Factor of curvatures that follow from moments: those of skewed columns may be larger.
_DAMPING = 1.5
#: Number of halvings that find the mean square of slopes.
_HALVINGS = 50
#: Prior deviation of the logarithm of the correction of rates, and its largest cut as a fraction.
_USUAL_MOVE, _MOST_MISSING = 0.3, 0.5

#: Largest logarithm of a mean count.
_LARGEST_LOG = 60.0
#: Smallest and largest rate at which steps begin.
_RATES = 1e-9, 1e15


@dataclass(frozen=True)
class Logistic:
    """Log-odds of each class against the first, ``n_classes - 1`` outputs per row.

    A family bounds the length of a row's residuals, and the Frobenius norm of its curvature in the outputs.
    """

    n_classes: int

    @property
    def n_outputs(self) -> int:
        return self.n_classes - 1

    @property
    def residual_bound(self) -> float:
        """Bound on the length of ``p - e``."""
        return 1.0 if self.n_classes == 2 else math.sqrt(2) * UP

    @property
    def curvature_bound(self) -> float:
        """Bound on the norm of ``diag(p) - p p^T`` without the first class."""
        return 0.25 if self.n_classes == 2 else 0.5

    def outcomes(self, block: Block) -> NDArray[Any]:
        return np.asarray(block.classes)

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


@dataclass(frozen=True)
class Poisson:
    """The log of the rate of counts; outcomes are counts and exposures (rows, 2).

    Residuals and the mean counts that are curvatures are cut at their bounds.
    """

    residual_bound: float
    curvature_bound: float

    n_outputs = 1

    def outcomes(self, block: Block) -> NDArray[Any]:
        return np.asarray(block.y, np.float64)[:, :2]

    @staticmethod
    def means(x: FloatArray, y: NDArray[Any], beta: FloatArray) -> FloatArray:
        """Mean counts (rows,), the exposures times the rates."""
        eta = (x * beta).sum(axis=1) + np.log(y[:, 1])
        return np.asarray(np.exp(np.clip(eta, -_LARGEST_LOG, _LARGEST_LOG)))

    def residuals(self, x: FloatArray, y: NDArray[Any], beta: FloatArray) -> tuple[FloatArray, FloatArray]:
        means = self.means(x, y, beta)
        cut = np.clip(means - y[:, 0], -self.residual_bound, self.residual_bound)
        return cut[:, np.newaxis], np.minimum(means, self.curvature_bound)[:, np.newaxis, np.newaxis]


Family = Logistic | Poisson


def statistics(
    family: Family, x: FloatArray, v: FloatArray, y: NDArray[Any], beta: FloatArray
) -> OuterStatistics:
    """Scores and curvatures of rows, as factors of their entries."""
    residuals, curvature = family.residuals(x, y, beta)
    weighted = v[:, np.newaxis, np.newaxis] * curvature
    products = weighted[:, :, :, np.newaxis] * x[:, np.newaxis, np.newaxis, :]
    products = products.reshape(len(x), math.prod(products.shape[1:]))  # also for a block without rows
    return OuterStatistics(np.hstack([v[:, np.newaxis] * residuals, products]), x)


def split(sums: FloatArray, n_outputs: int, width: int) -> tuple[FloatArray, FloatArray]:
    """The sum (p,) of scores and the sum (p, p) of curvatures."""
    k = n_outputs
    table = sums.reshape(k + k * k * width, width)
    # (output, output, entry, entry) to (output, entry, output, entry)
    curvature = table[k:].reshape(k, k, width, width).transpose(0, 2, 1, 3)
    return table[:k].ravel(), curvature.reshape(k * width, k * width)


def outer(family: Family, x: FloatArray, v: FloatArray, y: NDArray[Any], beta: FloatArray) -> OuterStatistics:
    """Outer products of the scores of rows, or of the mean scores of persons."""
    residuals, _ = family.residuals(x, y, beta)
    scores = (v[:, np.newaxis] * residuals)[:, :, np.newaxis] * x[:, np.newaxis, :]
    scores = scores.reshape(len(x), math.prod(scores.shape[1:]))
    return OuterStatistics(scores, scores, of_means=True)


def step_shares(family: str, robust: bool) -> tuple[FloatArray, FloatArray, float]:
    """Shares of scores and curvatures of each step, and of outer products of scores."""
    last = OUTER_SHARE if robust else 0.0
    unit = (1 - _OTHERS[family] - last) / (sum(_SCORES) + sum(_CURVATURES))
    return unit * np.array(_SCORES), unit * np.array(_CURVATURES), last


class Limit:
    """The longest step that is taken; it doubles while shortened steps keep their direction.

    Steps of rare outcomes are far too long where curvature falls along the way, and those of strong effects
    need to go far. Only the latter keep their direction.
    """

    def __init__(self) -> None:
        self.length = _LONGEST_STEP
        self._last: FloatArray | None = None
        self._shortened = 0

    def shortened(self, step: FloatArray) -> FloatArray:
        """The step, or a shorter one in its direction."""
        length = float(np.linalg.norm(step))
        last, self._last = self._last, step
        together = 0.0 if last is None else float(step @ last)
        least = 0.0 if last is None else _SAME_DIRECTION * length * float(np.linalg.norm(last))
        self._shortened = self._shortened + 1 if length > self.length and together > least else 0
        self.length = 2 * self.length if self._shortened >= _SHORTENED else _LONGEST_STEP
        return step * min(1.0, self.length / length) if length > 0 else step


def logistic_steps(
    mechanisms: Mechanisms, design: Design, n_classes: int, public: Known, *, robust: bool
) -> Learning[Estimate]:
    """Coefficients of a logistic regression, from the noisy log-odds of the classes.

    *Guarantee*: one Gaussian release of the mechanisms' multiplier. A row adds at most 1 to one class count,
    a score of length at most R (``sqrt(2) R`` for more than two classes), a curvature of norm at most ``R^2 /
    4`` (``R^2 / 2``), and an outer product of its score, where R is the radius of the design.
    """

    def weighted_classes(Z: FloatArray, block: Block) -> FloatArray:
        return in_class(Z, block, n_classes) * design.of_block(block)[:, np.newaxis]

    query = counts_query(np.zeros((0, mechanisms.n_features)), weighted_classes)
    (counts,), (scale,) = yield from mechanisms.ask(query, _COUNTS)
    counts = counts + np.bincount(public.y.astype(np.intp), public.u, minlength=n_classes)
    counts = np.maximum(counts, max(3 * scale, 1))
    start = np.zeros((n_classes - 1, design.width))
    start[:, 0] = np.log(counts[1:] / counts[0])
    newton = Newton(mechanisms, design, public, robust, step_shares("logistic", robust))
    yield from newton.steps(Logistic(n_classes), start.ravel(), slice(None))
    return newton.estimate()


def poisson_steps(
    mechanisms: Mechanisms, design: Design, public: Known, *, robust: bool, predicts: bool = False
) -> Learning[Estimate]:
    """Coefficients of the log of a rate of counts, from the log of a noisy rate.

    Labels are counts and exposures. For an estimate that ``predicts``, curvatures follow from one noisy
    second moment of the rows, slopes lose what noise explains, and means of all rows add up to their counts,
    of long rows too.

    *Guarantee*: one Gaussian release of the mechanisms' multiplier. A row adds 1 to one bin of each of four
    histograms, two of which are one release, and at most 1 to the sum of counts and to that of exposures,
    each cut at a released number. It adds a score of length at most R c, a curvature of norm at most ``R^2
    m``, and an outer product of its score, where R is the radius of the design, and the cuts c of residuals
    and m of means follow from released numbers. For predictions, it adds a moment of norm at most ``R^2`` in
    place of curvatures, and at most 1 to each of two sums.
    """
    of_sizes, of_rate = _OF_RATE
    shares = step_shares("poisson", robust)
    if predicts:  # no curvatures are released
        of_scores = 1 - _OTHERS["poisson"] - _MOMENT - _LEVEL
        shares = of_scores * np.array(_SCORES) / sum(_SCORES), np.zeros(N_STEPS), 0.0
    radius = design.radius * UP

    def tails(
        sizes: Callable[[FloatArray, FloatArray], tuple[FloatArray, ...]], share: float
    ) -> Learning[list[Callable[..., Tail]]]:
        """Functions that make tails of two sizes of each row, which are functions of rows and outcomes."""

        def bins(Z: FloatArray, block: Block) -> BinCounts | FloatArray:
            x, _ = design.rows(Z)
            pair = sizes(x, np.asarray(block.y, np.float64))
            return design.counted(np.stack([bins_of(each) for each in pair], axis=1), N_BINS, block)

        (counts,), (scale,) = yield from mechanisms.sums(bins, share, ReleasedArray(sensitivity_of(2)))
        known_bins = [bins_of(each) for each in sizes(public.x, public.y)]
        of_public = [np.bincount(each, public.u, minlength=N_BINS) for each in known_bins]
        histograms = zip(counts.reshape(2, -1), of_public, strict=True)
        return [partial(Tail.of, each, scale, bins) for each, bins in histograms]

    def sums(Z: FloatArray, block: Block) -> FloatArray:
        y = np.minimum(np.asarray(block.y, np.float64)[:, :2] / [cut, longest], 1.0)
        return y * design.of_block(block)[:, np.newaxis]

    before = len(shares[0]) - _STEPS_AFTER
    of_score = mechanisms.scale(radius, float(shares[0][before - 1]))
    of_means = mechanisms.scale(1.0, _LEVEL / 2)
    if not predicts:
        of_means = noise_floor(mechanisms.scale(radius**2, float(shares[1][-2])), design.width)
    counts, exposures = yield from tails(lambda x, y: (y[:, 0], y[:, 1]), of_sizes)
    cut, _ = counts(goes_on=not predicts).cut(of_score)
    longest, _ = exposures(goes_on=not predicts).cut(of_means)
    (total, exposure), scales = yield from mechanisms.sums(
        sums,
        of_rate,
        ReleasedArray(1.0, 0.5),
        ReleasedArray(1.0, 0.5),
        split=lambda both: (both[:1], both[1:]),
    )
    events = cut * max(float(total[0]), scales[0]) + public.u @ public.y[:, 0]
    at_risk = longest * max(float(exposure[0]), scales[1]) + public.u @ public.y[:, 1]
    rate = min(max(events / at_risk, _RATES[0]), _RATES[1])
    start = np.zeros(design.width)
    start[0] = math.log(rate)
    newton = Newton(mechanisms, design, public, robust, shares)
    largest = min(max(_TIMES * rate * longest, _LEAST_MEAN), cut)
    if predicts:
        moment = yield from second_moment(mechanisms, design, public)
        newton.tilted = partial(tilted, moment, events)
    yield from newton.steps(Poisson(cut, largest), start, slice(before))
    beta = newton.beta

    def residuals_and_means(x: FloatArray, y: FloatArray) -> tuple[FloatArray, FloatArray]:
        means = Poisson.means(x, y, beta)
        return y[:, 0] - means, means

    residuals, means = yield from tails(residuals_and_means, _RESIDUALS)
    cut, cut_off = residuals(goes_on=not predicts).cut(mechanisms.scale(radius, float(shares[0][-1])))
    largest, _ = means(goes_on=not predicts).cut(of_means)
    yield from newton.steps(Poisson(cut, largest), beta, slice(before, None))
    estimate = newton.estimate(cut_off)
    if not predicts:
        return estimate
    beta = np.append(estimate.values[:1], without_noise(estimate.values[1:], estimate.noise[1:, 1:]))
    # Large residuals are counts far above their means. The cut loses those that a histogram shows, or fewer.
    cut, _ = residuals().cut(of_means)
    (lost,) = residuals(goes_on=False).lost(np.array([cut]))
    moved = yield from level(mechanisms, design, public, beta, (cut, largest), float(lost))
    values = beta + moved * (np.arange(len(beta)) == 0)
    return replace(estimate, values=values, noise=newton.covariance)


def level(
    mechanisms: Mechanisms,
    design: Design,
    public: Known,
    beta: FloatArray,
    cuts: tuple[float, float],
    lost: float,
) -> Learning[float]:
    """What to add to the constant of coefficients, so that means of all rows add up to their counts.

    ``cuts`` are those of residuals and of means, and ``lost`` is what residuals lose by theirs. Less is added
    if noise explains it.

    *Guarantee*: one release. A row adds at most 1 to each of two sums, its residual and its mean in units of
    their cuts, times its relative sample weight.
    """

    def parts(x: FloatArray, y: FloatArray, u: FloatArray) -> FloatArray:
        means = Poisson.means(x, y, beta)
        terms = np.stack([y[:, 0] - means, means], axis=1) / cuts
        return np.asarray(np.clip(terms, -1.0, 1.0) * u[:, np.newaxis])

    arrays, scales = yield from mechanisms.sums(
        lambda Z, block: parts(design.rows(Z)[0], np.asarray(block.y, np.float64), design.of_block(block)),
        _LEVEL,
        ReleasedArray(1.0, 0.5),
        ReleasedArray(1.0, 0.5),
        split=lambda both: (both[:1], both[1:]),
    )
    excess, mean = (
        cuts * (np.concatenate(arrays) + parts(public.x, public.y, public.u).sum(axis=0))
    ).tolist()
    mean = max(mean, cuts[1] * scales[1])
    certain = likely_part(_USUAL_MOVE, cuts[0] * scales[0] / mean)
    return float(certain * math.log1p(max((excess + lost) / mean, -_MOST_MISSING)))


def second_moment(mechanisms: Mechanisms, design: Design, public: Known) -> Learning[Curvature]:
    """The second moment of the rows.

    *Guarantee*: one release. A row adds ``v x x^T`` of norm at most ``R^2``, with the radius R of the design.
    """

    def moments(x: FloatArray, v: FloatArray) -> OuterStatistics:
        return OuterStatistics(v[:, np.newaxis] * x, x)

    (sums,), (scale,) = yield from mechanisms.sums(
        lambda Z, block: moments(*design.private(Z, block)),
        _MOMENT,
        ReleasedArray(design.radius**2 * UP),
        split=square,
    )
    return Curvature.of(sums + moments(public.x, public.v).sums().reshape(sums.shape), scale)


def tilted(moment: Curvature, events: float, beta: FloatArray) -> Curvature:
    """The curvature at coefficients (p,), from the ``moment`` of rows and the number of events.

    It is that of normal rows: events are more frequent where the rate is high.
    """
    factor = events / max(float(moment.released[0, 0]), noise_floor(moment.scale, len(beta)))
    mean = moment.matrix * (_DAMPING * factor)
    slopes = np.append(0.0, beta[1:])
    direction = mean @ slopes / math.sqrt(_DAMPING * events)
    return Curvature.of(mean + np.outer(direction, direction), moment.scale * factor)


def without_noise(values: FloatArray, covariance: FloatArray) -> FloatArray:
    """Values (d,) without what noise of this covariance (d, d) explains: more in directions with more noise.

    Their mean square without noise follows from all directions together.

    Source: Morris 1983, "Parametric empirical Bayes inference", JASA 78(381).
    """
    noise, directions = np.linalg.eigh(covariance)
    noise, along = np.maximum(noise, 1e-300), directions.T @ values
    low, high = 0.0, float(along @ along)
    for _ in range(_HALVINGS):
        middle = (low + high) / 2
        more = float((along**2 / (middle + noise)).sum()) > len(along)
        low, high = (middle, high) if more else (low, middle)
    return np.asarray(directions @ (along * low / (low + noise)))


class Newton:
    """Noisy steps from a start, and the estimate after the last one.

    ``shares`` are those of scores and curvatures, and of outer products, see :func:`step_shares`.
    """

    def __init__(
        self,
        mechanisms: Mechanisms,
        design: Design,
        public: Known,
        robust: bool,
        shares: tuple[FloatArray, FloatArray, float],
    ) -> None:
        self.mechanisms, self.design, self.public, self.robust = mechanisms, design, public, robust
        self.shares = shares
        self.beta: FloatArray = np.zeros(design.width)
        #: The covariance of the noise in all steps, where curvatures follow from moments.
        self.covariance: FloatArray = np.zeros((design.width, design.width))
        self._limit = Limit()
        self._curvature: Curvature | None = None
        #: The curvature at coefficients, where none is released.
        self.tilted: Callable[[FloatArray], Curvature] | None = None
        #: Covariances of the noise in the ends of the last two steps.
        self._noise: list[FloatArray] = []
        #: Variances (p,) of coefficients by the curvature of each step, up to a factor.
        self._variances: list[FloatArray] = []

    def _sums(
        self, statistics: Callable[..., OuterStatistics], share: float, *releases: ReleasedArray, split: Any
    ) -> Learning[tuple[list[FloatArray], list[float]]]:
        """Noisy sums of statistics of private rows, plus those of public rows, and scales of the noise."""
        beta, family, public = self.beta, self.family, self.public
        arrays, scales = yield from self.mechanisms.sums(
            lambda Z, block: statistics(family, *self.design.private(Z, block), family.outcomes(block), beta),
            share,
            *releases,
            split=split,
        )
        of_public = split(statistics(family, public.x, public.v, public.y, beta).sums())
        return [array + part for array, part in zip(arrays, of_public, strict=False)], scales

    def steps(self, family: Family, start: FloatArray, which: slice) -> Learning[None]:
        """Take those of the steps from ``start``."""
        self.family, self.beta = family, start
        radius = self.design.radius
        longest_score = family.residual_bound * radius * UP
        longest_curvature = family.curvature_bound * radius**2 * UP
        parts = partial(split, n_outputs=family.n_outputs, width=self.design.width)
        for score_share, curvature_share in zip(self.shares[0][which], self.shares[1][which], strict=True):
            whole = score_share + curvature_share
            releases = [ReleasedArray(longest_score, score_share / whole)]
            if curvature_share:
                releases.append(ReleasedArray(longest_curvature, curvature_share / whole))
            arrays, scales = yield from self._sums(statistics, whole, *releases, split=parts)
            if curvature_share:
                self._curvature = Curvature.of(arrays[1], scales[1])
            elif self.tilted is not None:
                self._curvature = self.tilted(self.beta)
            elif self.robust:
                of_outer = ReleasedArray(longest_score**2)
                (products,), (scale,) = yield from self._sums(outer, self.shares[2], of_outer, split=square)
                self._products = positive(products, scale)
            assert self._curvature is not None
            self._variances.append(np.diag(self._curvature.inverse))
            self._score_scale = scales[0]
            self.moved = -self._curvature.inverse @ arrays[0]
            self.step = self._limit.shortened(self.moved)
            self.beta = self.beta + self.step
            noise = self._curvature.noise(self.step, scales[0])
            self._noise = [*self._noise[-1:], noise]
            if self.tilted is not None:
                # A damped step leaves a part of the noise in its start, all of it where noise hides the
                # curvature.
                hidden = self._curvature.vectors[:, self._curvature.raised]
                damping = (1 - 1 / _DAMPING) * np.eye(len(noise)) + hidden @ hidden.T / _DAMPING
                self.covariance = damping @ self.covariance @ damping + noise

    def estimate(self, cut_off: float = 0.0) -> Estimate:
        """The estimate after the last step, whose residuals lost at most ``cut_off`` in all."""
        assert self._curvature is not None
        beta, width = self.beta, self.design.width
        products = self._products if self.robust else self._curvature.matrix
        estimate = self._curvature.estimate(
            beta,
            self.step,
            self._score_scale,
            products,
            width,
            moved=(self.moved, self._noise[0]),
            cut_off=cut_off,
        )
        # If columns separate the classes, each step lengthens the slopes by about 1.
        slopes = np.arange(len(beta)) % width > 0
        by_noise = math.sqrt(float(np.diag(estimate.noise)[slopes].sum()))
        moved, length = (float(np.linalg.norm(each[slopes])) for each in (self.moved, beta))
        fading = slopes & (self._variances[-1] > _FADING * self._variances[-1 - _LATE_STEPS])
        growing = moved > _UNSETTLED or bool(fading.any())
        separated = (
            moved > _UNSETTLED + MOVED_DEVIATIONS * by_noise
            or length > _LONGEST_SLOPES
            or (growing and length > _LONG_SLOPES)
        )
        return replace(estimate, separated=separated, fading=fading)
