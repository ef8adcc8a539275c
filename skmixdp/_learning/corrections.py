"""Corrections of a trained head: shrinkage, balance of classes, logit adjustment and temperature."""

import math
from collections.abc import Callable, Sequence
from functools import partial, reduce
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit, softmax
from sklearn.isotonic import isotonic_regression

from .._engine import PostTrainingRelease
from .._linear import predicted_classes
from .._rows import Block, Contribution
from .._utils.process import warn_later
from ..components.protocols import (
    FloatArray,
    PrivateQuery,
    PublicInfo,
    ReleasedArray,
    Rounds,
    StepContext,
    Update,
)
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
    warn_of_sufficient_public_rows,
)
from .targets import start_predicts

# -- the start ------------------------------------------------------------------------------

#: The gain of the start is its accuracy less that of a random guess. Public rows are left out if its gain on
#: private rows is below this fraction of its gain on public rows.
_FAR_WORSE = 1 / 3
#: The difference must be this many standard deviations of the noise.
_CLEARLY = 2.0


def start_is_useful(info: PublicInfo, learner: Learner, multiplier: float) -> Learning[bool]:
    """Whether the public head classifies private rows about as well as held-out public rows.

    If a noisy count of correct private rows is far lower, the labels or features of the public rows mean
    something else.
    """
    if not info.view.data.loss.has_classes:
        return (yield from start_predicts(info, learner, multiplier))
    query = counts_query(info.view.W, lambda Z, block: block.is_correct(Z))
    (correct,), _ = yield from learner.ask(multiplier, query)
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
    warn_later(
        "the head of the public rows classifies far fewer private rows correctly than public ones: "
        "their labels or features mean something else, so the fit left them out; pass other public "
        "rows, or none."
    )
    return False


# -- comparisons of heads --------------------------------------------------------------------


def comparison_query(first: FloatArray, others: Sequence[FloatArray], share: float = 1.0) -> PrivateQuery:
    """The query for how many more private rows each other head classifies correctly than the first.

    All heads are (k, d_in). *Guarantee*: one row changes each of the m differences by at most 1, so the
    sensitivity is ``sqrt(m)``.
    """
    gains = partial(_gains, n_heads=1 + len(others))
    stated = ReleasedArray(sensitivity_of(len(others)), share)
    return PrivateQuery(np.concatenate([first, *others]), gains, (stated,))


def _gains(Z: FloatArray, block: Block, n_heads: int) -> Contribution:
    """For each row and each other head: whether it is correct, minus whether the first head is."""
    outputs = np.split(np.asarray(Z), n_heads, axis=1)
    first, *others = (block.is_correct(each).astype(np.float64) for each in outputs)
    return None, np.concatenate([each - first for each in others], axis=1)


def expected_losses(losses: FloatArray, error: float, expected: FloatArray, spread: FloatArray) -> FloatArray:
    """Posterior means (m,) of losses of accuracy, from noisy ones and a prior for each.

    ``error`` is the standard deviation of the noise; ``expected`` and ``spread`` are those of the priors.
    """
    weight = spread**2 / (spread**2 + error**2)
    return np.asarray(weight * losses + (1 - weight) * expected)


# -- the logit adjustment --------------------------------------------------------------------

#: Strength of the default adjustment with a start at zero.
_FROM_ZERO = 0.6
#: Strength of the default adjustment with a public start.
_FROM_START = 0.25

#: Largest loss of accuracy that an adjustment may cause.
_TOLERATED_LOSS = 0.01

#: Prior for the loss of accuracy by a multiple m of the adjustment: its mean divided by m.
_EXPECTED_LOSS = 0.012
#: Standard deviation of that prior.
_LOSS_SPREAD = 0.02


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
    one.

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

    def _adjust(self, W: FloatArray, state: Any, multiplier: float) -> Rounds:
        """Yield two queries that share the budget of one step, and return the adjusted head."""
        spent = self.release.shares
        total = sum(spent.values())
        part = spent["class shares"] / total
        labels_alone = np.zeros((0, W.shape[1]))
        (counts,) = yield counts_query(labels_alone, partial(in_class, n_classes=self.n_classes), part)
        shares = class_shares(counts, multiplier / math.sqrt(part), self.info.n_effective)
        self.release.attributes["class_shares_"] = shares
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

#: Target for the noise in (mean confidence - accuracy).
_CONFIDENCE_ERROR = 0.01
#: A difference with more noise than this is not released.
_MOST_CONFIDENCE_ERROR = 0.2

#: Prior mean of log2(scale): noisy heads are usually overconfident.
_USUAL = -0.75

#: Heads are more confident on the rows that trained them. Noise hides this at small budgets. With a budget
#: above this mu, the factor is pulled to 1.
_CLEAR_MU = 3.0
#: Doubling or halving the factor then costs up to this number of rows.
_OWN_ROWS = 20.0

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

    More noise pulls it to the usual scale, and ``own_rows`` pull it to 1.
    """
    scales = 2.0**_LOGARITHMS
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


# -- shrinkage and class balance -------------------------------------------------------------

#: Candidate shares ``s`` of the change from the start to the released head.
_SHARES = np.array([0.0, 0.25, 0.5, 0.75])

#: Smallest share, as a multiple of the share that noise cannot explain.
_KEPT = 1.5

#: Smallest usual share. The usual share is ``0.2 + 2 j``, where noise cannot explain a share ``j``. It is at
#: least 0.2, since even a change no longer than the noise is positively correlated with the best change.
_LEAST_USUAL = 0.2
#: Growth of the usual share with ``j``. It is above 1, since descent stops short of the best head.
_SLOPE = 2.0

#: Scales of the outputs at which shares are compared.
_SCALES = 2.0 ** np.arange(-3, 3.25, 0.25)

#: Fewest public rows with which a head is shrunk.
_FEWEST = 20

#: Target for the noise in an accuracy when shares are compared.
_ERROR = 0.01
#: With more noise than this in an accuracy, shares are not compared.
_LARGEST_ERROR = 0.1

#: Fewest public rows of each class for class balance: one in each half of the public rows.
_FEWEST_PER_CLASS = 2

#: Fractions of the balancing intercepts that private rows compare.
_PARTS = np.array([0.4, 0.8])
#: The usual fraction.
_USUAL_PART = 0.4

#: Prior for the loss of accuracy by a fraction t: its mean, ``0.02 t (t - 0.6)``.
_EXPECTED_LOSSES = 0.02 * _PARTS * (_PARTS - 0.6)
#: Standard deviation of that prior, ``0.02 t``.
_SPREADS = 0.02 * _PARTS

#: Most rows of a class that class balance uses from each half of the public rows.
_MOST_PER_CLASS = 100

#: The search for intercepts ends with a round that changes them by less than this.
_TOLERANCE = 1e-3
#: Most rounds of this search.
_ROUNDS = 100


def can_balance(info: PublicInfo) -> bool:
    """Whether public rows can balance the classes: three or more classes, with some rows of each."""
    data, loss = info.view.data, info.view.data.loss
    if not loss.has_classes or loss.n_outputs < 3 or data.n_rows < _FEWEST:
        return False
    return int(np.bincount(data.y, minlength=loss.n_outputs).min()) >= _FEWEST_PER_CLASS


class PublicShrinkage(Update):
    """Returns the shrunk head ``W_0 + s (W - W_0) + t B``, where public rows choose s and B.

    The public rows are split into halves. Each half evaluates the change ``W - W_0``, added to the start that
    the other half gives.

    **The share s.** Let ``j = max(0, 1 - v / e)``, the factor of James and Stein. Here ``e`` is the mean
    square of the outputs of ``W - W_0`` on public rows, and ``v`` is the mean square that undamped noise
    alone would give. The usual share is ``min(1, 0.2 + 2 j)``, or 1 for squared loss. A smaller share is
    taken if it has a clearly lower loss, each at the best scale of its outputs. Clearly means by more than
    the standard error of the difference. This evaluation underrates the change: ``W`` moves away from a start
    that was fitted to the evaluating rows themselves. So a share is only considered if it is at least ``1.5
    j``. If ``s = 0``, private rows were of no use under this budget, and a warning says so.

    **Class balance B.** A private head outputs classes with few private rows too rarely. ``B`` holds the
    intercepts at which all classes have the same mean probability on public rows, where each class has the
    same weight. It is shrunk by how far the halves agree. The usual part is ``t = 0.4``. ``intercept``, the
    constant of the last column, is None if classes are not balanced.

    ``comparison`` is a comparison of heads by private rows. It is None if there are too few of them or of
    public rows, or no classes to count.

    *Guarantee*: it uses only released heads and public rows, and its comparison.

    Sources: James and Stein 1961, "Estimation with quadratic loss"; Menon et al. 2021, "Long-tail learning
    via logit adjustment", section 4.1, for adjusting the outputs to equally frequent classes.
    """

    def __init__(self, inner: Update, info: PublicInfo, intercept: float | None = None) -> None:
        self.inner = inner
        self.info = info
        self.intercept = intercept
        mu, n_rows = info.mu, info.n_private
        shares = share_for(mu, n_rows, 1.0, _ERROR, _LARGEST_ERROR)
        parts = 0.0 if intercept is None else share_for(mu, n_rows, math.sqrt(len(_PARTS)))
        data = info.view.data
        self.comparison: PostTrainingRelease | None = None
        if shares > 0 and data.loss.has_classes and data.n_rows >= _FEWEST:
            self.comparison = PostTrainingRelease({"comparison": shares + parts}, self.compare)
        self._compares_parts = parts > 0

    def init(self, W: FloatArray) -> tuple[FloatArray, Any]:
        W, inner = self.inner.init(W)
        return W, (inner, 0.0)

    def step(self, ctx: StepContext, direction: FloatArray, state: Any) -> tuple[FloatArray, Any]:
        inner, variance = state
        W, inner = self.inner.step(ctx, direction, inner)
        return W, (inner, variance + ctx.noise_variance)

    def result(self, W: FloatArray, state: Any) -> FloatArray:
        inner, variance = state
        W = self.inner.result(W, inner)
        share, _ = self._chosen_on_public_rows(W, variance)
        if share == 0:
            warn_of_sufficient_public_rows(self.info.view.data.n_rows)
        return self._head(W, share, _USUAL_PART * self._balance(W, share))

    def compare(self, W: FloatArray, state: Any, multiplier: float) -> Rounds:
        """As :meth:`result`, with one noisy comparison of heads on private rows.

        Public rows may be few, or have another mix of classes than the private ones. So the usual share ``s``
        is compared with 1, and with the share that public rows favour, or 0 if they favour no other. The
        released numbers are differences of the numbers of correctly classified private rows. A share that
        public rows favour is kept if its difference favours it too. Any other share needs a difference of two
        standard deviations of the noise. Parts ``t`` of 0.4 and 0.8 are compared with 0, if there are enough
        rows to tell; the one with the highest expected accuracy is taken.

        *Guarantee*: one release of m differences, of sensitivity ``sqrt(m)``, since one row changes each
        difference by at most 1.
        """
        inner, variance = state
        W = self.inner.result(W, inner)
        favoured, usual = self._chosen_on_public_rows(W, variance)
        others = [favoured if favoured < usual else 0.0] + [1.0] * (usual < 1)
        balance = self._balance(W, usual)
        parts = _PARTS if self._compares_parts and balance.any() else np.empty(0)
        plain = self._head(W, usual)
        heads = [self._head(W, share) for share in others]
        heads += [self._head(W, usual, part * balance) for part in parts]
        (gains,) = yield comparison_query(plain, heads)
        error = multiplier * sensitivity_of(len(heads))
        needed = np.full(len(others), _CLEARLY * error)
        if favoured < usual:
            needed[0] = 0.0
        excess = gains[: len(others)] - needed
        best = int(excess.argmax())
        if excess[best] > 0:
            share = others[best]
            if share == 0:
                warn_of_sufficient_public_rows(self.info.view.data.n_rows)
            return self._head(W, share, _USUAL_PART * self._balance(W, share))
        part = _USUAL_PART
        if len(parts):
            seen, noise = -gains[len(others) :] / self.info.n_effective, error / self.info.n_effective
            losses = expected_losses(seen, noise, _EXPECTED_LOSSES, _SPREADS)
            part = float(parts[losses.argmin()]) if losses.min() < 0 else 0.0
        return self._head(W, usual, part * balance)

    def _head(self, W: FloatArray, share: float, balance: FloatArray | None = None) -> FloatArray:
        """The start plus a share of the change, with balanced classes."""
        start = self.info.view.W
        head = np.array(W if share == 1 else start + share * (W - start))
        if balance is not None and self.intercept is not None:
            head[:, -1] += balance / self.intercept
        return head

    def _balance(self, W: FloatArray, share: float) -> FloatArray:
        """Intercepts (k,) that balance the classes of the head with this share; zero for the start."""
        if self.intercept is None or share == 0:
            return np.zeros(len(W))
        change = share * (W - self.info.view.W)
        halves = [(judge.X @ (start + change).T, judge.y) for start, judge in self.info.held_out]
        return reliable_balance(halves, len(W))

    def _chosen_on_public_rows(self, W: FloatArray, variance: float) -> tuple[float, float]:
        """The share ``s`` that public rows favour, and the usual one."""
        data, change = self.info.view.data, W - self.info.view.W
        if data.n_rows < _FEWEST:
            return 1.0, 1.0
        certain = self._certain_share(change, variance)
        usual = 1.0 if data.loss.quadratic else min(1.0, _LEAST_USUAL + _SLOPE * certain)
        smaller = _SHARES[(min(1.0, _KEPT * certain) <= _SHARES) & (usual > _SHARES)]
        candidates = np.append(smaller, usual)
        # Losses of held-out rows, (shares, scales, rows).
        scales, parts = np.ones(1) if data.loss.quadratic else _SCALES, []
        for start, judge in self.info.held_out:
            near, far = judge.X @ start.T, judge.X @ change.T
            heads = ((b * (near + s * far) for b in scales) for s in candidates)
            parts.append([[judge.loss.values(Z, judge.y) for Z in scaled] for scaled in heads])
        losses = np.concatenate(parts, axis=2)
        best = losses.mean(axis=2).argmin(axis=1)
        # The share with the clearest gain over the usual one, or the usual one if no gain is clear.
        of_rows = losses[np.arange(len(candidates)), best]
        gains = of_rows[-1] - of_rows
        means, errors = gains.mean(axis=1), gains.std(axis=1, ddof=1) / math.sqrt(gains.shape[1])
        clear = means > errors
        chosen = int(np.where(clear, means, -np.inf).argmax()) if clear.any() else len(candidates) - 1
        return float(candidates[chosen]), usual

    def _certain_share(self, change: FloatArray, variance: float) -> float:
        """Share of the change that noise with this variance per coefficient does not explain."""
        data = self.info.view.data
        outputs = data.X @ change.T
        noise = variance * float(np.mean(data.norms**2))
        if data.loss.sum_to_zero:
            outputs -= outputs.mean(axis=1, keepdims=True)
            noise *= 1 - 1 / data.loss.n_outputs
        energy = float(np.mean(outputs**2))
        return max(0.0, 1 - noise / energy) if energy > 0 else 0.0


def reliable_balance(halves: Sequence[tuple[FloatArray, NDArray[Any]]], n_classes: int) -> FloatArray:
    """Intercepts (k,) that balance a head, as far as the two ``halves`` agree on them.

    Each half is a pair of logits (n, k) of held-out rows and their class indices. The result is the mean of
    the intercepts of both halves, times ``2 r / (1 + r)``. Here r is the correlation of the halves about
    zero, or 0 if it is negative. This is the reliability of the mean (Spearman 1910, Brown 1910), so
    intercepts that differ by chance alone come out near zero.
    """
    intercepts = []
    for Z, y in halves:
        rows = np.concatenate([np.flatnonzero(y == c)[:_MOST_PER_CLASS] for c in range(n_classes)])
        intercepts.append(balance(Z[rows], y[rows], n_classes))
    first, second = intercepts
    energy = float(first @ first + second @ second) / 2
    r = max(0.0, float(first @ second) / energy) if energy > 0 else 0.0
    return np.asarray((first + second) / 2 * (2 * r / (1 + r)))


def balance(Z: FloatArray, y: NDArray[Any], n_classes: int) -> FloatArray:
    """Intercepts (k,), of mean zero, at which every class has the same mean probability for logits (n, k).

    The mean gives the rows of every class ``y`` (n,) the same weight in total. Classes without rows get zero.
    """
    counts = np.bincount(y, minlength=n_classes)
    present = counts > 0
    weights = 1 / counts[y] / present.sum()
    b = np.zeros(n_classes)
    for _ in range(_ROUNDS):
        means = (weights @ softmax(Z + b, axis=1))[present] * present.sum()
        change = -np.log(np.maximum(means, 1e-9))
        b[present] += change - change.mean()
        if np.abs(change - change.mean()).max() < _TOLERANCE:
            break
    return b
