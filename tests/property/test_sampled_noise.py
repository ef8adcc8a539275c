"""Noise of sampled batches moves with the terms of a budget as it should, over the whole range."""

import math
from itertools import pairwise

import pytest

from skmixdp.privacy import epsilon_of, noise_multiplier_for

#: A calibrated multiplier lies this close to the least one, and a finer grid lowers epsilon by this much.
NEAR = 1 + 3e-3

DELTAS = [1e-300, 1e-12, 1e-5, 0.009, 0.011, 0.3, 0.99]
TERMS = [(1, 1e-6), (1, 0.5), (500, 0.01), (10**6, 1e-3), (2**53, 1e-9), (10**4, 1 - 1e-5)]


def multiplier(epsilon, delta, n_steps, rate):
    return noise_multiplier_for(epsilon, delta, n_steps=n_steps, sampling_rate=rate)


def test_little_noise_remembers_sampling():
    found = [multiplier(epsilon, 1e-5, 20, 0.2) for epsilon in (49.9, 50.1, 1e4, 1e6)]
    for one, other in pairwise(found):
        assert other <= one * NEAR
    assert found[0] < found[1] * 1.005
    for epsilon, sigma in zip((1e4, 1e6), found[2:], strict=True):
        spent = epsilon_of(sigma, 20, delta=1e-5, sampling_rate=0.2)
        assert 0.99 * epsilon <= spent <= epsilon
        assert sigma < 0.9 * multiplier(epsilon, 1e-5, 20, 1.0)


@pytest.mark.slow
@pytest.mark.parametrize("delta", DELTAS)
@pytest.mark.parametrize(("n_steps", "rate"), TERMS)
def test_more_epsilon_needs_less_noise_without_jumps(n_steps, rate, delta):
    last = math.inf
    for power in range(-12, 49, 3):
        epsilon = 10 ** (power / 4)
        found = multiplier(epsilon, delta, n_steps, rate)
        assert found <= last * NEAR, epsilon
        # Spending a hundredth more must not change much.
        assert found / multiplier(1.01 * epsilon, delta, n_steps, rate) < 1.2, epsilon
        assert epsilon_of(found, n_steps, delta=delta, sampling_rate=rate) <= epsilon
        last = found


@pytest.mark.slow
@pytest.mark.parametrize("epsilon", [0.01, 1.0, 49.0, 51.0, 1e3, 1e8])
def test_noise_falls_in_delta_and_rises_in_the_rate_and_the_steps(epsilon):
    by_delta = [multiplier(epsilon, delta, 500, 0.01) for delta in DELTAS]
    by_rate = [multiplier(epsilon, 1e-5, 500, rate) for rate in (1e-6, 1e-3, 0.01, 0.1, 0.5, 0.9999, 1.0)]
    by_steps = [multiplier(epsilon, 1e-5, n_steps, 0.01) for n_steps in (1, 10, 500, 10**5, 10**7, 10**9)]
    for rising in (by_delta[::-1], by_rate, by_steps):
        for one, other in pairwise(rising):
            assert one <= other * NEAR, rising
