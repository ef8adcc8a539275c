"""diffprivlib's logistic regression, which knows no public rows."""

from collections.abc import Sequence

import numpy as np
from sklearn.preprocessing import normalize

from ... import elsewhere
from ..problems import Measures, Problem
from .contract import Score, UnavailableError


def fit(problem: Problem, epsilons: Sequence[float]) -> list[Score]:
    """A head for each budget, on private rows of unit length, with its defaults and delta 0.

    Raises
    ------
    UnavailableError
        If the environment is not there.
    """
    if not elsewhere.is_there():
        raise UnavailableError("diffprivlib has no environment; see `make diffprivlib`.")
    found = elsewhere.fit(
        normalize(problem.X).astype(np.float64),
        problem.y,
        normalize(problem.X_test),
        problem.y_test,
        epsilons=epsilons,
        seed=problem.seed,
    )
    return [
        Score(epsilon, Measures(one.accuracy, one.balanced_accuracy), note="delta 0")
        for epsilon, one in zip(epsilons, found, strict=True)
    ]
