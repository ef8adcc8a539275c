"""Noisy Newton steps for log-odds of classes, and for logs of rates of counts; see ``_estimating``."""

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial

import numpy as np
from numpy.typing import NDArray

from .._fit.statistics import Learning, sensitivity_of, signal_part
from .._rows.source import BinCounts, OuterStatistics
from ..components.protocols import FloatArray, ReleasedArray
from ._estimating import (
    MOVED_DEVIATIONS,
    OUTER_SHARE,
    UP,
    Curvature,
    Estimate,
    Regression,
    Rows,
    noise_floor,
    positive,
    square,
    summed,
)
from ._tails import EDGES, N_BINS, Tail, bins_of

#: Shares of the squared budget for scores and curvatures in each step, chosen in simulations. The last step
#: uses the curvature of the step before.
_SCORES = 0.01, 0.015, 0.02, 0.025, 0.03, 0.045, 0.07, 0.13, 0.33
_CURVATURES = 0.015, 0.02, 0.03, 0.035, 0.04, 0.05, 0.065, 0.07, 0.0
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
#: Before the histograms, means are cut at this many times the mean of the longest exposure, or at the least.
_TIMES, _LEAST_MEAN = 3.0, 2.0**-20

#: Longest step of standardised coefficients. It doubles after this number of shortened ones in about one
#: direction, with at least this cosine of the angle between them.
_LONGEST_STEP, _SHORTENED, _SAME_DIRECTION = 0.5, 2, 0.9

#: Classes count as separated if the last step would have changed the slopes of standardised columns by more
#: than the first number, plus noise; if slopes are longer than the second; or than the third and still grow.
_UNSETTLED, _LONGEST_SLOPES, _LONG_SLOPES = 0.5, 10.0, 5.0

#: A slope fades if the variance by the curvature grows by more than this factor in this number of last steps
#: but one. Where a group has no event, it grows by e in each step.
_FADING, _LATE_STEPS = 4.0, 4

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


def _halves(sums: FloatArray) -> tuple[FloatArray, FloatArray]:
    return sums[:1], sums[1:]


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

    def classes(self, rows: Rows) -> NDArray[np.bool_]:
        """Flags (rows, n_classes) of the class of each row."""
        return np.asarray(rows.y[:, :1] == np.arange(self.n_classes))

    def residuals(self, rows: Rows, beta: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Residuals (rows, k) and curvatures (rows, k, k) at coefficients (k d_in,)."""
        # Computed entry by entry, so that a row has the same result at any place.
        outputs = [(rows.x * each).sum(axis=1) for each in beta.reshape(self.n_outputs, -1)]
        eta = np.column_stack([np.zeros(len(rows.x)), *outputs])
        eta -= eta.max(axis=1, keepdims=True)
        p = np.exp(eta)
        p = (p / p.sum(axis=1, keepdims=True))[:, 1:]
        curvature = -p[:, :, np.newaxis] * p[:, np.newaxis, :]
        k = np.arange(self.n_outputs)
        # p (1 - p), where 1 - p is a sum of the other probabilities, so that rounding does not make it
        # negative.
        curvature[:, k, k] = p * (1 - np.minimum(p, 1.0))
        return p - self.classes(rows)[:, 1:], curvature


@dataclass(frozen=True)
class Poisson:
    """The log of the rate of counts; labels are counts and exposures.

    Residuals and the mean counts that are curvatures are cut at their bounds.
    """

    residual_bound: float
    curvature_bound: float

    n_outputs = 1

    @staticmethod
    def means(rows: Rows, beta: FloatArray) -> FloatArray:
        """Mean counts (rows,), the exposures times the rates."""
        eta = (rows.x * beta).sum(axis=1) + np.log(rows.y[:, 1])
        return np.asarray(np.exp(np.clip(eta, -_LARGEST_LOG, _LARGEST_LOG)))

    def residuals(self, rows: Rows, beta: FloatArray) -> tuple[FloatArray, FloatArray]:
        means = self.means(rows, beta)
        cut = np.clip(means - rows.y[:, 0], -self.residual_bound, self.residual_bound)
        return cut[:, np.newaxis], np.minimum(means, self.curvature_bound)[:, np.newaxis, np.newaxis]


Family = Logistic | Poisson


def scores_and_curvatures(rows: Rows, family: Family, beta: FloatArray) -> OuterStatistics:
    """Scores and curvatures of rows, as factors of their entries."""
    residuals, curvature = family.residuals(rows, beta)
    weighted = rows.v[:, np.newaxis, np.newaxis] * curvature
    products = weighted[:, :, :, np.newaxis] * rows.x[:, np.newaxis, np.newaxis, :]
    products = products.reshape(len(rows.x), math.prod(products.shape[1:]))  # also for a block without rows
    return OuterStatistics(np.hstack([rows.v[:, np.newaxis] * residuals, products]), rows.x)


def parted(sums: FloatArray, n_outputs: int, width: int) -> tuple[FloatArray, FloatArray]:
    """The sum (p,) of scores and the sum (p, p) of curvatures."""
    k = n_outputs
    table = sums.reshape(k + k * k * width, width)
    # (output, output, entry, entry) to (output, entry, output, entry)
    curvature = table[k:].reshape(k, k, width, width).transpose(0, 2, 1, 3)
    return table[:k].ravel(), curvature.reshape(k * width, k * width)


def outer(rows: Rows, family: Family, beta: FloatArray) -> OuterStatistics:
    """Outer products of the scores of rows, or of the mean scores of persons."""
    residuals, _ = family.residuals(rows, beta)
    scores = (rows.v[:, np.newaxis] * residuals)[:, :, np.newaxis] * rows.x[:, np.newaxis, :]
    scores = scores.reshape(len(rows.x), math.prod(scores.shape[1:]))
    return OuterStatistics(scores, scores, of_means=True)


def step_shares(family: str, robust: bool) -> tuple[FloatArray, float]:
    """Shares (N_STEPS, 2) of scores and curvatures in each step, and that of outer products of scores."""
    last = OUTER_SHARE if robust else 0.0
    unit = (1 - _OTHERS[family] - last) / (sum(_SCORES) + sum(_CURVATURES))
    return unit * np.array([_SCORES, _CURVATURES]).T, last


def logistic_steps(regression: Regression, n_classes: int, *, robust: bool) -> Learning[Estimate]:
    """Coefficients of a logistic regression, from the noisy log-odds of the classes.

    *Guarantee*: one Gaussian release of the regression's multiplier. A row adds at most 1 to one class count,
    a score of length at most R (``sqrt(2) R`` for more than two classes), a curvature of norm at most ``R^2 /
    4`` (``R^2 / 2``), and an outer product of its score, where R is the radius of the design.
    """
    family = Logistic(n_classes)
    (counts,), (scale,) = yield from regression.sums(
        lambda rows: family.classes(rows) * rows.u[:, np.newaxis], _COUNTS, ReleasedArray(1.0)
    )
    counts = np.maximum(counts, max(3 * scale, 1))
    start = np.zeros((n_classes - 1, regression.design.width))
    start[:, 0] = np.log(counts[1:] / counts[0])
    newton = Newton(regression, start.ravel(), *step_shares("logistic", robust))
    yield from newton.steps(family, slice(None))
    return newton.estimate()


def poisson_steps(regression: Regression, *, robust: bool, predicts: bool = False) -> Learning[Estimate]:
    """Coefficients of the log of a rate of counts, from the log of a noisy rate.

    Labels are counts and exposures. For an estimate that ``predicts``, curvatures follow from one noisy
    second moment of the rows, slopes lose what noise explains, and means of all rows add up to their counts,
    of long rows too.

    *Guarantee*: one Gaussian release of the regression's multiplier. A row adds 1 to one bin of each of four
    histograms, two of which are one release, and at most 1 to the sum of counts and to that of exposures,
    each cut at a released number. It adds a score of length at most R c, a curvature of norm at most ``R^2
    m``, and an outer product of its score, where R is the radius of the design, and the cuts c of residuals
    and m of means follow from released numbers. For predictions, it adds a moment of norm at most ``R^2`` in
    place of curvatures, and at most 1 to each of two sums.
    """
    public, width = regression.public, regression.design.width
    shares, of_outer = step_shares("poisson", robust)
    if predicts:  # no curvatures are released
        of_scores = 1 - _OTHERS["poisson"] - _MOMENT - _LEVEL
        shares = of_scores * np.array([_SCORES, np.zeros(N_STEPS)]).T / sum(_SCORES)

    def tails(
        sizes: Callable[[Rows], tuple[FloatArray, FloatArray]], share: float
    ) -> Learning[list[Callable[..., Tail]]]:
        """Functions that make tails of two sizes of each row."""

        def bins(rows: Rows) -> BinCounts | FloatArray:
            return rows.histograms(*map(bins_of, sizes(rows)), n_bins=N_BINS)

        (counts,), (scale,) = yield from regression.noisy(bins, share, ReleasedArray(sensitivity_of(2)))
        histograms = zip(counts.reshape(2, -1), summed(bins(public)).reshape(2, -1), strict=True)
        return [partial(Tail.of, each, scale, of_known) for each, of_known in histograms]

    def cut_sums(rows: Rows) -> FloatArray:
        return np.minimum(rows.y[:, :2] / [cut, longest], 1.0) * rows.u[:, np.newaxis]

    before = N_STEPS - _STEPS_AFTER
    of_means = regression.scale(1.0, _LEVEL / 2)
    if not predicts:
        of_means = noise_floor(regression.scale(regression.radius**2, float(shares[-2, 1])), width)
    of_sizes, of_rate = _OF_RATE
    counts, exposures = yield from tails(lambda rows: (rows.y[:, 0], rows.y[:, 1]), of_sizes)
    score_scale = regression.scale(regression.radius, float(shares[before - 1, 0]))
    cut, _ = counts(goes_on=not predicts).cut(score_scale)
    longest, _ = exposures(goes_on=not predicts).cut(of_means)
    arrays, scales = yield from regression.noisy(
        cut_sums, of_rate, *[ReleasedArray(1.0, 0.5)] * 2, split=_halves
    )
    noisy_sums = [cut, longest] * np.maximum(np.concatenate(arrays), scales)
    events, at_risk = (noisy_sums + public.u @ np.minimum(public.y[:, :2], EDGES[-1])).tolist()
    rate = min(max(events / at_risk, _RATES[0]), _RATES[1])
    start = np.zeros(width)
    start[0] = math.log(rate)
    newton = Newton(regression, start, shares, of_outer)
    largest = min(max(_TIMES * rate * longest, _LEAST_MEAN), cut)
    if predicts:
        (moment,), (scale,) = yield from regression.sums(
            Rows.moments, _MOMENT, ReleasedArray(regression.design.radius**2 * UP), split=square
        )
        newton.tilted = partial(tilted, Curvature.of(moment, scale), events)
    yield from newton.steps(Poisson(cut, largest), slice(before))

    def residuals_and_means(rows: Rows) -> tuple[FloatArray, FloatArray]:
        means = Poisson.means(rows, beta)
        return rows.y[:, 0] - means, means

    beta = newton.beta
    residuals, means = yield from tails(residuals_and_means, _RESIDUALS)
    score_scale = regression.scale(regression.radius, float(shares[-1, 0]))
    cut, cut_off = residuals(goes_on=not predicts).cut(score_scale)
    largest, _ = means(goes_on=not predicts).cut(of_means)
    yield from newton.steps(Poisson(cut, largest), slice(before, None))
    estimate = newton.estimate(cut_off)
    if not predicts:
        return estimate
    values = np.append(estimate.values[:1], without_noise(estimate.values[1:], estimate.noise[1:, 1:]))
    # Counts far above their means lose what exceeds the cut: at most what a histogram of residuals shows.
    cut, _ = residuals().cut(of_means)
    (lost,) = residuals(goes_on=False).lost(np.array([cut]))
    moved = yield from level(regression, values, (cut, largest), float(lost))
    values[0] += moved
    return replace(estimate, values=values, noise=newton.covariance)


def level(
    regression: Regression, beta: FloatArray, cuts: tuple[float, float], lost: float
) -> Learning[float]:
    """What to add to the constant, so that means of all rows add up to their counts; less if noise is large.

    ``cuts`` are those of residuals and of means, and ``lost`` is what residuals lose by theirs.

    *Guarantee*: one release. A row adds at most 1 to each of two sums, its residual and its mean in units of
    their cuts, times its relative sample weight.
    """

    def parts(rows: Rows) -> FloatArray:
        means = Poisson.means(rows, beta)
        terms = np.stack([rows.y[:, 0] - means, means], axis=1) / cuts
        return np.asarray(np.clip(terms, -1.0, 1.0) * rows.u[:, np.newaxis])

    arrays, scales = yield from regression.sums(parts, _LEVEL, *[ReleasedArray(1.0, 0.5)] * 2, split=_halves)
    excess, mean = (np.array(cuts) * np.concatenate(arrays)).tolist()
    mean = max(mean, cuts[1] * scales[1])
    certain = signal_part(_USUAL_MOVE, cuts[0] * scales[0] / mean)
    return float(certain * math.log1p(max((excess + lost) / mean, -_MOST_MISSING)))


def tilted(moment: Curvature, events: float, beta: FloatArray) -> Curvature:
    """The curvature at coefficients (p,) of normal rows with this ``moment`` and number of events."""
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
    """Noisy steps from a start, with the shares of :func:`step_shares`, and the estimate after the last one.

    Errors are robust if ``of_outer`` is not 0. Where no curvatures are released, ``tilted`` ones follow from
    coefficients.
    """

    def __init__(
        self, regression: Regression, start: FloatArray, shares: FloatArray, of_outer: float
    ) -> None:
        self.regression, self.beta, self.shares, self.of_outer = regression, start, shares, of_outer
        #: The covariance of the noise in all steps, where curvatures follow from moments.
        self.covariance = np.zeros((len(start), len(start)))
        self.tilted: Callable[[FloatArray], Curvature] | None = None
        #: The length of the longest step that is taken, and the number of those just shortened.
        self._longest, self._n_shortened = _LONGEST_STEP, 0
        #: The last step before it was shortened.
        self.moved: FloatArray = np.zeros(len(start))
        self._curvature: Curvature
        self._products: FloatArray | None = None
        #: Covariances (p, p) of the noise in the end of each step.
        self._noise: list[FloatArray] = []
        #: Variances (p,) of coefficients by the curvature of each step, up to a factor.
        self._variances: list[FloatArray] = []

    def steps(self, family: Family, which: slice) -> Learning[None]:
        """Take those of the steps."""
        sums, radius = self.regression.sums, self.regression.design.radius
        longest_score = family.residual_bound * radius * UP
        longest_curvature = family.curvature_bound * radius**2 * UP
        parts = partial(parted, n_outputs=family.n_outputs, width=self.regression.design.width)
        for score_share, curvature_share in self.shares[which].tolist():
            whole = score_share + curvature_share
            releases = [ReleasedArray(longest_score, score_share / whole)]
            if curvature_share:
                releases.append(ReleasedArray(longest_curvature, curvature_share / whole))
            (score, *noisy), scales = yield from sums(
                lambda rows: scores_and_curvatures(rows, family, self.beta), whole, *releases, split=parts
            )
            if curvature_share:
                self._curvature = Curvature.of(noisy[0], scales[1])
            elif self.tilted is not None:
                self._curvature = self.tilted(self.beta)
            elif self.of_outer:
                largest = ReleasedArray(longest_score**2)
                (products,), (scale,) = yield from sums(
                    lambda rows: outer(rows, family, self.beta), self.of_outer, largest, split=square
                )
                self._products = positive(products, scale)
            self._variances.append(np.diag(self._curvature.inverse))
            self._score_scale = scales[0]
            self.step = self._shortened(-self._curvature.inverse @ score)
            self.beta = self.beta + self.step
            self._noise.append(self._curvature.noise(self.step, scales[0]))
            if self.tilted is not None:
                # A damped step leaves a part of the noise in its start, all of it where noise hides the
                # curvature.
                hidden = self._curvature.vectors[:, self._curvature.raised]
                damping = (1 - 1 / _DAMPING) * np.eye(len(score)) + hidden @ hidden.T / _DAMPING
                self.covariance = damping @ self.covariance @ damping + self._noise[-1]

    def _shortened(self, step: FloatArray) -> FloatArray:
        """The step, or a shorter one in its direction.

        Steps of rare outcomes are far too long where curvature falls along the way, and those of strong
        effects need to go far. Only the latter keep their direction, and may be longer and longer.
        """
        last, self.moved = self.moved, step
        length = float(np.linalg.norm(step))
        least = _SAME_DIRECTION * length * float(np.linalg.norm(last))
        goes_on = length > self._longest and float(step @ last) > least
        self._n_shortened = self._n_shortened + 1 if goes_on else 0
        self._longest = 2 * self._longest if self._n_shortened >= _SHORTENED else _LONGEST_STEP
        return step * min(1.0, self._longest / length) if length > 0 else step

    def estimate(self, cut_off: float = 0.0) -> Estimate:
        """The estimate after the last step, whose residuals lost at most ``cut_off`` in all."""
        beta, width = self.beta, self.regression.design.width
        products = self._curvature.matrix if self._products is None else self._products
        estimate = self._curvature.estimate(
            beta, self.step, self._score_scale, products, width, cut_off, self.moved, self._noise[-2]
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
