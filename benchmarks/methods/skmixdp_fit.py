"""A fit of skmixdp with its defaults."""

from skmixdp import MixedDPLogisticRegression

from ..measure import Case
from ..problems import Problem


def cases(problem: Problem) -> list[Case]:
    """``MixedDPLogisticRegression(epsilon=1)``, validation and calibration included."""

    def run() -> str:
        classifier = MixedDPLogisticRegression(epsilon=1.0, random_state=0)
        classifier.fit(problem.X, problem.y, X_pub=problem.X_pub, y_pub=problem.y_pub)
        return f"{classifier.n_iter_} steps"

    return [Case("skmixdp_fit", "epsilon=1", "fit", run)]
