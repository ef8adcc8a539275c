"""Poisson batches: who takes part, what sums are divided by, and what is reported."""

import numpy as np
import pytest
from scipy.stats import binomtest

from skmixdp import MixedDPLogisticRegression, MixedDPRidge
from skmixdp.algorithms import GEP
from skmixdp.components import FullBatch, PoissonBatch
from skmixdp.privacy import NoiseSource, epsilon_of
from tests.catalog import ALGORITHMS
from tests.noise import assert_energies, watch
from tests.private_names import dotted_path


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


def test_empty_batches_are_steps_like_any_other(monkeypatch):
    """A step on no rows releases noise alone, of the scale of every other step.

    No batch of 60 is empty with a probability of (1 - 1/e)^60 = 1e-12, and the energies are refused with
    one of 2e-8.
    """
    n_steps = 60
    (X, y), (X_pub, y_pub) = data(), data(30, seed=1)
    log = watch(monkeypatch)
    terms = {"epsilon": None, "noise_multiplier": 2.0, "random_state": None}
    clf = estimator(algorithm="noisy-gd", batch_size=1, n_steps=n_steps, **terms)
    clf.fit(X, y, X_pub, y_pub)
    assert len(log) == n_steps
    sizes = [int(release.mask.sum()) for release in log]
    assert 0 in sizes and max(sizes) > 0
    for release, size in zip(log, sizes, strict=True):
        assert release.exact.any() == (size > 0)
        assert (release.noisy != release.exact).all()
    assert {release.scale for release in log} == {2.0 * log[0].sensitivity}
    assert_energies([release.draws(2.0) for release in log])
    assert np.isfinite(clf.coef_).all()


def batches(monkeypatch, n_steps=300, batch_size=60, **parameters):
    """Who took part in each step of a fit, (n_steps, 240)."""
    (X, y), (X_pub, y_pub) = data(), data(30, seed=1)
    with monkeypatch.context() as patch:
        log = watch(patch)
        terms = {"epsilon": None, "noise_multiplier": 5.0, "random_state": None} | parameters
        estimator(algorithm="noisy-gd", n_steps=n_steps, batch_size=batch_size, **terms).fit(
            X, y, X_pub, y_pub
        )
    assert len(log) == n_steps
    return np.array([release.mask for release in log])


def assert_drawn_anew(masks, rate):
    """Each row takes part in each step with the stated rate, whatever other rows and other steps do.

    Sums of many independent terms, standardised: sound batches fail each of the five with a probability
    below 1e-7.
    """
    n_steps, n_rows = masks.shape
    Z = (masks - rate) / np.sqrt(rate * (1 - rate))
    # Of a standardised Bernoulli number: E z^4 - 1.
    spread = (1 - 3 * rate * (1 - rate)) / (rate * (1 - rate)) - 1
    sums = {
        "rate": Z.sum() / np.sqrt(Z.size),
        "one step after another": (Z[1:] * Z[:-1]).sum() / np.sqrt(Z[1:].size),
        "one row next to another": (Z[:, 1:] * Z[:, :-1]).sum() / np.sqrt(Z[:, 1:].size),
        "how often each row takes part": (Z.sum(axis=0) ** 2 / n_steps - 1).sum()
        / np.sqrt(n_rows * (2 + (spread - 2) / n_steps)),
        "how many rows take part": (Z.sum(axis=1) ** 2 / n_rows - 1).sum()
        / np.sqrt(n_steps * (2 + (spread - 2) / n_rows)),
    }
    for what, value in sums.items():
        # The last two are sums of squares, whose upper tail is that of chi-square.
        assert abs(value) < (6.5 if what.startswith("how") else 5.4), what


@pytest.mark.parametrize("batch_size", [24, 60, 200])
def test_a_batch_is_drawn_anew_in_each_step(monkeypatch, batch_size):
    assert_drawn_anew(batches(monkeypatch, batch_size=batch_size), batch_size / 240)


def test_batches_come_from_the_secret_source_of_noise(monkeypatch):
    """They follow from its key, which is new for each fit, and from its uniform numbers."""
    one, other = ((batches(monkeypatch, n_steps=20) - 0.25) / np.sqrt(0.25 * 0.75) for _ in range(2))
    assert abs((one * other).sum()) < 5.5 * np.sqrt(one.size)  # fails with a probability of 4e-8
    with monkeypatch.context() as patch:
        patch.setattr("skmixdp.privacy.noise.secrets.randbits", lambda bits: 2**bits // 3)
        one, other = (batches(monkeypatch, n_steps=20) for _ in range(2))
    assert np.array_equal(one, other)
    for value, expected in ((0.0, 240), (0.2499, 240), (0.2501, 0)):
        with monkeypatch.context() as patch:
            patch.setattr(NoiseSource, "uniform", lambda self, shape, value=value: np.full(shape, value))
            assert (batches(patch, n_steps=3).sum(axis=1) == expected).all()


@pytest.mark.parametrize("algorithm", ["noisy-gd", "adamix", GEP(3), "dope-sgd"], ids=str)
def test_rows_outside_a_batch_have_no_part_in_its_sums(monkeypatch, algorithm):
    (X, y), (X_pub, y_pub) = data(), data(30, seed=1)

    def release(X, y):
        with monkeypatch.context() as patch:
            log = watch(patch)
            estimator(algorithm=algorithm, n_steps=1, dtype="float64").fit(X, y, X_pub, y_pub)
        return log

    before = release(X, y)
    outside = ~before[0].mask
    assert 100 < outside.sum() < 240
    changed = np.where(outside[:, np.newaxis], 1e6 * X[::-1] + 1, X)
    after = release(changed, np.where(outside, (y + 1) % 3, y))
    inside = release(np.where(outside[:, np.newaxis], X, -X), y)
    for one, other, another in zip(before, after, inside, strict=True):
        assert np.array_equal(one.mask, other.mask)
        assert one.exact.tobytes() == other.exact.tobytes()
        assert not np.allclose(one.exact, another.exact)


@pytest.mark.parametrize("batch_size", [1, 60])
def test_sums_are_divided_by_the_expected_size(monkeypatch, batch_size):
    """A step of rate 1 from zeros is the released sum over a number, which is the same for all batches."""
    from skmixdp.algorithms import NoisyGD

    X, y = data()
    terms = {
        "n_steps": 1,
        "learning_rate": 1.0,
        "epsilon": None,
        "noise_multiplier": 10.0,
        "classes": range(3),
    }
    descent = NoisyGD(clip=10.0, momentum=0.0)
    sizes = set()
    for seed in range(20):
        with monkeypatch.context() as patch:
            log = watch(patch)
            clf = estimator(algorithm=descent, batch_size=batch_size, random_state=seed, **terms).fit(X, y)
        (released,) = log
        sizes.add(int(released.mask.sum()))
        mean = (released.noisy - released.noisy.mean(axis=0)) / batch_size
        expected = -mean[:, : X.shape[1]]
        np.testing.assert_allclose(clf.coef_, expected, rtol=0, atol=1e-12 * np.abs(mean).max())
    assert len(sizes) > 2


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
    monkeypatch.setattr(dotted_path("transaction.NoiseSource"), Silent)
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
            {"batch_size": 10, "noise": "discrete", "random_state": None},
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
