"""Logistic regression whose private gradients are multiplied by the inverse feature covariance (DP-FC).

Mehta, Krichene, Thakurta, Kurakin and Cutkosky 2022, "Differentially Private Image Classification from
Features".
"""

from collections.abc import Callable, Sequence

import numpy as np

from ..problems import Array, Problem
from .clipped_descent import Run, descend
from .contract import Score
from .releases import codes, edge, multipliers, noise_of, noisy_second_moment, unit_rows


def fit(
    problem: Problem,
    epsilons: Sequence[float],
    *,
    share: float,
    ridges: Sequence[float],
    step_sizes: Sequence[float],
    n_steps: int,
    intercept: float,
) -> list[Score]:
    """Heads from zero for each ridge and step size.

    ``share`` of the budget releases the second moment, the rest ``n_steps`` gradients. The ridge is in units
    of the largest eigenvalue of the noise in the second moment. The step size is for a Hessian that
    is the second moment times ``(k - 1) / k**2``, as it is at zero.

    Sensitivity: 1 for the second moment of unit rows, and 1 for each gradient by clipping.
    """
    X, X_pub, X_test = unit_rows(problem, intercept)
    public = X_pub, codes(problem, problem.y_pub)
    k, (n, d) = len(problem.classes), X.shape
    n += len(X_pub)
    runs = []
    for epsilon in epsilons:
        first, second = multipliers(epsilon, [share, 1 - share])
        moment = noisy_second_moment(X, first, noise_of(problem, epsilon)) + X_pub.T @ X_pub
        values, vectors = np.linalg.eigh(moment.astype(np.float32))
        for ridge in ridges:
            inverse = n / (np.maximum(values, 0) + ridge * edge(first, d))
            runs += [
                Run(
                    f"ridge {ridge:g}, step size {size:g}",
                    epsilon,
                    second * np.sqrt(n_steps),
                    noise_of(problem, epsilon, stream=1),
                    np.zeros((k, d)),
                    preconditioned(vectors, inverse * (size * k**2 / (k - 1))),
                )
                for size in step_sizes
            ]
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


def preconditioned(vectors: Array, scales: Array) -> Callable[[Array], Array]:
    """From a gradient to a step: each direction of ``vectors`` has its own step size."""
    return lambda gradient: ((gradient @ vectors) * scales) @ vectors.T
