"""Class shares from noisy counts."""

from functools import partial

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from tests.conftest import Silent
from tests.private_names import (
    GaussianMechanism,
    InMemoryRows,
    class_shares,
    count_share,
    counts_query,
    in_class,
    release,
    with_weights,
)
from tests.rounding import assert_close, assert_relative

COUNTS = np.array([700.0, 200.0, 80.0, 20.0])


def test_clear_counts_are_kept():
    assert_relative(class_shares(COUNTS, 1.0, 1000), COUNTS / 1000, 1e-2)


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
    assert count_share(0.27, 12_000, 10) and not count_share(0.27, 300, 10)
    # Noisier counts will do if adjustments can be compared.
    assert count_share(0.7, 2400, 77) and not count_share(0.145, 1400, 10)
    assert count_share(1.0, 10**6, 10) == 0.005 and count_share(0.27, 2000, 10) == 0.02


Y = np.array([0, 0, 0, 1, 1, 2])


@pytest.mark.parametrize("weighted", [False, True])
def test_counts_ignore_weights(weighted):
    y = with_weights(Y, np.linspace(0, 5, 6)) if weighted else Y
    mechanism = GaussianMechanism(3.0, 1, Silent(0))
    mechanism.begin_step(None)
    query = counts_query(np.zeros((0, 2)), partial(in_class, n_classes=4))
    (answer,) = release(InMemoryRows(np.ones((6, 2)), y), [(mechanism, query)])
    assert_close(answer.arrays[0], [3, 2, 1, 0])
    assert answer.stated[0].sensitivity == pytest.approx(1.0)
