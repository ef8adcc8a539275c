"""The linear scaling rule: private gradient descent from zero whose total step grows with epsilon.

Panda, Tang, Mahloujifar, Sehwag and Mittal 2024, "A New Linear Scaling Rule for Private Adaptive
Hyperparameter Optimization".
"""

from collections.abc import Callable, Sequence

import numpy as np

from skmixdp.privacy import noise_multiplier_for

from ..problems import DELTA, Array, Problem
from .clipped_descent import Run, descend
from .contract import Score
from .releases import codes, noise_of, unit_rows


def fit(
    problem: Problem,
    epsilons: Sequence[float],
    *,
    rates: Sequence[float],
    n_steps: int,
    momentum: float,
    intercept: float,
) -> list[Score]:
    """Heads whose learning rate times number of steps is ``rate * epsilon * n``, for each rate.

    The learning rate is that of the mean gradient of rows of unit length, and of the limit that momentum
    makes of it. Sensitivity: 1, by clipping each row's gradient.
    """
    X, X_pub, X_test = unit_rows(problem, intercept)
    public = X_pub, codes(problem, problem.y_pub)
    shape = len(problem.classes), X.shape[1]
    runs = []
    for epsilon in epsilons:
        sigma = noise_multiplier_for(epsilon, DELTA, n_steps=n_steps)
        for rate in rates:
            step = with_momentum(rate * epsilon * len(X) / n_steps, momentum, shape)
            runs.append(
                Run(f"rate {rate:g}", epsilon, sigma, noise_of(problem, epsilon), np.zeros(shape), step)
            )
    descend(runs, X, codes(problem, problem.y), public, n_steps)
    return [
        Score(
            run.epsilon,
            problem.measures_of_logits(X_test @ run.W.T),
            run.setting,
            f"{n_steps} steps, noise multiplier {run.multiplier:.3g}",
        )
        for run in runs
    ]


def with_momentum(step_size: float, momentum: float, shape: tuple[int, int]) -> Callable[[Array], Array]:
    """From a gradient to a step; a constant gradient moves by ``step_size`` times itself in the end."""
    velocity = np.zeros(shape)

    def step(gradient: Array) -> Array:
        nonlocal velocity
        velocity = momentum * velocity + (1 - momentum) * gradient
        return step_size * velocity

    return step
