"""Noisy comparisons of heads on private rows."""

import math

import numpy as np
import pytest

from tests.asking import exact_sums
from tests.private_names import InMemoryRows, comparison_query, expected_losses, share_for


def test_its_budget_follows_public_facts():
    assert share_for(1.0, 10**6, math.sqrt(3)) == 0.002 and share_for(0.27, 800, math.sqrt(3)) == 0.0
    mu, n = 0.27, 20_000
    error = math.sqrt(3 / share_for(mu, n, math.sqrt(3))) / (mu * n)
    assert error == pytest.approx(0.006, rel=0.01)


def test_noisy_losses_are_believed_as_far_as_they_tell_something():
    seen, expected, spread = np.array([0.0, 0.03, 0.05]), np.array([0.01, 0.02, 0.03]), np.full(3, 0.02)
    np.testing.assert_allclose(expected_losses(seen, 1e-9, expected, spread), seen, atol=1e-9)
    np.testing.assert_allclose(expected_losses(seen, 1e3, expected, spread), expected, atol=1e-9)


@pytest.mark.parametrize("k", [1, 3])
def test_gains_are_differences_of_correct_rows(k):
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(50, 4)), rng.integers(0, max(2, k), size=50)
    first, second, third = rng.normal(size=(3, k, 4))
    query = comparison_query(first, [second, third])
    gains = exact_sums(query, InMemoryRows(X, y))

    def right(head):
        Z = X @ head.T
        return ((Z[:, 0] > 0 if k == 1 else Z.argmax(axis=1)) == y).sum()

    np.testing.assert_array_equal(gains, [right(second) - right(first), right(third) - right(first)])
