"""The temperature of the outputs, at which confidence is accuracy."""

import math
from functools import partial, reduce

import numpy as np
from scipy.special import expit
from sklearn.isotonic import isotonic_regression

from ..._engine import Procedure
from ..._rows import Block, Contribution
from ...components.protocols import FloatArray, PrivateQuery, ReleasedArray, Rounds
from ..stage import Fit, Price, Stage
from ..statistics import Worth, likely_part, sensitivity_of, share_for

#: Base-2 logarithms of the factors of the outputs that are compared.
_LOGARITHMS = np.arange(-4.0, 4.0)

#: Noise in (mean confidence - accuracy).
_WORTH = Worth(0.01, 0.2, (0.002, 0.03))

#: Prior mean of log2(scale): noisy heads are usually overconfident.
_USUAL = -0.75
#: Heads are more confident on the rows that trained them. Noise hides this at small budgets. With a budget
#: above this mu, the factor is pulled to 1.
_CLEAR_MU = 3.0
#: Doubling or halving the factor then costs up to this number of rows.
_OWN_ROWS = 20.0

#: Part of the budget of a rare class that tells the logit about which its outputs are scaled.
_OF_PIVOT = 0.2
#: The distance of this logit from that of the share: the largest, the usual one, and its spread.
_FARTHEST, _USUAL_DISTANCE, _SPREAD = 4.0, 1.0, 1.0
#: The distance from this logit at which a row counts fully.
_FULL = 1.5
#: Smallest sum of the probabilities of the rare class, as a fraction of its rows.
_LEAST = 0.2


class Temperature(Stage):
    """Scales outputs so that confidence is accuracy.

    A row adds the probability of its likeliest class, minus 1 if that class is its own, for each of several
    scales of the outputs. The sum rises with the scale, through 0 where the head is calibrated.

    With several labels per row, it adds the mean over its labels.

    **A rare class** is the likeliest of few rows, so confidence tells little. Where a fit started at the
    shares of two classes, and one is rare, outputs are scaled about the mean logit ``z_0`` of the rows
    weighted by their probability ``p`` of this class. That hardly changes the mean of p. A row adds ``p``
    less whether it is of the class, times the distance from ``z_0`` in units of 1.5, at most 1 on both sides.

    *Guarantee*: one release of m sums. A row changes each of them by at most 1, so the sensitivity is
    ``sqrt(m)``. For a rare class, one release of two sums comes before it, of sensitivity ``sqrt(2)``.

    Source: Guo, Pleiss, Sun and Weinberger 2017, "On calibration of modern neural networks", section 4.2,
    for one temperature of all outputs.
    """

    name = "temperature"
    limits = _WORTH.limits

    def price(self, fit: Fit) -> Price | None:
        if not fit.settings.is_default or fit.data.loss.quadratic or not fit.divides_after:
            return None
        return temperature_share(fit.mu, fit.n_rows, fit.labels.rarest) or None

    def run(self, fit: Fit, price: Price) -> Procedure[Fit]:
        assert fit.head is not None and fit.plan is not None
        scaling = partial(at_temperature, fit.head.W, has_classes=fit.data.loss.has_classes, mu=fit.mu)
        if fit.labels.is_rare:
            assert fit.labels.logits is not None and fit.row_map.intercept_value is not None
            scaling = partial(
                at_temperature_of_rare,
                fit.head.W,
                mu=fit.mu,
                logit=float(fit.labels.logits[0]),
                n_rare=fit.plan.info.n_effective * fit.labels.rarest,
                constant=fit.row_map.intercept_value,
            )
        W = yield from fit.correct(scaling, price)
        return fit.spent(self, price).with_head(W)


def temperature_share(mu: float, n_rows: int, rarest: float = 0.5) -> float:
    """Share of mu squared for the temperature; 0 if noise would hide it, by public facts.

    It grows where the share of one of two classes is small, since few rows then tell the scale.
    """
    moved = math.sqrt(len(_LOGARITHMS))
    usual = share_for(mu, n_rows, moved, _WORTH)
    telling = max(round(4 * rarest * (1 - rarest) * n_rows), 1)
    return (share_for(mu, telling, moved, _WORTH) or _WORTH.limits[1]) if usual else 0.0


def at_temperature(W: FloatArray, multiplier: float, *, has_classes: bool, mu: float) -> Rounds:
    """The head (k, d_in) with the scale at which the noisy sums are 0.

    More noise pulls it to the usual scale, and with the whole budget ``mu``, own rows pull it to 1.
    """
    scales = 2.0**_LOGARITHMS
    measure = _overconfidence if has_classes else _overconfidence_in_labels
    stated = ReleasedArray(sensitivity_of(len(scales)))
    (sums,) = yield PrivateQuery(W, partial(measure, scales=scales), (stated,))
    return W * _scale(sums, multiplier, mu)


def _scale(sums: FloatArray, multiplier: float, mu: float) -> float:
    """The scale at which noisy sums, which rise with it, are 0."""
    own_rows = _OWN_ROWS * max(0.0, 1 - _CLEAR_MU / mu)
    # For accurate heads the sums change little with the scale, and noise alone would choose an extreme one.
    prior = multiplier * sensitivity_of(len(sums)) * (_LOGARITHMS - _USUAL) + own_rows * _LOGARITHMS
    rising = isotonic_regression(sums + prior)
    return math.exp2(float(np.interp(0.0, rising, _LOGARITHMS)))


def at_temperature_of_rare(
    W: FloatArray, multiplier: float, *, mu: float, logit: float, n_rare: float, constant: float
) -> Rounds:
    """The head (1, d_in) of two classes, one of them rare, with outputs scaled about a noisy logit.

    ``logit`` is that of the share of class 1, and ``n_rare`` the number of rows of the rare class, both as
    released. ``constant`` is that of the last column.
    """
    scales, sign = 2.0**_LOGARITHMS, -1.0 if logit > 0 else 1.0  # the sign of logits of the rare class
    weights = partial(_weights, logit=logit, sign=sign)
    ((total, away),) = yield PrivateQuery(W, weights, (ReleasedArray(sensitivity_of(2), _OF_PIVOT),))
    error = _FARTHEST * multiplier * sensitivity_of(2) / (math.sqrt(_OF_PIVOT) * n_rare)
    seen = _FARTHEST * float(np.clip(away / max(float(total), _LEAST * n_rare), 0.0, 1.0))
    distance = _USUAL_DISTANCE + float(likely_part(_SPREAD, error)) * (seen - _USUAL_DISTANCE)
    pivot = logit + sign * distance
    stated = ReleasedArray(sensitivity_of(len(scales)), 1 - _OF_PIVOT)
    (sums,) = yield PrivateQuery(W, partial(_excess, scales=scales, pivot=pivot), (stated,))
    scale = _scale(sums, multiplier / math.sqrt(1 - _OF_PIVOT), mu)
    W = W * scale
    W[:, -1] += (1 - scale) * pivot / constant
    return W


def _weights(Z: FloatArray, block: Block, logit: float, sign: float) -> Contribution:
    """Probabilities of the rare class (rows, 2), and the same times the distance of logits from the share."""
    Z = sign * np.asarray(Z, np.float64)
    p = expit(Z)
    away = np.clip((Z - sign * logit) / _FARTHEST, -1.0, 1.0)
    return None, np.nan_to_num(np.hstack([p, p * away]), copy=False)


def _excess(Z: FloatArray, block: Block, scales: FloatArray, pivot: float) -> Contribution:
    """Probabilities of class 1 at each scale, less whether a row is of it, times distances from a pivot.

    The sums (m,) of what is returned, (rows, m), rise with the scale.
    """
    away = np.asarray(Z, np.float64) - pivot
    over = expit(pivot + scales * away) - block.classes[:, np.newaxis]
    return None, np.nan_to_num(over * np.clip(away / _FULL, -1.0, 1.0), copy=False)


def _overconfidence(Z: FloatArray, block: Block, scales: FloatArray) -> Contribution:
    """Confidence in the likeliest class at each scale, minus 1 if it is the class of the row, (rows, m)."""
    own = block.classes
    # Class by class, so that work on few classes is vectorised over rows.
    logits = np.array(np.asarray(Z).T, order="C")
    if len(logits) == 1:
        logits = np.concatenate([np.zeros_like(logits), logits])
    logits -= logits.max(axis=0)
    correct = logits[own, np.arange(len(own))] == 0
    powers = np.exp(logits * logits.dtype.type(scales[0]))
    over = np.empty((len(scales), len(own)))
    for confidence in over:
        # Classes are added one by one, so that the order is the same for any number of rows. A confidence is
        # at most 1, since the largest power is 1.
        np.divide(1, reduce(np.add, powers), out=confidence)
        np.square(powers, out=powers)  # the powers at twice the scale
    over -= correct
    return None, np.nan_to_num(over, copy=False).T


def _overconfidence_in_labels(Z: FloatArray, block: Block, scales: FloatArray) -> Contribution:
    """Mean over the labels (rows, k) of the confidence in the likelier value, minus 1 if it is right."""
    Z = np.asarray(Z)
    n_labels = Z.shape[1]
    right = (Z > 0) == (np.asarray(block.y)[:, :n_labels] == 1)
    # Labels are added one by one, so that the order is the same for any number of rows. Means are at most 1,
    # up to rounding.
    far, correct = np.abs(Z, dtype=np.float64).T, reduce(np.add, right.T.astype(np.float64))
    over = [(reduce(np.add, expit(scale * far)) - correct) / n_labels for scale in scales.tolist()]
    return None, np.nan_to_num(np.stack(over, axis=1), copy=False)
