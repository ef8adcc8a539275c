"""Weights of rows: their noisy scale, and their mean."""

import math
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..._engine import Procedure, bind_rows
from ..._rows import BinCounts, Block, Contribution
from ...components.protocols import FloatArray, PrivateQuery, ReleasedArray
from ..histograms import certain_of_magnitudes, windows_of
from ..stage import Fit, Price, Stage
from ..statistics import Learner, Learning, Worth, share_for

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
    query = PrivateQuery(np.zeros((0, 0)), _ones, (ReleasedArray(1.0),))
    total, noise = yield from learner.ask(multiplier, query)
    return min(max(float(total[0]), noise, 1.0) / learner.n_rows, 1.0)


def _ones(Z: FloatArray, block: Block) -> Contribution:
    return None, np.ones((len(block.y), 1))


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
        return scale_share(fit.mu, fit.n_rows)

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
        return share_for(fit.mu, fit.n_rows, 1.0, _WORTH_OF_MEAN) or None

    def run(self, fit: Fit, price: Price) -> Procedure[Fit]:
        mean = yield from fit.ask(noisy_mean_weight(fit.counting, fit.budget.multiplier(price)))
        return fit.spent(self, price).learned(weights=replace(fit.weights, mean=mean))
