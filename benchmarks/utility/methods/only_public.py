"""The head that private training starts from: public rows, class names, or both; no private row."""

from collections.abc import Sequence

from skmixdp import MixedDPLogisticRegression
from skmixdp.algorithms import NoisyGD

from ..problems import ZEROS, Measures, Problem
from .contract import Score
from .heads import start


def public_head(problem: Problem) -> MixedDPLogisticRegression:
    """The library's public fit.

    With all of the weight on the public gradient nothing is asked of private rows, and one step of
    no length stays at the start.
    """
    still = MixedDPLogisticRegression(
        NoisyGD(public_weight=1.0), n_steps=1, learning_rate=1e-12, random_state=0, **start(problem)
    )
    return still.fit(problem.X, problem.y, X_pub=problem.X_pub, y_pub=problem.y_pub)


def fit(problem: Problem, epsilons: Sequence[float]) -> list[Score]:
    """The score of the start; it has no budget. A head of zeros knows nothing."""
    if isinstance(problem.init, str) and problem.init == ZEROS:
        chance = 1 / len(problem.classes)
        return [Score(None, Measures(chance, chance), note="chance")]
    return [Score(None, problem.measures(public_head(problem)))]
