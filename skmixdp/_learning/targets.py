"""Noisy comparisons of heads for targets or several labels, by the losses of private rows."""

import math
import warnings
from collections.abc import Sequence
from functools import partial
from typing import Any

import numpy as np

from .._engine import GaussianMechanism
from .._rows import Block, Contribution
from ..components.protocols import FloatArray, Loss, PrivateQuery, PublicInfo, Rounds, Update
from ..components.zeroth_order import clipped, scalars
from .facts import Learner, Learning, share_for, warn_of_sufficient_public_rows

#: Differences of losses are clipped at this quantile of those of public rows.
_QUANTILE = 0.9

#: Target for the noise in a mean difference, and the largest that is still useful, in units of the clip.
_ERROR, _MOST_ERROR = 0.03, 0.1

#: By how many standard deviations a start must be better or worse.
_CLEARLY = 2.0

#: What a fit does if public rows are useless, and what to check.
_OF_TARGETS = (
    "the fit left them out, but for the scale of the targets; check that y and y_pub are in the same units "
    "and were transformed alike"
)
_OF_LABELS = "the fit left them out; check that y and y_pub have the same labels in the same columns"

#: Fewest public rows from which to compute a clip and the spread of held-out gains.
FEWEST = 10


def gains_query(first: FloatArray, others: Sequence[FloatArray], limit: float, loss: Loss) -> PrivateQuery:
    """The query for how much smaller the losses of other heads are than those of the first.

    All heads are (k, d_in). The m sums are those of :func:`gains` in units of ``limit``, each clipped to
    [-1, 1].

    *Guarantee*: one row changes each sum by at most 1, so the sensitivity is ``sqrt(m)``.
    """
    return PrivateQuery(
        points=np.concatenate([first, *others]),
        contribute=partial(_gains, loss=loss, limit=limit),
        releases=(scalars(1.0, len(others), 1.0),),
    )


def _gains(Z: FloatArray, block: Block, loss: Loss, limit: float) -> Contribution:
    """Clipped gains (rows, m) from outputs (rows, (m + 1) k) of all heads."""
    return None, clipped(gains(np.asarray(Z), np.asarray(block.y), loss) / limit, 1.0)


def gains(Z: FloatArray, y: FloatArray, loss: Loss) -> FloatArray:
    """Losses of the first head minus those of each other, (rows, m); squared errors are not halved.

    ``Z`` (rows, (m + 1) k) holds the outputs of all heads. ``y`` may have weights after the labels or
    targets, which are ignored.
    """
    targets = y[:, : loss.n_outputs].astype(np.float64)
    first, *others = np.split(Z.astype(np.float64), Z.shape[1] // loss.n_outputs, axis=1)
    if not loss.quadratic:
        return np.stack([loss.values(first, targets) - loss.values(Z, targets) for Z in others], axis=1)
    # The difference of two squares, as a product: subtracting large squares would lose precision.
    return np.stack([np.sum((first - Z) * (first + Z - 2 * targets), axis=1) for Z in others], axis=1)


def usual_gain(values: FloatArray) -> float:
    """Size that most gains do not exceed. Those that are not finite count as 0."""
    finite = np.nan_to_num(values, nan=0.0, posinf=0.0, neginf=0.0)
    return float(np.quantile(np.abs(finite), _QUANTILE))


def start_predicts(info: PublicInfo, learner: Learner, multiplier: float) -> Learning[bool]:
    """Whether the public head is useful for private rows, or no worse for them than for public rows.

    It is useless if it predicts them worse than outputs of 0 do (the centre of targets, even chances of
    labels), and much worse than a head of half of the public rows predicts the other half. The noisy number
    is the sum of clipped differences of losses.

    *Guarantee*: one Gaussian release of this multiplier; one row changes the sum by at most 1.
    """
    nothing = np.zeros_like(info.view.W)
    held_out = _held_out_gains(info, nothing)
    limit = usual_gain(held_out) or 1.0
    query = gains_query(nothing, [info.view.W], limit, info.view.data.loss)
    released, scale = yield from learner.ask(GaussianMechanism(multiplier, 1, learner.noise), query)
    seen = (float(released[0]) + _CLEARLY * scale) / learner.n_rows
    public = clipped(held_out / limit, 1.0)
    error = float(public.std(ddof=1)) / math.sqrt(len(public))
    if seen >= min(0.0, float(public.mean()) - _CLEARLY * error):
        return True
    warnings.warn(
        "the head of the public rows predicts private rows worse than a constant, and public ones better, so "
        + (_OF_TARGETS if info.view.data.loss.quadratic else _OF_LABELS)
        + ", or pass other public rows, or none.",
        UserWarning,
        stacklevel=2,
    )
    return False


def _held_out_gains(info: PublicInfo, W: FloatArray) -> FloatArray:
    """How much smaller the losses of held-out public rows are under starts than under a head."""
    outputs = [np.hstack([judge.X @ W.T, judge.X @ start.T]) for start, judge in info.held_out]
    halves = [gains(Z, judge.y, judge.loss) for Z, (_, judge) in zip(outputs, info.held_out, strict=True)]
    return np.concatenate(halves)


class StartComparison:
    """Returns the start instead of the trained head if it predicts private targets clearly better.

    After the last step, squared errors of the two heads on private rows are compared. ``closing_share`` is
    the share of mu squared for that; 0 if noise would hide it.

    *Guarantee*: one release of a sum of clipped differences. One row changes it by at most 1. Its clip is a
    quantile of the differences on held-out public rows.
    """

    def __init__(self, inner: Update, info: PublicInfo) -> None:
        self.inner = inner
        self.info = info
        share = share_for(info.mu, info.n_private, 1.0, _ERROR, _MOST_ERROR)
        self.closing_share = share if info.view.data.n_rows >= FEWEST else 0.0

    def closing(self, W: FloatArray, state: Any, multiplier: float) -> Rounds:
        """The head to return, after the comparison."""
        view = self.info.view
        W = self.inner.result(W, state)
        # The start itself fits public rows too well, so that differences would look too small.
        with np.errstate(all="ignore"):  # a head that diverged is refused later
            limit = usual_gain(_held_out_gains(self.info, W)) or 1.0
        (released,) = yield gains_query(W, [view.W], limit, view.data.loss)
        if not float(released[0]) > _CLEARLY * multiplier:
            return W
        warn_of_sufficient_public_rows(view.data.n_rows)
        return view.W
