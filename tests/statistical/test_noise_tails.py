"""The draws have the tails of a Gaussian: truncated noise would tell what no epsilon allows.

The sources are those that fits use. All statistics are compared with their exact distributions, and sound
draws fail a test with a probability below 1e-9. The same draws must fail with their tails cut off at 3 and at
4 standard deviations, and with tails that are a little too long.
"""

import numpy as np
import pytest

from skmixdp.privacy.accounting.budgets import Budget
from tests.noise import METHOD, assert_tails
from tests.private_names import Transaction

N_DRAWS = 2**22

#: Units of the grid in a standard deviation of discrete noise, whose tails are then those of a Gaussian.
UNITS = 2.0**20


def draws(noise, seed, n):
    """Standardised noise that a fit would add to an array."""
    scale = 2.5
    grid = scale / UNITS if noise == "discrete" else None
    budget = Budget(1.0, 1e-5, None, None, "add_or_remove_one", noise)
    source = Transaction(budget, "a fit", random_state=seed).noise
    noisy = getattr(source, METHOD)(np.zeros((n // 64, 64)), scale, grid)
    return np.ravel(noisy) / scale


def cut(limit):
    """What lies beyond moves to the limit."""
    return lambda z: np.clip(z, -limit, limit)


def drawn_again(limit):
    """What lies beyond is replaced by draws within."""

    def fault(z):
        within = z[np.abs(z) <= limit]
        return np.where(np.abs(z) <= limit, z, np.resize(within, z.shape))

    return fault


def one_in_a_thousand_longer(z):
    """Tails that are too long, as those of a mixture of two Gaussians."""
    return np.where(np.arange(len(z)) % 1000 == 0, 2.0 * z, z)


def assert_found(z, *faults):
    for fault in faults:
        with pytest.raises(AssertionError, match=r"draw|kurtosis"):
            assert_tails(fault(z))


@pytest.mark.parametrize("seed", [None, 7])
def test_continuous_draws_have_gaussian_tails(seed):
    z = draws("float", seed, N_DRAWS)
    assert_tails(z)
    for limit in (3.0, 4.0):
        assert_found(z, cut(limit), drawn_again(limit), lambda z, limit=limit: np.minimum(z, limit))
    assert_found(z, one_in_a_thousand_longer)


@pytest.mark.parametrize("n", [2**15, pytest.param(2**20, marks=pytest.mark.slow)])
def test_discrete_draws_have_gaussian_tails(n):
    pytest.importorskip("opendp", reason="needs skmixdp[discrete]")
    z = draws("discrete", None, n)
    assert_tails(z)
    assert_found(z, cut(3.0), drawn_again(3.0))
    if n > 10**6:  # fewer have no draw beyond 4, as likely as not
        assert_found(z, cut(4.0), drawn_again(4.0), one_in_a_thousand_longer)
