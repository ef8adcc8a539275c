"""Mirror descent with the penalised mean loss of public rows, and the inverse of its gradient map.

The rows are rotated once to the principal axes of their span, in which the penalty stays what it
is, the Hessian of squared loss is diagonal, and that of the other losses nearly so. Outside the
span of the rows only the penalty acts. Nothing of size (k d_in)^2 is formed.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit, softmax

from .._linear.arrays import FloatArray, principal_axes, row_norms
from .._linear.losses import Loss, WeightedLoss
from ..components.protocols import StepContext, Update
from ..components.public import PublicData

_NEWTON_STEPS = 60
_CG_STEPS = 1000
_HALVINGS = 40

#: Distance from the computed head to the exact one, relative to the larger of its norm and 1.
_TOLERANCE = 1e-11


class PenalizedLoss:
    """``mean_j w_j loss(W x_j, y_j) + l2 / 2 |W|^2`` as a function of ``W`` (k, d_in).

    The weights ``w_j`` are those of a WeightedLoss, else 1. ``l2`` is positive: without it, the gradient's
    range is bounded, and not every gradient is reached.
    """

    def __init__(self, X: FloatArray, y: NDArray[Any], loss: Loss, l2: float) -> None:
        weights = None
        if isinstance(loss, WeightedLoss):
            (y, weights), loss = loss.split(y), loss.inner
        self.y = y
        self.loss = loss
        self.l2 = l2
        self.n_rows = max(len(X), 1)
        self._full = len(X) >= X.shape[1]
        weighted = X if weights is None else X * weights[:, np.newaxis]
        self.axes, self.moments, self.rows = principal_axes(X, weighted)
        self._weighted = self.rows if weights is None else weighted @ self.axes
        at_zero = self._residuals(np.zeros((loss.n_outputs, len(self.moments))))
        self._moved = at_zero.T @ self._weighted
        #: Mean length of the terms of the gradient at zero. At other heads, it at most doubles.
        self._term = float(np.sum(row_norms(at_zero) * row_norms(self._weighted))) / self.n_rows

    @classmethod
    def of(cls, data: PublicData) -> "PenalizedLoss":
        """The public objective divided by the number of rows: the mirror map of PDA-DPMD."""
        return cls(data.X, data.y, data.loss, data.l2 / max(data.n_rows, 1))

    @property
    def smallest_curvature(self) -> float:
        """Lower bound on the eigenvalues of the Hessian at any head."""
        if self.loss.quadratic and self._full and self.moments.size:
            return self.l2 + float(self.moments[0])
        return self.l2

    def gradient(self, W: FloatArray) -> FloatArray:
        """Gradient (k, d_in)."""
        A = W @ self.axes
        return np.asarray(self.l2 * W + self._loss_gradient(A) @ self.axes.T)

    def with_gradient(self, G: FloatArray, near: FloatArray) -> FloatArray:
        """The unique head (k, d_in) whose gradient is ``G``, found from ``near``; NaN if ``G`` is not finite.

        Newton's method, unless the loss is quadratic: each step is solved by conjugate gradients, and halved
        until the error in the gradient shrinks to :data:`_TOLERANCE` or rounding.
        """
        inside = G @ self.axes
        if self.loss.quadratic:
            A = (inside - self._moved / self.n_rows) / (self.moments + self.l2)
        else:
            A = self._newton(inside, near @ self.axes)
        if self._full:
            return np.asarray(A @ self.axes.T)
        return np.asarray((G - inside @ self.axes.T) / self.l2 + A @ self.axes.T)

    def noise_gain(self, W: FloatArray) -> float:
        """How much more noise moves logits of held-out rows than in gradient descent, as a factor.

        The noise passes through the inverse Hessian at ``W``, whose largest eigenvalue is normalised to 1.
        """
        leverages, inverse = self._geometry(W)
        if leverages.size == 0 or not np.any(self.rows):
            return 1.0
        # Scaled before squares are taken: with a strong penalty, squares of the inverse would underflow.
        lengths = row_norms(self.rows * (self.smallest_curvature * inverse)) / (1 - leverages)
        gain = float(np.sqrt(np.mean(lengths**2) / np.mean(row_norms(self.rows) ** 2)))
        return max(gain, float(np.finfo(np.float64).tiny))  # it may underflow

    def relative_curvature(self, W: FloatArray) -> float:
        """Estimate of the largest curvature of the mean loss on other rows; infinite without rows.

        The second moments of n random rows underrate those of their law by up to ``(1 - sqrt(g))^2``, where
        ``g`` is the effective dimension over n, here the mean leverage (Marchenko and Pastur).
        """
        leverages, _ = self._geometry(W)
        if leverages.size == 0:
            return float("inf")
        # With a tiny penalty, rounding brings a mean leverage to 1.
        slack = max(1 - float(np.sqrt(np.mean(leverages))), 1e-3)
        return self.smallest_curvature / slack**2

    def _geometry(self, W: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Leverages of the rows, and the eigenvalues of the inverse Hessian within their span."""
        if len(self.rows) == 0:
            return np.empty(0), np.empty(0)
        curvature = float(self._hessian_diagonal(self._outputs(W @ self.axes)).mean())
        inverse = 1 / (curvature * self.moments + self.l2)
        leverages = curvature / self.n_rows * ((self._weighted * self.rows) @ inverse)
        return np.minimum(leverages, 1 - 1e-6), inverse

    def _outputs(self, A: FloatArray) -> FloatArray:
        return np.asarray(self.rows @ A.T)

    def _residuals(self, A: FloatArray) -> FloatArray:
        return np.asarray(self.loss.residuals(self._outputs(A), self.y))

    def _loss_gradient(self, A: FloatArray) -> FloatArray:
        return np.asarray(self._residuals(A).T @ self._weighted / self.n_rows)

    def hessian_product(self, Z: FloatArray, V: FloatArray) -> FloatArray:
        """The Hessian of each row's loss in its outputs ``Z`` (n, k), applied to that row of ``V``."""
        if not self.loss.sum_to_zero:
            return self._hessian_diagonal(Z) * V
        P = softmax(Z, axis=1)
        product = P * V
        return np.asarray(product - P * product.sum(axis=1, keepdims=True))

    def _hessian_diagonal(self, Z: FloatArray) -> FloatArray:
        if self.loss.quadratic:
            return np.ones_like(Z)
        if self.loss.sum_to_zero:
            P = softmax(Z, axis=1)
            return np.asarray(P * (1 - P))
        return np.asarray(expit(Z) * expit(-Z))

    def _newton(self, G: FloatArray, A: FloatArray) -> FloatArray:
        def error_at(A: FloatArray) -> tuple[FloatArray, float]:
            part = self._loss_gradient(A)
            error = part + self.l2 * A - G
            # Terms of the mean may cancel each other, but their rounding does not.
            magnitude = self._term + self.l2 * np.linalg.norm(A) + np.linalg.norm(G)
            # The distance to the solution is at most |error| / l2.
            enough = max(
                _TOLERANCE * self.l2 * max(1.0, float(np.linalg.norm(A))),
                64 * np.finfo(np.float64).eps * float(magnitude),
            )
            return error, enough

        error, enough = error_at(A)
        first = length = float(np.linalg.norm(error))
        for _ in range(_NEWTON_STEPS):
            if not np.isfinite(length):
                return np.full_like(A, np.nan)
            if length <= enough:
                return A
            accuracy = min(0.1, float(np.sqrt(length / first))) * length
            step = self._solve(A, error, max(accuracy, enough / 2))
            for halving in range(_HALVINGS):
                share = 0.5**halving
                trial = A - share * step
                error, enough = error_at(trial)
                shorter = float(np.linalg.norm(error))
                if shorter <= (1 - 1e-4 * share) * length or shorter <= enough:
                    break
            A, length = trial, shorter
        raise RuntimeError(
            f"the mirror step did not converge: after {_NEWTON_STEPS} Newton steps the gradient is off "
            f"by {length:.1e}, where {enough:.1e} was asked for; pass a smaller learning_rate or a "
            "larger public_l2."
        )

    def _solve(self, A: FloatArray, right: FloatArray, accuracy: float) -> FloatArray:
        """Solve ``Hessian x = right`` at ``A`` by preconditioned conjugate gradients."""
        Z = self._outputs(A)
        # The diagonal of the Hessian, if all rows have the mean curvature of the outputs.
        scale = np.outer(self._hessian_diagonal(Z).mean(axis=0), self.moments) + self.l2
        solution = np.zeros_like(right)
        remainder = right.copy()
        scaled = remainder / scale
        direction = scaled.copy()
        product = float(np.vdot(remainder, scaled))
        for _ in range(_CG_STEPS):
            if float(np.linalg.norm(remainder)) <= accuracy:
                break
            inner = self.hessian_product(Z, self._outputs(direction))
            image = inner.T @ self._weighted / self.n_rows + self.l2 * direction
            energy = float(np.vdot(direction, image))
            if product == 0 or energy == 0:  # which may underflow
                break
            length = product / energy
            solution += length * direction
            remainder -= length * image
            scaled = remainder / scale
            last, product = product, float(np.vdot(remainder, scaled))
            direction = scaled + product / last * direction
        return solution


@dataclass(frozen=True)
class MirrorDescent(Update):
    """Mirror descent: ``grad Psi(W_{t+1}) = grad Psi(W_t) - step_size h D``.

    ``h`` is the smallest curvature of Psi, which normalises it: the inverse Hessian has no eigenvalue above
    1. The state is the gradient of Psi at the exact head, so errors of the solver do not accumulate.

    Source: PDA-DPMD, Algorithm 1; the normalisation is that of its Appendix E.
    """

    psi: PenalizedLoss

    def init(self, W: FloatArray) -> tuple[FloatArray, FloatArray]:
        return W, self.psi.gradient(W)

    def step(
        self, ctx: StepContext, direction: FloatArray, state: FloatArray
    ) -> tuple[FloatArray, FloatArray]:
        dual = state - ctx.step_size * self.psi.smallest_curvature * direction
        return self.psi.with_gradient(dual, ctx.view.W), dual
