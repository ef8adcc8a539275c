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
from ..statistics import Worth, sensitivity_of, share_for

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


class Temperature(Stage):
    """Scales outputs so that confidence is accuracy.

    A row adds the probability of its likeliest class, minus 1 if that class is its own, for each of several
    scales of the outputs. The sum rises with the scale, through 0 where the head is calibrated.

    With several labels per row, it adds the mean over its labels.

    *Guarantee*: one release of m sums. A row changes each of them by at most 1, so the sensitivity is
    ``sqrt(m)``.

    Source: Guo, Pleiss, Sun and Weinberger 2017, "On calibration of modern neural networks", section 4.2,
    for one temperature of all outputs.
    """

    name = "temperature"
    limits = _WORTH.limits

    def price(self, fit: Fit) -> Price | None:
        if not fit.settings.is_default or fit.data.loss.quadratic or not fit.divides_after:
            return None
        return temperature_share(fit.mu, fit.n_rows) or None

    def run(self, fit: Fit, price: Price) -> Procedure[Fit]:
        assert fit.head is not None
        scaling = partial(at_temperature, fit.head.W, has_classes=fit.data.loss.has_classes, mu=fit.mu)
        W = yield from fit.correct(scaling, price)
        return fit.spent(self, price).with_head(W)


def temperature_share(mu: float, n_rows: int) -> float:
    """Share of mu squared for the temperature, from public facts; 0 if noise would hide it."""
    return share_for(mu, n_rows, math.sqrt(len(_LOGARITHMS)), _WORTH)


def at_temperature(W: FloatArray, multiplier: float, *, has_classes: bool, mu: float) -> Rounds:
    """The head (k, d_in) with the scale at which the noisy sums are 0.

    More noise pulls it to the usual scale, and with the whole budget ``mu``, own rows pull it to 1.
    """
    scales = 2.0**_LOGARITHMS
    measure = _overconfidence if has_classes else _overconfidence_in_labels
    own_rows = _OWN_ROWS * max(0.0, 1 - _CLEAR_MU / mu)
    stated = ReleasedArray(sensitivity_of(len(scales)))
    (sums,) = yield PrivateQuery(W, partial(measure, scales=scales), (stated,))
    # For accurate heads the sums change little with the scale, and noise alone would choose an extreme one.
    prior = multiplier * sensitivity_of(len(scales)) * (_LOGARITHMS - _USUAL) + own_rows * _LOGARITHMS
    rising = isotonic_regression(sums + prior)
    return W * 2.0 ** float(np.interp(0.0, rising, _LOGARITHMS))


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
