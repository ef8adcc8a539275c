"""Calibration in the large: the mean of the predictions is the share of a class."""

from functools import partial, reduce

import numpy as np
from scipy.special import expit, logit, softmax

from ..._engine import Procedure
from ..._linear import Loss
from ..._rows import Block, Contribution
from ...components.protocols import FloatArray, PrivateQuery, ReleasedArray, Rounds
from ..stage import RARE, Fit, Price, Stage
from ..statistics import Worth, likely_part, sensitivity_of, share_for

#: Noise in the mean prediction of a class or label.
_WORTH = Worth(0.0002, 0.02, (0.002, 0.02))
#: Prior standard deviation of (mean prediction - share q), as a fraction of q: clipped gradients of a
#: rare class make its predictions too small.
_USUAL_ERROR = 0.3
#: Least ratio of a mean prediction and a share, and of two curvatures.
_LEAST = 0.2


class MeanPrediction(Stage):
    """Moves the intercepts of rare classes, so that the mean prediction is the share of the class.

    A row adds ``y - p``: whether it is of each class, less its probability. With sums ``r`` over ``n`` rows
    and released shares ``q``, intercepts move by ``logit(q) - logit(q - r / n)``, or by logarithms for more
    than two classes. A row also adds ``2 p (1 - p)``, which tells how far an intercept moves the mean, for a
    correction. Sums that noise may explain count less. It comes after the temperature, which moves means.

    *Guarantee*: one Gaussian release. A row moves the sums by at most 1 in length for two classes, by
    ``sqrt(2)`` for more, and by ``sqrt(k)`` for k labels. The second part costs nothing: for a class with
    ``|y - p| = e``, both squares add up to ``e**2 (1 + 4 (1 - e)**2)``, which is at most ``e``, and these
    ``e`` of the classes add up to ``2 (1 - p)`` with the probability p of the own class.
    """

    name = "mean prediction"
    limits = _WORTH.limits

    def price(self, fit: Fit) -> Price | None:
        loss, logits = fit.data.loss, _logits(fit)
        if logits is None or not fit.divides_after:
            return None
        strength, weighted = fit.settings.logit_adjustment, fit.weights.of_any_class
        adjusts = strength != 0 and not (strength == "auto" and weighted)
        if loss.has_classes and loss.n_outputs > 1 and adjusts:
            return None  # an adjustment would move the means again
        share = share_for(fit.mu, fit.n_rows, _bound(loss), _WORTH)
        return share or None if weighted or float(np.abs(logits).max()) > -logit(RARE) else None

    def run(self, fit: Fit, price: Price) -> Procedure[Fit]:
        logits, constant = _logits(fit), fit.row_map.intercept_value
        assert fit.head is not None and fit.plan is not None and logits is not None and constant is not None
        moved = partial(
            at_shares,
            fit.head.W,
            logits=logits,
            loss=fit.weights.bare.loss,
            n_rows=fit.plan.info.n_effective,
            constant=constant,
        )
        W = yield from fit.correct(moved, price)
        return fit.spent(self, price).with_head(W)


def _logits(fit: Fit) -> FloatArray | None:
    """The logits (k,) of the shares that mean predictions should have; None if nothing tells them."""
    if fit.weights.n_counted and fit.row_map.intercept_value is not None:
        return np.zeros(fit.data.loss.n_outputs)  # balanced classes
    return fit.labels.logits


def _bound(loss: Loss) -> float:
    """A bound on the length of ``y - p`` for any row."""
    if loss.n_outputs == 1:
        return 1.0
    return sensitivity_of(2 if loss.has_classes else loss.n_outputs)


def at_shares(
    W: FloatArray, multiplier: float, *, logits: FloatArray, loss: Loss, n_rows: float, constant: float
) -> Rounds:
    """The head (k, d_in) with intercepts at which the mean predictions are shares of these ``logits`` (k,).

    Sums are divided by ``n_rows``. ``constant`` is that of the last column.
    """
    bound, several = _bound(loss), loss.has_classes and len(W) > 1
    (sums,) = yield PrivateQuery(W, partial(_missing, has_classes=loss.has_classes), (ReleasedArray(bound),))
    q = np.asarray(softmax(logits) if several else expit(logits))
    rarer, noise = np.minimum(q, 1 - q), multiplier * bound / n_rows
    missing, curvatures = np.split(sums / n_rows, 2)
    missing *= likely_part(_USUAL_ERROR * rarer, noise)
    means = np.clip(q - missing, q - (1 - _LEAST) * rarer, q + (1 - _LEAST) * rarer)
    moves = np.log(q / means) if several else logit(q) - logit(means)
    # That is exact if all rows have the same probability. Others have less variance, so means move less.
    variances = means * (1 - means)
    moves *= variances / np.clip(curvatures / 2, _LEAST * variances, variances / _LEAST)
    W = np.array(W)
    W[:, -1] += moves / constant
    return W


def _missing(Z: FloatArray, block: Block, has_classes: bool) -> Contribution:
    """Classes or labels of each row less their probabilities p, and twice ``p (1 - p)``, (rows, 2 k)."""
    P = np.array(np.asarray(Z).T, np.float64, order="C")
    k = len(P)
    if has_classes and k > 1:
        P = np.exp(P - P.max(axis=0))
        P /= reduce(np.add, P)  # one by one, so that the order is the same for any number of rows
    else:
        P = expit(P)
    if has_classes:
        own = block.classes == np.arange(k)[:, np.newaxis] + (k == 1)
    else:
        own = np.asarray(block.y)[:, :k].T
    return None, np.nan_to_num(np.concatenate([own - P, 2 * P * (1 - P)]), copy=False).T
