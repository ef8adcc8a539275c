"""Interfaces of the components, and the data that they exchange.

Every algorithm is the same loop: sample, query, clip, release, assemble, weight, update. Each family of
interchangeable components has its own file. Shapes: ``W``, gradients and directions are (k, d_in). Only the
release sees private sums. Queries receive noisy sums, and everything else is public.
"""

from collections.abc import Callable, Generator
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from .._linear.arrays import Array
from .._linear.arrays import FloatArray as FloatArray
from .._linear.losses import Loss as Loss
from .._rows.source import Lengths as Lengths
from .._rows.source import PrivateQuery as PrivateQuery
from .._rows.source import ReleasedArray as ReleasedArray
from .._rows.source import term_lengths as term_lengths
from .public import PublicData, RandomSource
from .public import PublicView as PublicView


@dataclass(frozen=True)
class PublicInfo:
    """The public facts of a fit, known before the first step.

    Attributes
    ----------
    view : PublicView
        The public rows at the start; ``view.W`` is the start itself.
    mu : float
        Budget of the fit as a full-batch Gaussian-DP parameter, for one zeroed-out row.
    n_private : int
        Number of private rows, treated as public.
    batch_size : float
        Expected number of private rows in a step, or their total weight: the divisor of sums.
    row_norm_bound : float
        Bound on the L2 norm of any private row; infinite if none is known.
    start : callable or None
        ``PublicData -> W``: the start that the fit would have with these public rows. None is the start
        of the view.
    second_moment : float or None
        Released estimate of the largest eigenvalue of the private rows' second moment. None if there is none.
    moments : array of shape (d_in,) or None
        Released estimates of the private rows' second moments along orthogonal directions, 0 where noise
        hides them. None if there are none.
    preconditioner : array of shape (d_in, d_in) or None
        Released matrix for directions of descent. None if there is none.
    gradient_bound : float or None
        Released length that few gradients of private rows exceed. None if there is none.
    centered : bool
        Whether a public or released mean is subtracted from rows of unit length.
    of_persons : bool
        Whether ``n_private`` counts persons, whose mean gradients are clipped.
    mean_weight : float
        Released estimate of the mean weight of private rows, where the largest weight is 1.
    """

    view: PublicView
    mu: float
    n_private: int
    batch_size: float
    row_norm_bound: float
    start: Callable[[PublicData], FloatArray] | None = None
    second_moment: float | None = None
    moments: FloatArray | None = None
    preconditioner: FloatArray | None = None
    gradient_bound: float | None = None
    centered: bool = False
    of_persons: bool = False
    mean_weight: float = 1.0

    @property
    def n_effective(self) -> float:
        """Number of private rows of weight 1 that would have the same total weight."""
        return self.n_private * self.mean_weight

    @cached_property
    def curvature(self) -> float:
        """Estimate of the largest Hessian eigenvalue of the mean loss, from public facts only."""
        return self.view.data.loss.curvature * self.largest_second_moment

    @cached_property
    def largest_second_moment(self) -> float:
        """Largest eigenvalue of the second moment of rows: released, of public rows, or a bound."""
        if self.second_moment is not None:
            return self.second_moment
        return self.view.data.largest_second_moment(self.row_norm_bound)

    @cached_property
    def held_out(self) -> tuple[tuple[FloatArray, PublicData], ...]:
        """Starts (k, d_in) from one half of the public rows, each with the other half."""
        first, second = self.view.data.halves
        pairs = ((first, second), (second, first))
        return tuple((self.view.W if self.start is None else self.start(half), rest) for half, rest in pairs)


@dataclass(frozen=True)
class ReleaseFacts:
    """The facts of the releases of a run, which are public, known once the budget is divided among the steps.

    Attributes
    ----------
    noise_multiplier : float
        Standard deviation of a step's noise divided by its sensitivity.
    n_steps : int
        Number of steps.
    sensitivity : float
        Sensitivity of the gradient sum at the start.
    private_weight : float
        Root mean square, over the steps, of the private gradient's weight ``1 - a``. It is 1 until the
        weighting rule is bound.
    """

    noise_multiplier: float
    n_steps: int
    sensitivity: float
    private_weight: float = 1.0


@dataclass
class StepContext:
    """Everything that components may use in step ``t``; all of it is released or public.

    Attributes
    ----------
    t, n_steps : int
        Number of this step, from 1, and of the last step.
    view : PublicView
        The public rows at the current head.
    batch_size : float
        Expected number of private rows in the batch. Private sums are divided by it.
    public_weight : float
        Weight ``a`` of the public mean gradient; the private mean gradient has ``1 - a``.
    step_size : float
        Learning rate of this step, for the mean objective.
    l2 : float
        Strength of ``l2 / 2 |W - anchor|^2`` in the mean objective.
    anchor : array of shape (k, d_in)
        Centre of the regulariser.
    dtype : dtype
        Dtype of the products with private rows.
    noise : RandomSource
        Random source of the fit.
    noise_multiplier : float
        Noise multiplier of the whole step.
    released : list of ReleasedArray
        The arrays released in this step so far, with their stated sensitivities.
    """

    t: int
    n_steps: int
    view: PublicView
    batch_size: float
    public_weight: float
    step_size: float
    l2: float
    anchor: FloatArray
    dtype: np.dtype[Any]
    noise: RandomSource
    noise_multiplier: float
    released: list[ReleasedArray] = field(default_factory=list)

    @property
    def noise_variance(self) -> float:
        """Variance of the noise in each entry of a step, without momentum."""
        scale = (1 - self.public_weight) * self.noise_multiplier / self.batch_size
        # Products overflow to inf, where a power would raise an error.
        noise = scale * scale * sum(part.sensitivity**2 / part.share for part in self.released)
        return self.step_size * self.step_size * noise

    def direction(self, private_mean: FloatArray, public_mean: FloatArray | None = None) -> FloatArray:
        """The public and the private mean gradient, mixed, plus the gradient of the regulariser.

        ``public_mean`` replaces the mean gradient over all public rows.
        """
        a = self.public_weight
        mixed = (1 - a) * private_mean
        if a:
            mixed = mixed + a * (self.view.gradient if public_mean is None else public_mean)
        return mixed + self.l2 * (self.view.W - self.anchor) if self.l2 else mixed


Rounds = Generator[PrivateQuery, tuple[FloatArray, ...], Any]


class Query(Protocol):
    """The queries of a step, and the direction computed from their answers."""

    def sensitivity(self, view: PublicView, dtype: np.dtype[Any]) -> float:
        """Sensitivity of the gradient sum at a head, for rules that balance the noise."""

    def step(self, ctx: StepContext) -> Rounds:
        """Yield queries, receive their noisy arrays, and return the direction (k, d_in)."""


class Clip(Protocol):
    """A clipping rule whose public values are fixed for one step.

    Attributes
    ----------
    takes_tensors : bool
        Whether ``weights`` also accepts float64 tensors, and then returns a tensor. If so, rows on a device
        are weighted there.
    """

    takes_tensors: bool = False

    @property
    def l2_threshold(self) -> float | None:
        """Threshold ``T`` if weights are ``min(1, T / norm)``, as compiled loops clip; None for others."""
        return None

    def weights(self, norms: Array, largest: Callable[[], Array]) -> Array:
        """Factor of each row's gradient, from the L2 norms (n,) of the gradients in float64.

        ``largest()`` returns a bound (n,) on the largest absolute entry of each gradient. It needs a pass
        over the rows, so call it only if the rule needs it.
        """

    def sensitivity(self, dtype: np.dtype[Any]) -> float:
        """Guaranteed bound on the norm of a weighted gradient computed in ``dtype``."""


class Clipper(Protocol):
    """A clipping rule."""

    def at(self, view: PublicView) -> Clip:
        """Fix the public values of the rule at the current head."""


class Space(Protocol):
    """A subspace fixed for one step."""

    @property
    def gain(self) -> float:
        """Largest factor by which ``encode`` can lengthen a gradient."""

    @property
    def roundings(self) -> float:
        """Bound on the rounding error of ``encode``, relative to the norm of its argument."""

    @property
    def directions(self) -> FloatArray | None:
        """Basis (P, d_in) that ``encode`` multiplies gradients with; None if ``encode`` changes nothing."""

    def encode(self, gradient: FloatArray) -> FloatArray:
        """Coordinates of a (k, d_in) sum of gradients, to be released. The map is linear."""

    def decode(self, released: FloatArray) -> FloatArray:
        """The (k, d_in) gradient with the released coordinates."""


class Subspace(Protocol):
    """A rule for the subspace in which sums are released."""

    def at(self, view: PublicView) -> Space | None:
        """Fix the subspace at the current head; None is the whole space."""


class Sampling(Protocol):
    """A rule that draws the private rows of a step."""

    def rate(self, n_private: int) -> float:
        """Probability that a row is in the batch."""

    def draw(self, n_private: int, noise: RandomSource) -> NDArray[np.bool_] | None:
        """Mask of the rows in the batch; None is all rows."""


@runtime_checkable
class Weighting(Protocol):
    """A rule for the public weight."""

    def bind(self, info: PublicInfo, facts: ReleaseFacts) -> Callable[[int, PublicView], float]:
        """Public weight ``a`` in [0, 1] as a function of t and the view of public rows."""


class Update(Protocol):
    """A rule that computes the next head from a direction. The state holds released values only."""

    def init(self, W: FloatArray) -> tuple[FloatArray, Any]:
        """The admissible start, and the state before the first step."""

    def step(self, ctx: StepContext, direction: FloatArray, state: Any) -> tuple[FloatArray, Any]:
        """The next head and the next state."""

    def result(self, W: FloatArray, state: Any) -> FloatArray:
        """The head to return after the last step."""
        return W


class Steps(Protocol):
    """A rule for the number and the size of steps."""

    def count(self, info: PublicInfo, sensitivity: float) -> int:
        """Number of steps for the budget of the fit and a sum of this sensitivity."""

    def bind(self, info: PublicInfo, facts: ReleaseFacts) -> Callable[[int], float]:
        """Step size as a function of t."""
