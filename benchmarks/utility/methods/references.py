"""What a result on a table is measured against: the base rates, and models without privacy."""

from collections.abc import Sequence

import numpy as np
from sklearn.compose import make_column_transformer
from sklearn.ensemble import HistGradientBoostingClassifier, HistGradientBoostingRegressor
from sklearn.linear_model import LogisticRegression, LogisticRegressionCV, RidgeCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import SplineTransformer, StandardScaler

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


def fit_boosting(problem: Problem, epsilons: Sequence[float]) -> list[Score]:
    """scikit-learn's gradient boosting with its defaults on all training rows."""
    kind = HistGradientBoostingClassifier if problem.bounds is None else HistGradientBoostingRegressor
    model = kind(random_state=problem.seed)
    return [Score(None, problem.measures(model.fit(problem.X, problem.y)))]


def fit_splines(problem: Problem, epsilons: Sequence[float]) -> list[Score]:
    """An additive model: scikit-learn's cubic splines at quantiles, and a head of cross-validated strength.

    Columns of at most two values stay as they are.
    """
    wide = [j for j in range(problem.X.shape[1]) if len(np.unique(problem.X[:, j])) > 2]
    # Quantiles of a column with few values coincide, and then its splines are none.
    knots = SplineTransformer(n_knots=9, knots="quantile", extrapolation="constant", include_bias=False)
    basis = make_column_transformer((knots, wide), remainder="passthrough")
    head = (
        LogisticRegressionCV(
            Cs=np.geomspace(1e-3, 1e3, 7),
            cv=3,
            max_iter=500,
            l1_ratios=(0,),
            use_legacy_attributes=False,
            scoring="neg_log_loss",
        )
        if problem.bounds is None
        else RidgeCV(np.geomspace(1e-2, 1e4, 13))
    )
    model = make_pipeline(basis, StandardScaler(), head)
    return [Score(None, problem.measures(model.fit(problem.X, problem.y)))]
