"""The temperature of a released head, by noisy sums over private rows."""

import math
from collections.abc import Callable
from functools import partial, reduce
from typing import Any

import numpy as np
from scipy.special import expit
from sklearn.isotonic import isotonic_regression

from .._engine import Closing
from .._linear import class_indices
from .._rows import Block, Contribution
from ..components.protocols import FloatArray, PrivateQuery, PublicInfo, ReleasedArray, Rounds
from .comparison import sensitivity_of, share_for

#: Logarithms to base 2 of the factors of the outputs that are compared.
_LOGARITHMS = np.arange(-4.0, 4.0)

#: Target for the noise in the mean of confidence less accuracy, and the largest that still tells something.
_ERROR, _MOST_ERROR = 0.01, 0.2

#: Logarithm of the factor that noise alone leads to: noisy heads are mostly too sure.
_USUAL = -0.75

#: Smallest and largest share of mu squared.
_LEAST_SHARE, _MOST_SHARE = 0.002, 0.03


def temperature(mu: float, info: PublicInfo) -> Closing | None:
    """A closing that scales the outputs so that confidence is accuracy; None if noise would hide it.

    A row adds the probability of its likeliest class, minus 1 if that class is its own, for each of several
    scales of the outputs. The sum rises with the scale, through 0 where the head is calibrated.

    With several labels per row, it adds the mean over its labels.

    *Guarantee*: one release of m sums. A row changes each of them by at most 1, so the sensitivity is
    ``sqrt(m)``.

    Source: Guo, Pleiss, Sun and Weinberger 2017, "On calibration of modern neural networks", section 4.2,
    for one temperature of all outputs.
    """
    error = math.sqrt(len(_LOGARITHMS)) / (mu * info.n_private)
    share = share_for(error, _ERROR, _LEAST_SHARE, _MOST_SHARE)
    if error > _MOST_ERROR * math.sqrt(share):
        return None
    measure = _overconfidence if info.loss.has_classes else _overconfidence_in_labels
    return Closing({"temperature": share}, partial(_scaled, measure=measure))


def _scaled(W: FloatArray, state: Any, multiplier: float, measure: Callable[..., Contribution]) -> Rounds:
    """The head (k, d_in) with the scale at which the noisy sums are 0; noise draws it to the usual one."""
    scales = 2.0**_LOGARITHMS
    query = PrivateQuery(
        points=W,
        contribute=partial(measure, scales=scales),
        releases=(ReleasedArray(sensitivity_of(len(scales))),),
    )
    (sums,) = yield query
    # The sums of accurate heads hardly rise: without this line, noise alone would send them to either end.
    prior = multiplier * sensitivity_of(len(scales)) * (_LOGARITHMS - _USUAL)
    rising = isotonic_regression(sums + prior)
    return W * 2.0 ** float(np.interp(0.0, rising, _LOGARITHMS))


def _overconfidence(Z: FloatArray, block: Block, scales: FloatArray) -> Contribution:
    """Confidence in the likeliest class at each scale, less whether the row is of that class, (rows, m)."""
    own = np.asarray(class_indices(block.y))
    # Class by class, so that work on few classes is vectorised over rows.
    logits = np.array(np.asarray(Z).T, order="C")
    if len(logits) == 1:
        logits = np.concatenate([np.zeros_like(logits), logits])
    logits -= logits.max(axis=0)
    correct = logits[own, np.arange(len(own))] == 0
    powers = np.exp(logits * logits.dtype.type(scales[0]))
    over = np.empty((len(scales), len(own)))
    for confidence in over:
        # Class after class, in the same order for any number of rows; at most 1, as the largest power is 1.
        np.divide(1, reduce(np.add, powers), out=confidence)
        np.square(powers, out=powers)  # at twice the scale
    over -= correct
    return None, np.nan_to_num(over, copy=False).T


def _overconfidence_in_labels(Z: FloatArray, block: Block, scales: FloatArray) -> Contribution:
    """The mean over the labels (rows, k) of confidence in the likelier value, less whether it is right."""
    Z = np.asarray(Z)
    n_labels = Z.shape[1]
    right = (Z > 0) == (np.asarray(block.y)[:, :n_labels] == 1)
    # Label after label, in the same order for any number of rows; each mean is at most 1 but for rounding.
    far, correct = np.abs(Z, dtype=np.float64).T, reduce(np.add, right.T.astype(np.float64))
    over = [(reduce(np.add, expit(scale * far)) - correct) / n_labels for scale in scales.tolist()]
    return None, np.nan_to_num(np.stack(over, axis=1), copy=False)
