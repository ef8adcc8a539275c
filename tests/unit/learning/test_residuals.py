"""Calibration of regressions: means and slopes become those of the targets, and no row moves sums too far."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from sklearn.linear_model import LinearRegression

from tests.asking import answered, exact_sums
from tests.private_names import Block, InMemoryRows, recalibrated

EXTREME = [0.0, 1.0, -7.5, 30.0, 1e300, -1e300, np.inf, -np.inf, np.nan, 5e-324]
N = 8000
RNG = np.random.default_rng(0)
X = np.column_stack([RNG.normal(size=(N, 2)), np.full(N, 0.5)])


def queries(W, rows=None, multiplier=1e-9):
    """Both queries for a head, with exact answers to the first, and what waits for those to the second."""
    rounds = recalibrated(np.asarray(W, np.float64), multiplier, n_rows=N, constant=0.5)
    first = next(rounds)
    rows = InMemoryRows(np.zeros((1, np.shape(W)[1])), np.zeros((1, len(W)))) if rows is None else rows
    return first, rounds.send((exact_sums(first, rows),)), rounds


@pytest.mark.parametrize("k", [1, 3])
@given(data=st.data(), dtype=st.sampled_from(["f4", "f8"]))
def test_no_row_adds_more_than_is_stated(k, data, dtype):
    entries = st.floats(-50, 50) | st.floats(-3, 3) | st.sampled_from(EXTREME)
    n = data.draw(st.integers(1, 5))
    with np.errstate(all="ignore"):
        Z, y = (data.draw(hnp.arrays(np.float64, (n, k), elements=entries)).astype(dtype) for _ in "Zy")
        rows = InMemoryRows(np.ones((40, 2)), np.full((40, k), data.draw(st.floats(-9, 9))))
        head = np.full((k, 2), data.draw(st.floats(-3, 3)))
        for query in queries(head, rows)[:2]:
            (stated,) = query.releases
            C, S = query.contribute(Z.copy(), Block(None, y, np.ones(n)))
            S = np.asarray(S)
            assert C is None and np.isfinite(S).all()
            assert np.all(np.linalg.norm(S, axis=1) <= stated.sensitivity)
            for i in range(n):
                _, alone = query.contribute(Z[i : i + 1].copy(), Block(None, y[i : i + 1], np.ones(1)))
                np.testing.assert_array_equal(np.asarray(alone)[0], S[i])


@pytest.mark.parametrize("k", [1, 3])
def test_the_sensitivities_are_reached(k):
    for query in queries(np.zeros((k, 3)))[:2]:
        _, S = query.contribute(np.full((1, k), 1e9), Block(None, np.full((1, k), -1e9), np.ones(1)))
        assert np.linalg.norm(np.asarray(S)) == pytest.approx(query.releases[0].sensitivity)


@pytest.mark.parametrize("factor", [0.5, 0.8, 1.0, 1.3])
@pytest.mark.parametrize("off", [-0.4, 0.0, 0.2])
def test_the_mean_and_the_slope_become_those_of_the_targets(factor, off):
    y = np.column_stack([X[:, 0] + RNG.exponential(size=N), 0.3 * X[:, 1] + RNG.normal(size=N) - 2])
    plain = LinearRegression().fit(X[:, :2], y)
    exact = np.column_stack([plain.coef_, plain.intercept_ / 0.5])
    rows = InMemoryRows(X, y)
    _, query, rounds = queries(exact * [factor, factor, 1.0] + [0, 0, off / 0.5], rows)
    W = answered(rounds, exact_sums(query, rows))
    # Products have residuals cut at the end of the lengths seen, and effects at about 2 deviations.
    np.testing.assert_allclose(W[:, :2], exact[:, :2], rtol=0, atol=0.05)
    np.testing.assert_allclose((X @ W.T).mean(axis=0), y.mean(axis=0), atol=3e-3)


def test_noise_alone_moves_little():
    W = np.array([[0.3, 0.1, 1.0]])
    rows = InMemoryRows(X, X @ W.T + RNG.normal(size=(N, 1)))
    for seed in range(50):
        rng = np.random.default_rng(seed)
        rounds = recalibrated(W, 2000.0, n_rows=N, constant=0.5)
        query = next(rounds)
        for _ in range(2):
            (stated,) = query.releases
            exact = exact_sums(query, rows)
            noise = 2000 * stated.sensitivity / np.sqrt(stated.share) * rng.normal(size=exact.shape)
            try:
                query = rounds.send((exact + noise,))
            except StopIteration as ended:
                moved = ended.value
        assert np.abs(moved - W).max() < 0.5
