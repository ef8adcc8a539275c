"""Intercepts at which a head treats all classes alike."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from scipy.special import softmax

from tests.private_names import balance, reliable_balance

RNG = np.random.default_rng(0)
K = 6
Y = RNG.permutation(np.repeat(np.arange(K), [5, 9, 30, 4, 12, 60]))
Z = RNG.normal(size=(len(Y), K)) + 3 * np.eye(K)[Y]
BIAS = np.linspace(-2, 2, K)


def class_means(Z, y, k):
    return np.mean([softmax(Z[y == c], axis=1).mean(axis=0) for c in range(k) if np.any(y == c)], axis=0)


def test_all_classes_get_the_same_mean_probability():
    b = balance(Z + BIAS, Y, K)
    np.testing.assert_allclose(class_means(Z + BIAS + b, Y, K), 1 / K, atol=2e-3)
    assert abs(b.sum()) < 1e-9
    np.testing.assert_allclose(b, balance(Z, Y, K) - BIAS, atol=0.02)


def test_a_class_without_rows_keeps_its_intercept():
    few = Y != 3
    b = balance(Z[few], Y[few], K)
    assert b[3] == 0 and np.ptp(b) > 0


@pytest.mark.parametrize(("bias", "low", "high"), [(0.0, 0.0, 0.45), (1.0, 0.8, 1.1)])
def test_what_the_halves_agree_on_is_kept(bias, low, high):
    norms = []
    for seed in range(20):
        rng = np.random.default_rng(seed)
        halves = []
        for _ in range(2):
            y = np.repeat(np.arange(K), 6)
            halves.append((rng.normal(size=(len(y), K)) * 3 + 3 * np.eye(K)[y] + bias * BIAS, y))
        whole = np.mean([balance(*half, K) for half in halves], axis=0)
        norms.append(np.linalg.norm(reliable_balance(halves, K)) / np.linalg.norm(whole))
    assert low <= np.mean(norms) <= high


def test_many_rows_of_a_class_are_not_all_used():
    halves = [(np.repeat(Z, 40, axis=0), np.repeat(Y, 40))] * 2
    firsts = np.concatenate([np.flatnonzero(halves[0][1] == c)[:100] for c in range(K)])
    expected = balance(halves[0][0][firsts], halves[0][1][firsts], K)
    np.testing.assert_allclose(reliable_balance(halves, K), expected, atol=1e-9)


@given(
    Z=hnp.arrays(np.float64, (12, 3), elements=st.sampled_from([0.0, -1.0, 1e-300, 30.0, -1e6, 1e6])),
    y=hnp.arrays(np.intp, 12, elements=st.integers(0, 2)),
)
def test_intercepts_are_finite_whatever_the_logits_are(Z, y):
    b = reliable_balance([(Z[:6], y[:6]), (Z[6:], y[6:])], 3)
    assert np.isfinite(b).all() and np.abs(b).max() < 1e4
