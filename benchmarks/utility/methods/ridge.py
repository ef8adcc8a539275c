"""The library's regression."""

from collections.abc import Sequence
from typing import Any

from skmixdp import MixedDPRidge

from ..problems import Problem
from .contract import Score
from .heads import declared_targets, describe, fit_together


def fit(problem: Problem, epsilons: Sequence[float], **parameters: Any) -> list[Score]:
    """One head for each budget, in shared passes over the rows.

    Without public rows the centre and the scale of the targets are declared, from their bounds: the middle,
    and a quarter of the range.
    """
    known = declared_targets(problem)
    heads = [
        MixedDPRidge(epsilon=epsilon, random_state=problem.seed, **{**known, **parameters})
        for epsilon in epsilons
    ]
    fit_together(heads, problem)
    return [
        Score(epsilon, problem.measures(head), note=describe(head))
        for epsilon, head in zip(epsilons, heads, strict=True)
    ]
