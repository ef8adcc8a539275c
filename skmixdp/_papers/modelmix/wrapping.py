"""How ModelMix changes queries, updates and steps, its clip, and its mixing update.

The amplified bound holds only where a step is

    W_t = mix - (step_size (1 - a) / b) (sum of clipped gradients + N(0, s_n^2 I)) + f(released heads)

with the same independent noise in every mixed coordinate. So nothing is wrapped by default: component classes
that are not known to satisfy this are refused.

Source: ModelMix, Algorithm 1 and Theorem 4.1.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, NoReturn

import numpy as np

from ..._linear.arrays import Array, namespace_of
from ...components import SGD, BalancedSteps, GradientQuery
from ...components.protocols import (
    Clip,
    Clipper,
    FloatArray,
    PublicInfo,
    Query,
    ReleaseFacts,
    StepContext,
    Steps,
    Update,
)
from ...components.public import PublicView
from ...components.steps import DecayingSteps
from ...components.updates import BallProjection, PolynomialAverage
from ..split_query import SplitQuery

#: Largest factor by which the curvature is assumed to lie below its bound, when steps are counted. If the
#: curvature reaches the bound, steps are three quarters of the stability limit instead of half of it.
_LOWER_CURVATURE = 1.5

#: Smallest width of the mixing divided by the sensitivity, as a function of the number of steps.
Width = Callable[[int], float]

#: A function that makes a clipper also bound the entries of a contribution, as the accounting assumes.
BoundEntries = Callable[[Clipper], Clipper]


def _refuse(piece: object) -> NoReturn:
    raise ValueError(
        f"ModelMix cannot wrap {type(piece).__name__}, which does more to the noisy sum than subtract "
        "it; wrap plain descent, such as NoisyGD(momentum=0) or AdaMix(momentum=0)."
    )


def mixed_query(query: Query, bound_entries: BoundEntries) -> Query:
    """The query with ``bound_entries(clipper)``, which releases one sum with noise that is not projected."""
    if isinstance(query, SplitQuery) and query.inside is None:
        return replace(query, clipper=bound_entries(query.clipper), sum_to_zero=False)
    if not isinstance(query, GradientQuery):
        _refuse(query)
    if query.subspace is not None:
        raise ValueError(
            "ModelMix cannot wrap a release in a public subspace, whose noise leaves some coordinates "
            "without any; pass n_components=None to its base."
        )
    if query.second_clip is not None:
        raise ValueError(
            f"ModelMix cannot wrap second_clip={query.second_clip:g}, which changes the noisy sum; pass "
            "second_clip=None to its base."
        )
    return GradientQuery(bound_entries(query.clipper), None, sum_to_zero=False)


def mixed_update(update: Update, width: Width) -> Update:
    """The update, with each step starting from the mixed heads."""
    if isinstance(update, BallProjection | PolynomialAverage):
        return replace(update, inner=mixed_update(update.inner, width))
    if not isinstance(update, SGD):
        _refuse(update)
    if update.momentum != 0:
        raise ValueError(
            f"ModelMix cannot wrap momentum={update.momentum:g}, by which a sum moves the head again in "
            "later steps, unmixed; pass momentum=0 to its base."
        )
    return MixingDescent(width)


def mixed_steps(steps: Steps) -> Steps:
    """The rule for the steps of mixed heads."""
    if isinstance(steps, DecayingSteps):
        return steps  # the schedule does not depend on the update
    if not isinstance(steps, BalancedSteps):
        _refuse(steps)
    # On average, mixing averages the last two heads. This is the heavy-ball method with momentum -1/2. Over
    # many steps, a step size of 1 moves the head by 2/3. The stability limit is a third of that of plain
    # descent. Mixing adds noise too, so half as much Gaussian noise is accepted. If there are fewer steps
    # than by the rule, they may be longer in proportion.
    lower = min(steps.max_step_scale, _LOWER_CURVATURE)
    balanced = BalancedSteps(
        steps.learning_rate,
        -0.5,
        steps.l2,
        noise_factor=0.5 * steps.noise_factor,
        curvature=steps.curvature,
        minimum=steps.minimum,
        maximum=3 * steps.maximum,  # three times as many, since steps are a third as long
        effective_step=2 / 3,
        max_step_scale=steps.max_step_scale / lower,
    )
    return LongerSteps(balanced, lower)


@dataclass(frozen=True)
class LongerSteps:
    """Fewer and longer steps, for a curvature that lies below its bound by a factor."""

    steps: Steps
    factor: float

    def count(self, info: PublicInfo, sensitivity: float) -> int:
        return self.steps.count(self._lower(info), sensitivity)

    def bind(self, info: PublicInfo, facts: ReleaseFacts) -> Callable[[int], float]:
        return self.steps.bind(self._lower(info), facts)

    def _lower(self, info: PublicInfo) -> PublicInfo:
        return replace(info, second_moment=info.largest_second_moment / self.factor)


@dataclass(frozen=True)
class L2LinfClip:
    """A clip that also bounds every coordinate, by the L2 bound divided by ``sqrt(split)``.

    With :class:`L2Clip` of threshold ``c``, a gradient's weight is ``min(1, c / |g|_2, (c / sqrt(s)) /
    |g|_inf)``. *Guarantee*: a weighted gradient has an L2 norm of at most ``sensitivity(dtype)``, and no
    entry above ``sensitivity(dtype) / sqrt(split)``. The factor ``1 + 4 eps`` covers rounding to the dtype.

    Source: ModelMix, section 4.2 and Algorithm 2, with a single weight instead of its truncation.
    """

    clipper: Clipper
    split: int

    def at(self, view: PublicView) -> "L2LinfClipAt":
        return L2LinfClipAt(self.clipper.at(view), self.split)


@dataclass(frozen=True)
class L2LinfClipAt(Clip):
    """:class:`L2LinfClip` with its public values fixed for one step."""

    clip: Clip
    split: int

    @property
    def takes_tensors(self) -> bool:  # type: ignore[override]
        return self.clip.takes_tensors

    def weights(self, norms: Array, largest: Callable[[], Array]) -> Array:
        xp, entries = namespace_of(norms), largest()
        bound = float(self.clip.sensitivity(np.dtype(np.float64))) / math.sqrt(self.split)
        factors = self.clip.weights(norms, largest)
        # A row of zeros has no entry to bound; a row that is not finite gets weight 0.
        allowed = bound / xp.where(entries > 0, entries, math.inf)
        smaller = xp.where((entries > 0) & (allowed < factors), allowed, factors)
        return xp.where(entries < math.inf, smaller, 0.0)

    def sensitivity(self, dtype: np.dtype[Any]) -> float:
        return self.clip.sensitivity(dtype) * (1 + 4 * float(np.finfo(dtype).eps))


@dataclass(frozen=True)
class MixingDescent(Update):
    """Descent from secretly mixed heads: ``W_t = alpha W_{t-1} + (1 - alpha) W_{t-2} - step_size D``.

    Each coordinate has a secret, uniform ``alpha`` from [0, 1), which comes from the noise source of the fit
    and is not stored. Coordinates of the two heads that are closer than ``tau = width S step_size (1 - a) /
    b``, where ``S`` is the sensitivity of this step's release, are pushed apart by ``tau / 2`` each before
    mixing, equal ones with the later head upwards. So the mixing covers at least ``width S`` on the scale of
    the released sum. If nothing was released, or the public weight is 1, nothing is pushed. The state is the
    head before the last, which was released.

    Source: ModelMix, Algorithm 1, with sign(0) = +1 in its line 7. With W_{-1} = W_0 and sign(0) = 0, the
    first step would not be mixed at all.
    """

    width: Width

    def init(self, W: FloatArray) -> tuple[FloatArray, FloatArray]:
        return W, W

    def step(
        self, ctx: StepContext, direction: FloatArray, state: FloatArray
    ) -> tuple[FloatArray, FloatArray]:
        gap = ctx.view.W - state
        least = self._least_gap(ctx)
        push = np.where(np.abs(gap) < least, np.where(gap >= 0, least / 2, -least / 2), 0.0)
        alpha = ctx.noise.uniform(ctx.view.W.shape)
        mixed = alpha * (ctx.view.W + push) + (1 - alpha) * (state - push)
        return mixed - ctx.step_size * direction, ctx.view.W

    def _least_gap(self, ctx: StepContext) -> float:
        if not ctx.released:
            return 0.0
        if len(ctx.released) > 1 or ctx.released[0].share != 1:
            raise RuntimeError("mixed heads need one released sum per step, with all of its share.")
        sensitivity = ctx.released[0].sensitivity
        return (
            self.width(ctx.n_steps) * sensitivity * ctx.step_size * (1 - ctx.public_weight) / ctx.batch_size
        )
