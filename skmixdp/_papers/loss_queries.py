"""Zeroth-order queries: they ask private rows for losses at a few heads, never for gradients.

A step uses a linear head through its :class:`~skmixdp.components.public.PublicView`. The view of a torch
module has the same methods. Each view chooses how it represents vectors of parameters.
"""

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from .._linear.arrays import FloatArray
from ..components.clipping import clipped, scalars
from ..components.protocols import PrivateQuery, Rounds, StepContext, Update
from ..components.public import PublicView

#: Vectors of the model's parameters.
Vectors = Any


@dataclass(frozen=True)
class RandomDirections:
    """Random directions in the whole parameter space, of length ``p ** exponent``.

    With exponent 1/2, the two-point estimate is unbiased. With 1/4, its root mean square length is that of
    the gradient. Source: PAZO, Algorithm 1 and Appendix A.1 (1/4), equation 2 (1/2), Appendix C (Gaussian).
    """

    exponent: float
    sphere: bool

    def radius(self, view: PublicView) -> float:
        return float(view.n_parameters**self.exponent)

    def dimension(self, view: PublicView) -> int:
        return view.n_parameters

    def draw(self, ctx: StepContext, count: int) -> Vectors:
        return ctx.view.random_directions(ctx.noise, count, self.radius(ctx.view), sphere=self.sphere)


@dataclass(frozen=True)
class PublicDirections:
    """Random combinations ``G v`` of public gradients, ``v`` of length ``sqrt(n_batches)``.

    With ``orthonormal`` gradients, the mean of the estimate is the projection of the gradient on their span,
    otherwise ``G G^T`` times the gradient. Source: PAZO, Algorithm 2.
    """

    n_batches: int
    batch_size: int | None
    orthonormal: bool
    sphere: bool

    def radius(self, view: PublicView) -> float:
        return math.sqrt(self.n_batches)

    def dimension(self, view: PublicView) -> int:
        return self.n_batches

    def draw(self, ctx: StepContext, count: int) -> Vectors:
        gradients = public_gradients(ctx, self.n_batches, self.batch_size)
        G = (ctx.view.orthonormal if self.orthonormal else ctx.view.unit)(gradients)
        v = ctx.noise.normal((count, len(G)))
        # Public gradients may all be zero, and have no orthonormal directions then.
        sphere = self.sphere and len(G) > 0
        lengths = np.linalg.norm(v, axis=1, keepdims=True) if sphere else math.sqrt(self.n_batches)
        return [ctx.view.combine(row, G) for row in v * (self.radius(ctx.view) / lengths)]


@dataclass(frozen=True)
class TwoPointQuery:
    """The sums of clipped differences of losses along random directions.

    For a direction ``u``, each row gives ``clip((f(W + smoothing u) - f(W - smoothing u)) / (2 smoothing))``.
    The released mean of these numbers times ``u``, averaged over directions, estimates the private gradient.

    *Guarantee*: one row contributes at most :meth:`bound`, the typical share of a gradient along a random
    direction, to each of the ``n_directions`` numbers. So one row moves the array by at most the bound times
    ``sqrt(n_directions)``, regardless of the rounding of losses.

    Source: PAZO, equation 2 and Algorithms 1 and 2; DPZero (Zhang et al. 2024), Algorithm 1.
    """

    directions: RandomDirections | PublicDirections
    n_directions: int
    smoothing: float
    loss_clip: float
    public_batch_size: int | None = None

    def sensitivity(self, view: PublicView, dtype: np.dtype[Any]) -> float:
        """Sensitivity of a gradient sum with the same noise in every queried direction."""
        return self.bound(view) * self.directions.radius(view) / math.sqrt(self.directions.dimension(view))

    def bound(self, view: PublicView) -> float:
        """Bound on the absolute value of each row's difference."""
        return self.loss_clip * self.directions.radius(view) / math.sqrt(self.directions.dimension(view))

    def step(self, ctx: StepContext) -> Rounds:
        q = self.n_directions
        U = self.directions.draw(ctx, q)
        bound = self.bound(ctx.view)
        moves = [(j, sign * self.smoothing) for sign in (1, -1) for j in range(q)]
        probe = ctx.view.probe(U, moves)

        def contribute(Z: FloatArray, block: Any) -> tuple[None, FloatArray]:
            losses = probe.losses(Z, block.y)
            return None, clipped((losses[:, :q] - losses[:, q:]) / (2 * self.smoothing), bound)

        (sums,) = yield PrivateQuery(probe.points, contribute, releases=(scalars(bound, q, 1.0),))
        estimate = ctx.view.combine(sums / (ctx.batch_size * q), U)
        if ctx.public_weight == 0 or self.public_batch_size is None:
            return ctx.direction(estimate)
        return ctx.direction(estimate, public_gradients(ctx, 1, self.public_batch_size)[0])


@dataclass(frozen=True)
class CandidateQuery:
    """The public gradient whose step gives the smallest losses of private rows.

    The score of a candidate ``g`` is the mean of clipped losses at ``W - step_size g``, the head after a step
    of plain descent. A further candidate is the best of them plus a random vector with standard deviation
    ``candidate_noise`` in each coordinate, unless this is None.

    *Guarantee*: m losses share the step. Each row's loss is at most ``loss_clip`` in absolute value, so each
    mean has noise of variance ``m (loss_clip noise_multiplier / b)**2``.

    Source: PAZO, Algorithm 3.
    """

    n_candidates: int
    batch_size: int | None
    loss_clip: float
    candidate_noise: float | None

    def sensitivity(self, view: PublicView, dtype: np.dtype[Any]) -> float:
        """Sensitivity of each sum of losses."""
        return self.loss_clip

    def step(self, ctx: StepContext) -> Rounds:
        gradients = public_gradients(ctx, self.n_candidates, self.batch_size)
        regulariser = ctx.direction(0 * gradients[0])
        candidates = [gradient + regulariser for gradient in gradients]
        n_losses = len(candidates) + (self.candidate_noise is not None)
        losses = yield from self._losses(ctx, candidates, n_losses)
        best = int(np.argmin(losses))
        if self.candidate_noise is None:
            return candidates[best]
        radius = self.candidate_noise * math.sqrt(ctx.view.n_parameters)
        (step,) = ctx.view.random_directions(ctx.noise, 1, radius, sphere=False)
        further = candidates[best] + step
        (loss,) = yield from self._losses(ctx, [further], n_losses)
        return further if loss < losses[best] else candidates[best]

    def _losses(self, ctx: StepContext, candidates: Vectors, n_losses: int) -> Rounds:
        """Ask for the sums of clipped losses after a step along each candidate."""
        count = len(candidates)
        probe = ctx.view.probe(candidates, [(j, -ctx.step_size) for j in range(count)])
        (sums,) = yield PrivateQuery(
            probe.points,
            # A NaN loss counts as the largest one, so that its candidate does not win.
            lambda Z, block: (None, clipped(probe.losses(Z, block.y), self.loss_clip, self.loss_clip)),
            releases=(scalars(self.loss_clip, count, count / n_losses),),
        )
        return sums


@dataclass(frozen=True)
class Descent(Update):
    """Plain descent ``W <- W - step_size D`` for the parameters of any view, modules included."""

    def init(self, W: Any) -> tuple[Any, None]:
        return W, None

    def step(self, ctx: StepContext, direction: Any, state: None) -> tuple[Any, None]:
        return ctx.view.moved(direction, -ctx.step_size), None


def public_gradients(ctx: StepContext, n_batches: int, batch_size: int | None) -> Vectors:
    """Mean gradients of disjoint random batches of public rows."""
    n_rows = ctx.view.data.n_rows
    order = np.argsort(ctx.noise.uniform((n_rows,)))
    size = n_rows // n_batches if batch_size is None else batch_size
    return ctx.view.batch_gradients([order[j * size : (j + 1) * size] for j in range(n_batches)])
