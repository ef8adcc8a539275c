"""Scales of what comes with rows: of sample weights, with their mean, and of targets in any units."""

import math
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtri

from ..._engine import GaussianMechanism, Procedure, bind_rows
from ..._rows.row_map import TargetMap
from ..._rows.source import BinCounts, Block, Contribution
from ..._utils.process import warn_later
from ...components.protocols import FloatArray, PrivateQuery, ReleasedArray
from ..histograms import certain_count, certain_of_magnitudes, thinned, windows_of
from ..stage import Fit, Price, Stage, Steps
from ..statistics import Learner, Learning, Worth, sensitivity_of, share_for

#: Bins of weights for each power of two.
_PER_OCTAVE = 16
#: Weights are binned up to this power of two on both sides of 1.
_EXPONENT = 64
#: Octaves of the range that is taken if noise hides all bins.
_OCTAVES = 2
#: Fraction of the total weight that a cut of large weights may remove.
_MOST_LOST = 0.02

#: Noise in a count of rows, as a fraction of them. Even a very noisy histogram helps.
_WORTH_OF_SCALE = Worth(0.001, math.inf, (0.002, 0.02))
#: Noise in the mean weight.
_WORTH_OF_MEAN = Worth(0.005, 0.5, (0.002, 0.02))


def scale_share(mu: float, n_rows: int) -> float:
    """Share of mu squared for :func:`noisy_scale`, from public facts."""
    return share_for(mu, n_rows, 1.0, _WORTH_OF_SCALE)


def noisy_scale(learner: Learner, multiplier: float, n_features: int = 0) -> Learning[float]:
    """The weight at which larger weights are cut. Labels are weights, or have them in a last column.

    The weights that a noisy histogram shows lose at most 2% of their total if they are cut there. Weights
    that are larger, and too rare to show, are cut as well.

    *Guarantee*: one Gaussian release of this multiplier. A row adds 1 to one bin, so the sensitivity is 1.
    """
    n_bins = 2 * _PER_OCTAVE * _EXPONENT + 1
    # Labels need no products.
    query = PrivateQuery(np.zeros((0, n_features)), _binned, (ReleasedArray(1.0),))
    counts, noise = yield from learner.ask(multiplier, query)
    seen = np.zeros(n_bins)
    taken = np.zeros(n_bins, bool)
    taken[0] = True  # weights of zero have no scale
    certain = certain_of_magnitudes(counts, noise, learner.n_rows)
    for start, width, count in windows_of(counts, certain, taken):
        seen[start : start + width] = count / width
    if not seen.any():  # the end of the two octaves with most rows is taken as the scale
        of_octaves = np.convolve(counts[1:], np.ones(_OCTAVES * _PER_OCTAVE), "valid")
        seen[int(of_octaves.argmax()) + _OCTAVES * _PER_OCTAVE] = 1.0
    middles = 2.0 ** ((np.arange(n_bins) - 0.5) / _PER_OCTAVE - _EXPONENT)
    # The weight that a cut at each bin's middle removes.
    above = np.cumsum((seen * middles)[::-1])[::-1] - middles * np.cumsum(seen[::-1])[::-1]
    lost = np.where(middles <= middles[np.flatnonzero(seen)[-1]], above, 0.0)
    return float(middles[np.flatnonzero(lost <= _MOST_LOST * float(seen @ middles))[0]])


def _binned(Z: FloatArray, block: Block) -> Contribution:
    """The bin of each weight: 0 for weight zero, then by size; the end bins have all other weights."""
    weights: NDArray[Any] = np.asarray(block.y, np.float64).reshape(len(block.y), -1)[:, -1]
    positive = weights > 0
    logs = np.log2(np.where(positive, weights, 1.0)) + _EXPONENT
    bins = 1 + np.clip(np.floor(_PER_OCTAVE * logs), 0, 2 * _PER_OCTAVE * _EXPONENT - 1).astype(np.intp)
    return None, BinCounts((bins * positive)[:, np.newaxis], 2 * _PER_OCTAVE * _EXPONENT + 1)


def noisy_mean_weight(learner: Learner, multiplier: float) -> Learning[float]:
    """The mean weight of rows, in (0, 1], where labels carry weights as the loss of the learner declares.

    It is at least the standard deviation of its noise, so that a sum divided by it is not far too long.

    *Guarantee*: one Gaussian release of this multiplier. A row adds its weight, which is at most 1.
    """
    query = PrivateQuery(
        np.zeros((0, 0)), lambda Z, block: (None, np.ones((len(block.y), 1))), (ReleasedArray(1.0),)
    )
    total, noise = yield from learner.ask(multiplier, query)
    return min(max(float(total[0]), noise, 1.0) / learner.n_rows, 1.0)


class ScaleOfWeights(Stage):
    """The sample weight that counts as 1."""

    name = "scale of weights"
    limits = _WORTH_OF_SCALE.limits

    def price(self, fit: Fit) -> Price | None:
        weights = fit.weights
        if weights.sample_weight is None or weights.largest is not None:
            return None
        if not fit.divides:
            raise ValueError(
                "max_sample_weight='auto' learns the scale of sample_weight from noisy counts, which needs "
                "a budget that can be divided; declare the largest weight, such as "
                "max_sample_weight=1.0, or leave out n_steps, noise_multiplier and batch_size."
            )
        return scale_share(fit.budget.mu, fit.data.n_rows)

    def run(self, fit: Fit, price: Price) -> Procedure[Fit]:
        weights = fit.weights
        assert weights.sample_weight is not None
        rows = replace(weights.bare.private, y=weights.sample_weight).mapped(None)
        largest = yield from bind_rows(rows, noisy_scale(fit.learner, fit.budget.multiplier(price)))
        weights = replace(weights, largest=largest)
        return fit.spent(self, price).learned(weights=weights, data=weights.applied(weights.of_classes))


class MeanWeight(Stage):
    """The mean weight, by which noisy sums are divided."""

    name = "mean weight"
    limits = _WORTH_OF_MEAN.limits

    def price(self, fit: Fit) -> Price | None:
        weights = fit.weights
        weighted = weights.sample_weight is not None or weights.of_classes is not None
        if not weighted or weights.n_counted or not fit.divides:
            return None
        return share_for(fit.budget.mu, fit.data.n_rows, 1.0, _WORTH_OF_MEAN) or None

    def run(self, fit: Fit, price: Price) -> Procedure[Fit]:
        mean = yield from fit.ask(noisy_mean_weight(fit.counting, fit.budget.multiplier(price)))
        return fit.spent(self, price).learned(weights=replace(fit.weights, mean=mean))


#: Number of releases for the centre and the scale of targets.
TARGET_RELEASES = 3

#: Noise in a count of targets, as a fraction of the rows.
_WORTH_OF_TARGETS = Worth(0.003, 0.03, (0.002, 0.05))

#: Ends of the bins of signed magnitudes: half powers of two, up to 60 on both sides of 1.
_MAGNITUDES = 2.0 ** np.arange(-60, 60.5, 0.5)
_SIGNED = np.concatenate([-_MAGNITUDES[::-1], _MAGNITUDES])
#: Smallest scale of targets that are not all zero.
_ZEROS = float(_MAGNITUDES[0])
#: Number of bins for a range of targets.
_OF_RANGE = 64
#: The spread is the largest distance between quantiles at these levels and their complements, relative to a
#: normal distribution.
_TAILS = np.array([0.25, 0.1, 0.05, 0.02])
#: A histogram is used if the bins above its noise hold more than this fraction of the rows.
_SEEN = 0.7


def target_share(mu: float, n_rows: int, n_targets: int) -> float:
    """Share of mu squared for :func:`noisy_targets`, from public facts; 0 if noise would hide them."""
    return share_for(mu, n_rows, math.sqrt(TARGET_RELEASES * n_targets), _WORTH_OF_TARGETS)


def noisy_targets(
    learner: Learner, n_targets: int, mechanism: GaussianMechanism, n_features: int = 0
) -> Learning[tuple[FloatArray, FloatArray]]:
    """The centre and the scale (k,) of targets in any units; the scale is 0 where noise hides it.

    ``n_features`` is the width of the rows that have these targets.

    A histogram of signed magnitudes gives the range of most targets, and two more histograms narrow it down.
    Quantiles tell the scale, so that a few targets far out do not change it.

    *Guarantee*: ``TARGET_RELEASES`` Gaussian releases. A row adds 1 to one bin of each target, so the
    sensitivity of each is ``sqrt(k)``.
    """
    learner = thinned(learner, n_targets, mechanism.noise_multiplier / math.sqrt(TARGET_RELEASES))
    n_rows = learner.n_expected
    edges = [_SIGNED] * n_targets
    center, scale = np.zeros(n_targets), np.zeros(n_targets)
    for stage in range(TARGET_RELEASES):
        n_bins = len(edges[0]) + 1
        places = partial(_places_of_targets, edges=tuple(edges))
        stated = ReleasedArray(sensitivity_of(n_targets))
        query = PrivateQuery(np.zeros((0, n_features)), places, (stated,))  # without products
        released, noise = yield from learner.ask(mechanism, query)
        counts = released.reshape(n_targets, n_bins)
        certain = certain_count(counts, noise) if stage else certain_of_magnitudes(counts, noise, n_rows)
        for j, column in enumerate(counts):
            seen = np.zeros(n_bins)
            for start, width, count in windows_of(column, certain, np.zeros(n_bins, bool)):
                seen[start : start + width] = count / width
            low, high = edges[j][[0, -1]]
            if seen.sum() > _SEEN * n_rows and (stage == 0 or scale[j] > 0):
                center[j], scale[j], low, high = _summary(seen / seen.sum(), edges[j])
            edges[j] = np.linspace(low, high, _OF_RANGE - 1)
    return center, scale


def _places_of_targets(Z: FloatArray, block: Block, edges: tuple[FloatArray, ...]) -> Contribution:
    """Bins (rows, k) of targets between the edges of each; the end bins have all values outside."""
    targets = np.asarray(block.y, np.float64).T  # with a weight, where labels carry weights
    places = [np.searchsorted(ends, each, "right") for ends, each in zip(edges, targets, strict=False)]
    return None, BinCounts(np.stack(places, axis=1), len(edges[0]) + 1)


def _summary(shares: FloatArray, edges: FloatArray) -> tuple[float, float, float, float]:
    """Centre and spread of a histogram, and the ends of the bins that hold most of it.

    If nearly all are in a bin that holds 0, the ends are those of all bins with rows.
    """
    lower, upper = np.append(edges[0], edges), np.append(edges, edges[-1])
    cumulated = np.cumsum(shares)
    first, last = np.searchsorted(cumulated, [_TAILS[-1], 1 - _TAILS[-1]]).tolist()
    ends = np.interp([*_TAILS, *(1 - _TAILS)], np.append(0.0, cumulated), np.append(lower[0], upper))
    spread = float(np.max((ends[len(_TAILS) :] - ends[: len(_TAILS)]) / (-2 * ndtri(_TAILS))))
    zeros = first == last and lower[first] <= 0 <= upper[first]
    if zeros:
        first, last = np.flatnonzero(shares)[[0, -1]].tolist()
    middles = np.clip((lower + upper) / 2, lower[first], upper[last])
    center = float(shares @ middles)
    deviation = math.sqrt(float(shares @ (middles - center) ** 2)) if zeros else 0.0
    return center, max(spread, deviation), float(lower[first]), float(upper[last])


class TargetScale(Stage):
    """Targets of unit scale, by a part of the budget, or by the first steps of a plan."""

    name = "scale of the targets"
    limits = _WORTH_OF_TARGETS.limits
    reopens = True  # if public targets told the scale

    def price(self, fit: Fit) -> Price | None:
        return fit.labels.price

    def run(self, fit: Fit, price: Price) -> Procedure[Fit]:
        k, private, labels, learner = fit.data.loss.n_outputs, fit.data.private, fit.labels, fit.learner
        target_map = labels.target_map
        assert target_map is not None
        y = private.y
        if labels.is_scaled:
            y = np.column_stack([y[:, :k] * target_map.scale + target_map.center, y[:, k:]])
        if isinstance(price, Steps):
            assert fit.plan is not None  # which was charged
            learner = replace(learner, sampling=fit.plan.recipe.sampling)
            multiplier = fit.plan.noise_multiplier
        else:
            multiplier = fit.budget.multiplier(price, TARGET_RELEASES)
        queries = noisy_targets(learner, k, GaussianMechanism(multiplier, TARGET_RELEASES, learner.noise))
        center, scale = yield from bind_rows(replace(private, y=y).mapped(None), queries)
        if not np.all(scale > 0):
            warn_later(unknown_scale("is hidden by noise"))
        elif np.any(scale < _ZEROS):
            warn_later(
                "nearly all targets y are 0 and noise hides the others, so predictions are about 0; pass "
                "target_scale from prior knowledge, a larger epsilon or public rows."
            )
        middle = center if labels.learns_center else target_map.center
        target_map = TargetMap(middle, np.where(scale > 0, np.hypot(scale, center - middle), 1.0))
        scaled = target_map(y[:, :k], private.dtype)
        if y.shape[1] > k:  # weights, in double precision
            scaled = np.column_stack([scaled, y[:, k:]])
        return fit.spent(self, price).learned(
            data=replace(fit.data, private=replace(private, y=scaled)),
            labels=replace(labels, target_map=target_map, is_scaled=True),
            public=replace(fit.public, y=target_map(fit.public.y, np.float64)),
        )


def unknown_scale(why: str) -> str:
    """The warning that the fit assumes targets of unit scale, since their scale is not known."""
    return (
        f"the scale of the targets y {why}, so the fit assumes a scale of 1; pass target_scale and "
        "target_center from prior knowledge, or two public rows or more."
    )
