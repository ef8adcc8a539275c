"""scikit-learn's logistic regression, which is not private, on the same rows."""

from sklearn.linear_model import LogisticRegression

from ..measure import Case
from ..problems import Problem


def cases(problem: Problem) -> list[Case]:
    """The ``lbfgs`` solver with its defaults, but for room to converge."""

    def run() -> str:
        classifier = LogisticRegression(max_iter=1000).fit(problem.X, problem.y)
        return f"{classifier.n_iter_[0]} iterations"

    return [Case("sklearn_fit", "lbfgs", "fit", run)]
