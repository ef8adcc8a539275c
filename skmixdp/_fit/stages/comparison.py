"""Which head is best after the training: shrunk towards its start or not, or the start."""

import math
from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import softmax

from ..._engine import PostTrainingRelease, Procedure
from ...components.protocols import FloatArray, PublicInfo, Rounds, StepContext, Update
from ..stage import Fit, Price, Stage
from ..statistics import (
    CLEARLY,
    FEWEST,
    OF_ACCURACIES,
    OF_LOSSES,
    Worth,
    comparison_query,
    expected_losses,
    gains_query,
    held_out_gains,
    sensitivity_of,
    share_for,
    usual_gain,
    warn_of_sufficient_public_rows,
)

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

#: Noise in an accuracy when shares are compared.
_WORTH = Worth(0.01, 0.1, (0.002, 0.02))

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

    Each half of the public rows evaluates the change ``W - W_0``, added to the start that the other half
    gives.

    **The share s.** Let ``j = max(0, 1 - v / e)`` (James and Stein), for the mean square ``e`` of the outputs
    of ``W - W_0`` on public rows, and ``v`` that of undamped noise. The usual share is ``min(1, 0.2 + 2 j)``,
    or 1 for squared loss. A smaller share of at least ``1.5 j`` is taken if its loss, at the best scale of
    its outputs, is lower by more than a standard error. A bound is needed, since ``W`` moves away from a
    start that was fitted to these rows.

    **Class balance B** holds the intercepts at which all classes have the same mean probability on public
    rows, shrunk by how far the halves agree. The usual part is ``t = 0.4``. ``intercept`` is the constant of
    the last column, or None if classes are not balanced. ``comparison`` is by private rows, None if rows are
    too few.

    *Guarantee*: it uses only released heads and public rows, and its comparison.

    Sources: James and Stein 1961, "Estimation with quadratic loss"; Menon et al. 2021, "Long-tail learning
    via logit adjustment", section 4.1.
    """

    def __init__(self, inner: Update, info: PublicInfo, intercept: float | None = None) -> None:
        self.inner = inner
        self.info = info
        self.intercept = intercept
        mu, n_rows = info.mu, info.n_private
        shares = share_for(mu, n_rows, 1.0, _WORTH)
        parts = 0.0 if intercept is None else share_for(mu, n_rows, math.sqrt(len(_PARTS)))
        data = info.view.data
        self.comparison: PostTrainingRelease | None = None
        if shares > 0 and data.loss.has_classes and data.n_rows >= _FEWEST:
            self.comparison = PostTrainingRelease(shares + parts, self.compare)
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

        The usual share is compared with 1, and with the one that public rows favour, or 0. A favoured share
        needs a positive difference, any other one of two standard deviations of the noise. Parts ``t`` of 0.4
        and 0.8 are compared with 0, if rows can tell; the one with the highest expected accuracy is taken.

        *Guarantee*: one release of m differences of numbers of correct rows, of sensitivity ``sqrt(m)``,
        since one row changes each by at most 1.
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
        needed = np.full(len(others), CLEARLY * error)
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
        certain = self._clear_share(change, variance)
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

    def _clear_share(self, change: FloatArray, variance: float) -> float:
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

    Each half has logits (n, k) of held-out rows and their class indices. The mean of the intercepts is
    multiplied by its reliability ``2 r / (1 + r)``, for the correlation r of the halves about zero (Spearman
    1910, Brown 1910).
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

    All classes in ``y`` (n,) have the same weight; classes without rows get zero.
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


def start_comparison(inner: Update, info: PublicInfo) -> PostTrainingRelease | None:
    """The release that returns the start if it predicts private targets clearly better than the trained head.

    *Guarantee*: one release of a sum of clipped differences of squared errors. One row changes it by at most
    1. Its clip is a quantile of the differences on held-out public rows.
    """
    share = share_for(info.mu, info.n_private, 1.0, OF_LOSSES)
    if not share or info.view.data.n_rows < FEWEST:
        return None

    def better_head(W: FloatArray, state: Any, multiplier: float) -> Rounds:
        view, W = info.view, inner.result(W, state)
        # The limit comes from held-out rows: on its own rows the start is so good that gains are not typical.
        with np.errstate(all="ignore"):  # a head that diverged is refused later
            limit = usual_gain(held_out_gains(info, W)) or 1.0
            if info.gradient_bound is not None:
                # With skewed targets, rows with large errors matter most.
                usual = usual_gain(view.gradient_norms)
                limit *= max(1.0, info.gradient_bound / usual) if usual > 0 else 1.0
        (released,) = yield gains_query(W, [view.W], limit, view.data.loss)
        if not float(released[0]) > CLEARLY * multiplier:
            return W
        warn_of_sufficient_public_rows(view.data.n_rows)
        return view.W

    return PostTrainingRelease(share, better_head)


class Comparison(Stage):
    """The result of the training, by the comparison of its recipe, or free without one."""

    name = "comparison"
    limits = (_WORTH.limits[0], _WORTH.limits[1] + OF_ACCURACIES.limits[1])

    def price(self, fit: Fit) -> Price | None:
        assert fit.recipe is not None
        return 0.0 if fit.recipe.comparison is None or not fit.divides_after else fit.recipe.comparison.share

    def run(self, fit: Fit, price: Price) -> Procedure[Fit]:
        recipe, head, W = fit.recipe, fit.head, None
        assert recipe is not None and head is not None
        if price:
            assert recipe.comparison is not None
            W = yield from fit.correct(partial(recipe.comparison.ask, head.W, head.state), price, None)
        if W is None:  # nothing was compared, or the answer was lost
            W = recipe.update.result(head.W, head.state)
        return fit.spent(self, price, head=replace(head, W=W))
