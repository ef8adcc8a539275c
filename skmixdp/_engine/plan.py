"""Recipes and plans: how a run splits its budget into steps and noise."""

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np

from ..components import FullBatch, PoissonBatch
from ..components.protocols import (
    FloatArray,
    PublicInfo,
    PublicView,
    Query,
    ReleaseFacts,
    Rounds,
    Sampling,
    Steps,
    Update,
    Weighting,
)
from ..privacy import GaussianEvent, epsilon_of_event, noise_multiplier_for, steps_for
from ..privacy.accounting.budgets import Budget, warn_of_epsilon
from ..privacy.accounting.events import Event, EventFamily


@dataclass(frozen=True)
class Options:
    """Settings of the user that every algorithm respects; ``l2`` and rates are those of the mean objective.

    An ``l2`` of None is 0 in most algorithms.

    If ``exact_sums``, sums must stay on their grid, without projections before the noise is added.
    ``balancing_intercept`` is the constant of the intercept column, if public rows may balance the classes of
    the trained head; None if not.
    """

    learning_rate: float | Literal["auto"]
    l2: float | None
    sampling: Sampling
    exact_sums: bool
    balancing_intercept: float | None = None


@dataclass(frozen=True)
class PostTrainingRelease:
    """A release over all rows after the last step, for a share of the squared budget.

    ``ask(W, state, multiplier)`` takes the last head, the state of the update and a noise multiplier. It
    yields queries whose shares sum to at most 1, and returns the head.
    """

    share: float
    ask: Callable[[FloatArray, Any, float], Rounds]


@dataclass(frozen=True)
class Recipe:
    """The pieces of one algorithm, and the regulariser ``l2 / 2 |W - anchor|^2``.

    ``event`` makes the event for accounting from noise multiplier, steps, sampling rate and kind of noise. It
    does not depend on thresholds that change between steps.

    ``comparison`` returns the head instead of the update's ``result``, if the budget can be divided.

    ``draws`` says whether steps depend on random numbers besides the batches and the noise, so that released
    numbers alone do not tell how a fit went.
    """

    sampling: Sampling
    query: Query
    weighting: Weighting
    steps: Steps
    update: Update
    l2: float
    anchor: FloatArray
    event: EventFamily = GaussianEvent
    comparison: PostTrainingRelease | None = None
    draws: bool = False


@dataclass(frozen=True)
class Plan:
    """A run of one algorithm from ``info.view.W`` on, and its numbers, which are fixed before its first step.

    ``dtype`` is that of products with private rows. The steps get a ``share`` of the squared budget.
    """

    recipe: Recipe
    info: PublicInfo
    dtype: np.dtype[Any]
    noise_multiplier: float
    n_steps: int
    event: Event
    step_size: Callable[[int], float]
    public_weight: Callable[[int, PublicView], float]
    share: float = 1.0


def sampling_of(batch_size: int | None, n_rows: int) -> Sampling:
    """The rule that draws the private rows of a step."""
    if batch_size is None or batch_size == n_rows:
        return FullBatch()
    if batch_size > n_rows:
        raise ValueError(
            f"batch_size={batch_size} exceeds the {n_rows} private rows; pass a smaller number, or None for "
            "the full batch."
        )
    return PoissonBatch(batch_size)


def make_plan(
    budget: Budget, recipe: Recipe, info: PublicInfo, dtype: np.dtype[Any], share: float = 1.0
) -> Plan:
    """The plan of a run: the number of its steps, their noise and step sizes.

    ``share`` of the squared budget is left for the steps. Below 1, the budget must be divisible and the steps
    must be full-batch Gaussian releases. The plan's event is then that of the whole budget. ``dtype`` is that
    of the products with private rows. A budget that is too small for one step is a ValueError.
    """
    rate = recipe.sampling.rate(info.n_private)
    sensitivity = recipe.query.sensitivity(info.view, dtype)
    n_steps, sigma = budget.n_steps, budget.noise_multiplier
    left = info if share == 1 else replace(info, mu=budget.mu * math.sqrt(share))
    if share < 1:
        n_steps = recipe.steps.count(left, sensitivity)
        sigma = budget.multiplier(share, n_steps)
    elif budget.epsilon is not None:
        terms: dict[str, Any] = {
            "sampling_rate": rate,
            "neighboring": budget.neighboring,
            "noise": budget.noise,
            "family": recipe.event,
        }
        if sigma is not None:
            n_steps = steps_for(budget.epsilon, budget.delta, noise_multiplier=sigma, **terms)
        elif n_steps is None:
            n_steps = recipe.steps.count(left, sensitivity)
        # The number of steps was rounded down, so noise for the whole budget is a little less than given.
        sigma = noise_multiplier_for(budget.epsilon, budget.delta, n_steps=n_steps, **terms)
    assert n_steps is not None and sigma is not None
    facts = ReleaseFacts(sigma, n_steps, sensitivity)
    public_weight = recipe.weighting.bind(left, facts)
    private = [1 - public_weight(t, left.view) for t in range(1, n_steps + 1)]
    facts = replace(facts, private_weight=float(np.sqrt(np.mean(np.square(private)))))
    event = budget.whole if share < 1 else recipe.event(sigma, n_steps, rate, budget.noise)
    if budget.epsilon is None:
        warn_of_epsilon(epsilon_of_event(event, budget.delta, budget.neighboring))
    return Plan(
        recipe,
        info,
        dtype,
        noise_multiplier=sigma,
        n_steps=n_steps,
        event=event,
        step_size=recipe.steps.bind(left, facts),
        public_weight=public_weight,
        share=share,
    )
