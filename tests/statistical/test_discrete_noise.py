"""Discrete noise is the discrete Gaussian on its grid: its law, its variance, and nothing off the grid.

Sound draws fail a test with a probability below 2e-7.
"""

import numpy as np
import pytest
from scipy.stats import chisquare

from skmixdp.privacy.noise import DiscreteNoise
from tests.noise import METHOD

pytest.importorskip("opendp", reason="needs skmixdp[discrete]")

LEVEL = 1e-7
N_DRAWS = 12_000


def law(scale, n=2000):
    """P(noise = j grid), -n <= j <= n, in proportion to exp(-j^2 / (2 scale^2)); scale in units of the grid.

    Source: Canonne, Kamath and Steinke 2020, Definition 1.
    """
    j = np.arange(-n, n + 1)
    weights = np.exp(-(j**2) / (2 * scale**2))
    return j, weights / weights.sum()


def draws(scale, grid, sums):
    """Noise in units of the grid, for sums that are multiples of it."""
    noisy = getattr(DiscreteNoise(), METHOD)(sums * grid, scale * grid, grid)
    assert noisy.dtype == np.float64 and noisy.shape == sums.shape
    units = noisy / grid
    assert np.array_equal(units, np.round(units))
    return (units - sums).astype(int).ravel()


def p_value(sample, scale):
    """Of the law; values that are expected fewer than 10 times are taken together on either side."""
    j, p = law(scale)
    often = j[p * len(sample) >= 10]
    low, high = often[0], often[-1]
    counts = np.bincount(np.clip(sample, low, high) - low, minlength=len(often))
    wanted = np.bincount(np.clip(j, low, high) - low, weights=p)
    return chisquare(counts, len(sample) * wanted).pvalue


@pytest.mark.covering
@pytest.mark.parametrize("grid", [1.0, 2.0**-30, 2.0**20])
@pytest.mark.parametrize("scale", [0.6, 1.7, 12.0])
def test_draws_follow_the_discrete_gaussian_law(scale, grid):
    sums = np.random.default_rng(0).integers(-(10**6), 10**6, (N_DRAWS // 4, 4)).astype(float)
    sample = draws(scale, grid, sums)
    assert p_value(sample, scale) > LEVEL
    for factor in (2 / 3, 3 / 2):
        assert p_value(sample, scale * factor) < LEVEL


@pytest.mark.parametrize("scale", [0.5, 0.6])
def test_a_rounded_gaussian_is_another_law(scale):
    """Where the grid is coarse the two differ, and the test sees it."""
    rounded = np.round(scale * np.random.default_rng(0).normal(size=N_DRAWS)).astype(int)
    assert p_value(rounded, scale) < LEVEL


@pytest.mark.parametrize("scale", [0.6, 1.7, 300.0])
def test_the_variance_is_that_of_the_discrete_gaussian(scale):
    """Below that of the continuous one (ibid., Corollary 9), by 8% at 0.6 and by nothing much at 300."""
    sample = draws(scale, 2.0**-10, np.zeros(N_DRAWS))
    j, p = law(scale, 5000)
    variance, fourth = p @ j**2, p @ j.astype(float) ** 4
    assert variance <= scale**2 * (1 + 1e-12)
    far = 5.5 * np.sqrt((fourth - variance**2) / N_DRAWS)
    assert abs(np.mean(sample.astype(float) ** 2) - variance) < far
    for factor in (4 / 9, 9 / 4):
        assert abs(factor * np.mean(sample.astype(float) ** 2) - variance) > far
    assert abs(np.mean(sample)) < 5.5 * np.sqrt(variance / N_DRAWS)


def test_draws_are_new_each_time():
    """Two calls with the same sums, and two sources, share no draws beyond chance."""
    source = DiscreteNoise()
    one, again = (getattr(source, METHOD)(np.zeros(N_DRAWS), 50.0, 1.0) for _ in range(2))
    other = getattr(DiscreteNoise(), METHOD)(np.zeros(N_DRAWS), 50.0, 1.0)
    for a, b in ((one, again), (one, other), (one[:-1], one[1:])):
        assert abs(np.sum(a * b)) < 5.5 * 50.0**2 * np.sqrt(len(a))
