"""What a fit learns from private rows before it trains: centre, leading directions, lengths and starts."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from skmixdp.privacy import NoiseSource
from tests.conftest import learned
from tests.private_names import (
    LENGTH_LIMIT,
    SEARCH_ROUNDS,
    WORTH_OF_LENGTH,
    Block,
    InMemoryRows,
    LeadingDirections,
    RowMap,
    Shares,
    Whitening,
    _second_moments,
    center_of,
    leading_directions,
    noisy_length,
    noisy_mean,
    row_norms,
    share_for,
)
from tests.rounding import assert_close

FLOAT = np.dtype("float64")
rng = np.random.default_rng(0)
N, D = 600, 12
SPREAD = np.array([3.0, 2.0, *np.full(D - 2, 0.3)])
X = rng.normal(size=(N, D)) * SPREAD + 1.0
UNIT = RowMap(None, True, None, unit_first=True)
#: Rows whose lengths are looked for.
MEASURED = RowMap(None, True, None, bound=LENGTH_LIMIT)


def rows_of(X, row_map=UNIT):
    return InMemoryRows(row_map(X, np.float64), np.zeros(len(X), int))


def test_the_mean_is_that_of_the_rows_when_there_is_no_noise():
    mean, variance = learned(rows_of(X), noisy_mean, D, 3.0)
    unit = X / np.linalg.norm(X, axis=1, keepdims=True)
    np.testing.assert_allclose(mean, unit.mean(axis=0), atol=1e-9)
    assert variance == pytest.approx((3.0 / N) ** 2, rel=1e-6)


def test_members_alone_count():
    members = np.arange(N) < 100
    mean, _ = learned(rows_of(X), noisy_mean, D, 3.0, members=members)
    np.testing.assert_allclose(mean, UNIT(X[:100], np.float64).mean(axis=0), atol=1e-9)
    lengths = rows_of(np.where(members, 1.0, 1e3)[:, None] * UNIT(X, np.float64), MEASURED)
    assert 1.0 <= learned(lengths, noisy_length, D, 1.0, members=members) <= 2.0


def test_a_mean_of_noise_shrinks_to_zero_and_a_clear_one_stays():
    noise, alone = np.random.default_rng(1).normal(size=200), np.empty((0, 200))
    assert np.linalg.norm(center_of(noise, 1.0, alone)) < 0.3 * np.linalg.norm(noise)
    assert_close(center_of(100 * noise, 1.0, alone), 100 * noise, 1e-3)
    assert not center_of(np.zeros(3), 1.0, np.eye(3)[:1]).any()


def test_public_and_private_means_are_weighted_by_their_precision():
    opposite = np.array([[1.0, 0, 0, 0], [-1.0, 0, 0, 0]])  # their mean is 0, of variance 1
    assert_close(center_of(np.ones(4), 1 / 12, opposite), 0.75)  # of a total variance of 1/3
    assert_close(center_of(np.ones(4), 0.25, np.eye(4)[[0, 0]]), np.eye(4)[0])  # without a variance


def test_directions_are_those_of_the_second_moment_when_there_is_no_noise():
    centred = RowMap(UNIT(X, np.float64).mean(axis=0), True, None, unit_first=True)
    found = learned(rows_of(X, centred), leading_directions, D, 1e-6)
    V = centred(X, np.float64)
    values, vectors = np.linalg.eigh(V.T @ V / N)
    assert_close(found.moments[:2], values[::-1][:2], 1e-3)
    overlap = np.abs(np.sum(found.directions[:2] * vectors[:, ::-1].T[:2], axis=1))
    np.testing.assert_allclose(overlap, 1, atol=1e-3)
    np.testing.assert_allclose(found.directions @ found.directions.T, np.eye(D), atol=1e-9)


def test_directions_that_noise_hides_are_not_whitened():
    found = learned(rows_of(X), leading_directions, D, 1e6, noise=NoiseSource(0))
    assert found.floor > 1
    hidden = LeadingDirections(found.directions, np.zeros(D), 0.4)
    assert [len(part) for part in hidden.shortened()] == [0, 0]
    assert 0.4 <= hidden.largest_second_moment(None) <= 1


def test_the_curvature_after_whitening_is_close_to_the_true_one():
    """It is an estimate, not a bound."""
    centred = RowMap(UNIT(X, np.float64).mean(axis=0), True, None, unit_first=True)
    found = learned(rows_of(X, centred), leading_directions, D, 1e-6)
    whitening = Whitening(*found.shortened())
    V = RowMap(centred.mean, True, None, whitening, unit_first=True)(X, np.float64)
    true = np.linalg.eigvalsh(V.T @ V / N)[-1]
    assert 0.8 * true <= found.largest_second_moment(whitening.factors) <= 1.5 * true
    assert true < np.linalg.eigvalsh(centred(X, np.float64).T @ centred(X, np.float64) / N)[-1]


@pytest.mark.parametrize("scale", [1e-9, 1e-3, 1.0, 1e6])
def test_the_usual_length_is_found_at_every_scale(scale):
    lengths = scale * np.exp(rng.normal(size=4000) / 4)
    rows = rows_of(lengths[:, None] * np.eye(3)[np.arange(4000) % 3], MEASURED)
    found = learned(rows, noisy_length, 3, 0.01, noise=NoiseSource(0))
    assert np.quantile(lengths, 0.85) <= found <= 1.5 * np.quantile(lengths, 0.95)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_a_length_on_the_grid_is_found_although_stated_lengths_are_bounds(dtype):
    X = np.repeat(np.eye(100), 3, axis=0).astype(dtype)  # wider than rows that are measured after the map
    rows = InMemoryRows.mapped(X, np.zeros(300, int), MEASURED, np.dtype(dtype))
    assert learned(rows, noisy_length, 100, 0.01, noise=NoiseSource(0)) == 1.0


def test_lengths_beyond_the_grid_end_at_its_ends():
    for size, found in ((0.0, 2.0**-64), (1e29, 2.0**63.5), (1e308, 2.0**63.5)):
        rows = rows_of(np.full((50, 2), size), MEASURED)
        assert learned(rows, noisy_length, 2, 0.01, noise=NoiseSource(0)) == found < LENGTH_LIMIT


def test_shares_grow_where_rows_are_few():
    few, many = Shares.of(0.27, 1000, 64), Shares.of(0.27, 10**6, 64)
    assert many.mean == 0.01 and many.directions == 0.02
    assert few.mean > many.mean and max(few.mean, few.directions) <= 0.05
    assert few.floor > many.floor
    of_length = [share_for(0.27, n, SEARCH_ROUNDS**0.5, WORTH_OF_LENGTH) for n in (100, 1000)]
    assert of_length[0] == 0 < of_length[1] <= 0.05


VALUES = st.one_of(st.floats(-3, 3, width=32), st.sampled_from([0.0, 1e-30, 1.0, 1e6, 1e18, -1e18]))


@given(
    X=hnp.arrays(np.float64, st.tuples(st.integers(1, 6), st.just(5)), elements=VALUES),
    dtype=st.sampled_from(["float32", "float64"]),
    seed=st.integers(0, 99),
)
def test_no_row_adds_more_than_length_one_to_the_second_moments(X, dtype, seed):
    X = X.astype(dtype)
    Q = np.linalg.qr(np.random.default_rng(seed).normal(size=(5, 3)))[0].T
    with np.errstate(all="ignore"):
        C, _ = _second_moments(X @ Q.T.astype(dtype), Block(X, np.zeros(len(X)), row_norms(X)))
    exact = np.linalg.norm(C.astype(np.longdouble), axis=1) * np.linalg.norm(X.astype(np.longdouble), axis=1)
    assert np.all(exact <= 1 + 4 * np.finfo(dtype).eps + 2**-33)
