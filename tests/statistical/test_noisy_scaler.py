"""The noise in a NoisyScaler's statistics has the scale that follows from its budget."""

import math

import numpy as np
import pytest

from skmixdp.preprocessing import NoisyScaler
from skmixdp.privacy import noise_multiplier_for
from tests.rounding import assert_close
from tests.statistical.test_noise_scale import assert_standard_normal

N, D = 1000, 200
X = np.random.default_rng(0).uniform(-0.8, 0.8, size=(N, D))
LOW, HIGH = np.linspace(-3, -1, D), np.linspace(1, 2, D)


@pytest.mark.covering
@pytest.mark.parametrize("noise", ["float", "discrete"])
@pytest.mark.parametrize("neighboring", ["add_or_remove_one", "replace_one"])
@pytest.mark.parametrize("with_std", [True, False])
def test_means_and_variances_carry_the_stated_noise(noise, neighboring, with_std):
    epsilon, delta = 20.0, 1e-5
    scaler = NoisyScaler(
        epsilon, delta, bounds=(LOW, HIGH), with_std=with_std, noise=noise, neighboring=neighboring
    )
    multiplier = noise_multiplier_for(epsilon, delta, n_steps=1, neighboring=neighboring, noise=noise)
    half = (HIGH - LOW) / 2
    # From the definition: noise of the multiplier times sqrt(D) in sums that carry these factors.
    a, b = (math.sqrt(2 * math.sqrt(2) - 2) if with_std else 1.0), math.sqrt(2)
    unit_noise = multiplier * math.sqrt(D) / N
    means, squares = [], []
    for seed in range(12):  # one fit has too few columns for the test to have power
        scaler.set_params(random_state=None if noise == "discrete" else seed).fit(X)
        off = scaler.mean_ - X.mean(axis=0)
        means.append(off / (half * unit_noise / a))
        assert_close(scaler.mean_noise_, half * unit_noise / a)
        if with_std:
            # The second moment about the middle of the bounds, in units of their half width.
            middle = (HIGH + LOW) / 2
            noisy = (scaler.scale_**2 + (scaler.mean_ - middle) ** 2) / half**2
            exact = np.mean(((X - middle) / half) ** 2, axis=0)
            squares.append((noisy - exact) / (unit_noise / b))
    assert_standard_normal(np.concatenate(means))
    if with_std:
        assert_standard_normal(np.concatenate(squares))
