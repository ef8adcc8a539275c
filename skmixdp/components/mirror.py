"""Mirror descent whose mirror map is the public objective."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from .._linear import PenalizedLoss
from .protocols import StepContext

FloatArray = NDArray[np.floating[Any]]


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
