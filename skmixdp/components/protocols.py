"""What the pieces of an algorithm hand to each other.

Every algorithm is the same loop: sample, query, clip, release, assemble, weight, update. One file per
family holds interchangeable pieces; this file holds what they agree on. Shapes: ``W``, gradients and
directions are (k, d_in). Only the release sees private sums; a query gets noisy ones, and all else is public.
"""

from collections.abc import Callable, Generator
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from .._kernels import SumError
from .._linear import Array
from .._linear import Loss as Loss
from .._rows import Contribute, Sums
from ..privacy import NoiseSource
from ..public import PublicData
from ..public import PublicView as PublicView

FloatArray = NDArray[np.floating[Any]]


@dataclass(frozen=True)
class ReleasedArray:
    """One array of a query's answer, and what one row can do to it.

    Attributes
    ----------
    sensitivity : float
        Guaranteed bound on the L2 norm of one row's contribution to the array, sums being exact.
    share : float
        Fraction of the step's privacy that the array takes. The shares of a step sum to at most 1, and
        the noise has standard deviation ``noise_multiplier * sensitivity / sqrt(share)``, so that the
        step as a whole is one Gaussian release of that multiplier.
    longest_term : float or None
        Bound on the norm of each row's term in the sums from which the array is computed, where that is not
        the sensitivity; None is the sensitivity.
    later_roundings : float
        Bound on the rounding of what ``assemble`` computes, relative to the norm of the sums.
    """

    sensitivity: float
    share: float = 1.0
    longest_term: float | None = None
    later_roundings: float = 0.0

    def as_computed(self, error: SumError) -> "ReleasedArray":
        """The part with the rounding of sums included in its sensitivity."""
        term = self.sensitivity if self.longest_term is None else self.longest_term
        return replace(self, sensitivity=self.sensitivity + error.of(term, self.later_roundings))


def present_sums(sums: Sums) -> tuple[FloatArray, ...]:
    """The sums that a query asked for, as they are."""
    return tuple(part for part in sums if part is not None)


@dataclass(frozen=True)
class PrivateQuery:
    """What a query asks of the private rows in one round.

    Attributes
    ----------
    points : array of shape (m, d_in), or what else the row source understands
        Directions whose products with the rows are needed.
    contribute : callable
        ``(Z, block) -> (C, S)``: weighted residuals and statistics of each row.
    releases : tuple of ReleasedArray
        One for each array that ``assemble`` returns.
    assemble : callable
        LINEAR map from the sums to the arrays to be released, before the noise is added; it must not
        depend on private rows in any other way.
    wide_sums : bool
        Whether sums must be added in double precision, since their terms are longer than the sensitivity.
    n_head : int
        Number of leading points that are a head which moves along the other points from step to step,
        so that a source may keep its products; 0 promises nothing.
    bounds_itself, takes_tensors : bool
        What ``contribute`` promises; see :class:`~skmixdp._rows.Request`.
    """

    points: Any
    contribute: Contribute
    releases: tuple[ReleasedArray, ...]
    assemble: Callable[[Sums], tuple[FloatArray, ...]] = present_sums
    wide_sums: bool = False
    n_head: int = 0
    bounds_itself: bool = False
    takes_tensors: bool = False


@dataclass(frozen=True)
class PublicInfo:
    """The public facts of a fit, known before the first step.

    Attributes
    ----------
    view : PublicView
        The public rows at the start; ``view.W`` is the start itself.
    mu : float
        Full-batch Gaussian-DP budget of the fit, per zeroed-out row.
    n_private : int
        Number of private rows, treated as public.
    batch_size : float
        Expected number of private rows in a step.
    row_norm_bound : float
        Bound on the L2 norm of any private row; infinite where none is known.
    start : callable or None
        ``PublicData -> W``: where the fit would start with these public rows; None is the start itself.
    """

    view: PublicView
    mu: float
    n_private: int
    batch_size: float
    row_norm_bound: float
    start: Callable[[PublicData], FloatArray] | None = None

    @property
    def loss(self) -> Loss:
        """The loss of the head."""
        return self.view.data.loss

    @cached_property
    def curvature(self) -> float:
        """Estimate of the mean loss's largest Hessian eigenvalue, from public facts only."""
        return self.loss.curvature * self.largest_second_moment

    @cached_property
    def largest_second_moment(self) -> float:
        """Largest eigenvalue of the rows' second moment: public rows', else its bound."""
        return self.view.data.largest_second_moment(self.row_norm_bound)


@dataclass(frozen=True)
class ReleaseFacts:
    """The public facts of a run's releases, known once the budget is divided.

    Attributes
    ----------
    noise_multiplier : float
        Noise standard deviation of a step over its sensitivity.
    n_steps : int
        Number of steps.
    sensitivity : float
        Sensitivity of the gradient's sum at the start.
    private_weight : float
        Root mean square over the steps of the private gradient's weight ``1 - a``; 1 until that is bound.
    """

    noise_multiplier: float
    n_steps: int
    sensitivity: float
    private_weight: float = 1.0


@dataclass
class StepContext:
    """What the pieces may know in step ``t``: released or public, all of it.

    Attributes
    ----------
    t, n_steps : int
        This step, from 1, and the last.
    view : PublicView
        The public rows at the current head.
    batch_size : float
        Expected private batch: the divisor of private sums.
    public_weight : float
        Weight ``a`` of the public mean gradient; the private one has ``1 - a``.
    step_size : float
        Learning rate of this step, for the mean objective.
    l2 : float
        Strength of ``l2 / 2 |W - anchor|^2`` in the mean objective.
    anchor : array of shape (k, d_in)
        Centre of the regulariser.
    dtype : dtype
        In which the private products are computed.
    noise : NoiseSource
        Random source of the fit.
    noise_multiplier : float
        Noise standard deviation of the step's releases together over their sensitivity.
    released : list of Part
        What has been released in this step so far, with the sensitivities that were stated.
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
    noise: NoiseSource
    noise_multiplier: float
    released: list[ReleasedArray] = field(default_factory=list)

    @property
    def W(self) -> FloatArray:
        """The current head, (k, d_in)."""
        return self.view.W

    @property
    def loss(self) -> Loss:
        """The loss of the head."""
        return self.view.data.loss

    def direction(self, private_mean: FloatArray, public_mean: FloatArray | None = None) -> FloatArray:
        """Mix a private mean gradient with the public one, and add the regulariser's.

        ``public_mean`` takes the place of the mean gradient over all public rows.
        """
        a = self.public_weight
        mixed = (1 - a) * private_mean
        if a:
            mixed = mixed + a * (self.view.gradient if public_mean is None else public_mean)
        return mixed + self.l2 * (self.W - self.anchor) if self.l2 else mixed


Rounds = Generator[PrivateQuery, tuple[FloatArray, ...], Any]


class Query(Protocol):
    """What is asked in a step and how the answers become a direction."""

    def sensitivity(self, view: PublicView, dtype: np.dtype[Any]) -> float:
        """Sensitivity of the gradient's sum at a head, for rules that balance the noise."""

    def step(self, ctx: StepContext) -> Rounds:
        """Yield queries, receive their noisy arrays, return the direction (k, d_in)."""


class Clip(Protocol):
    """A clipping rule with its public values fixed for one step.

    Attributes
    ----------
    takes_tensors : bool
        Whether ``weights`` takes float64 tensors as it takes arrays, and then returns one. Rows on a device
        are then weighted there.
    """

    takes_tensors: bool = False

    def weights(self, norms: Array, largest: Callable[[], Array]) -> Array:
        """Factor of each row's gradient, given the gradients' L2 norms (n,), in float64.

        ``largest()`` is a bound (n,) on each gradient's largest absolute entry; it costs a
        pass over the rows, so only rules that need it call it.
        """

    def sensitivity(self, dtype: np.dtype[Any]) -> float:
        """Guaranteed bound on the norm of a weighted gradient computed in ``dtype``."""


class Clipper(Protocol):
    """A clipping rule."""

    def at(self, view: PublicView) -> Clip:
        """Fix the rule's public values at the current head."""


class Space(Protocol):
    """A subspace fixed for one step."""

    @property
    def gain(self) -> float:
        """Largest factor by which ``encode`` can lengthen a gradient."""

    @property
    def roundings(self) -> float:
        """Bound on the rounding of ``encode``, relative to the norm of what is encoded."""

    def encode(self, gradient: FloatArray) -> FloatArray:
        """Coordinates to be released of a (k, d_in) sum of gradients; linear."""

    def decode(self, released: FloatArray) -> FloatArray:
        """The (k, d_in) gradient of released coordinates."""


class Subspace(Protocol):
    """A rule for the subspace in which sums are released."""

    @property
    def is_full(self) -> bool:
        """Whether it is always all of parameter space."""

    def at(self, view: PublicView) -> Space:
        """Fix the subspace at the current head."""


class Sampling(Protocol):
    """Which private rows take part in a step."""

    def rate(self, n_private: int) -> float:
        """Probability with which a row takes part."""

    def draw(self, n_private: int, noise: NoiseSource) -> NDArray[np.bool_] | None:
        """Rows of one step; None is all of them."""


class Weighting(Protocol):
    """A rule for the public weight."""

    def bind(self, info: PublicInfo, facts: ReleaseFacts) -> Callable[[int, PublicView], float]:
        """Public weight ``a`` in [0, 1] as a function of t and the public rows' view."""


class Update(Protocol):
    """How a direction moves the head. The state holds released iterates and directions."""

    def init(self, W: FloatArray) -> tuple[FloatArray, Any]:
        """Admissible start, and the state before the first step."""

    def step(self, ctx: StepContext, direction: FloatArray, state: Any) -> tuple[FloatArray, Any]:
        """Next head and state."""

    def result(self, W: FloatArray, state: Any) -> FloatArray:
        """The head to return after the last step."""


class Steps(Protocol):
    """How many steps to take, and how large."""

    def count(self, info: PublicInfo, sensitivity: float) -> int:
        """Number of steps for the budget of the fit and a sum of this sensitivity."""

    def bind(self, info: PublicInfo, facts: ReleaseFacts) -> Callable[[int], float]:
        """Step size as a function of t."""
