"""Poisson batches: who takes part, what sums are divided by, and what is reported."""

import numpy as np
import pytest
from scipy.stats import binomtest, kstest

from skmixdp import MixedDPLogisticRegression, MixedDPRidge
from skmixdp.components import FullBatch, PoissonBatch
from skmixdp.privacy import NoiseSource, epsilon_of
from tests.catalog import ALGORITHMS
from tests.conftest import Watched


def test_rows_take_part_independently_with_the_stated_probability():
    sampling, noise = PoissonBatch(30), NoiseSource(0)
    drawn = np.array([sampling.draw(100, noise) for _ in range(2000)])
    assert sampling.rate(100) == 0.3
    assert binomtest(int(drawn.sum()), drawn.size, 0.3).pvalue > 1e-6
    for wrong in (0.3 * 2 / 3, 0.3 * 3 / 2):
        assert binomtest(int(drawn.sum()), drawn.size, wrong).pvalue < 1e-6
    # Independent: batch sizes vary as a binomial does, which a batch of fixed size would not.
    sizes = (drawn.sum(axis=1) - 30) / np.sqrt(100 * 0.3 * 0.7)
    assert np.var(sizes) == pytest.approx(1, rel=6 * np.sqrt(2 / 2000))
    correlation = np.corrcoef(drawn[:, 0], drawn[:, 1])[0, 1]
    assert abs(correlation) < 5.5 / np.sqrt(2000)


def test_the_full_batch_is_not_drawn():
    assert FullBatch().rate(100) == 1
    assert FullBatch().draw(100, NoiseSource(0)) is None


def data(n=240, d=6, k=3, seed=0):
    rng = np.random.default_rng(seed)
    return rng.normal(size=(n, d)), np.arange(n) % k


def estimator(**parameters):
    return MixedDPLogisticRegression(**{"batch_size": 60, "n_steps": 5, "random_state": 0, **parameters})


def test_the_report_is_that_of_sampled_batches():
    (X, y), (X_pub, y_pub) = data(), data(30, seed=1)
    report = estimator().fit(X, y, X_pub, y_pub).privacy_
    assert report.sampling_rate == 0.25
    assert report.mu is None
    assert "dp-accounting" in report.accountant
    assert report.epsilon == epsilon_of(report.noise_multiplier, 5, delta=1e-5, sampling_rate=0.25)
    assert 0.999 < report.epsilon <= 1
    full = estimator(batch_size=None).fit(X, y, X_pub, y_pub).privacy_
    assert report.noise_multiplier < full.noise_multiplier
    same = estimator(batch_size=240).fit(X, y, X_pub, y_pub).privacy_
    assert (same.sampling_rate, same.mu) == (1, full.mu)


@pytest.mark.parametrize("batch_size", [1, 3])
def test_empty_batches_are_steps_like_any_other(monkeypatch, batch_size):
    (X, y), (X_pub, y_pub) = data(), data(30, seed=1)
    sources = []
    monkeypatch.setattr(
        "skmixdp._noise.NoiseSource", lambda seed: sources.append(Watched(seed)) or sources[-1]
    )
    clf = estimator(batch_size=batch_size, n_steps=12).fit(X, y, X_pub, y_pub)
    lengths = [np.linalg.norm(total) for total in sources[0].sums]
    assert len(lengths) == 12
    assert len(set(sources[0].scales)) >= 1
    if batch_size == 1:
        assert min(lengths) == 0  # with probability e^-1 a step; seeded
    assert np.isfinite(clf.coef_).all()


def test_sums_are_divided_by_the_expected_size(monkeypatch):
    """The mean over many batches is the full-batch mean, so nothing realised divides."""
    from skmixdp.algorithms import NoisyGD
    from tests.conftest import Silent

    (X, y), (X_pub, y_pub) = data(), data(30, seed=1)
    monkeypatch.setattr("skmixdp._noise.NoiseSource", Silent)
    terms = {"n_steps": 1, "learning_rate": 1.0, "dtype": "float64", "init": "zeros"}
    algorithm = NoisyGD(clip=10.0, momentum=0.0)
    full = estimator(algorithm=algorithm, batch_size=None, **terms).fit(X, y, X_pub, y_pub).coef_
    heads = np.array(
        [
            estimator(algorithm=algorithm, random_state=seed, noise_multiplier=10.0, epsilon=None, **terms)
            .fit(X, y, X_pub, y_pub)
            .coef_
            for seed in range(400)
        ]
    )
    error = (heads.mean(axis=0) - full) / (heads.std(axis=0) / np.sqrt(400))
    assert np.abs(error[heads.std(axis=0) > 1e-12]).max() < 5
    # A divisor of the realised size would have less variance, by about the batch size's own.
    assert kstest(error.ravel() / max(np.std(error), 1e-9), "norm").pvalue > 1e-6


@pytest.mark.parametrize("name", ALGORITHMS)
def test_every_algorithm_trains_on_batches(name):
    (X, y), (X_pub, y_pub) = data(), data(30, seed=1)
    clf = estimator(algorithm=ALGORITHMS[name]).fit(X, y, X_pub, y_pub)
    assert (clf.privacy_.sampling_rate, clf.privacy_.mu) == (0.25, None)
    assert clf.privacy_.epsilon <= 1
    assert np.isfinite(clf.coef_).all()


def test_batches_of_a_regression(monkeypatch):
    """The mean over many batches is the full-batch mean for squared loss too."""
    from skmixdp.algorithms import NoisyGD
    from tests.conftest import Silent

    X, X_pub = data()[0], data(30, seed=1)[0]
    y, y_pub = X[:, 0] - X[:, 1] ** 2, X_pub[:, 0] - X_pub[:, 1] ** 2
    monkeypatch.setattr("skmixdp._noise.NoiseSource", Silent)
    terms = {"n_steps": 1, "learning_rate": 1.0, "dtype": "float64", "init": "zeros"}
    algorithm = NoisyGD(clip=10.0, momentum=0.0)
    full = MixedDPRidge(algorithm, **terms).fit(X, y, X_pub, y_pub).coef_
    sampled = {"batch_size": 60, "noise_multiplier": 10.0, "epsilon": None}
    heads = np.array(
        [
            MixedDPRidge(algorithm, random_state=seed, **sampled, **terms).fit(X, y, X_pub, y_pub).coef_
            for seed in range(200)
        ]
    )
    assert heads.std(axis=0).min() > 1e-6
    assert np.abs((heads.mean(axis=0) - full) / (heads.std(axis=0) / np.sqrt(200))).max() < 5


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"batch_size": 0}, r"^batch_size=0 must be"),
        ({"batch_size": 2.5}, r"^batch_size=2.5 must be"),
        ({"batch_size": True}, r"^batch_size=True must be"),
        ({"batch_size": 241}, r"^batch_size=241 exceeds the 240 private rows"),
        (
            {"batch_size": 10, "noise": "hardened", "random_state": None},
            r"^batch_size=10 cannot be accounted",
        ),
    ],
)
def test_bad_sizes_are_named(parameters, message):
    (X, y), (X_pub, y_pub) = data(), data(30, seed=1)
    with pytest.raises(ValueError, match=message):
        estimator(**parameters).fit(X, y, X_pub, y_pub)


def test_every_epsilon_is_reached_on_batches():
    rng = np.random.default_rng(0)
    centres = 3 * rng.normal(size=(3, 6))
    y, y_pub = np.arange(3000) % 3, np.arange(30) % 3
    X, X_pub = centres[y] + rng.normal(size=(3000, 6)), centres[y_pub] + rng.normal(size=(30, 6))
    clf = MixedDPLogisticRegression(batch_size=300, random_state=0).fit(X, y, X_pub, y_pub)
    assert clf.score(X, y) > 0.9
