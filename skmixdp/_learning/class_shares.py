"""Noisy class counts, and the logit adjustment that they allow."""

import math
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .._engine import Closing
from .._linear import class_indices
from .._rows import Block
from ..components.protocols import FloatArray, PublicInfo, Rounds
from .comparison import (
    comparison_query,
    comparison_share,
    counts_query,
    expected_losses,
    sensitivity_of,
    share_for,
)

#: Target for the noise in a class count, as a part of the mean count.
_COUNT_ERROR = 0.1

#: Smallest and largest share of mu squared for class counts.
_LEAST_SHARE, _MOST_SHARE = 0.005, 0.02

#: Largest noise in a count, as a part of the mean count, if adjustments are compared, and if not.
_MOST_ERROR, _MOST_UNCOMPARED = 0.5, 0.3

#: Factor by which the chance variation of the counts may exceed its expectation.
_SURELY = 2.0

#: Strength of the usual adjustment: from zeros, and from a start that rare classes get back.
_FROM_ZERO, _FROM_START = 0.6, 0.25

#: Multiples of the usual adjustment that private rows compare, the weakest first.
_MULTIPLES = np.array([0.5, 1.0, 1.5])

#: Largest loss of accuracy that an adjustment may cost.
_TOLERATED_LOSS = 0.01

#: Prior for the loss of accuracy by a multiple m: mean m times the first number, with the second as standard
#: deviation.
_EXPECTED_LOSS, _LOSS_SPREAD = 0.012, 0.02


def count_error(mu: float, n_rows: int, n_classes: int, share: float = _MOST_SHARE) -> float:
    """Standard deviation of the noise in a class count, as a part of the mean count; a public fact."""
    return n_classes / (math.sqrt(share) * mu * n_rows)


def count_share(mu: float, n_rows: int, n_classes: int) -> float:
    """Share of mu squared for class counts, from public facts."""
    return share_for(count_error(mu, n_rows, n_classes, 1.0), _COUNT_ERROR, _LEAST_SHARE, _MOST_SHARE)


def counts_are_useful(mu: float, n_rows: int, n_classes: int) -> bool:
    """Whether noisy counts tell class shares under this budget; a public fact."""
    most = _MOST_ERROR if comparison_share(mu, n_rows, len(_MULTIPLES)) else _MOST_UNCOMPARED
    return count_error(mu, n_rows, n_classes) < most


def in_class(Z: FloatArray, block: Block, n_classes: int) -> NDArray[np.bool_]:
    """Flags (rows, n_classes) of the class of each row."""
    return np.asarray(np.asarray(class_indices(block.y))[:, np.newaxis] == np.arange(n_classes))


def class_shares(counts: FloatArray, scale: float, n_rows: int) -> FloatArray:
    """Estimated class shares (k,), all positive, from noisy counts (k,) of ``n_rows`` rows.

    ``scale`` is the standard deviation of the noise. Counts are shrunk towards equal ones by a factor as
    James and Stein's, so shares that differ by no more than noise come out equal. No count is taken to be
    below the standard deviation of its noise.
    """
    mean = n_rows / len(counts)
    away = counts - mean
    energy = float(away @ away)
    chance = _SURELY * (len(counts) - 1) * scale**2
    kept = max(0.0, 1 - chance / energy) if energy > 0 else 0.0
    # A class without rows gets less than an equal share, with any noise.
    shrunk = np.maximum(mean + kept * away, min(max(scale, 1.0), mean))
    return np.asarray(shrunk / shrunk.sum())


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
        self,
        strength: float | None,
        n_classes: int,
        intercept: float,
        mu: float,
        info: PublicInfo,
    ) -> None:
        self.strength = strength
        self.n_classes = n_classes
        self.intercept = intercept
        self.info = info
        # From 1 without noise to a half at the largest noise.
        self.reliability = 1 - min(1.0, count_error(mu, info.n_private, n_classes) / _MOST_ERROR) / 2
        spent = {"class shares": count_share(mu, info.n_private, n_classes)}
        compared = comparison_share(mu, info.n_private, len(_MULTIPLES)) if strength is None else 0.0
        if compared:
            spent["strength of the adjustment"] = compared
        self.closing = Closing(spent, self._ask)
        self.shares: FloatArray | None = None

    def _ask(self, W: FloatArray, state: Any, multiplier: float) -> Rounds:
        """The head to return. The two releases divide one step."""
        spent = self.closing.shares
        part = spent["class shares"] / self.closing.share
        labels_alone = np.zeros((0, W.shape[1]))
        (counts,) = yield counts_query(labels_alone, partial(in_class, n_classes=self.n_classes), part)
        shares = class_shares(counts, multiplier / math.sqrt(part), self.info.n_private)
        self.shares = shares
        if self.strength is not None:
            return self._adjusted(W, shares, self.strength, min(1.0, self.strength))
        if np.ptp(shares) == 0:
            return W
        usual = _FROM_START if np.any(self.info.view.W) else _FROM_ZERO
        heads = [self._adjusted(W, shares, m * usual * self.reliability, m) for m in _MULTIPLES]
        part = spent.get("strength of the adjustment", 0.0) / self.closing.share
        if part == 0:
            return heads[0]
        (gains,) = yield comparison_query(W, heads, part)
        error = multiplier / math.sqrt(part) * sensitivity_of(len(heads)) / self.info.n_private
        expected, spread = _EXPECTED_LOSS * _MULTIPLES, np.full(len(heads), _LOSS_SPREAD)
        losses = expected_losses(-gains / self.info.n_private, error, expected, spread)
        tolerable = np.flatnonzero(losses <= _TOLERATED_LOSS)
        return heads[int(tolerable[-1])] if len(tolerable) else W

    def _adjusted(self, W: FloatArray, shares: FloatArray, strength: float, restored: float) -> FloatArray:
        W = np.array(W)
        if restored and len(W) == self.n_classes:  # one output for two classes has no row for each
            rare = np.maximum(0.0, 1 - self.n_classes * shares)
            # At a scale at which the outputs of the start are no larger than those of the head.
            data, start = self.info.view.data, self.info.view.W
            outputs = (W, start) if data.n_rows == 0 else (data.X @ W.T, data.X @ start.T)
            first, second = (float(np.linalg.norm(each)) for each in outputs)
            scale = min(1.0, first / second) if second > 0 else 0.0
            W += restored * rare[:, np.newaxis] * scale * start
        logs = np.log(shares)
        change = logs - logs.mean() if len(W) == self.n_classes else logs[1:] - logs[:1]
        W[:, -1] -= strength / self.intercept * change
        return W
