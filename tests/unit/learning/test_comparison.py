"""Noisy comparisons of heads on private rows."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from tests.asking import exact_sums
from tests.private_names import (
    Block,
    InMemoryRows,
    comparison_query,
    expected_losses,
    sensitivity_of,
    share_for,
    with_weights,
)

Y = np.array([0, 0, 0, 1, 1, 2])


def test_its_budget_follows_public_facts():
    assert share_for(1.0, 10**6, math.sqrt(3)) == 0.002 and share_for(0.27, 800, math.sqrt(3)) == 0.0
    mu, n = 0.27, 20_000
    error = math.sqrt(3 / share_for(mu, n, math.sqrt(3))) / (mu * n)
    assert error == pytest.approx(0.006, rel=0.01)


def test_noisy_losses_are_believed_as_far_as_they_tell_something():
    seen, expected, spread = np.array([0.0, 0.03, 0.05]), np.array([0.01, 0.02, 0.03]), np.full(3, 0.02)
    np.testing.assert_allclose(expected_losses(seen, 1e-9, expected, spread), seen, atol=1e-9)
    np.testing.assert_allclose(expected_losses(seen, 1e3, expected, spread), expected, atol=1e-9)


@given(
    Z=hnp.arrays(
        np.float64, (6, 12), elements=st.sampled_from([0.0, 1.0, -7.5, 1e300, -1e300, np.inf, np.nan])
    ),
    weights=hnp.arrays(np.float64, 6, elements=st.sampled_from([0.0, 1.0, 1e300])),
)
def test_a_row_changes_the_differences_by_no_more_than_stated(Z, weights):
    query = comparison_query(np.zeros((3, 2)), [np.zeros((3, 2))] * 3)
    for y in (Y, with_weights(Y, weights)):
        C, gains = query.contribute(Z, Block(np.ones((6, 2)), y, np.ones(6)))
        assert C is None and gains.shape == (6, 3)
        assert np.linalg.norm(gains, axis=1).max() <= query.releases[0].sensitivity


@pytest.mark.parametrize("n_heads", [1, 2, 3, 5])
def test_the_sensitivity_is_reached_and_not_more_than_needed(n_heads):
    # The first head is wrong about the row, and all others are right.
    Z = np.hstack([[[1.0, 0.0]], np.tile([[0.0, 1.0]], n_heads)])
    query = comparison_query(np.zeros((2, 1)), [np.zeros((2, 1))] * n_heads)
    _, gains = query.contribute(Z, Block(np.ones((1, 1)), np.array([1]), np.ones(1)))
    moved = float(np.linalg.norm(gains))
    assert moved <= query.releases[0].sensitivity == sensitivity_of(n_heads) <= 1.001 * moved


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
