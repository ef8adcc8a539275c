"""The library's regression."""

from collections.abc import Sequence
from typing import Any

from skmixdp import MixedDPRidge

from ..problems import Problem
from .contract import Score
from .heads import describe, fit_together

#: Range of targets in units of their standard deviation, which nobody knows without public rows.
_RANGE = 4.0


def fit(problem: Problem, epsilons: Sequence[float], **parameters: Any) -> list[Score]:
    """One head for each budget, in shared passes over the rows.

    Without public rows the centre and the scale of the targets are declared, from their bounds: the middle,
    and a quarter of the range.
    """
    low, high = problem.bounds or (0.0, 0.0)
    declared = {"target_center": (low + high) / 2, "target_scale": (high - low) / _RANGE}
    known = {} if len(problem.X_pub) else declared
    heads = [
        MixedDPRidge(epsilon=epsilon, random_state=problem.seed, **{**known, **parameters})
        for epsilon in epsilons
    ]
    fit_together(heads, problem)
    return [
        Score(epsilon, problem.measures(head), note=describe(head))
        for epsilon, head in zip(epsilons, heads, strict=True)
    ]
