"""The adjustment of logits for classes with few rows."""

import math
from dataclasses import replace
from functools import partial
from typing import Any, cast

import numpy as np

from ..._engine import Procedure
from ...components.protocols import FloatArray, PublicInfo, Rounds
from ..heads import comparison_query, expected_losses
from ..stage import Fit, Price, Stage
from ..statistics import OF_ACCURACIES, counts_query, in_class, sensitivity_of, share_for
from .class_shares import (
    MULTIPLES,
    WORTH,
    class_shares,
    count_share,
    obstacle_to_counts,
    refuse_without_counts,
)

#: Strength of the default adjustment with a start at zero.
_FROM_ZERO = 0.6
#: Strength of the default adjustment with a public start.
_FROM_START = 0.25
#: The line of the comparison in the report.
_COMPARED = "strength of the adjustment"
#: Largest loss of accuracy that an adjustment may cause.
_TOLERATED_LOSS = 0.01
#: Prior for the loss of accuracy by a multiple m of the adjustment: its mean divided by m.
_EXPECTED_LOSS = 0.012
#: Standard deviation of the prior of this loss.
_LOSS_SPREAD = 0.02


class Adjustment(Stage):
    """Subtracts a multiple of the logarithms of noisy class shares from the logits of a trained head.

    The class counts are released after the temperature, since the adjustment is in units of calibrated
    logits. With shares ``q`` and strength ``tau``, the logit of class j becomes ``z_j - tau log q_j``. At
    ``tau = 1`` this estimates the classifier that is best for equally frequent classes. A start is also added
    to the rows of rare classes, in proportion to ``1 - k q_j``: the private rows of frequent classes erase
    what the start knew about the others. At a fixed strength it is added ``min(1, tau)`` times.

    If the strength is "auto", private rows choose it. The usual adjustment has ``tau = 0.6`` from zeros, and
    ``tau = 0.25`` with a whole start added back; ``tau`` is less where the counts are noisy. Half, once and
    one and a half times this adjustment are compared with none, by noisy differences of the numbers of
    correct private rows. The strongest that loses at most one point of accuracy is taken; half of it if there
    are too few rows to compare.

    *Guarantee*: one Gaussian release of the counts, of sensitivity 1, and one of three differences. A row
    moves each difference by at most 1, so their sensitivity is ``sqrt(3)``. All else is computed from
    released heads, released counts and public rows.

    Source: Menon, Jayasumana, Rawat, Jain, Veit and Kumar 2021, "Long-tail learning via logit adjustment",
    section 4.1.
    """

    name = "class shares"
    limits = (WORTH.limits[0], WORTH.limits[1] + OF_ACCURACIES.limits[1])

    def price(self, fit: Fit) -> Price | None:
        strength, loss = fit.settings.logit_adjustment, fit.data.loss
        if strength == "auto":
            several = loss.has_classes and loss.n_outputs > 2 and not fit.weights.of_any_class
            if not (fit.settings.is_default and several) or obstacle_to_counts(fit) is not None:
                return None
        elif strength == 0:
            return None
        else:
            refuse_without_counts("logit_adjustment", strength, fit)
        if fit.row_map.intercept_value is None:  # before the map is known
            return None
        return sum(share for _, share in self.lines(fit, 0.0)) or 0.0

    def lines(self, fit: Fit, price: Price) -> tuple[tuple[str, Price], ...]:
        lines = []
        if fit.labels.shares is None:  # no counts were released for the start
            n_classes = max(fit.data.loss.n_outputs, 2)
            lines.append((self.name, count_share(fit.mu, fit.n_rows, n_classes)))
        if fit.settings.logit_adjustment == "auto":
            lines.append((_COMPARED, share_for(fit.mu, fit.n_rows, math.sqrt(len(MULTIPLES)))))
        return tuple(line for line in lines if line[1])

    def run(self, fit: Fit, price: Price) -> Procedure[Fit]:
        rounds = partial(self._adjust, fit, price)
        queries = fit.correct(rounds, price) if price else cast(Procedure[Any], rounds(0.0))
        W, shares = yield from queries
        return replace(fit.spent(self, price).with_head(W), labels=replace(fit.labels, shares=shares))

    def _adjust(self, fit: Fit, price: Price, multiplier: float) -> Rounds:
        """Yield queries that share the budget of one step; return the adjusted head and class shares."""
        constant = fit.row_map.intercept_value
        assert fit.plan is not None and fit.head is not None and constant is not None
        W, info, strength = fit.head.W, fit.plan.info, fit.settings.logit_adjustment
        shares, prices = fit.labels.shares, dict(self.lines(fit, price))
        if shares is None:
            part, labels_alone = prices[self.name] / price, np.zeros((0, W.shape[1]))
            classes = partial(in_class, n_classes=max(fit.data.loss.n_outputs, 2))
            (counts,) = yield counts_query(labels_alone, classes, part)
            shares = class_shares(counts, multiplier / math.sqrt(part), info.n_effective)
        k, public = len(shares), fit.labels.logits is None and bool(np.any(info.view.W))
        adjusted = partial(_adjusted, W, shares, info, constant, public)
        if strength != "auto":
            return adjusted(float(strength), min(1.0, float(strength))), shares
        if np.ptp(shares) == 0:
            return W, shares
        # 1 without noise in the counts, and 1/2 at the largest noise allowed.
        noise = k / (math.sqrt(WORTH.limits[1]) * fit.mu * info.n_private)
        reliability = 1 - min(1.0, noise / WORTH.most) / 2
        usual = _FROM_START if public else _FROM_ZERO
        heads = [adjusted(m * usual * reliability, m) for m in MULTIPLES]
        if _COMPARED not in prices:
            return heads[0], shares
        part = prices[_COMPARED] / price
        (gains,) = yield comparison_query(W, heads, part)
        error = multiplier / math.sqrt(part) * sensitivity_of(len(heads)) / info.n_effective
        expected, spread = _EXPECTED_LOSS * MULTIPLES, np.full(len(heads), _LOSS_SPREAD)
        losses = expected_losses(-gains / info.n_effective, error, expected, spread)
        tolerable = np.flatnonzero(losses <= _TOLERATED_LOSS)
        return heads[int(tolerable[-1])] if len(tolerable) else W, shares


def _adjusted(
    W: FloatArray,
    shares: FloatArray,
    info: PublicInfo,
    constant: float,
    restores: bool,
    strength: float,
    restored: float,
) -> FloatArray:
    """A head with adjusted logits and a part of the start; ``constant`` is that of the last column."""
    W, k = np.array(W), len(shares)
    if restores and restored and len(W) == k:  # one output for two classes has no row for each class
        rare = np.maximum(0.0, 1 - k * shares)
        # Scaled so that the outputs of the start are no larger than those of the head.
        data, start = info.view.data, info.view.W
        outputs = (W, start) if data.n_rows == 0 else (data.X @ W.T, data.X @ start.T)
        first, second = (float(np.linalg.norm(each)) for each in outputs)
        scale = min(1.0, first / second) if second > 0 else 0.0
        W += restored * rare[:, np.newaxis] * scale * start
    logs = np.log(shares)
    W[:, -1] -= strength / constant * (logs - logs.mean() if len(W) == k else logs[1:] - logs[:1])
    return W
