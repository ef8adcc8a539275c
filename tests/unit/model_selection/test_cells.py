"""Estimates and intervals from noisy cells, against closed forms."""

import math
from dataclasses import replace

import numpy as np
import pytest

from tests.private_names import NoisyCells, _on_simplex, interval

ONE = np.array([[0.0, 1.0]])


def cells(counts, noise=0.0, n_rows=None, **settings):
    counts = np.atleast_2d(np.asarray(counts, dtype=float))
    return NoisyCells(counts, noise, int(counts.sum()) if n_rows is None else n_rows, **settings)


def test_a_mean_of_these_rows_has_the_interval_of_the_noise():
    found = cells([60, 40], noise=3.0, sampling=False).mean(ONE, 0.0, 1.0)
    assert found.value == 0.4
    np.testing.assert_allclose([found.low, found.high], 0.4 + np.array([-1, 1]) * 1.959964 * 0.03, atol=1e-6)


def test_a_share_without_noise_has_the_interval_of_wilson():
    """Wilson (1927), for 40 of 100: the quadratic equation with the variance at the hypothesis."""
    found = cells([60, 40]).ratio(ONE, np.ones((1, 2)))
    z, n, p = 1.959964, 100, 0.4
    # Cells keep their counts under the hypothesis, so this is Wilson's up to a term of order 1/n.
    middle, half = (
        (p + z**2 / 2 / n) / (1 + z**2 / n),
        z / (1 + z**2 / n) * math.sqrt(0.24 / n + z**2 / 4 / n**2),
    )
    np.testing.assert_allclose([found.low, found.high], [middle - half, middle + half], atol=0.01)


def test_the_interval_of_a_ratio_is_that_of_fieller():
    """Both ends solve (A - r B)^2 = z^2 sigma^2 (1 + r^2) for independent A and B."""
    a, b = np.array([[1.0, 0.0]]), np.array([[0.0, 1.0]])
    found = cells([30, 50], noise=4.0, sampling=False).ratio(a, b, 0.0, 5.0)
    for end in (found.low, found.high):
        assert (30 - 50 * end) ** 2 == pytest.approx(1.959964**2 * 16 * (1 + end**2), rel=1e-5)
    assert found.low < found.value == 0.6 < found.high


def test_a_denominator_that_noise_hides_gives_no_value():
    found = cells([3, 5], noise=4.0, sampling=False).ratio(ONE, np.ones((1, 2)))
    assert math.isnan(found.value) and (found.low, found.high) == (0.0, 1.0)
    assert str(found) == "hidden by the noise (0.000 to 1.000)"
    assert math.isnan(cells([-3, -5], noise=1.0, n_rows=8).ratio(ONE, np.ones((1, 2))).value)


@pytest.mark.parametrize("level", [0.5, 0.9, 0.99])
def test_the_level_sets_the_length(level):
    found = replace(cells([60, 40], noise=3.0), level=level, sampling=False)
    wide = found.mean(ONE, 0.0, 1.0)
    np.testing.assert_allclose((wide.high - wide.low) / 2, found.z * 0.03, atol=1e-9)


def test_estimates_stay_within_their_range():
    beyond = cells([110, -10], noise=1.0, sampling=False).mean(ONE, 0.0, 1.0)
    np.testing.assert_allclose(beyond, [0.0, 0.0, 0.01959964], atol=1e-8)  # no interval shrinks to a point
    assert interval(math.nan, lambda r: r * r, -1.0, 1.0)[1:] == (-1.0, 1.0)


def test_the_nearest_counts_that_are_possible():
    np.testing.assert_allclose(_on_simplex(np.array([5.0, 3.0, -4.0]), 8.0), [5, 3, 0], atol=1e-12)
    np.testing.assert_allclose(_on_simplex(np.array([5.0, 3.0, 1.0]), 6.0), [4, 2, 0], atol=1e-12)
    spread = cells([[5.0, -3.0], [4.0, 4.0]], n_rows=6).spread
    np.testing.assert_allclose(spread, [[6, 0], [3, 3]], atol=1e-12)
