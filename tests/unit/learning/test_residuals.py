"""Calibration of regressions: means and slopes become those of the targets, and no row moves sums too far."""

import numpy as np
import pytest
from sklearn.linear_model import LinearRegression

from tests.asking import answered, exact_sums
from tests.private_names import InMemoryRows, recalibrated

N = 8000
RNG = np.random.default_rng(0)
X = np.column_stack([RNG.normal(size=(N, 2)), np.full(N, 0.5)])


def queries(W, rows=None, multiplier=1e-9):
    """Both queries for a head, with exact answers to the first, and what waits for those to the second."""
    rounds = recalibrated(np.asarray(W, np.float64), multiplier, n_rows=N, constant=0.5)
    first = next(rounds)
    rows = InMemoryRows(np.zeros((1, np.shape(W)[1])), np.zeros((1, len(W)))) if rows is None else rows
    return first, rounds.send((exact_sums(first, rows),)), rounds


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
