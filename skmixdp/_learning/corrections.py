"""Corrections of a trained head by noisy comparisons and sums of private rows."""

import math
import warnings
from collections.abc import Callable, Sequence
from functools import partial, reduce
from typing import Any

import numpy as np
from scipy.special import expit
from sklearn.isotonic import isotonic_regression

from .._engine import GaussianMechanism, PostTrainingRelease
from .._linear import predicted_classes
from .._rows import Block, Contribution
from ..components.protocols import FloatArray, PrivateQuery, PublicInfo, ReleasedArray, Rounds
from .noisy_statistics import (
    COUNT_LIMITS,
    MOST_COUNT_ERROR,
    MULTIPLES,
    Learner,
    Learning,
    class_shares,
    count_share,
    counts_query,
    in_class,
    sensitivity_of,
    share_for,
)
from .targets import start_predicts

# -- the start ------------------------------------------------------------------------------

#: The gain of the start is its accuracy less that of a random guess. Public rows are left out if its gain on
#: private rows is below this fraction of its gain on public rows, by ``_CLEARLY`` standard deviations of the
#: noise.
_FAR_WORSE, _CLEARLY = 1 / 3, 2.0


def start_is_useful(info: PublicInfo, learner: Learner, multiplier: float) -> Learning[bool]:
    """Whether the public head classifies private rows about as well as held-out public rows.

    If a noisy count of correct private rows is far lower, the labels or features of the public rows mean
    something else.
    """
    if not info.view.data.loss.has_classes:
        return (yield from start_predicts(info, learner, multiplier))
    query = counts_query(info.view.W, lambda Z, block: block.is_correct(Z))
    (correct,), _ = yield from learner.ask(GaussianMechanism(multiplier, 1, learner.noise), query)
    parts = [predicted_classes(judge.X @ start.T) == judge.labels for start, judge in info.held_out]
    right = np.concatenate(parts)
    guess = 1 / max(info.view.data.loss.n_outputs, 2)
    # A few public rows may all be classified correctly by chance. So one more correct and one more wrong row
    # are added (Laplace's rule).
    usual = (right.sum() + 1) / (len(right) + 2)
    better = max(float(right.mean() - guess - _CLEARLY * np.sqrt(usual * (1 - usual) / len(right))), 0.0)
    expected = (guess + _FAR_WORSE * better) * learner.n_rows if better else 0.0
    if correct + _CLEARLY * multiplier >= expected:
        return True
    warnings.warn(
        "the head of the public rows classifies far fewer private rows correctly than public ones: "
        "their labels or features mean something else, so the fit left them out; pass other public "
        "rows, or none.",
        UserWarning,
        stacklevel=2,
    )
    return False


# -- comparisons of heads --------------------------------------------------------------------

#: Relative distance of a head from a span that counts as rounding, and largest sum of factors, which
#: multiplies the rounding of products.
_ON_SPAN, _LARGEST_FACTORS = 1e-12, 8.0


def comparison_query(first: FloatArray, others: Sequence[FloatArray], share: float = 1.0) -> PrivateQuery:
    """The query for how many more private rows each other head classifies correctly than the first.

    All heads are (k, d_in). *Guarantee*: one row changes each of the m differences by at most 1, so the
    sensitivity is ``sqrt(m)``.
    """
    multiplied, factors = spanning_heads([first, *others])
    return PrivateQuery(
        points=np.concatenate(multiplied),
        contribute=partial(_gains, factors=factors),
        releases=(ReleasedArray(sensitivity_of(len(others)), share),),
    )


def spanning_heads(heads: Sequence[FloatArray]) -> tuple[list[FloatArray], FloatArray]:
    """Heads (k, d_in) that span all ``heads``, and the factors (m, r) that combine them to each.

    Heads on a line need two products with each row, for any number of heads. A head is left out only if it
    is a combination up to rounding, with factors too small to multiply the rounding of products.
    """
    columns = np.stack([head.ravel() for head in heads], axis=1)
    factors = np.eye(len(heads))
    if not np.isfinite(columns).all():
        return list(heads), factors
    kept: list[int] = []
    for index, column in enumerate(columns.T):
        if kept:
            spanned = columns[:, kept]
            weights = np.linalg.lstsq(spanned, column)[0]
            distance = np.linalg.norm(spanned @ weights - column)
            on_span = distance <= _ON_SPAN * np.linalg.norm(column)
            if on_span and 0 < np.abs(weights).sum() <= _LARGEST_FACTORS:
                factors[index, index], factors[index, kept] = 0.0, weights
                continue
        kept.append(index)
    return [heads[index] for index in kept], factors[:, kept]


def _gains(Z: FloatArray, block: Block, factors: FloatArray) -> Contribution:
    """For each row and each other head: whether it is correct, minus whether the first head is.

    ``Z`` holds outputs of the r spanning heads, which ``factors`` (m, r) combine to all heads.
    """
    products = np.split(np.asarray(Z), factors.shape[1], axis=1)
    right = []
    for weights in factors.tolist():
        outputs = sum(weight * Z for weight, Z in zip(weights, products, strict=True) if weight)
        right.append(block.is_correct(outputs).astype(np.float64))
    first, *others = right
    return None, np.concatenate([each - first for each in others], axis=1)


def expected_losses(losses: FloatArray, error: float, expected: FloatArray, spread: FloatArray) -> FloatArray:
    """Posterior means (m,) of losses of accuracy, from noisy ones and a prior for each.

    ``error`` is the standard deviation of the noise; ``expected`` and ``spread`` are those of the priors.
    """
    weight = spread**2 / (spread**2 + error**2)
    return np.asarray(weight * losses + (1 - weight) * expected)


# -- the logit adjustment --------------------------------------------------------------------

#: Strength of the default adjustment, with a start at zero and with a public start.
_FROM_ZERO, _FROM_START = 0.6, 0.25

#: Largest loss of accuracy that an adjustment may cause.
_TOLERATED_LOSS = 0.01

#: Prior for the loss of accuracy by a multiple m of the adjustment: mean m times the first number, standard
#: deviation the second.
_EXPECTED_LOSS, _LOSS_SPREAD = 0.012, 0.02


class LogitAdjustment:
    """Subtracts a multiple of the logarithms of noisy class shares from the logits of a trained head.

    The class counts are released after the last step. With shares ``q`` and strength ``tau``, the logit of
    class j becomes ``z_j - tau log q_j``. At ``tau = 1`` this estimates the classifier that is best for
    equally frequent classes. A start is also added to the rows of rare classes, in proportion to ``1 - k
    q_j``: the private rows of frequent classes erase what the start knew about the others. At a fixed
    strength it is added ``min(1, tau)`` times.

    If ``strength`` is None, private rows choose it. The usual adjustment has ``tau = 0.6`` from zeros, and
    ``tau = 0.25`` with a whole start added back; ``tau`` is less where the counts are noisy. Half, once and
    one and a half times this adjustment are compared with none, by noisy differences of the numbers of
    correct private rows. The strongest that loses at most one point of accuracy is taken; half of it if there
    are too few rows to compare.

    ``mu`` is the budget of the whole fit, and ``intercept`` the constant of the intercept column, the last
    one. ``shares`` (k,) are the class shares once they are released.

    *Guarantee*: one Gaussian release of the counts, of sensitivity 1, and one of three differences. A row
    moves each difference by at most 1, so their sensitivity is ``sqrt(3)``. All else is computed from
    released heads, released counts and public rows.

    Source: Menon, Jayasumana, Rawat, Jain, Veit and Kumar 2021, "Long-tail learning via logit adjustment",
    section 4.1.
    """

    def __init__(
        self, strength: float | None, n_classes: int, intercept: float, mu: float, info: PublicInfo
    ) -> None:
        self.strength = strength
        self.n_classes = n_classes
        self.intercept = intercept
        self.info = info
        # 1 without noise in the counts, and 1/2 at the largest noise allowed.
        noise = n_classes / (math.sqrt(COUNT_LIMITS[1]) * mu * info.n_private)
        self.reliability = 1 - min(1.0, noise / MOST_COUNT_ERROR) / 2
        spent = {"class shares": count_share(mu, info.n_private, n_classes)}
        compared = share_for(mu, info.n_private, math.sqrt(len(MULTIPLES))) if strength is None else 0.0
        if compared:
            spent["strength of the adjustment"] = compared
        self.release = PostTrainingRelease(spent, self._adjust)
        self.shares: FloatArray | None = None

    def _adjust(self, W: FloatArray, state: Any, multiplier: float) -> Rounds:
        """Yield two queries that share the budget of one step, and return the adjusted head."""
        spent = self.release.shares
        total = sum(spent.values())
        part = spent["class shares"] / total
        labels_alone = np.zeros((0, W.shape[1]))
        (counts,) = yield counts_query(labels_alone, partial(in_class, n_classes=self.n_classes), part)
        shares = class_shares(counts, multiplier / math.sqrt(part), self.info.n_effective)
        self.shares = shares
        if self.strength is not None:
            return self._adjusted(W, shares, self.strength, min(1.0, self.strength))
        if np.ptp(shares) == 0:
            return W
        usual = _FROM_START if np.any(self.info.view.W) else _FROM_ZERO
        heads = [self._adjusted(W, shares, m * usual * self.reliability, m) for m in MULTIPLES]
        part = spent.get("strength of the adjustment", 0.0) / total
        if part == 0:
            return heads[0]
        (gains,) = yield comparison_query(W, heads, part)
        error = multiplier / math.sqrt(part) * sensitivity_of(len(heads)) / self.info.n_effective
        expected, spread = _EXPECTED_LOSS * MULTIPLES, np.full(len(heads), _LOSS_SPREAD)
        losses = expected_losses(-gains / self.info.n_effective, error, expected, spread)
        tolerable = np.flatnonzero(losses <= _TOLERATED_LOSS)
        return heads[int(tolerable[-1])] if len(tolerable) else W

    def _adjusted(self, W: FloatArray, shares: FloatArray, strength: float, restored: float) -> FloatArray:
        W = np.array(W)
        if restored and len(W) == self.n_classes:  # one output for two classes has no row for each class
            rare = np.maximum(0.0, 1 - self.n_classes * shares)
            # Scaled so that the outputs of the start are no larger than those of the head.
            data, start = self.info.view.data, self.info.view.W
            outputs = (W, start) if data.n_rows == 0 else (data.X @ W.T, data.X @ start.T)
            first, second = (float(np.linalg.norm(each)) for each in outputs)
            scale = min(1.0, first / second) if second > 0 else 0.0
            W += restored * rare[:, np.newaxis] * scale * start
        logs = np.log(shares)
        change = logs - logs.mean() if len(W) == self.n_classes else logs[1:] - logs[:1]
        W[:, -1] -= strength / self.intercept * change
        return W


# -- the temperature -------------------------------------------------------------------------

#: Base-2 logarithms of the factors of the outputs that are compared.
_LOGARITHMS = np.arange(-4.0, 4.0)

#: Target for the noise in (mean confidence - accuracy), and the largest noise that is still useful.
_CONFIDENCE_ERROR, _MOST_CONFIDENCE_ERROR = 0.01, 0.2

#: Prior mean of log2(scale): noisy heads are usually overconfident.
_USUAL = -0.75

#: Heads are more confident on the rows that trained them. Noise hides this at small budgets. With a budget
#: above this mu, the factor is pulled to 1 as by this number of rows for each doubling.
_CLEAR_MU, _OWN_ROWS = 3.0, 20.0

#: Smallest and largest share of mu squared for the temperature.
_TEMPERATURE_LIMITS = 0.002, 0.03


def temperature(mu: float, info: PublicInfo) -> PostTrainingRelease | None:
    """The release that scales outputs so that confidence is accuracy; None if noise would hide it.

    A row adds the probability of its likeliest class, minus 1 if that class is its own, for each of several
    scales of the outputs. The sum rises with the scale, through 0 where the head is calibrated.

    With several labels per row, it adds the mean over its labels.

    *Guarantee*: one release of m sums. A row changes each of them by at most 1, so the sensitivity is
    ``sqrt(m)``.

    Source: Guo, Pleiss, Sun and Weinberger 2017, "On calibration of modern neural networks", section 4.2,
    for one temperature of all outputs.
    """
    moved, n_rows = math.sqrt(len(_LOGARITHMS)), info.n_private
    share = share_for(mu, n_rows, moved, _CONFIDENCE_ERROR, _MOST_CONFIDENCE_ERROR, _TEMPERATURE_LIMITS)
    if not share:
        return None
    measure = _overconfidence if info.view.data.loss.has_classes else _overconfidence_in_labels
    own_rows = _OWN_ROWS * max(0.0, 1 - _CLEAR_MU / mu)
    return PostTrainingRelease({"temperature": share}, partial(_scaled, measure=measure, own_rows=own_rows))


def _scaled(
    W: FloatArray, state: Any, multiplier: float, measure: Callable[..., Contribution], own_rows: float
) -> Rounds:
    """The head (k, d_in) with the scale at which the noisy sums are 0.

    Noise draws it to the usual scale, and ``own_rows`` to 1.
    """
    scales = 2.0**_LOGARITHMS
    query = PrivateQuery(
        points=W,
        contribute=partial(measure, scales=scales),
        releases=(ReleasedArray(sensitivity_of(len(scales))),),
    )
    (sums,) = yield query
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
        # Classes are added one by one, so that the order is the same for any number of rows. Sums are at most
        # 1, since the largest power is 1.
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
