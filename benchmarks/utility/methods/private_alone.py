"""Noisy gradient descent from zero without public rows."""

from collections.abc import Sequence
from typing import Any

from skmixdp import MixedDPLogisticRegression, fit_many

from ..problems import Array, Problem
from .contract import Score
from .heads import describe


def fit(problem: Problem, epsilons: Sequence[float], *, algorithm: str = "noisy-gd") -> list[Score]:
    """Heads of the private rows; of all training rows where the problem has no public ones."""
    return _fit(problem, problem.X, problem.y, epsilons, algorithm)


def fit_few(problem: Problem, epsilons: Sequence[float], *, algorithm: str = "noisy-gd") -> list[Score]:
    """Heads of the few rows that are public elsewhere, as if those were private and all there are."""
    return _fit(problem, problem.X_pub, problem.y_pub, epsilons, algorithm)


def _fit(problem: Problem, X: Array, y: Array, epsilons: Sequence[float], algorithm: Any) -> list[Score]:
    heads = [
        MixedDPLogisticRegression(
            algorithm, epsilon=epsilon, classes=problem.classes, init="zeros", random_state=problem.seed
        )
        for epsilon in epsilons
    ]
    fit_many(heads, X, y)
    return [
        Score(epsilon, problem.measures(head), note=describe(head))
        for epsilon, head in zip(epsilons, heads, strict=True)
    ]
