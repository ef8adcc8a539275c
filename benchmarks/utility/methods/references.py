"""What a result on a table is measured against: the base rates, and no privacy on standardised columns."""

from collections.abc import Sequence

import numpy as np
from sklearn.linear_model import LogisticRegression, RidgeCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from ..problems import Measures, Problem
from .contract import Score


def fit_base_rates(problem: Problem, epsilons: Sequence[float]) -> list[Score]:
    """The largest class of the test rows for all of them, and their shares of the classes as probabilities.

    The log-loss is then the entropy of those shares: no other constant does better. For a regression it is
    the mean.
    """
    if problem.bounds is not None:
        return [Score(None, Measures(r2=0.0))]
    shares = np.array([np.mean(problem.y_test == label) for label in problem.classes])
    proba = np.tile(shares, (len(problem.y_test), 1))
    predicted = np.full(len(problem.y_test), problem.classes[shares.argmax()])
    return [Score(None, problem.measures_of(predicted, proba))]


def fit_standardised(problem: Problem, epsilons: Sequence[float]) -> list[Score]:
    """scikit-learn's logistic regression, or ridge regression, on all standardised training rows."""
    if problem.bounds is None:
        model = make_pipeline(StandardScaler(), LogisticRegression(max_iter=2000))
    else:
        model = make_pipeline(StandardScaler(), RidgeCV(np.geomspace(1e-2, 1e4, 13)))
    return [Score(None, problem.measures(model.fit(problem.X, problem.y)))]
