"""What ModelMix makes of the pieces that it wraps, and the update that it puts inside them.

The amplified bound holds only where a step is

    W_t = mix - (step_size (1 - a) / b) (sum of clipped gradients + N(0, s_n^2 I)) + f(released heads)

with the same independent noise in every coordinate that is mixed. So nothing is wrapped by default: a kind of
piece that can work so is registered with :func:`mixed_query`, :func:`mixed_update` or :func:`mixed_steps`.
All others are refused.

Source: ModelMix, Algorithm 1 and Theorem 4.1.
"""

from collections.abc import Callable
from functools import singledispatch
from typing import Any, NoReturn

import numpy as np
from numpy.typing import NDArray

from ..components import (
    SGD,
    BalancedSteps,
    BallProjection,
    DecayingSteps,
    DopeQuery,
    GradientQuery,
    PolynomialAverage,
)
from ..components.protocols import Clipper, Query, StepContext, Steps, Update

FloatArray = NDArray[np.floating[Any]]

#: Least width of the mixing over the sensitivity, as a function of the number of steps.
Width = Callable[[int], float]

#: Makes a clip also keep the entries of a contribution as small as the accounting assumes.
BoundEntries = Callable[[Clipper], Clipper]


def _refuse(piece: object) -> NoReturn:
    raise ValueError(
        f"ModelMix cannot wrap {type(piece).__name__}, which does more to the noisy sum than subtract "
        "it; wrap plain descent, such as NoisyGD(momentum=0) or AdaMix(momentum=0)."
    )


@singledispatch
def mixed_query(query: Query, bound_entries: BoundEntries) -> Query:
    """The query with ``bound_entries(clipper)``, and without projections of the noise.

    It releases one part of the shape of the head with isotropic noise, or none where the public weight is 1.

    Raises
    ------
    ValueError
        If its kind is not registered, or cannot work so with its parameters.
    """
    _refuse(query)


@mixed_query.register
def _(query: GradientQuery, bound_entries: BoundEntries) -> Query:
    if not query.subspace.is_full:
        raise ValueError(
            "ModelMix cannot wrap a release in a public subspace, whose noise leaves some coordinates "
            "without any; pass n_components=None to its base."
        )
    if query.second_clip is not None:
        raise ValueError(
            f"ModelMix cannot wrap second_clip={query.second_clip:g}, which changes the noisy sum; pass "
            "second_clip=None to its base."
        )
    return GradientQuery(bound_entries(query.clipper), query.subspace, sum_to_zero=False)


@mixed_query.register
def _(query: DopeQuery, bound_entries: BoundEntries) -> Query:
    return DopeQuery(bound_entries(query.clipper), sum_to_zero=False)


@singledispatch
def mixed_update(update: Update, width: Width) -> Update:
    """The update, starting each step from the mixed heads.

    Raises
    ------
    ValueError
        If its kind is not registered, or cannot work so with its parameters.
    """
    _refuse(update)


@mixed_update.register
def _(update: SGD, width: Width) -> Update:
    if update.momentum != 0:
        raise ValueError(
            f"ModelMix cannot wrap momentum={update.momentum:g}, by which a sum moves the head again in "
            "later steps, unmixed; pass momentum=0 to its base."
        )
    return MixingDescent(width)


@mixed_update.register
def _(update: BallProjection, width: Width) -> Update:
    return BallProjection(mixed_update(update.inner, width), update.radius)


@mixed_update.register
def _(update: PolynomialAverage, width: Width) -> Update:
    return PolynomialAverage(mixed_update(update.inner, width))


@singledispatch
def mixed_steps(steps: Steps) -> Steps:
    """The rule for steps of heads that are mixed.

    Raises
    ------
    ValueError
        If its kind is not registered.
    """
    _refuse(steps)


@mixed_steps.register
def _(steps: BalancedSteps) -> Steps:
    # Mixing the last two heads in equal parts on average is the heavy ball with momentum -1/2. A step size
    # of 1 moves the head by 2/3 in the long run. It is stable up to a third of what plain descent is. Mixing
    # is noise too, so half as much of the other is taken.
    return BalancedSteps(
        steps.learning_rate,
        -0.5,
        steps.l2,
        noise_factor=0.5 * steps.noise_factor,
        curvature=steps.curvature,
        minimum=steps.minimum,
        maximum=3 * steps.maximum,  # as far as descent goes, in steps a third as long
        effective_step=2 / 3,
    )


@mixed_steps.register
def _(steps: DecayingSteps) -> Steps:
    return steps  # the rule is given, whatever the update makes of it


class MixingDescent:
    """``W_t = alpha W_{t-1} + (1 - alpha) W_{t-2} - step_size D``, alpha uniform and secret.

    Each coordinate has an ``alpha`` of its own from [0, 1). Before mixing, coordinates of the two
    heads that are nearer than ``tau = width S step_size (1 - a) / b`` are pushed apart by
    ``tau / 2`` each, the later head upwards where they are equal; ``S`` is the sensitivity of
    what this step released. So the mixing covers at least ``width S`` on the scale of the
    released sum, whatever the clip, the step and the public weight are.

    Parameters
    ----------
    width : callable
        Least width over the sensitivity, as a function of the number of steps.

    *Guarantee*: alpha comes from the fit's noise source and is not kept; the state is the head
    before the last, a released one. Where the public weight is 1, or nothing was released, the
    head owes nothing to private rows, and nothing is pushed.

    Source: ModelMix, Algorithm 1, with sign(0) = +1 in its line 7: with W_{-1} = W_0 and
    sign(0) = 0 the first step would not be mixed at all.
    """

    def __init__(self, width: Width) -> None:
        self.width = width

    def init(self, W: FloatArray) -> tuple[FloatArray, FloatArray]:
        return W, W

    def step(
        self, ctx: StepContext, direction: FloatArray, state: FloatArray
    ) -> tuple[FloatArray, FloatArray]:
        gap = ctx.W - state
        least = self._least_gap(ctx)
        push = np.where(np.abs(gap) < least, np.where(gap >= 0, least / 2, -least / 2), 0.0)
        alpha = ctx.noise.uniform(ctx.W.shape)
        mixed = alpha * (ctx.W + push) + (1 - alpha) * (state - push)
        return mixed - ctx.step_size * direction, ctx.W

    def result(self, W: FloatArray, state: FloatArray) -> FloatArray:
        return W

    def _least_gap(self, ctx: StepContext) -> float:
        if not ctx.released:
            return 0.0
        if len(ctx.released) > 1 or ctx.released[0].share != 1:
            raise RuntimeError("mixed heads need one released sum per step, with all of its share.")
        sensitivity = ctx.released[0].sensitivity
        return (
            self.width(ctx.n_steps) * sensitivity * ctx.step_size * (1 - ctx.public_weight) / ctx.batch_size
        )
