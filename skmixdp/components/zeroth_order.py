"""Zeroth-order steps: private rows are asked for losses at a few heads, never for gradients.

What a step needs of a parametrised model is :class:`ParameterView`: a linear head's
:class:`~skmixdp.public.PublicView` is one, and so is the view of a module with forward passes
alone. Vectors of its parameters are whatever the view makes of them.
"""

import math
from collections.abc import Generator, Sequence
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from ..public import Probe, PublicView, RandomSource
from .protocols import PrivateQuery, ReleasedArray, Rounds, StepContext

FloatArray = NDArray[np.floating[Any]]
#: One vector of the model's parameters, and several.
Vector = Any
Vectors = Any
Losses = Generator[PrivateQuery, tuple[FloatArray, ...], FloatArray]


class ParameterView(Protocol):
    """Public rows as they look at a model's current parameters."""

    @property
    def n_rows(self) -> int:
        """Number of public rows."""

    @property
    def n_parameters(self) -> int:
        """Number of trainable parameters."""

    def random_directions(self, source: RandomSource, count: int, radius: float, *, sphere: bool) -> Vectors:
        """Random directions, on the sphere of a radius or Gaussian of that root mean square."""

    def combine(self, weights: FloatArray, directions: Vectors) -> Vector:
        """``sum_j weights_j directions_j``."""

    def batch_gradients(self, batches: Sequence[NDArray[np.intp]]) -> Vectors:
        """Mean gradient over each batch of public rows."""

    def orthonormal(self, directions: Vectors) -> Vectors:
        """Orthonormal directions of the same span."""

    def unit(self, directions: Vectors) -> Vectors:
        """Each direction at length 1."""

    def probe(self, directions: Vectors, moves: Sequence[tuple[int, float]]) -> Probe:
        """How to ask for losses at the parameters plus ``step * directions[j]`` for each move."""

    def moved(self, direction: Vector, step: float) -> Any:
        """The parameters plus ``step`` times a direction; the view's own may be gone."""


class Directions(Protocol):
    """A rule for the random directions along which losses are compared."""

    def radius(self, view: ParameterView) -> float:
        """Length of a direction in root mean square."""

    def dimension(self, view: ParameterView) -> int:
        """Dimension of the space from which directions come."""

    def draw(self, ctx: StepContext, count: int) -> Vectors:
        """Directions of one step."""


class RandomDirections:
    """Directions in all of parameter space, of length ``p ** exponent``.

    Parameters
    ----------
    exponent : float
        1/2 makes the two-point estimate unbiased; 1/4 makes its root mean square length that of
        the gradient, and its mean the gradient over ``sqrt(p)``.
    sphere : bool
        Uniform on the sphere, or Gaussian.

    Source: PAZO, Algorithm 1 and Appendix A.1 (1/4), equation 2 (1/2) and Appendix C (Gaussian).
    """

    def __init__(self, exponent: float, sphere: bool) -> None:
        self.exponent = exponent
        self.sphere = sphere

    def radius(self, view: ParameterView) -> float:
        return float(view.n_parameters**self.exponent)

    def dimension(self, view: ParameterView) -> int:
        return view.n_parameters

    def draw(self, ctx: StepContext, count: int) -> Vectors:
        return ctx.view.random_directions(ctx.noise, count, self.radius(ctx.view), sphere=self.sphere)


class PublicDirections:
    """Random combinations ``G v`` of public gradients, ``v`` of length ``sqrt(n_batches)``.

    Parameters
    ----------
    n_batches : int
        Number of disjoint public batches, each with a mean gradient.
    batch_size : int or None
        Public rows in a batch; None shares all of them out.
    orthonormal : bool
        Orthonormalise the gradients, which makes the estimate average to the projection of the
        gradient on their span; otherwise they are only scaled to unit length, and the estimate
        averages to ``G G^T`` times the gradient.
    sphere : bool
        ``v`` uniform on the sphere, or Gaussian.

    Source: PAZO, Algorithm 2.
    """

    def __init__(self, n_batches: int, batch_size: int | None, orthonormal: bool, sphere: bool) -> None:
        self.n_batches = n_batches
        self.batch_size = batch_size
        self.orthonormal = orthonormal
        self.sphere = sphere

    def radius(self, view: ParameterView) -> float:
        return math.sqrt(self.n_batches)

    def dimension(self, view: ParameterView) -> int:
        return self.n_batches

    def draw(self, ctx: StepContext, count: int) -> Vectors:
        gradients = public_gradients(ctx, self.n_batches, self.batch_size)
        G = (ctx.view.orthonormal if self.orthonormal else ctx.view.unit)(gradients)
        v = ctx.noise.normal((count, len(G)))
        lengths = np.linalg.norm(v, axis=1, keepdims=True) if self.sphere else math.sqrt(self.n_batches)
        return [ctx.view.combine(row, G) for row in v * (self.radius(ctx.view) / lengths)]


class TwoPointQuery:
    """Clipped differences of each row's loss along random directions.

    A direction ``u`` asks each row for ``clip((f(W + smoothing u) - f(W - smoothing u)) /
    (2 smoothing))``, a number; the released mean of these times ``u``, averaged over directions,
    estimates the private gradient.

    Parameters
    ----------
    directions : Directions
        Where directions come from.
    n_directions : int
        How many directions a step asks for.
    smoothing : float
        Distance to either side, in units of the direction.
    loss_clip : float
        Bound on each difference, on the scale of a row's gradient: the bound itself is
        ``loss_clip * radius / sqrt(dimension)``, since a random direction of that length sees
        that much of a gradient.
    public_batch_size : int or None
        Rows of the public mean gradient that is mixed in; None takes all of them.

    *Guarantee*: the released array has one number for each direction, none larger than the
    bound in absolute value for one row, so one row moves it by at most the bound times
    ``sqrt(n_directions)``, whatever the rounding of losses.

    Source: PAZO, equation 2 and Algorithms 1 and 2; DPZero (Zhang et al. 2024), Algorithm 1.
    """

    def __init__(
        self,
        directions: Directions,
        n_directions: int,
        smoothing: float,
        loss_clip: float,
        public_batch_size: int | None = None,
    ) -> None:
        self.directions = directions
        self.n_directions = n_directions
        self.smoothing = smoothing
        self.loss_clip = loss_clip
        self.public_batch_size = public_batch_size

    def sensitivity(self, view: PublicView, dtype: np.dtype[Any]) -> float:
        """That of a gradient sum whose noise would be as large in every direction that is asked for."""
        return self.bound(view) * self.directions.radius(view) / math.sqrt(self.directions.dimension(view))

    def bound(self, view: ParameterView) -> float:
        """Bound on each row's difference."""
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

        # A head that also moves along the public gradient leaves the span of the directions.
        n_head = probe.n_head if ctx.public_weight == 0 else 0
        (sums,) = yield PrivateQuery(
            probe.points, contribute, releases=(scalars(bound, q, 1.0),), n_head=n_head
        )
        estimate = ctx.view.combine(sums / (ctx.batch_size * q), U)
        return ctx.direction(estimate, self._public_mean(ctx))

    def _public_mean(self, ctx: StepContext) -> Vector | None:
        if ctx.public_weight == 0 or self.public_batch_size is None:
            return None
        return public_gradients(ctx, 1, self.public_batch_size)[0]


class CandidateQuery:
    """The public gradient with which private rows' losses come out smallest.

    Each candidate ``g`` is judged by the mean of clipped losses at ``W - step_size g``; a further
    candidate is the best of them plus a random vector. All queries of a step are about the same
    rows.

    Parameters
    ----------
    n_candidates : int
        Number of disjoint public batches, each with a candidate.
    batch_size : int or None
        Public rows in a batch; None shares all of them out.
    loss_clip : float
        Bound on each loss in absolute value.
    candidate_noise : float or None
        Standard deviation of the random vector in each coordinate; None asks for no further
        candidate.

    The update must be plain descent, so that it moves to where losses were asked.

    *Guarantee*: m losses in all share the step, each row's at most ``loss_clip`` in absolute
    value, so each mean has noise of variance ``m (loss_clip noise_multiplier / b)**2``.

    Source: PAZO, Algorithm 3.
    """

    def __init__(
        self, n_candidates: int, batch_size: int | None, loss_clip: float, candidate_noise: float | None
    ) -> None:
        self.n_candidates = n_candidates
        self.batch_size = batch_size
        self.loss_clip = loss_clip
        self.candidate_noise = candidate_noise

    def sensitivity(self, view: PublicView, dtype: np.dtype[Any]) -> float:
        """That of each sum of losses."""
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

    def _losses(self, ctx: StepContext, candidates: Vectors, n_losses: int) -> Losses:
        """Ask for the sums of clipped losses after a step along each candidate."""
        count = len(candidates)
        probe = ctx.view.probe(candidates, [(j, -ctx.step_size) for j in range(count)])
        (sums,) = yield PrivateQuery(
            probe.points,
            lambda Z, block: (None, clipped(probe.losses(Z, block.y), self.loss_clip)),
            releases=(scalars(self.loss_clip, count, count / n_losses),),
            n_head=probe.n_head,
        )
        return sums


def public_gradients(ctx: StepContext, n_batches: int, batch_size: int | None) -> Vectors:
    """Mean gradients of disjoint random batches of public rows."""
    n_rows = ctx.view.n_rows
    order = np.argsort(ctx.noise.uniform((n_rows,)))
    size = n_rows // n_batches if batch_size is None else batch_size
    return ctx.view.batch_gradients([order[j * size : (j + 1) * size] for j in range(n_batches)])


def clipped(values: FloatArray, bound: float) -> FloatArray:
    """Values (rows, m) held within ``[-bound, bound]``, in float64; what is not a number is 0."""
    values = np.nan_to_num(values.astype(np.float64), nan=0.0, posinf=bound, neginf=-bound)
    return np.clip(values, -bound, bound, out=values)


def scalars(bound: float, count: int, share: float) -> ReleasedArray:
    """The part of ``count`` sums of numbers of at most ``bound`` in absolute value."""
    return ReleasedArray(math.nextafter(bound * math.sqrt(count), math.inf), share)
