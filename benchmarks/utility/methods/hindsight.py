"""An algorithm at seven step sizes about its own, of which the best is taken in hindsight.

Nobody can do that privately: it says what is lost by choosing the step without looking.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from skmixdp import MixedDPLogisticRegression, RowMapping
from skmixdp._engine import Options, Recipe
from skmixdp.algorithms import BY_NAME, Algorithm
from skmixdp.components.protocols import PublicInfo, ReleaseFacts, Steps

from ..problems import Problem
from .contract import Score
from .heads import describe, fit_together, start

#: The size of each step over the size that the algorithm's own rule gives it.
FACTORS = (1 / 8, 1 / 4, 1 / 2, 1.0, 2.0, 4.0, 8.0)


@dataclass(frozen=True)
class ScaledSteps:
    """As many steps as another rule takes, each ``factor`` times as long."""

    inner: Steps
    factor: float

    def count(self, info: PublicInfo, sensitivity: float) -> int:
        return self.inner.count(info, sensitivity)

    def bind(self, info: PublicInfo, facts: ReleaseFacts) -> Callable[[int], float]:
        step_size = self.inner.bind(info, facts)
        return lambda t: self.factor * step_size(t)


class Rescaled(Algorithm):
    """An algorithm with every step ``factor`` times as long."""

    def __init__(self, base: Algorithm, factor: float) -> None:
        self.base = base
        self.factor = factor

    def pieces(self, info: PublicInfo, options: Options) -> Recipe:
        recipe = self.base.recipe(info, options)
        return replace(recipe, steps=ScaledSteps(recipe.steps, self.factor))


def fit(problem: Problem, epsilons: Sequence[float], *, algorithm: str | None = None) -> list[Score]:
    """A score for each budget and factor; ``algorithm`` None is the estimator's default."""
    name = MixedDPLogisticRegression().algorithm if algorithm is None else algorithm
    found = []
    for epsilon in epsilons:
        heads = [
            MixedDPLogisticRegression(
                Rescaled(BY_NAME[name](), factor),
                epsilon=epsilon,
                rows=RowMapping(whiten=name == "auto"),
                random_state=problem.seed,
                **start(problem),
            )
            for factor in FACTORS
        ]
        fit_together(heads, problem)
        found += [
            Score(epsilon, problem.measures(head), setting=f"x {factor:g}", note=describe(head))
            for factor, head in zip(FACTORS, heads, strict=True)
        ]
    return found
