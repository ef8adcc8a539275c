"""The private explainable boosting machine of the package interpret, which knows no public rows."""

import json
from collections.abc import Sequence
from itertools import product
from typing import Any

import numpy as np

from ... import elsewhere
from ..problems import DELTA, Array, Problem
from .contract import Score, UnavailableError


def fit(
    problem: Problem,
    epsilons: Sequence[float],
    *,
    rounds_and_rates: Sequence[tuple[int, float]],
    bins: Sequence[int],
    leaves: Sequence[int],
) -> list[Score]:
    """A machine for each budget and setting, and one with its defaults.

    A text is one column of categories, as its users pass it. The bounds of each column are those of the
    private rows, free of charge, which favours it. A target's are declared.

    Raises
    ------
    UnavailableError
        If the environment is not there, or there are more than two classes.
    """
    if not elsewhere.INTERPRET.exists():
        raise UnavailableError("interpret has no environment; see `make interpret`.")
    if problem.bounds is None and len(problem.classes) != 2:
        raise UnavailableError("it knows two classes only.")
    settings: list[dict[str, float]] = [{}]
    for (rounds, rate), n_bins, n_leaves in product(rounds_and_rates, bins, leaves):
        settings.append(
            {"max_rounds": rounds, "learning_rate": rate, "max_bins": n_bins, "max_leaves": n_leaves}
        )
    X, X_test = (_gathered(rows, problem.texts) for rows in (problem.X, problem.X_test))
    n_numbers = X.shape[1] - len(problem.texts)
    known: dict[str, Any] = {} if problem.bounds is None else {"target": problem.bounds}
    predicted = elsewhere.fit_machines(
        X=X,
        X_test=X_test,
        y=problem.y,
        nominal=np.arange(X.shape[1]) >= n_numbers,
        bounds=np.stack([X.min(axis=0), X.max(axis=0)], axis=1),
        epsilons=epsilons,
        delta=DELTA,
        seed=problem.seed,
        settings=json.dumps(settings),
        **known,
    )
    scores = []
    for (i, epsilon), (j, setting) in product(enumerate(epsilons), enumerate(settings)):
        found = predicted[i, j]
        if problem.bounds is None:
            proba = np.stack([1 - found, found], axis=1)
            measures = problem.measures_of(problem.classes[proba.argmax(axis=1)], proba)
        else:
            measures = problem.measures_of(found)
        name = ", ".join(f"{key} {value:g}" for key, value in setting.items()) or "defaults"
        scores.append(Score(epsilon, measures, name))
    return scores


def _gathered(rows: Array, texts: Sequence[Sequence[int]]) -> Array:
    """Columns of numbers, then one for each text: 0 where it is missing, else its category from 1."""
    own = np.setdiff1d(np.arange(rows.shape[1]), [column for columns in texts for column in columns])
    codes = [rows[:, columns] @ np.arange(1, len(columns) + 1) for columns in texts]
    return np.column_stack([rows[:, own], *codes])
