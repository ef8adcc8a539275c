"""The exact curve and its inverses, against high precision and dp-accounting."""

import math

import mpmath
import pytest
from dp_accounting import dp_event
from dp_accounting.pld import pld_privacy_accountant

from skmixdp.privacy import epsilon_of
from skmixdp.privacy.accounting import gaussian
from skmixdp.privacy.accounting.gaussian import epsilon_for, log_delta, mu_for

EPSILONS = [1e-3, 1e-2, 0.1, 1.0, 3.0, 10.0, 100.0]
DELTAS = [1e-12, 1e-9, 1e-5, 1e-2, 0.1]


def log_delta_precise(epsilon, mu):
    with mpmath.workdps(60):
        epsilon, mu = mpmath.mpf(epsilon), mpmath.mpf(mu)
        first = mpmath.ncdf(mu / 2 - epsilon / mu)
        return mpmath.log(first - mpmath.exp(epsilon) * mpmath.ncdf(-mu / 2 - epsilon / mu))


@pytest.mark.parametrize("mu", [1e-4, 1e-2, 0.268, 1.0, 5.0, 30.0])
def test_log_delta_is_right_in_both_tails(mu):
    for epsilon in (0.0, *EPSILONS):
        expected = log_delta_precise(epsilon, mu)
        # The sum of 60-digit terms is right to well over 20 digits unless delta is below 1e-30.
        if expected > -60:
            found = log_delta(epsilon, mu)
            assert found == pytest.approx(float(expected), rel=1e-9, abs=1e-11), f"epsilon={epsilon:g}"


@pytest.mark.parametrize("delta", DELTAS)
def test_mu_is_the_safe_inverse_of_the_curve(delta):
    for epsilon in EPSILONS:
        mu = mu_for(epsilon, delta)
        assert log_delta_precise(epsilon, mu) <= math.log(delta), f"epsilon={epsilon:g}"
        assert log_delta_precise(epsilon, mu * (1 + 1e-8)) > math.log(delta), f"epsilon={epsilon:g}"


@pytest.mark.parametrize("epsilon", EPSILONS)
@pytest.mark.parametrize("delta", DELTAS)
def test_epsilon_is_the_safe_inverse_of_the_curve(epsilon, delta):
    mu = mu_for(epsilon, delta)
    found = epsilon_for(mu, delta)
    assert log_delta_precise(found, mu) <= math.log(delta)
    # Where delta is close to the total variation, epsilon moves much faster than mu.
    assert found == pytest.approx(epsilon, rel=1e-6)
    assert log_delta_precise(found * (1 - 1e-8), mu) > math.log(delta)


def test_no_epsilon_is_needed_where_delta_exceeds_the_total_variation():
    total_variation = 2 * float(mpmath.ncdf(0.05)) - 1
    assert epsilon_for(0.1, total_variation * 1.01) == 0.0
    assert epsilon_for(0.1, total_variation * 0.99) > 0.0


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


@pytest.mark.parametrize(
    ("root", "asked"), [(20.0, [0, 0, 1, 3, 7, 15, 31]), (-20.0, [0, -1, -3, -7, -15, -31, 0])]
)
def test_a_root_is_bracketed_by_steps_that_double(root, asked):
    seen = []

    def function(u):
        seen.append(u)
        return u - root

    assert gaussian._increasing_root(function, start=0.0) == pytest.approx(root, rel=1e-14)
    assert seen[: len(asked)] == asked
    assert gaussian._increasing_root(lambda u: u - 3.0, start=3.0) == 3.0


@pytest.mark.parametrize("delta", [1e-12, 1e-5])
@pytest.mark.parametrize("mu", [0.01, 0.3, 3.0, 30.0])
def test_an_epsilon_is_searched_from_a_bound_that_is_less_than_twice_as_large(monkeypatch, mu, delta):
    """Where the tail alone is below delta, so one step down is a bracket."""
    starts = []
    find = gaussian._increasing_root

    def watched(function, start):
        starts.append(math.exp(start))
        return find(function, start)

    monkeypatch.setattr(gaussian, "_increasing_root", watched)
    found = epsilon_for(mu, delta)
    assert 1 <= starts[0] / found < 1.8
