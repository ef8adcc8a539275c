"""Shrinkage and temperature of a released head, chosen on public rows and by a noisy comparison."""

import math
import warnings
from collections.abc import Iterator
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .._linear import class_indices, predicted_classes
from .._rows import Block, Contribution
from ..public import PublicData
from .protocols import Closing, PrivateQuery, PublicInfo, ReleasedArray, StepContext, Update

FloatArray = NDArray[np.floating[Any]]

#: Candidate shares ``s`` of the way from the start to the released head.
_SHARES = np.array([0.0, 0.25, 0.5, 0.75, 1.0])

#: The kept share is at least this multiple of the share that cannot be noise.
_KEPT = 1.5

#: Candidate factors ``b`` of the outputs.
_TEMPERATURES = 2.0 ** np.arange(-3, 3.25, 0.25)

#: With fewer public rows, the head is returned unchanged.
_FEWEST = 20

#: Share of mu squared for the comparison on private rows.
COMPARISON_SHARE = 0.02

#: The comparison is made if its noise is at most this part of the private rows.
_LARGEST_ERROR = 0.1

#: By how many standard deviations of the noise the start must be better, if public rows do not favour it.
_CLEARLY = 2.0


class PublicShrinkage:
    """Returns the shrunk head ``b (W_0 + s (W - W_0))``, with ``s`` and ``b`` chosen on public rows.

    The public rows are split into halves. Each half evaluates the change ``W - W_0``, added to the start
    that the other half gives. The share ``s`` is 1 unless a smaller share has a clearly lower loss, each with
    its own best ``b``. Clearly means by more than the standard error of the difference. If ``s = 0``, private
    rows were of no use under this budget, and a warning says so. ``b`` changes probabilities, not
    predictions. It is 1 for squared loss.

    This evaluation underrates the change: ``W`` moves away from a start that was fitted to the evaluating
    rows themselves. So a share is only considered if it is at least 1.5 times ``1 - v / e`` (the
    factor of James and Stein). Here ``e`` is the mean square of the outputs of ``W - W_0`` on public rows,
    and ``v`` is the mean square that undamped noise alone would give.

    Parameters
    ----------
    inner : Update
        The update that moves the head.
    info : PublicInfo
        The public facts of the fit.

    Notes
    -----
    *Guarantee*: it uses only released heads and public rows.

    References
    ----------
    James and Stein 1961, "Estimation with quadratic loss".
    """

    def __init__(self, inner: Update, info: PublicInfo) -> None:
        self.inner = inner
        self.info = info

    def init(self, W: FloatArray) -> tuple[FloatArray, Any]:
        W, inner = self.inner.init(W)
        return W, (inner, 0.0)

    def step(self, ctx: StepContext, direction: FloatArray, state: Any) -> tuple[FloatArray, Any]:
        inner, variance = state
        W, inner = self.inner.step(ctx, direction, inner)
        scale = ctx.step_size * (1 - ctx.public_weight) * ctx.noise_multiplier / ctx.batch_size
        released = sum(part.sensitivity**2 / part.share for part in ctx.released)
        return W, (inner, variance + scale**2 * released)

    def result(self, W: FloatArray, state: Any) -> FloatArray:
        inner, variance = state
        W = self.inner.result(W, inner)
        share, scale = self._chosen_on_public_rows(W, variance)
        if share == 0:
            self._warn_of_sufficient_public_rows()
        return self._shrunk(W, share, scale)

    @property
    def can_compare(self) -> bool:
        """Whether private rows can compare heads: enough of them, and classes to count."""
        loss, error = self.info.loss, 1 / (math.sqrt(COMPARISON_SHARE) * self.info.mu)
        counts = not loss.quadratic and self.info.view.n_rows >= _FEWEST
        return counts and error <= _LARGEST_ERROR * self.info.n_private

    def closing(self, W: FloatArray, state: Any, multiplier: float) -> Closing:
        """As :meth:`result`, with one noisy comparison of two heads on private rows.

        Public rows may be few, or have another mix of classes than the private ones. So the share ``s`` that
        they choose is compared with ``s = 1`` on private rows, or ``s = 0`` if they choose 1. The released
        number is the difference of the numbers of correctly classified private rows. A share below 1 that
        public rows favour is kept if the difference favours it too. ``s = 0`` against their choice needs a
        difference of two standard deviations of the noise.

        Notes
        -----
        *Guarantee*: one release of sensitivity 1, since one row changes the difference by at most 1.
        """
        inner, variance = state
        W = self.inner.result(W, inner)
        favoured, scale = self._chosen_on_public_rows(W, variance)
        other = favoured if favoured < 1 else 0.0
        heads = self._shrunk(W, other, 1.0), self._shrunk(W, 1.0, 1.0)
        (noisy,) = yield PrivateQuery(
            points=np.concatenate(heads),
            contribute=partial(_difference_of_correct, n_outputs=len(W)),
            releases=(ReleasedArray(1.0),),
        )
        needed = 0.0 if favoured < 1 else _CLEARLY * multiplier
        share = other if float(noisy[0]) > needed else 1.0
        if share == 0:
            self._warn_of_sufficient_public_rows()
        return self._shrunk(W, share, scale)

    def _shrunk(self, W: FloatArray, share: float, scale: float) -> FloatArray:
        if share == scale == 1:
            return W
        start = self.info.view.W
        return np.asarray(scale * (start + share * (W - start)))

    def _chosen_on_public_rows(self, W: FloatArray, variance: float) -> tuple[float, float]:
        """The share ``s`` and the temperature ``b`` that public rows choose."""
        data, way = self.info.view.data, W - self.info.view.W
        if data.n_rows < _FEWEST:
            return 1.0, 1.0
        candidates = _SHARES[min(1.0, _KEPT * _certain_share(data, way, variance)) <= _SHARES]
        losses = self._losses(data, way, candidates)
        best = losses.mean(axis=2).argmin(axis=1)
        chosen = _clearly_least(losses[np.arange(len(candidates)), best])
        scale = 1.0 if data.loss.quadratic else float(_TEMPERATURES[best[chosen]])
        return float(candidates[chosen]), scale

    def _warn_of_sufficient_public_rows(self) -> None:
        warnings.warn(
            f"the {self.info.view.n_rows} public rows suffice: the start of the fit does better than the "
            "trained head under this budget, so the start is returned; "
            "pass more private rows or a larger epsilon, or do without the private rows.",
            UserWarning,
            stacklevel=2,
        )

    def _losses(self, data: PublicData, way: FloatArray, shares: FloatArray) -> FloatArray:
        """Loss of each held-out row, (shares, temperatures, rows)."""
        scales = np.ones(1) if data.loss.quadratic else _TEMPERATURES
        parts = []
        for start, judge in self._folds(data):
            near, far = judge.X @ start.T, judge.X @ way.T
            parts.append([[judge.loss.values(b * (near + s * far), judge.y) for b in scales] for s in shares])
        return np.concatenate(parts, axis=2)

    def _folds(self, data: PublicData) -> Iterator[tuple[FloatArray, PublicData]]:
        """Starts from one half of the public rows, each with the other half."""
        for known, judge in (data.halves, data.halves[::-1]):
            yield (self.info.view.W if self.info.start is None else self.info.start(known)), judge


def _difference_of_correct(Z: FloatArray, block: Block, n_outputs: int) -> Contribution:
    """For each row: whether the first head is right, less whether the second is."""
    y = class_indices(block.y)
    first, second = (
        predicted_classes(Z[:, part]) == y for part in (slice(n_outputs), slice(n_outputs, None))
    )
    return None, (first.astype(np.float64) - second.astype(np.float64))[:, np.newaxis]


def _certain_share(data: PublicData, way: FloatArray, variance: float) -> float:
    """Share of the change that cannot be noise with this variance per coefficient."""
    outputs = data.X @ way.T
    noise = variance * float(np.mean(data.norms**2))
    if data.loss.sum_to_zero:
        outputs -= outputs.mean(axis=1, keepdims=True)
        noise *= 1 - 1 / data.loss.n_outputs
    energy = float(np.mean(outputs**2))
    return max(0.0, 1 - noise / energy) if energy > 0 else 0.0


def _clearly_least(losses: FloatArray) -> int:
    """Index of the chosen share, by losses (shares, rows): the last unless another is clearly lower."""
    gains = losses[-1] - losses
    means, errors = gains.mean(axis=1), gains.std(axis=1, ddof=1) / np.sqrt(losses.shape[1])
    clear = means > errors
    return int(np.where(clear, means, -np.inf).argmax()) if clear.any() else len(losses) - 1
