"""The noise that leaves the private rows has the stated scale, neither less nor more.

Each sample is standardised by a scale that is computed here from the definitions. The test must
accept it AND reject the same sample at 2/3 and at 3/2 of the scale: a test that accepts
everything shows nothing. Seeded where possible, so that the verdict is the same every day; the
tests on fresh noise are sized so that they fail by chance less than once in five million runs.
"""

import numpy as np
import pytest
from scipy.stats import kstest

from skmixdp import MixedDPLogisticRegression
from skmixdp.algorithms import AdaMix, NoisyGD
from skmixdp.components.protocols import PrivateQuery, ReleasedArray
from skmixdp.privacy import NoiseSource
from skmixdp.privacy.noise import DiscreteNoise
from tests.conftest import Silent
from tests.noise import assert_energies
from tests.private_names import GaussianMechanism, InMemoryRows, dotted_path, release

THRESHOLD = 1e-7


def assert_standard_normal(sample):
    """Accept the sample, and reject its power twins.

    The sum of squares is the most powerful statistic of a scale: 400 draws suffice to reject the twins.
    """
    assert kstest(sample, "norm").pvalue > THRESHOLD
    assert_energies([sample])
    for factor in (2 / 3, 3 / 2):
        with pytest.raises(AssertionError, match="mean square"):
            assert_energies([factor * sample])


def sum_question(sensitivity, share=1.0):
    """The sum of the rows, each with coefficient 1: no clip, since only noise matters here."""
    return PrivateQuery(
        points=np.zeros((3, 50)),
        contribute=lambda Z, block: (np.ones_like(Z), None),
        releases=(ReleasedArray(sensitivity, share),),
    )


@pytest.mark.parametrize("noise", [NoiseSource(0), NoiseSource(), DiscreteNoise()], ids=lambda n: n.kind)
@pytest.mark.parametrize(("sensitivity", "share"), [(0.5, 1.0), (3.0, 0.25)])
def test_released_sums_carry_the_stated_noise(noise, sensitivity, share):
    rows = InMemoryRows(np.random.default_rng(0).normal(size=(40, 50)), np.zeros(40, int), exact=True)
    sigma, n_steps = 7.0, 12
    mechanism = GaussianMechanism(sigma, n_steps, noise)
    exact = np.tile(rows._X.sum(axis=0), (3, 1))
    sample = []
    for _ in range(n_steps):
        mechanism.begin_step(None)
        (released,) = release(rows, [(mechanism, sum_question(sensitivity, share))])[0].arrays
        sample.append((released - exact) / (sigma * sensitivity / np.sqrt(share)))
    sample = np.ravel(sample)
    assert_standard_normal(sample)
    # Independent between steps, rows and columns: no correlation beyond 5 / sqrt(n).
    for lag in (1, 50, 150):
        correlation = np.corrcoef(sample[:-lag], sample[lag:])[0, 1]
        assert abs(correlation) < 5.5 / np.sqrt(len(sample) - lag)


def data(n_classes, seed=0, n=400, d=120):
    rng = np.random.default_rng(seed)
    return rng.normal(size=(n, d)), np.arange(n) % n_classes


def fitted_with_and_without_noise(monkeypatch, estimator, X, y, X_pub, y_pub):
    noisy = estimator.fit(X, y, X_pub, y_pub)
    W_noisy, plan = np.hstack([noisy.coef_, noisy.intercept_[:, None]]), noisy.privacy_
    value = noisy._row_map.intercept_value
    monkeypatch.setattr(dotted_path("transaction.NoiseSource"), Silent)
    exact = estimator.fit(X, y, X_pub, y_pub)
    W_exact = np.hstack([exact.coef_, exact.intercept_[:, None]])
    difference = W_noisy - W_exact
    difference[:, -1] /= value  # back to the head that was trained, intercept column and all
    return difference, plan


@pytest.mark.parametrize(
    "algorithm",
    [NoisyGD(clip=0.3, momentum=0.0), AdaMix(clip_floor=0.3, quantile=0.01, momentum=0.0)],
    ids=["noisy-gd", "adamix"],
)
@pytest.mark.parametrize("n_classes", [2, 5])
def test_one_step_of_a_fit_moves_the_head_by_the_stated_noise(monkeypatch, algorithm, n_classes):
    X, y = data(n_classes)
    X_pub, y_pub = data(n_classes, seed=1, n=20)
    sample = []
    for seed in range(8):  # one fit has too few coefficients for the test to have power
        estimator = MixedDPLogisticRegression(
            algorithm, n_steps=1, learning_rate=2.0, random_state=seed, dtype="float64", init="zeros"
        )
        with monkeypatch.context() as patch:
            difference, report = fitted_with_and_without_noise(patch, estimator, X, y, X_pub, y_pub)
        clip = 0.3
        if isinstance(algorithm, AdaMix):
            # At W = 0 every public gradient has the same length, so any quantile is that.
            length = np.hypot(1.0, estimator._row_map.intercept_value)
            clip = length * (0.5 if n_classes == 2 else np.sqrt(1 - 1 / n_classes))
        a = len(X_pub) / (len(X_pub) + len(X))
        scale = 2.0 * (1 - a) / len(X) * report.noise_multiplier * clip
        sample.append(independent_parts(difference) / scale)
    assert_standard_normal(np.concatenate(sample))


def independent_parts(difference):
    """Independent numbers of unit variance in noise that was projected on sum-to-zero rows."""
    k = len(difference)
    if k == 1:
        return difference.ravel()
    np.testing.assert_allclose(difference.sum(axis=0), 0, atol=1e-12)
    contrasts = np.array([[1.0] * j + [-j] + [0.0] * (k - j - 1) for j in range(1, k)])  # Helmert
    contrasts /= np.linalg.norm(contrasts, axis=1, keepdims=True)
    return (contrasts @ difference).ravel()


def test_noise_in_a_subspace_has_the_stated_scale_there_and_is_zero_outside(monkeypatch):
    X, y = data(5)
    X_pub, y_pub = data(5, seed=1, n=60)
    sample = []
    for n_components in (20, 100):
        for seed in range(8 if n_components == 20 else 2):
            estimator = MixedDPLogisticRegression(
                AdaMix(clip_floor=2.0, n_components=n_components, momentum=0.0),
                n_steps=1,
                learning_rate=1.0,
                random_state=seed,
                dtype="float64",
                init="zeros",
            )
            with monkeypatch.context() as patch:
                difference, report = fitted_with_and_without_noise(patch, estimator, X, y, X_pub, y_pub)
            a = len(X_pub) / (len(X_pub) + len(X))
            scale = (1 - a) / len(X) * report.noise_multiplier * 2.0
            # Five classes, sum to zero: 4 x rank independent numbers; the public rows of 60
            # and their mean reach a rank of 60 at the most.
            values = np.linalg.svd(difference, compute_uv=False)
            assert np.sum(values > 1e-9 * values[0]) == 4
            rank = min(n_components, 60)
            energy = np.sum((difference / scale) ** 2)
            assert energy == pytest.approx(4 * rank, rel=6 * np.sqrt(2 / (4 * rank)))
            sample.append((energy - 4 * rank) / np.sqrt(8 * rank))
    # Ten standardised chi-squares; 2/3 or 3/2 of the scale would move each by 5 or more.
    assert abs(np.mean(sample)) < 5.5 / np.sqrt(len(sample))
