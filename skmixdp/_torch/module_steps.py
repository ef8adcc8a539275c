"""Steps of a module that stay finite, and within a trust region if the learning rate is automatic.

A module's outputs are not linear in its parameters, so the curvature at the start bounds no later step. What
is used here is public: released directions, and outputs of public rows.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from .._engine import Recipe
from .._papers.loss_queries import Descent
from .._papers.modelmix.wrapping import MixingDescent
from ..components import BalancedSteps
from ..components.protocols import StepContext, Update
from ..components.updates import BallProjection, PolynomialAverage

#: Sum over all steps of the trust regions: root mean square changes of the outputs.
_PATH = 12.0

#: Most tries to find the length of a step.
_TRIES = 30
#: Smallest factor of the length between two tries.
_LEAST_FACTOR = 0.05

#: Bound on the entries of seeded directions; normal numbers of torch stay below 10.
_LONGEST_DRAW = 16.0


def guarded(recipe: Recipe, data: Any, *, within_region: bool) -> Recipe:
    """The recipe of a module's fit, whose steps keep parameters and outputs of public rows finite.

    If ``within_region``, a step is shortened until it changes the centred outputs of public rows by at most
    its trust region, in the root mean square. Steps of first order then need no limit from the curvature at
    the start. Steps that mix heads, whose accounting allows no others, keep it.
    """
    update, steps = _guarded(recipe.update, data, within_region), recipe.steps
    mixes = isinstance(update, LastFinite)
    if (
        within_region
        and isinstance(steps, BalancedSteps)
        and not (mixes or isinstance(recipe.update, Descent))
    ):
        steps = replace(steps, max_step_scale=math.inf)
    return replace(recipe, update=update, steps=steps)


def _guarded(update: Update, data: Any, within_region: bool) -> Update:
    if _mixes(update):
        return LastFinite(update, data)
    if isinstance(update, BallProjection | PolynomialAverage):
        return replace(update, inner=_guarded(update.inner, data, within_region))
    kind = MovesInPlace if isinstance(update, Descent) else FiniteSteps
    return kind(update, data, within_region)


def _mixes(update: object) -> bool:
    return isinstance(update, MixingDescent) or (hasattr(update, "inner") and _mixes(update.inner))


@dataclass(frozen=True)
class FiniteSteps(Update):
    """Steps of first order of a head (1, p); the state of ``inner`` stays if a step is not taken."""

    inner: Update
    data: Any
    within_region: bool

    def init(self, W: Any) -> tuple[Any, Any]:
        return self.inner.init(W)

    def step(self, ctx: StepContext, direction: Any, state: Any) -> tuple[Any, Any]:
        start, parameters = ctx.view.W, self.data.parameters
        end, after = self.inner.step(ctx, direction, state)

        def go(part: float) -> bool:
            W = _interpolated(start, end, part)
            parameters.place(W)
            return bool(parameters.can_hold(W))

        part = self._fraction(ctx, go)
        return (_interpolated(start, end, part), after) if part else (start, state)

    def result(self, W: Any, state: Any) -> Any:
        return self.inner.result(W, state)

    def _fraction(self, ctx: StepContext, go: Callable[[float], bool]) -> float:
        """The part of a step to take; ``go(part)`` moves the parameters, and tells if they are finite."""
        go(0.0)
        before = self.data.centred_outputs()
        region = 2 * _PATH / ctx.n_steps * (1 - (ctx.t - 0.5) / ctx.n_steps)
        part = 1.0
        for _ in range(_TRIES):
            change = math.nan
            if go(part):
                change = float(np.sqrt(np.mean(np.square(self.data.centred_outputs() - before))))
                if change <= (1.01 * region if self.within_region else np.finfo(np.float64).max):
                    return part
            if not self.within_region:
                break
            part *= max(_LEAST_FACTOR, min(0.9, region / change)) if change < math.inf else _LEAST_FACTOR
        go(0.0)
        self.data.n_left_out += 1
        return 0.0


class MovesInPlace(FiniteSteps):
    """Plain descent, for parameters that are changed in place."""

    def step(self, ctx: StepContext, direction: Any, state: Any) -> tuple[Any, Any]:
        parameters, at = self.data.parameters, 0.0
        reach = ctx.step_size * direction.largest_entry(_LONGEST_DRAW)

        def go(part: float) -> bool:
            nonlocal at
            if part and not parameters.can_move(part * reach):
                return False
            parameters.move(direction, -ctx.step_size * (part - at))
            at = part
            return True

        self._fraction(ctx, go)
        return parameters, state


@dataclass(frozen=True)
class LastFinite(Update):
    """Returns the last finite head."""

    inner: Update
    data: Any

    def init(self, W: Any) -> tuple[Any, Any]:
        W, inner = self.inner.init(W)
        return W, (inner, W)

    def step(self, ctx: StepContext, direction: Any, state: Any) -> tuple[Any, Any]:
        inner, last = state
        W, inner = self.inner.step(ctx, direction, inner)
        finite = self.data.parameters.can_hold(W)
        self.data.n_left_out += not finite
        return W, (inner, W if finite else last)

    def result(self, W: Any, state: Any) -> Any:
        return state[1]


def _interpolated(start: Any, end: Any, part: float) -> Any:
    return end if part == 1 else start + part * (end - start)
