"""What is made of a released head by looking at public rows: shrinkage and temperature."""

import warnings
from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..public import PublicData
from .protocols import PublicInfo, StepContext, Update

FloatArray = NDArray[np.floating[Any]]

#: How much of the way from the start to the released head may be kept.
_SHARES = np.array([0.0, 0.25, 0.5, 0.75, 1.0])

#: At least so many times the share of the way that cannot be noise is kept.
_KEPT = 1.5

#: What the outputs may be multiplied by.
_TEMPERATURES = 2.0 ** np.arange(-3, 3.25, 0.25)

#: Public rows below which none of this is decided.
_FEWEST = 20


class PublicShrinkage:
    """Return ``b (W_0 + s (W - W_0))`` with ``s`` and ``b`` chosen on public rows.

    Each half of the public rows judges the way ``W - W_0`` from the start that the other half would
    have given. The share ``s`` is 1 unless a smaller one has a loss that is less by more than the
    standard error of the difference, each share at its own best ``b``. With ``s = 0`` private rows
    have been of no use under this budget, and a warning says so. ``b`` changes probabilities, not
    predictions; for squared loss it is 1.

    The judgement is too hard on the way, which leads away from what the start had made of the very
    rows that judge. So a share is only considered if it is at least 1.5 times
    ``1 - v / e`` (James and Stein's factor): ``e`` is the mean square of the outputs along the way on
    public rows, ``v`` what the noise alone would make of it if nothing damped it.

    Parameters
    ----------
    inner : Update
        What moves the head.
    info : PublicInfo
        The public facts of the fit.

    Notes
    -----
    *Guarantee*: only released heads and public rows enter.

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
        data, start = self.info.view.data, self.info.view.W
        if data.n_rows < _FEWEST:
            return W
        way = W - start
        candidates = _SHARES[min(1.0, _KEPT * _certain_share(data, way, variance)) <= _SHARES]
        losses = self._losses(data, way, candidates)
        best = losses.mean(axis=2).argmin(axis=1)
        chosen = _clearly_least(losses[np.arange(len(candidates)), best])
        if candidates[chosen] == 0:
            warnings.warn(
                f"the {data.n_rows} public rows suffice: on those held out, a fit of the others does better "
                "without what the private rows add to it under this budget, and it is what is returned; "
                "pass more private rows or a larger epsilon, or do without the private rows.",
                UserWarning,
                stacklevel=2,
            )
        scale = 1.0 if data.loss.quadratic else _TEMPERATURES[best[chosen]]
        return np.asarray(scale * (start + candidates[chosen] * way))

    def _losses(self, data: PublicData, way: FloatArray, shares: FloatArray) -> FloatArray:
        """Loss of each held-out row, (shares, temperatures, rows)."""
        scales = np.ones(1) if data.loss.quadratic else _TEMPERATURES
        parts = []
        for start, judge in self._folds(data):
            near, far = judge.X @ start.T, judge.X @ way.T
            parts.append([[judge.loss.values(b * (near + s * far), judge.y) for b in scales] for s in shares])
        return np.concatenate(parts, axis=2)

    def _folds(self, data: PublicData) -> Iterator[tuple[FloatArray, PublicData]]:
        """Starts, each with the rows that it has not seen."""
        for known, judge in (data.halves, data.halves[::-1]):
            yield (self.info.view.W if self.info.start is None else self.info.start(known)), judge


def _certain_share(data: PublicData, way: FloatArray, variance: float) -> float:
    """Share of the way that noise of a variance per coefficient cannot have made."""
    outputs = data.X @ way.T
    noise = variance * float(np.mean(data.norms**2))
    if data.loss.sum_to_zero:
        outputs -= outputs.mean(axis=1, keepdims=True)
        noise *= 1 - 1 / data.loss.n_outputs
    energy = float(np.mean(outputs**2))
    return max(0.0, 1 - noise / energy) if energy > 0 else 0.0


def _clearly_least(losses: FloatArray) -> int:
    """Index of the share to take, by losses (shares, rows): the last unless another is clearly less."""
    gains = losses[-1] - losses
    means, errors = gains.mean(axis=1), gains.std(axis=1, ddof=1) / np.sqrt(losses.shape[1])
    clear = means > errors
    return int(np.where(clear, means, -np.inf).argmax()) if clear.any() else len(losses) - 1
