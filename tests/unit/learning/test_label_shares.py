"""Noisy shares of labels: no row moves them further than is stated, and they are a start worth their cost."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from scipy.special import expit

from skmixdp import MixedDPLogisticRegression, RowMapping
from skmixdp.privacy import NoiseSource
from tests.conftest import Watched, learned
from tests.private_names import (
    WORTH_OF_LABELS,
    InMemoryRows,
    noisy_logits,
    recorded_releases,
    sensitivity_of,
    share_for,
    with_weights,
)

N = 5000
RATES = np.array([0.02, 0.1, 0.5, 0.9])
Y = (np.random.default_rng(0).random((N, 4)) < RATES).astype(np.int8)


def rows_of(y):
    return InMemoryRows(np.zeros((len(y), 0)), y)


@given(
    y=hnp.arrays(np.int8, st.tuples(st.integers(2, 9), st.integers(2, 40)), elements=st.integers(0, 1)),
    weight=st.sampled_from([None, 0.0, 1.0]),
)
def test_a_row_moves_the_sums_by_what_is_stated_for_any_labels(y, weight):
    n, k = y.shape
    labels = y if weight is None else with_weights(y, np.full(n, weight))
    sums = []
    for rows in (labels, labels[1:]):
        noise = Watched(0)
        learned(rows_of(rows), noisy_logits, k, 2.0, noise=noise)
        sums.append((noise.sums[0], noise.scales[0]))
    (one, scale), (other, _) = sums
    moved = float(np.linalg.norm(one - other))
    assert moved * 2.0 <= scale
    assert moved * 2.0 > 0.999 * scale  # the bound is met by every row
    np.testing.assert_allclose(one - other, y[0] - 0.5, atol=1e-12)


def test_without_noise_the_logits_are_those_of_the_shares():
    found = learned(rows_of(Y), noisy_logits, 4, 1e-9)
    np.testing.assert_allclose(expit(found), Y.mean(axis=0), atol=1e-6)
    members = np.arange(N) % 2 == 0
    found = learned(rows_of(Y), noisy_logits, 4, 1e-9, members=members)
    np.testing.assert_allclose(expit(found), Y[members].mean(axis=0), atol=1e-6)


def test_labels_of_all_rows_and_of_none_have_finite_logits():
    y = np.zeros((50, 3), np.int8)
    y[:, 2] = 1
    assert np.isfinite(learned(rows_of(y), noisy_logits, 3, 1e-9)).all()
    assert np.isfinite(learned(rows_of(y * 0), noisy_logits, 3, 1e-9)).all()


def test_shares_that_noise_hides_become_their_mean():
    for seed in range(20):
        shares = expit(learned(rows_of(Y), noisy_logits, 4, 2000.0, noise=NoiseSource(seed)))
        assert np.all((shares > 0) & (shares < 1))
        assert abs(shares - RATES.mean()).max() < 1
    off = []
    for seed in range(50):
        shares = expit(learned(rows_of(Y), noisy_logits, 4, 30.0, noise=NoiseSource(seed)))
        off.append(shares - Y.mean(axis=0))
    assert np.sqrt(np.mean(np.square(off))) < 1.2 * 30.0 / N


def label_share(mu, n_rows, n_labels):
    return share_for(mu, n_rows, sensitivity_of(n_labels) / 2, WORTH_OF_LABELS)


def test_the_share_of_the_budget_follows_from_public_facts():
    assert label_share(0.3, 10**6, 5) == 0.002
    assert label_share(0.3, 5000, 77) == 0.03
    assert label_share(0.1, 20, 77) == 0.0
    error = math.sqrt(10) / 2 / (0.3 * 20_000)
    assert label_share(0.3, 20_000, 10) == pytest.approx((error / 0.003) ** 2, rel=1e-6)


@pytest.mark.filterwarnings("ignore::UserWarning")
def test_who_starts_from_shares():
    rng = np.random.default_rng(1)
    X = rng.normal(size=(N, 3))

    def counted(public=(), **parameters):
        settings = {"algorithm": "auto", "epsilon": 3.0, **parameters}
        with recorded_releases() as releases:
            clf = MixedDPLogisticRegression(**settings).fit(X, Y, *public)
        shapes = [each.arrays[0].shape for each in releases]
        spent = "label shares" in dict(clf.privacy_.shares)
        assert spent == (shapes[0] == (4,))
        return spent

    assert counted() and counted(neighboring="replace_one") and counted(rows=RowMapping(geometry=False))
    assert counted(algorithm="noisy-gd")
    assert not counted(public=(X[:50], Y[:50]))
    for parameters in (
        *({"init": "zeros"}, {"init": np.zeros((4, 3))}, {"fit_intercept": False}),
        *({"n_steps": 5}, {"batch_size": 500}),
    ):
        assert not counted(**parameters)


def test_rare_labels_gain_by_their_start():
    """Without it, the first gradients of 40 rare labels are mostly that they are rare."""
    rng = np.random.default_rng(0)
    k, n = 40, 4000
    X = rng.normal(size=(n + 1000, 30))
    Z = X @ rng.normal(size=(30, k)) / 2 - 4
    y = (rng.random(Z.shape) < expit(Z)).astype(int)
    losses = []
    for init in ("public", "zeros"):
        clf = MixedDPLogisticRegression(epsilon=1.0, init=init, random_state=0).fit(X[:n], y[:n])
        P = clf.predict_proba(X[n:])
        losses.append(-np.mean(np.log(np.where(y[n:] == 1, P, 1 - P))))
    assert losses[0] < losses[1] - 0.01
