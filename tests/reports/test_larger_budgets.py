"""What people expect of a larger budget: a model that is no worse, and at last the one without privacy."""

import math
from itertools import pairwise

import numpy as np
import pytest
from sklearn.datasets import (
    load_breast_cancer,
    load_digits,
    load_iris,
    load_wine,
    make_multilabel_classification,
)
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import log_loss
from sklearn.model_selection import train_test_split
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from skmixdp import MixedDPLogisticRegression

EPSILONS = (8.0, 30.0, 1e3, 1e5, 1e8)
SEEDS = range(4)


def splits(load, shots):
    """Private, public and test rows of each seed."""
    X, y = load(return_X_y=True)
    for seed in SEEDS:
        options = {"test_size": 0.3, "random_state": seed, "stratify": y}
        X_train, X_test, y_train, y_test = train_test_split(X, y, **options)
        known = np.zeros(len(y_train), dtype=bool)
        for c in np.unique(y):
            known[np.flatnonzero(y_train == c)[:shots]] = True
        public = {"X_pub": X_train[known], "y_pub": y_train[known]} if shots else {}
        yield X_train[~known], y_train[~known], public, X_test, y_test


def head(epsilon, **parameters):
    return MixedDPLogisticRegression(**{"epsilon": epsilon, "delta": 1e-5, "random_state": 0} | parameters)


def measured(model, X_test, y_test):
    """Accuracy, and log-loss with the sign that makes more better."""
    return model.score(X_test, y_test), -log_loss(y_test, model.predict_proba(X_test))


QUICK = [(load_iris, 0), (load_iris, 5), (load_breast_cancer, 0)]
SLOW = [(load_breast_cancer, 5), *((load, shots) for load in (load_wine, load_digits) for shots in (0, 5))]


@pytest.mark.parametrize(
    ("load", "shots"), [*QUICK, *(pytest.param(*case, marks=pytest.mark.slow) for case in SLOW)]
)
def test_classes_are_found_as_well_with_more_budget_and_at_last_as_without_privacy(load, shots):
    tolerated, found = np.array([0.003, 0.02]), {epsilon: [] for epsilon in (*EPSILONS, math.inf)}
    for seed, (X, y, public, X_test, y_test) in enumerate(splits(load, shots)):
        for epsilon in EPSILONS:
            fitted = head(epsilon, classes=np.unique(y_test), random_state=seed).fit(X, y, **public)
            found[epsilon].append(measured(fitted, X_test, y_test))
        plain = make_pipeline(StandardScaler(), LogisticRegression(max_iter=1000))
        found[math.inf].append(measured(plain.fit(X, y), X_test, y_test))
    for smaller, larger in pairwise(EPSILONS):
        loss = np.array(found[smaller]) - found[larger]
        assert np.all(loss.mean(axis=0) <= tolerated + 2 * loss.std(axis=0, ddof=1) / 2), (smaller, larger)
    short = np.mean(found[math.inf], axis=0) - np.mean(found[1e8], axis=0)
    assert np.all(short <= [0.02, 0.04])


@pytest.mark.parametrize(
    ("parameters", "fit"),
    [
        pytest.param({}, {"groups": np.arange(1500) // 3}, marks=pytest.mark.slow, id="persons"),
        pytest.param({}, {"sample_weight": np.full(1500, 7.0)}, marks=pytest.mark.slow, id="weights"),
        pytest.param({"batch_size": 500}, {}, marks=pytest.mark.slow, id="batches"),
        pytest.param({"n_steps": 40}, {}, id="given steps"),
        pytest.param({"l2": 1e-3}, {}, marks=pytest.mark.slow, id="given penalty"),
        pytest.param({"learning_rate": 100.0}, {}, marks=pytest.mark.slow, id="given rate"),
        pytest.param(
            {"noise": "discrete", "random_state": None}, {}, marks=pytest.mark.slow, id="discrete noise"
        ),
    ],
)
def test_other_ways_to_fit_are_no_worse_with_more_budget(parameters, fit):
    X, y = load_digits(return_X_y=True)
    heads = [head(epsilon, classes=range(10), **parameters) for epsilon in EPSILONS]
    scores = [one.fit(X[:1500], y[:1500], **fit).score(X[1500:], y[1500:]) for one in heads]
    assert np.all(np.diff(scores) > -0.03), scores


@pytest.mark.slow
def test_several_labels_are_found_as_well_with_more_budget():
    X, Y = make_multilabel_classification(2000, 20, n_classes=4, random_state=0)
    heads = [head(epsilon, classes=range(4)).fit(X[:1500], Y[:1500]) for epsilon in EPSILONS]
    scores = [np.mean(one.predict(X[1500:]) == Y[1500:]) for one in heads]
    assert np.all(np.diff(scores) > -0.01), scores


def test_few_rows_of_centred_columns_are_mapped_by_their_directions():
    rng, k, d, n = np.random.default_rng(0), 20, 12, 1500
    means = rng.normal(size=(k, d)) @ (rng.normal(size=(d, d)) * np.geomspace(1, 0.1, d))
    within = rng.normal(size=(d, d)) * np.geomspace(1, 0.05, d)[:, np.newaxis]
    y = rng.integers(k, size=2 * n)
    X = means[y] + rng.normal(size=(2 * n, d)) @ within + 50
    few, more = (
        MixedDPLogisticRegression(epsilon=epsilon, classes=range(k), random_state=0).fit(X[:n], y[:n])
        for epsilon in (0.7, 1.0)
    )
    assert "directions" in dict(few.privacy_.shares) and "directions" not in dict(more.privacy_.shares)
    loss, longer = (log_loss(y[n:], each.predict_proba(X[n:])) for each in (few, more))
    assert longer < loss < 1.55  # 1.73 where rows keep their length
