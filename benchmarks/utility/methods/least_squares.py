"""Least squares from a noisy second moment and noisy class sums (DP-LS).

Mehta, Krichene, Thakurta, Kurakin and Cutkosky 2022, "Differentially Private Image Classification from
Features", and Mehta, Thakurta, Kurakin and Cutkosky 2022, "Large Scale Transfer Learning for Differentially
Private Image Classification".
"""

from collections.abc import Sequence

import numpy as np

from ..problems import Array, Problem
from .contract import Score
from .releases import (
    class_sums,
    codes,
    edge,
    multipliers,
    noise_of,
    noisy_class_sums,
    noisy_second_moment,
    unit_rows,
)

#: The smallest share of a class that scores may tell, before shares are divided by their sum.
_LEAST = 1e-3


def fit(
    problem: Problem,
    epsilons: Sequence[float],
    *,
    shares: Sequence[float],
    ridges: Sequence[float],
    public_weights: Sequence[float],
    intercept: float,
) -> list[Score]:
    """Least squares on one column for each class, for each share of the second moment and each ridge.

    The ridge is in units of the noise's largest eigenvalue. Negative eigenvalues of the noisy matrix are set
    to 0. Public rows add to both sums, as often as ``public_weights`` says.

    Sensitivity: 1 for the second moment and 1 for all class sums, since rows have unit length.
    """
    X, X_pub, X_test = unit_rows(problem, intercept)
    y, y_pub = codes(problem, problem.y), codes(problem, problem.y_pub)
    k, weights = len(problem.classes), public_weights if len(y_pub) else (0.0,)
    exact = X_pub.T @ X_pub, class_sums(X_pub, y_pub, k)
    found = []
    for epsilon in epsilons:
        for share in shares:
            noise = noise_of(problem, epsilon)
            first, second = multipliers(epsilon, [share, 1 - share])
            moment = noisy_second_moment(X, first, noise)
            sums = noisy_class_sums(X, y, k, second, noise)
            for weight in weights:
                values, vectors = np.linalg.eigh((moment + weight * exact[0]).astype(np.float32))
                turned, right = X_test @ vectors, (sums + weight * exact[1]) @ vectors
                for ridge in ridges:
                    damped = right / (np.maximum(values, 0) + ridge * edge(first, X.shape[1]))
                    scores = turned @ damped.T
                    measured = problem.measures_of(problem.classes[scores.argmax(axis=1)], shares_of(scores))
                    setting = f"share {share:g}, ridge {ridge:g}" + (
                        f", public rows x {weight:g}" if weight else ""
                    )
                    note = f"noise multipliers {first:.3g} and {second:.3g}"
                    found.append(Score(epsilon, measured, setting, note))
    return found


def shares_of(scores: Array) -> Array:
    """Least squares on a column for each class as probabilities: cut at 0.001 from below, with sum 1."""
    positive = np.maximum(scores, _LEAST)
    return np.asarray(positive / positive.sum(axis=1, keepdims=True))
