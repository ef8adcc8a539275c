"""How a direction moves the head.

:class:`SGD` moves it; :class:`BallProjection`, :class:`PolynomialAverage` and
:class:`UniformAverage` wrap another update, so any combination is a nesting.
"""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from .._linear import PenalizedLoss
from .protocols import StepContext, Update

FloatArray = NDArray[np.floating[Any]]


class SGD:
    """``V <- momentum V + (1 - momentum) D``, ``W <- W - step_size V``.

    The averaged form: the length of a step does not depend on the momentum.

    Parameters
    ----------
    momentum : float
        In [0, 1); 0 is plain descent.
    """

    def __init__(self, momentum: float = 0.0) -> None:
        self.momentum = momentum

    def init(self, W: FloatArray) -> tuple[FloatArray, FloatArray]:
        return W, np.zeros_like(W)

    def step(
        self, ctx: StepContext, direction: FloatArray, state: FloatArray
    ) -> tuple[FloatArray, FloatArray]:
        velocity = self.momentum * state + (1 - self.momentum) * direction
        return ctx.W - ctx.step_size * velocity, velocity

    def result(self, W: FloatArray, state: FloatArray) -> FloatArray:
        return W


class Descent:
    """``W <- W - step_size D``, by whatever it is that moves the view's parameters."""

    def init(self, W: Any) -> tuple[Any, None]:
        return W, None

    def step(self, ctx: StepContext, direction: Any, state: None) -> tuple[Any, None]:
        return ctx.view.moved(direction, -ctx.step_size), None

    def result(self, W: Any, state: None) -> Any:
        return W


class BallProjection:
    """Project the start and every new head on ``|W| <= radius`` (Frobenius norm, about the origin).

    Parameters
    ----------
    inner : Update
        What moves the head.
    radius : float
        The largest norm of a head.

    Source: AdaMix, Algorithm 1, last line of the loop.
    """

    def __init__(self, inner: Update, radius: float) -> None:
        self.inner = inner
        self.radius = radius

    def init(self, W: FloatArray) -> tuple[FloatArray, Any]:
        return self.inner.init(project_on_ball(W, self.radius))

    def step(self, ctx: StepContext, direction: FloatArray, state: Any) -> tuple[FloatArray, Any]:
        W, state = self.inner.step(ctx, direction, state)
        return project_on_ball(W, self.radius), state

    def result(self, W: FloatArray, state: Any) -> FloatArray:
        return self.inner.result(W, state)


class _Average:
    """An update whose result is a running average of heads, kept in addition to the inner state."""

    def __init__(self, inner: Update) -> None:
        self.inner = inner

    def init(self, W: FloatArray) -> tuple[FloatArray, Any]:
        W, inner = self.inner.init(W)
        return W, (inner, np.zeros_like(W))

    def result(self, W: FloatArray, state: Any) -> FloatArray:
        average: FloatArray = state[1]
        return average


class PolynomialAverage(_Average):
    """Return ``sum_t 2 t / (T (T + 1)) W_t`` over the heads at which gradients were taken.

    ``W_1`` is the start and the head after the last step is not part of it.

    Parameters
    ----------
    inner : Update
        What moves the head.

    Source: AdaMix, Theorem 3 and Algorithm 3; Lacoste-Julien, Schmidt and Bach 2012.
    """

    def step(self, ctx: StepContext, direction: FloatArray, state: Any) -> tuple[FloatArray, Any]:
        inner, average = state
        average = average + 2 * ctx.t / (ctx.n_steps * (ctx.n_steps + 1)) * ctx.W
        W, inner = self.inner.step(ctx, direction, inner)
        return W, (inner, average)


class UniformAverage(_Average):
    """Return the mean of the heads after steps 1 to T; the start is not part of it.

    Parameters
    ----------
    inner : Update
        What moves the head.

    Source: PDA-DPMD, Algorithm 1, last line.
    """

    def step(self, ctx: StepContext, direction: FloatArray, state: Any) -> tuple[FloatArray, Any]:
        inner, average = state
        W, inner = self.inner.step(ctx, direction, inner)
        return W, (inner, average + W / ctx.n_steps)


class TailAverage(_Average):
    """Return the mean of the heads after the last quarter of the steps.

    It takes the swinging out of steps that are too long for the stiffest directions. In the others,
    where noise adds up, it gives away some 4% of what the last head has gained over the noise.

    Parameters
    ----------
    inner : Update
        What moves the head.

    Source: Jain et al. 2018, "Parallelizing stochastic gradient descent for least squares
    regression" (tail averaging).
    """

    def step(self, ctx: StepContext, direction: FloatArray, state: Any) -> tuple[FloatArray, Any]:
        inner, average = state
        W, inner = self.inner.step(ctx, direction, inner)
        n_last = -(-ctx.n_steps // 4)
        return W, (inner, average + W / n_last if ctx.t > ctx.n_steps - n_last else average)


def project_on_ball(W: FloatArray, radius: float) -> FloatArray:
    """Nearest head of Frobenius norm at most ``radius``."""
    length = float(np.linalg.norm(W))
    return W if length <= radius else W * (radius / length)


class MirrorDescent:
    """``grad Psi(W_{t+1}) = grad Psi(W_t) - step_size h D``, with ``h`` Psi's smallest curvature.

    The factor ``h`` normalises Psi, so that the inverse of its Hessian has no eigenvalue above
    1: were the Hessian a multiple of the identity, this would be gradient descent. Where the
    public rows know much, the noise in ``D`` moves the head little.

    Parameters
    ----------
    psi : PenalizedLoss
        The mirror map: the mean loss of the public rows and a positive penalty. Its gradients
        are solved for with public rows only, at no cost of privacy.

    Raises
    ------
    RuntimeError
        From ``step``, if the solver does not converge.

    Notes
    -----
    The state is the head's gradient under Psi, kept exactly, so what a solver leaves of the
    distance to the exact head does not add up over the steps.

    Source: PDA-DPMD, Algorithm 1; the normalisation is that of its Appendix E.
    """

    def __init__(self, psi: PenalizedLoss) -> None:
        self.psi = psi

    def init(self, W: FloatArray) -> tuple[FloatArray, FloatArray]:
        return W, self.psi.gradient(W)

    def step(
        self, ctx: StepContext, direction: FloatArray, state: FloatArray
    ) -> tuple[FloatArray, FloatArray]:
        dual = state - ctx.step_size * self.psi.smallest_curvature * direction
        return self.psi.with_gradient(dual, ctx.W), dual

    def result(self, W: FloatArray, state: FloatArray) -> FloatArray:
        return W
