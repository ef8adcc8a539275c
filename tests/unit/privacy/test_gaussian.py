"""The exact curve and its inverses, against high precision and dp-accounting."""

import math

import mpmath
import numpy as np
import pytest
from dp_accounting import dp_event
from dp_accounting.pld import pld_privacy_accountant

from skmixdp.privacy import epsilon_of
from skmixdp.privacy.accounting import gaussian
from skmixdp.privacy.accounting.gaussian import (
    epsilon_for,
    epsilon_of_rho,
    epsilons_for,
    log_delta,
    mu_for,
    rho_for,
)
from tests.rounding import assert_relative

EPSILONS = [1e-3, 1e-2, 0.1, 1.0, 3.0, 10.0, 100.0]
DELTAS = [1e-12, 1e-9, 1e-5, 1e-2, 0.1]

#: From one end of what a fit can have to the other.
MUS = [1e-300, 1e-120, 1e-20, 1e-9, 5e-4, 0.999e-3, 1.001e-3, 0.1, 1.9, 2.1, 30.0, 1e6]
ALL_DELTAS = [1e-300, 1e-100, 1e-20, 1e-12, 1e-5, 0.1, 0.5, 0.9, 1 - 1e-9, 1 - 1.2e-16]


def delta_precise(epsilon, mu):
    """The curve, to so many digits that its difference does not cancel."""
    with mpmath.workdps(int(360 + max(0.0, -math.log10(mu)))):
        x, half = mpmath.mpf(epsilon) / mpmath.mpf(mu), mpmath.mpf(mu) / 2
        root = mpmath.sqrt(2)
        first, second = mpmath.erfc((x - half) / root), mpmath.erfc((x + half) / root)
        return (first - mpmath.exp(epsilon) * second) / 2


def total_variation(mu):
    with mpmath.workdps(360):
        return mpmath.erf(mpmath.mpf(mu) / mpmath.sqrt(8))


@pytest.mark.parametrize("mu", MUS)
def test_the_curve_is_right_wherever_it_is_needed(mu):
    for a in (-8.2, -1.5, -0.9, 0.0, 0.7, 5.0, 37.0):
        x = a + mu / 2
        if x < 0:
            continue
        found = float(log_delta(x, mu)[0])
        with mpmath.workdps(400):
            expected = float(mpmath.log(delta_precise(mpmath.mpf(mu) * mpmath.mpf(x), mu)))
        # Where mu is huge, x has no more digits than that.
        assert found == pytest.approx(expected, rel=1e-11 + 3e-15 * mu), a


@pytest.mark.parametrize("mu", [1e-9, 0.01, 1.0, 30.0])
def test_the_slope_is_that_of_the_curve(mu):
    for a in (-1.5, -0.9, 0.5, 5.0):
        x = max(a + mu / 2, 0.1)
        below, above = log_delta(x - 1e-6, mu)[0], log_delta(x + 1e-6, mu)[0]
        assert log_delta(x, mu)[1] == pytest.approx((above - below) / 2e-6, rel=1e-5)


def check_epsilon(mu, delta):
    """Never below the exact value; above it by a part in 1e8, or by what a slightly smaller delta has."""
    found = epsilon_for(mu, delta)
    assert delta_precise(found, mu) <= delta
    if found > 0:
        with mpmath.workdps(400):
            lower, less = mpmath.mpf(found) * (1 - mpmath.mpf(1e-8)), 1 - 2e-10 * abs(math.log(delta))
            assert delta_precise(lower, mu) > delta * less
    return found


@pytest.mark.parametrize("mu", [1e-300, 1e-9, 1.001e-3, 1.9, 1e6])
def test_no_epsilon_is_below_the_exact_one(mu):
    claimed = [check_epsilon(mu, delta) for delta in ALL_DELTAS]
    assert claimed == sorted(claimed, reverse=True)


@pytest.mark.slow
@pytest.mark.parametrize("mu", np.geomspace(1e-300, 1e6, 103).tolist() + MUS)
def test_no_epsilon_is_below_the_exact_one_anywhere(mu):
    for delta in (*ALL_DELTAS, *np.geomspace(1e-299, 0.9, 13)):
        check_epsilon(mu, float(delta))


@pytest.mark.parametrize("mu", [1e-300, 1e-9, 1e-3, 1.0])
def test_next_to_the_total_variation_no_epsilon_is_too_small(mu):
    for part in (1e-15, 1e-12, 1e-9, 1e-6, 1e-3):
        check_epsilon(mu, float(total_variation(mu) * (1 - mpmath.mpf(part))))
    assert epsilon_for(mu, float(total_variation(mu) * (1 + 1e-6))) == 0.0


def test_many_at_once_are_one_by_one():
    mus = np.array([0.0, 5e-324, 1e-12, 1e-7, 0.3, 3.0, 1e6, 1e200, math.inf])
    for delta in (1e-12, 1e-5, 0.9):
        found = epsilons_for(mus, delta)
        assert_relative(found, [epsilon_for(mu, delta) for mu in mus], 1e-12)
        assert found[0] == found[1] == 0.0 and found[-1] == found[-2] == math.inf


@pytest.mark.parametrize("delta", DELTAS)
def test_mu_is_the_safe_inverse_of_the_curve(delta):
    for epsilon in EPSILONS:
        mu = mu_for(epsilon, delta)
        assert delta_precise(epsilon, mu) <= delta, f"epsilon={epsilon:g}"
        assert delta_precise(epsilon, mu * (1 + 1e-8)) > delta, f"epsilon={epsilon:g}"


@pytest.mark.parametrize("delta", [5e-324, *ALL_DELTAS])
def test_budgets_of_any_size_are_not_exceeded(delta):
    for epsilon in (1e-100, 1e-20, 1e-8, 1.0, 1e5, 1e16):
        mu, rho = mu_for(epsilon, delta), rho_for(epsilon, delta)
        assert epsilon_for(mu, delta) <= epsilon and epsilon_of_rho(rho, delta) <= epsilon
        # Where delta alone allows the noise, any epsilon does.
        assert epsilon_for(mu * (1 + 1e-7), delta) > epsilon or mu < 3 * delta
        if delta > 1e-323:  # mpmath takes no subnormal number for granted
            assert delta_precise(epsilon, mu) <= delta


@pytest.mark.parametrize("epsilon", EPSILONS)
@pytest.mark.parametrize("delta", DELTAS)
def test_epsilon_is_the_safe_inverse_of_the_curve(epsilon, delta):
    mu = mu_for(epsilon, delta)
    found = epsilon_for(mu, delta)
    assert found <= epsilon
    assert delta_precise(found, mu) <= delta
    # Where delta is close to the total variation, epsilon moves much faster than mu and delta.
    assert found == pytest.approx(epsilon, rel=1e-6 if epsilon * 10 > delta else 0.01)


def rho_epsilon_precise(rho, delta):
    """The conversion at its best order, for comparison with any order's."""
    with mpmath.workdps(320):
        rho, delta = mpmath.mpf(rho), mpmath.mpf(delta)

        def at(log_excess):
            excess = mpmath.exp(log_excess)
            order = 1 + excess
            return rho * order + mpmath.log(1 - 1 / order) - (mpmath.log(delta) + mpmath.log(order)) / excess

        low, high = (mpmath.log(-mpmath.log(delta) / rho) / 2 + shift for shift in (-8, 8))
        for _ in range(80):
            third = (high - low) / 3
            if at(low + third) < at(high - third):
                high -= third
            else:
                low += third
        return at((low + high) / 2)


@pytest.mark.parametrize("delta", [1e-300, 1e-12, 1e-5, 0.9, 1 - 1.2e-16])
def test_no_epsilon_of_zero_concentrated_dp_is_below_the_exact_one(delta):
    for rho in (1e-240, 1e-30, 1e-10, 1e-3, 1.0, 1e6, 1e250):
        found, exact = epsilon_of_rho(rho, delta), max(rho_epsilon_precise(rho, delta), 0)
        assert found >= exact
        assert found <= exact * (1 + 1e-5) + 1e-12
    assert epsilon_of_rho(math.inf, delta) == math.inf


@pytest.mark.parametrize(
    ("sigma", "n_steps"),
    [(20, 240), (5, 1), (1, 1), (30, 100), pytest.param(2, 30, marks=pytest.mark.slow), (200, 7)],
)
def test_agreement_with_dp_accounting(sigma, n_steps):
    accountant = pld_privacy_accountant.PLDAccountant(value_discretization_interval=1e-4)
    accountant.compose(dp_event.GaussianDpEvent(sigma / math.sqrt(n_steps)))
    for delta in (1e-9, 1e-5, 1e-2):
        found = epsilon_of(sigma, n_steps, delta=delta)
        assert found == pytest.approx(accountant.get_epsilon(delta), abs=1e-6)


@pytest.mark.parametrize("epsilon", [9e-101, 2e16])
def test_budgets_beyond_what_noise_can_be_computed_for_are_refused(epsilon):
    for solve in (gaussian.mu_for, gaussian.rho_for):
        with pytest.raises(ValueError, match="is out of the range of budgets that noise can be computed for"):
            solve(epsilon, 1e-5)
