"""The statistics of an audit, against known values, definitions and simulated attacks."""

import math

import numpy as np
import pytest
from scipy.optimize import linprog
from scipy.special import ndtr
from scipy.stats import binom, binomtest

from skmixdp.privacy import epsilon_of
from tests.private_names import (
    epsilon_from_rates,
    mu_from_rates,
    one_run_epsilon,
    one_run_mu,
    one_run_p_value,
    proportion_lower,
    proportion_upper,
    separation,
    threshold_bound,
)


@pytest.mark.parametrize(("successes", "trials"), [(0, 10), (1, 10), (7, 31), (31, 31)])
@pytest.mark.parametrize("level", [0.025, 1e-6])
def test_bounds_on_a_proportion_are_those_of_clopper_and_pearson(successes, trials, level):
    interval = binomtest(successes, trials).proportion_ci(1 - 2 * level, method="exact")
    assert proportion_lower(successes, trials, level) == pytest.approx(interval.low, abs=1e-12)
    assert proportion_upper(successes, trials, level) == pytest.approx(interval.high, abs=1e-12)


def test_rates_of_randomised_response_show_its_epsilon():
    right = math.e**1.5 / (1 + math.e**1.5)
    assert epsilon_from_rates(right, 1 - right, 0.0) == pytest.approx(1.5)
    # A test that never says "included" of an excluded row, and rarely of an included one.
    assert epsilon_from_rates(0.01, 0.0, 0.01) == 0
    assert epsilon_from_rates(0.02, 0.0, 0.01) == math.inf
    # "Excluded" is the better guess: 0.5 against 0.01 of being wrong.
    assert epsilon_from_rates(0.99, 0.5, 0.0) == pytest.approx(math.log(0.5 / 0.01))


def test_rates_of_a_gaussian_test_show_its_mu_and_no_more_than_its_epsilon():
    for threshold in (-1.0, 0.3, 2.0):
        rates = ndtr(1.7 - threshold), ndtr(-threshold)
        assert mu_from_rates(*rates) == pytest.approx(1.7)
        assert epsilon_from_rates(*rates, 1e-5) <= epsilon_of(1 / 1.7, 1, delta=1e-5)
    assert mu_from_rates(0.2, 0.6) == mu_from_rates(0.0, 1.0) == 0
    assert mu_from_rates(1.0, 0.0) == math.inf


@pytest.mark.parametrize(("r", "v"), [(40, 31), (7, 7), (100, 50)])
def test_without_epsilon_and_delta_a_guess_is_a_coin(r, v):
    assert one_run_p_value(500, r, v, 0.0, 0.0) == pytest.approx(binom.sf(v - 1, r, 0.5))


def test_the_p_value_of_one_run_is_that_of_the_theorem():
    m, r, v, epsilon, delta = 200, 30, 26, 1.2, 1e-3
    q = math.exp(epsilon) / (1 + math.exp(epsilon))
    law = [math.comb(r, c) * q**c * (1 - q) ** (r - c) for c in range(r + 1)]
    alpha = max(sum(law[v - i : v]) / i for i in range(1, v + 1))
    expected = sum(law[v:]) + 2 * m * delta * alpha
    assert one_run_p_value(m, r, v, epsilon, delta) == pytest.approx(expected, rel=1e-12)
    assert one_run_p_value(m, r, 0, epsilon, delta) == 1


def test_the_epsilon_of_one_run_is_where_the_p_value_reaches_the_level():
    epsilon = one_run_epsilon(1000, 100, 95, 1e-5, 0.05)
    assert one_run_p_value(1000, 100, 95, epsilon, 1e-5) < 0.05
    assert one_run_p_value(1000, 100, 95, epsilon + 1e-3, 1e-5) > 0.05
    # Without delta, that is the lower bound on the probability of a right guess.
    right = proportion_lower(95, 100, 0.05)
    assert one_run_epsilon(1000, 100, 95, 0.0, 0.05) == pytest.approx(math.log(right / (1 - right)), abs=1e-3)
    assert one_run_epsilon(1000, 100, 55, 1e-5, 0.05) == 0


def largest_probability(m, r, v, mu):
    """Of v correct guesses or more, under the constraints that :func:`one_run_mu` names: a linear program."""
    correct, wrong = np.arange(r + 1) / m, (r - np.arange(r + 1)) / m
    rows, limits = [], []
    for i in range(1, v + 1):
        at_least = np.arange(r + 1) >= i
        for z in np.linspace(-7, 3, 300):
            x, slope = ndtr(z), math.exp(-mu * z - mu**2 / 2)
            rows.append(correct * at_least - slope * wrong * (np.arange(r + 1) >= i - 1))
            limits.append(ndtr(z + mu) - slope * x)
    aim = -(np.arange(r + 1) >= v).astype(float)
    solution = linprog(aim, np.array(rows), limits, np.ones((1, r + 1)), [1.0], bounds=(0, 1))
    assert solution.status == 0
    return -solution.fun


@pytest.mark.parametrize(("m", "r", "v", "mu"), [(20, 8, 8, 0.5), (20, 20, 17, 0.3), (60, 12, 12, 0.4)])
def test_the_mu_of_one_run_is_the_best_that_the_constraints_allow(m, r, v, mu):
    level = largest_probability(m, r, v, mu)
    assert 1e-4 < level < 0.5
    assert one_run_mu(m, r, v, 0.98 * level) < mu  # so many may happen with less than that probability
    assert one_run_mu(m, r, v, 1.02 * level) > mu


def guesses_of_a_gaussian(mu, m, r, rng):
    """Right ones among r, by the m scores of independent Gaussian releases."""
    included = rng.integers(2, size=m) == 1
    order = np.argsort(mu * included + rng.normal(size=m))
    return included[order[-r // 2 :]].sum() + (~included[order[: r // 2]]).sum()


@pytest.mark.parametrize("mu", [0.3, 0.7, 1.2])
def test_bounds_of_one_run_hold_for_a_gaussian_and_catch_half_its_noise(mu):
    rng = np.random.default_rng(0)
    m, r = 2000, 400
    true = [guesses_of_a_gaussian(mu, m, r, rng) for _ in range(100)]
    halved = [guesses_of_a_gaussian(2 * mu, m, r, rng) for _ in range(10)]
    epsilon = epsilon_of(1 / mu, 1, delta=1e-5)
    assert sum(one_run_mu(m, r, v, 0.05) > mu for v in set(true)) == 0
    assert sum(one_run_epsilon(m, r, v, 1e-5, 0.05) > epsilon for v in set(true)) == 0
    assert np.median([one_run_mu(m, r, v, 0.05) for v in set(halved)]) > mu


def test_no_correct_guesses_show_nothing_and_all_of_them_a_finite_mu():
    assert one_run_mu(100, 10, 0, 0.05) == 0
    assert one_run_mu(100, 10, 5, 0.05) == 0
    assert 0 < one_run_mu(100, 10, 10, 0.05) < 5


@pytest.mark.parametrize("bound", [mu_from_rates, lambda *rates: epsilon_from_rates(*rates, 1e-5)])
def test_a_threshold_bounds_what_it_should(bound):
    rng = np.random.default_rng(0)
    mu = 1.2
    most = mu if bound is mu_from_rates else epsilon_of(1 / mu, 1, delta=1e-5)
    found = [threshold_bound(rng.normal(mu, 1, 60), rng.normal(0, 1, 60), 0.05, bound) for _ in range(300)]
    assert np.mean(np.array(found) > most) <= 0.05
    assert np.median(found) > 0.2 * mu


def test_a_threshold_is_chosen_on_fits_that_do_not_test_it():
    """Scores without any signal: the best of all thresholds on the same fits would show some."""
    rng = np.random.default_rng(1)
    found = [threshold_bound(*rng.normal(size=(2, 40)), 0.2, mu_from_rates) for _ in range(300)]
    assert np.mean(np.array(found) > 0) <= 0.2


def test_a_score_that_is_smaller_with_the_canary_does_as_well():
    rng = np.random.default_rng(2)
    included, excluded = rng.normal(3, 1, 200), rng.normal(0, 1, 200)
    bound = threshold_bound(included, excluded, 0.05, mu_from_rates)
    assert 2 < bound < 3
    assert threshold_bound(-included, -excluded, 0.05, mu_from_rates) == pytest.approx(bound, abs=0.2)


def test_scores_without_spread_are_told_apart_without_division_by_zero():
    assert threshold_bound(np.ones(40), np.zeros(40), 0.05, mu_from_rates) > 1
    assert threshold_bound(np.ones(40), np.ones(40), 0.05, mu_from_rates) == 0
    assert separation(np.ones(9), np.zeros(9), 0.95) == (math.inf, (math.inf, math.inf))
    assert separation(np.ones(9), np.ones(9), 0.95) == (0.0, (0.0, 0.0))
    value, interval = separation(np.ones(1), np.zeros(9), 0.95)
    assert math.isnan(value) and interval == (-math.inf, math.inf)


@pytest.mark.parametrize(("n_in", "n_out", "shift"), [(5, 5, 0.0), (10, 15, 2.0), (150, 150, -0.9)])
def test_the_interval_of_a_separation_covers_what_it_should(n_in, n_out, shift):
    rng = np.random.default_rng(3)
    covered = 0
    for _ in range(400):
        low, high = separation(rng.normal(2 * shift, 2, n_in), rng.normal(0, 2, n_out), 0.9)[1]
        covered += low < shift < high
    assert 330 < covered < 390  # 360 are expected, with a standard deviation of 6
