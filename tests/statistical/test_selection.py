"""A search chooses by the law that its price was computed for, and its counts carry the stated noise."""

from functools import cache

import numpy as np
import pytest
from scipy.stats import chisquare, geom

from skmixdp import MixedDPLogisticRegression
from skmixdp.model_selection import PrivateSearchCV
from skmixdp.privacy import NoiseSource
from skmixdp.privacy.accounting.selection import TrialLaw
from tests.private_names import Candidates

THRESHOLD = 1e-6


@cache
def probabilities(mean, n=4000):
    """P(K = k) for k = 0, 1, ... of the geometric distribution."""
    return geom.pmf(np.arange(n), 1 / mean)


def fits(sample, p):
    """p-value of counts against probabilities, rare values taken together."""
    counts = np.bincount(sample, minlength=len(p))
    expected = len(sample) * p
    frequent = expected >= 10
    observed = np.append(counts[: len(p)][frequent], len(sample) - counts[: len(p)][frequent].sum())
    wanted = np.append(expected[frequent], len(sample) - expected[frequent].sum())
    if wanted[-1] < 5:
        observed, wanted = observed[:-1], wanted[:-1] * observed[:-1].sum() / wanted[:-1].sum()
    return chisquare(observed, wanted).pvalue


def test_the_number_of_trials_follows_its_law():
    law = TrialLaw(6.0)
    sample = np.array([law.number(u) for u in NoiseSource(0).uniform((5000,))])
    assert fits(sample, probabilities(6.0)) > THRESHOLD
    for factor in (2 / 3, 3 / 2):
        assert fits(sample, probabilities(6.0 * factor)) < THRESHOLD


def test_every_candidate_is_as_likely_as_any_other():
    grid = Candidates([{"a": [0, 1, 2], "b": [0, 1]}, {"a": [3], "b": [1, 2]}])
    every = grid.settings
    sample = np.array([every.index(grid.at(u)) for u in NoiseSource(1).uniform((4000,))])
    even = np.full(len(every), 1 / len(every))
    assert fits(sample, even) > THRESHOLD
    for factor in (2 / 3, 3 / 2):
        twin = even * [factor, *[1.0] * (len(every) - 1)]
        assert fits(sample, twin / twin.sum()) < THRESHOLD


@pytest.mark.slow
def test_the_winner_follows_the_law_of_the_best_of_the_drawn():
    """P(winner <= j) = E[(j / m)^K]: the whole search, from the draw of K to best_params_."""
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(20, 2)), np.arange(20) % 2
    X_pub, y_pub = rng.normal(size=(6, 2)), np.arange(6) % 2
    m, mean = 3, 3.0
    sample = []
    for seed in range(300):
        search = PrivateSearchCV(
            MixedDPLogisticRegression("noisy-gd"),
            {"n_steps": list(range(1, m + 1))},
            delta=1e-3,
            scoring=lambda estimator, X, y: estimator.n_steps,
            strategy="random",
            n_trials=mean,
            random_state=seed,
        )
        search.fit(X, y, X_pub=X_pub, y_pub=y_pub)
        assert len(search.cv_results_["params"]) == 1
        sample.append(search.best_params_["n_steps"] - 1)

    def law(mean):
        p = probabilities(mean)
        below = np.array([p @ (j / m) ** np.arange(len(p)) for j in range(m + 1)])
        return np.diff(below)

    assert fits(np.array(sample), law(mean)) > 1e-3
    for factor in (1 / 2, 2):  # a winner says less of K than K itself
        assert fits(np.array(sample), law(mean * factor)) < 1e-3


def test_a_seeded_count_does_not_repeat_the_noise_of_its_fit():
    X, y = np.random.default_rng(0).normal(size=(30, 3)), np.arange(3).repeat(10)
    clf = MixedDPLogisticRegression(delta=1e-3, classes=range(3), n_steps=1, random_state=5).fit(X, y)
    exact = clf.score(X, y)
    drawn = (clf.private_score(X, y, noise_multiplier=1.0) - exact) * 30
    assert drawn == pytest.approx((clf.private_score(X, y, noise_multiplier=1.0) - exact) * 30)
    assert not np.any(np.isclose(drawn, NoiseSource(5).normal((100,))))
