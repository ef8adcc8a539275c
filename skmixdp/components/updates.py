"""Updates: how the next head follows from a direction.

:class:`SGD` moves the head. The projection and the averages wrap another update, so updates can be nested.
"""

from abc import abstractmethod
from dataclasses import dataclass
from typing import Any

import numpy as np

from .._linear.arrays import FloatArray
from .protocols import StepContext, Update


@dataclass(frozen=True)
class SGD(Update):
    """Gradient descent with momentum: ``V <- momentum V + (1 - momentum) D``, ``W <- W - step_size V``.

    In this averaged form, the length of a step does not depend on the momentum.

    Parameters
    ----------
    momentum : float
        Momentum in [0, 1); 0 is plain descent.
    """

    momentum: float = 0.0

    def init(self, W: FloatArray) -> tuple[FloatArray, FloatArray]:
        return W, np.zeros_like(W)

    def step(
        self, ctx: StepContext, direction: FloatArray, state: FloatArray
    ) -> tuple[FloatArray, FloatArray]:
        velocity = self.momentum * state + (1 - self.momentum) * direction
        return ctx.view.W - ctx.step_size * velocity, velocity


@dataclass(frozen=True)
class _Wrapper(Update):
    """Base of updates that change what another one does."""

    inner: Update

    def init(self, W: FloatArray) -> tuple[FloatArray, Any]:
        return self.inner.init(W)

    def result(self, W: FloatArray, state: Any) -> FloatArray:
        return self.inner.result(W, state)


@dataclass(frozen=True)
class Preconditioned(_Wrapper):
    """Multiply directions by a positive definite matrix (d_in, d_in)."""

    matrix: FloatArray

    def step(self, ctx: StepContext, direction: FloatArray, state: Any) -> tuple[FloatArray, Any]:
        return self.inner.step(ctx, direction @ self.matrix, state)


@dataclass(frozen=True)
class BallProjection(_Wrapper):
    """Project the start and every new head on ``|W| <= radius`` (AdaMix, Algorithm 1, last line)."""

    radius: float

    def init(self, W: FloatArray) -> tuple[FloatArray, Any]:
        return self.inner.init(project_on_ball(W, self.radius))

    def step(self, ctx: StepContext, direction: FloatArray, state: Any) -> tuple[FloatArray, Any]:
        W, state = self.inner.step(ctx, direction, state)
        return project_on_ball(W, self.radius), state


class _Average(_Wrapper):
    """Base of updates that return a running average of heads."""

    def init(self, W: FloatArray) -> tuple[FloatArray, Any]:
        W, inner = self.inner.init(W)
        return W, (inner, np.zeros_like(W))

    def step(self, ctx: StepContext, direction: FloatArray, state: Any) -> tuple[FloatArray, Any]:
        inner, average = state
        W, inner = self.inner.step(ctx, direction, inner)
        return W, (inner, average + self.term(ctx, W))

    @abstractmethod
    def term(self, ctx: StepContext, W: FloatArray) -> FloatArray | float:
        """The term of the average that belongs to the step that led to ``W``."""

    def result(self, W: FloatArray, state: Any) -> FloatArray:
        average: FloatArray = state[1]
        return average


class PolynomialAverage(_Average):
    """Returns the average ``sum_t 2 t / (T (T + 1)) W_t`` of the heads at which gradients were computed.

    Source: AdaMix, Theorem 3 and Algorithm 3; Lacoste-Julien, Schmidt and Bach 2012.
    """

    def term(self, ctx: StepContext, W: FloatArray) -> FloatArray:
        return 2 * ctx.t / (ctx.n_steps * (ctx.n_steps + 1)) * ctx.view.W


class UniformAverage(_Average):
    """Returns the mean of the heads after steps 1 to T (PDA-DPMD, Algorithm 1, last line)."""

    def term(self, ctx: StepContext, W: FloatArray) -> FloatArray:
        return W / ctx.n_steps


class TailAverage(_Average):
    """Returns the mean of the heads after the last quarter of the steps, which oscillates less.

    In directions where noise accumulates, it loses some 4% of the last head's gain over the noise.

    Source: Jain et al. 2018, "Parallelizing stochastic gradient descent for least squares regression".
    """

    def term(self, ctx: StepContext, W: FloatArray) -> FloatArray | float:
        n_last = -(-ctx.n_steps // 4)
        return W / n_last if ctx.t > ctx.n_steps - n_last else 0.0


class TowardsStart(_Wrapper):
    """Shrinks the change from the start by the part of its squared length that noise explains.

    The factor is ``max(0, 1 - noise / change)`` (James and Stein 1961), as if no later step damped the noise.
    """

    def init(self, W: FloatArray) -> tuple[FloatArray, Any]:
        W, state = self.inner.init(W)
        return W, (W, 0.0, state)

    def step(self, ctx: StepContext, direction: FloatArray, state: Any) -> tuple[FloatArray, Any]:
        start, noise, inner = state
        W, inner = self.inner.step(ctx, direction, inner)
        return W, (start, noise + W.size * ctx.noise_variance, inner)

    def result(self, W: FloatArray, state: Any) -> FloatArray:
        start, noise, inner = state
        change = self.inner.result(W, inner) - start
        length = float(np.vdot(change, change))
        share = max(0.0, 1 - noise / length) if length > 0 else 0.0
        return np.asarray(start + share * change)


def project_on_ball(W: FloatArray, radius: float) -> FloatArray:
    """Nearest head of Frobenius norm at most ``radius``."""
    length = float(np.linalg.norm(W))
    return W if length <= radius else W * (radius / length)
