"""Class shares from noisy counts, and what the logit adjustment does with them."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from skmixdp._engine import GaussianMechanism, release
from skmixdp._linear import with_weights
from skmixdp._rows import Block, InMemoryRows
from skmixdp.components.class_shares import (
    _MULTIPLES,
    _gains_in_accuracy,
    class_shares,
    comparison_share,
    count_share,
    counts_are_useful,
    counts_query,
    expected_losses,
)
from tests.conftest import Silent

COUNTS = np.array([700.0, 200.0, 80.0, 20.0])


def test_clear_counts_are_kept():
    np.testing.assert_allclose(class_shares(COUNTS, 1.0, 1000), COUNTS / 1000, rtol=1e-2)


def test_counts_that_differ_by_noise_alone_are_equal():
    rng = np.random.default_rng(0)
    equal = [np.ptp(class_shares(500 + 20 * rng.normal(size=10), 20.0, 5000)) == 0 for _ in range(400)]
    assert np.mean(equal) > 0.93


@given(
    counts=hnp.arrays(np.float64, 5, elements=st.floats(-1e4, 1e4)),
    scale=st.floats(1e-3, 1e4),
    n_rows=st.integers(5, 10**6),
)
def test_shares_are_positive_whatever_the_counts_are(counts, scale, n_rows):
    shares = class_shares(counts, scale, n_rows)
    assert shares.min() > 0 and shares.sum() == pytest.approx(1)
    assert np.isfinite(np.log(shares)).all()


def test_an_empty_class_has_the_share_of_the_noise():
    shares = class_shares(np.array([990.0, 10.0, -25.0]), 10.0, 1000)
    assert 0.005 < shares[2] < 0.02


def test_budgets_follow_public_facts():
    assert counts_are_useful(0.27, 12_000, 10) and not counts_are_useful(0.27, 300, 10)
    # Noisier counts will do if adjustments can be compared.
    assert counts_are_useful(0.7, 2400, 77) and not counts_are_useful(0.145, 1400, 10)
    assert count_share(1.0, 10**6, 10) == 0.005 and count_share(0.27, 2000, 10) == 0.02
    assert comparison_share(1.0, 10**6) == 0.002 and comparison_share(0.27, 800) == 0.0
    mu, n = 0.27, 20_000
    error = math.sqrt(len(_MULTIPLES) / comparison_share(mu, n)) / (mu * n)
    assert error == pytest.approx(0.003, rel=0.01)


def test_noisy_losses_are_believed_as_far_as_they_tell_something():
    seen = np.array([0.0, 0.03, 0.05])
    np.testing.assert_allclose(expected_losses(seen, 1e-9), seen, atol=1e-9)
    unknown = expected_losses(seen, 1e3)
    assert unknown[0] < 0.01 < unknown[1] < unknown[2]


Y = np.array([0, 0, 0, 1, 1, 2])


@pytest.mark.parametrize("weighted", [False, True])
def test_counts_ignore_weights(weighted):
    y = with_weights(Y, np.linspace(0, 5, 6)) if weighted else Y
    mechanism = GaussianMechanism(3.0, 1, Silent(0))
    mechanism.begin_step(None)
    (answer,) = release(InMemoryRows(np.ones((6, 2)), y), [(mechanism, counts_query(4, 2))])
    np.testing.assert_allclose(answer.arrays[0], [3, 2, 1, 0])
    assert answer.stated[0].sensitivity == pytest.approx(1.0)


@given(
    Z=hnp.arrays(
        np.float64, (6, 12), elements=st.sampled_from([0.0, 1.0, -7.5, 1e300, -1e300, np.inf, np.nan])
    ),
    weights=hnp.arrays(np.float64, 6, elements=st.sampled_from([0.0, 1.0, 1e300])),
)
def test_a_row_changes_counts_and_comparison_by_no_more_than_stated(Z, weights):
    for y in (Y, with_weights(Y, weights)):
        block = Block(np.ones((6, 2)), y, np.ones(6))
        _, counted = counts_query(3, 2).contribute(Z[:, :0], block)
        np.testing.assert_array_equal(np.linalg.norm(counted, axis=1), np.ones(6))
        C, gains = _gains_in_accuracy(Z, block, n_outputs=3)
        assert C is None and gains.shape == (6, 3)
        assert np.linalg.norm(gains, axis=1).max() <= math.sqrt(3)


def test_gains_are_differences_of_correct_rows():
    # The first head is right about rows 0 to 2, the second about rows 3 and 4.
    first, second = np.tile([1.0, 0.0, 0.0], (6, 1)), np.tile([0.0, 1.0, 0.0], (6, 1))
    _, gains = _gains_in_accuracy(np.hstack([first, second]), Block(np.ones((6, 2)), Y, np.ones(6)), 3)
    np.testing.assert_array_equal(gains[:, 0], [-1, -1, -1, 1, 1, 0])
