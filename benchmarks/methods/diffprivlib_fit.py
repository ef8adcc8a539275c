"""diffprivlib's private logistic regression, of which the seconds of the fit alone count."""

from .. import elsewhere
from ..measure import Case
from ..problems import Problem


def cases(problem: Problem) -> list[Case]:
    """A fit at epsilon 1 with its defaults; what is missing is said."""
    if not elsewhere.is_there():
        print("diffprivlib has no environment, so its fit is not measured; see `make diffprivlib`.")
        return []
    spent = 0.0

    def run() -> str:
        nonlocal spent
        (found,) = elsewhere.fit(problem.X, problem.y, problem.X_pub, problem.y_pub, epsilons=[1.0], seed=0)
        spent += found.seconds
        n_test = problem.size.n_pub
        return f"accuracy {found.accuracy:.3f} on the {n_test} public rows, which it does not use"

    return [Case("diffprivlib_fit", "epsilon=1, delta=0", "fit", run, clock=lambda: spent)]
