"""Calibration of a regression: predictions have the mean of the targets, and rise as far as these."""

import math
from functools import partial

import numpy as np

from ..._engine import LostReleaseError, Procedure
from ..._rows import BinCounts, Block, Contribution
from ...components.protocols import FloatArray, PrivateQuery, ReleasedArray, Rounds
from ...components.scalars import clipped
from ..histograms import certain_count, windows_of
from ..stage import Fit, Price, Stage
from ..statistics import Worth, likely_part, sensitivity_of, share_for
from .gradient_lengths import BINS, length_at, places_of

#: Noise in a mean, in units of the scale of the targets.
_WORTH = Worth(0.0001, 0.0075, (0.005, 0.05))
#: Part of the budget for the lengths of residuals and effects.
_OF_LENGTHS = 0.4
#: Probability that noise makes an empty window of lengths look occupied.
_FALSE_RATE = 1e-4
#: For their mean, residuals are cut at this multiple of the end of the last window that has rows.
_BEYOND = 2.8
#: Effects are cut at a length that this part of the rows exceeds.
_FAR = 0.05
#: What a row adds to the sums: a residual, its product with the effect, the effect, and its square.
_WEIGHTS = np.array([1.0, 0.5, 0.25, 0.25])
_LENGTH = math.nextafter(float(np.linalg.norm(_WEIGHTS)), math.inf)
#: Prior standard deviations of the mean of the residuals, in the same units, and of a slope.
_USUAL_ERROR, _USUAL_SLOPE = 0.1, 0.3


class Residuals(Stage):
    """Moves and stretches the outputs of a regression by noisy least squares of residuals on effects.

    Clipped gradients make predictions of skewed targets too small, and their differences too. The effects of
    a row are its outputs without the intercepts. Histograms of lengths find where to cut residuals and
    effects. A row then adds both, their product, and the square of the effect. What noise may explain counts
    less.

    *Guarantee*: one Gaussian release, in two parts. A row adds 1 to one bin of each of 2 k histograms. It
    adds products of numbers in [-1, 1], times weights, for each of k targets. Their squares add up to the
    squared length of the weights.

    Source: Amin, Kulesza, Munoz Medina and Vassilvitskii 2019, "Bounding user contributions: a bias-variance
    trade-off in differential privacy", for the lengths.
    """

    name = "residuals"
    limits = _WORTH.limits

    def price(self, fit: Fit) -> Price | None:
        applies = fit.data.loss.quadratic and fit.settings.is_default and fit.divides_after
        if not applies or fit.row_map.intercept_value is None:
            return None
        return share_for(fit.mu, fit.n_rows, sensitivity_of(fit.data.loss.n_outputs), _WORTH) or None

    def run(self, fit: Fit, price: Price) -> Procedure[Fit]:
        constant = fit.row_map.intercept_value
        assert fit.head is not None and fit.plan is not None and constant is not None
        moved = partial(recalibrated, fit.head.W, n_rows=fit.plan.info.n_effective, constant=constant)
        try:
            W = yield from fit.correct(moved, price)
        except LostReleaseError:  # the fit was interrupted between both parts, and goes on without them
            return fit.spent(self, price)
        return fit.spent(self, price).with_head(W)


def recalibrated(W: FloatArray, multiplier: float, *, n_rows: float, constant: float) -> Rounds:
    """The head (k, d_in) whose residuals have a mean of 0, and none of whose effects would improve them.

    Sums are divided by ``n_rows``. ``constant`` is that of the last column.
    """
    k, offset = len(W), W[:, -1] * constant
    stated = ReleasedArray(sensitivity_of(2 * k), _OF_LENGTHS)
    (counts,) = yield PrivateQuery(W, partial(_places, offset=offset), (stated,))
    noise = multiplier * stated.sensitivity / math.sqrt(_OF_LENGTHS)
    of_residuals, of_effects = counts.reshape(2, k, BINS)
    ends = np.array([_end(column, noise) for column in of_residuals])
    longest = np.array([_length(column, n_rows) for column in of_effects])
    terms = partial(_terms, offset=offset, ends=ends, longest=longest)
    stated = ReleasedArray(sensitivity_of(k) * _LENGTH, 1 - _OF_LENGTHS)
    (sums,) = yield PrivateQuery(W, terms, (stated,))
    error = multiplier * stated.sensitivity / math.sqrt(1 - _OF_LENGTHS) / n_rows
    residual, product, effect, square = sums.reshape(4, k) / n_rows / _WEIGHTS[:, np.newaxis]
    variance = np.maximum(square - effect**2, error / _WEIGHTS[3])
    mean = residual * _BEYOND * ends
    mean *= likely_part(_USUAL_ERROR, error * _BEYOND * ends)
    slope = (product * ends - mean * effect) / (variance * longest)
    slope *= likely_part(_USUAL_SLOPE, error / _WEIGHTS[1] * ends / (variance * longest))
    slope = np.clip(slope, -1.0, 2.0)
    W = np.array(W)
    W[:, :-1] *= 1 + slope[:, np.newaxis]
    W[:, -1] += (mean - slope * effect * longest) / constant
    return W


def _end(counts: FloatArray, noise: float) -> float:
    """The end of the last window of lengths that has rows."""
    seen = windows_of(counts, certain_count(counts, noise, _FALSE_RATE), np.zeros(BINS, bool))
    return length_at(max((start + width for start, width, _ in seen), default=0))


def _length(counts: FloatArray, n_rows: float) -> float:
    """A length that about a part ``_FAR`` of the rows exceeds."""
    return length_at(int(np.append(np.cumsum(counts) >= (1 - _FAR) * n_rows, True).argmax()) + 1)


def _parts(Z: FloatArray, block: Block, offset: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Residuals and effects (rows, k)."""
    Z = np.asarray(Z, np.float64)
    return np.asarray(block.y)[:, : Z.shape[1]] - Z, Z - offset


def _places(Z: FloatArray, block: Block, offset: FloatArray) -> Contribution:
    """Bins (rows, 2 k) of the lengths of residuals and effects."""
    return None, BinCounts(places_of(np.abs(np.hstack(_parts(Z, block, offset)))), BINS)


def _terms(
    Z: FloatArray, block: Block, offset: FloatArray, ends: FloatArray, longest: FloatArray
) -> Contribution:
    """Residuals, their products with effects, effects, and their squares, (rows, 4 k), cut and weighted."""
    residuals, effects = _parts(Z, block, offset)
    effects = clipped(effects / longest, 1.0)
    far, near = clipped(residuals / (_BEYOND * ends), 1.0), clipped(residuals / ends, 1.0)
    terms = [far, near * effects, effects, effects**2]
    return None, np.hstack([weight * term for weight, term in zip(_WEIGHTS, terms, strict=True)])
