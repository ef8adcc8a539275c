"""Epsilon of mixed releases."""

import math
from functools import partial

import numpy as np
import pytest
from scipy.integrate import quad
from scipy.stats import norm

from skmixdp.algorithms.modelmix import ModelMixEvent, modelmix_epsilon
from skmixdp.privacy import (
    GaussianEvent,
    epsilon_of,
    epsilon_of_event,
    mu_of_event,
    noise_multiplier_for,
    rdp_of_event,
    steps_for,
)
from skmixdp.privacy.accounting.budgets import amplified_epsilon
from skmixdp.privacy.accounting.events import accountant_name
from tests.private_names import accountant as mixing
from tests.private_names import epsilon_for, log_moments, log_ratio_moments, renyi
from tests.rounding import assert_relative

ADD, REPLACE = "add_or_remove_one", "replace_one"


def density(z, width):
    """Of N(0, 1) * U[-width/2, width/2], as it is defined, in the tail where digits are kept."""
    z = -abs(z)
    return (norm.cdf(z + width / 2) - norm.cdf(z - width / 2)) / width


@pytest.mark.parametrize("width", [0.3, 2.0, 12.0])
@pytest.mark.parametrize("shift", [0.2, 1.0])
def test_moments_equal_the_integral_that_defines_them(width, shift):
    orders = np.array([2.0, 3.0, 5.5])
    for order, found in zip(orders, log_ratio_moments(orders, shift, width), strict=True):

        def integrand(z, order=order):
            return density(z, width) ** (1 - order) * density(z - shift, width) ** order

        value, _ = quad(integrand, -width / 2 - 9, width / 2 + order * shift + 9, limit=400, epsabs=1e-12)
        assert found == pytest.approx(math.log(value), abs=1e-8)


def test_narrow_mixing_is_none():
    orders = np.array([2.0, 3.5, 64, 256])
    for shift in (0.01, 0.9):
        exact = orders * (orders - 1) * shift**2 / 2
        # SciPy 1.14 is off by 3e-8.
        assert_relative(log_ratio_moments(orders, shift, 1e-4), exact, 1e-7)


@pytest.mark.parametrize("q", [0.02, 0.4])
def test_whole_orders_are_binomial_sums_of_moments(q):
    orders = np.arange(2.0, 20)
    direct = log_moments(orders, 0.7, 3.0, q, 1)
    A = np.exp(log_ratio_moments(np.arange(20.0), 0.7, 3.0))
    for order, found in zip(orders, direct, strict=True):
        n = int(order)
        total = sum(math.comb(n, j) * (1 - q) ** (n - j) * q**j * A[j] for j in range(n + 1))
        assert found == pytest.approx(math.log(total), abs=1e-12)
    squared = log_moments(orders, 0.7, 3.0, q, 2)
    total = sum(math.comb(6, j) * (1 - q) ** (6 - j) * q**j * A[j] ** 2 for j in range(7))
    assert squared[4] == pytest.approx(math.log(total), abs=1e-12)


def test_at_the_full_batch_the_sum_has_one_term():
    orders = np.arange(2.0, 10)
    for split in (1, 5):
        expected = split * log_ratio_moments(orders, 0.3, 2.0)
        assert_relative(log_moments(orders, 0.3, 2.0, 1.0, split), expected)
        nearly = log_moments(orders, 0.3, 2.0, 1 - 1e-9, split)
        assert_relative(nearly, expected, 1e-6)


def test_without_mixing_it_is_the_renyi_bound_of_gaussians():
    """At the narrowest width the bound is the tight conversion of Gaussian Renyi orders."""
    sigma, T, delta = 20.0, 100, 1e-5
    orders = np.arange(2.0, 257)
    each = T * orders / (2 * sigma**2) + np.log1p(-1 / orders) - np.log(delta * orders) / (orders - 1)
    event = ModelMixEvent(sigma, T, width=0.05 * sigma)
    amplified = amplified_epsilon(event, delta, ADD)
    assert amplified == pytest.approx(each.min(), rel=1e-3)
    assert amplified > epsilon_of(sigma, T, delta=delta)
    assert modelmix_epsilon(sigma, T, delta=delta, width=1.0) == epsilon_of(sigma, T, delta=delta)


def test_it_falls_with_width_noise_and_split_and_rises_with_steps():
    terms = {"delta": 1e-5}
    base = modelmix_epsilon(5.0, 60, width=30, **terms)
    assert base < epsilon_of(5.0, 60, delta=1e-5)
    assert modelmix_epsilon(5.0, 60, width=60, **terms) < base
    assert modelmix_epsilon(6.0, 60, width=30, **terms) < base
    assert modelmix_epsilon(5.0, 60, width=30, linf_split=9, **terms) < base
    assert modelmix_epsilon(5.0, 80, width=30, **terms) > base
    assert modelmix_epsilon(5.0, 60, width=30, conversion="classic", **terms) > base


def test_replacing_a_row_doubles_the_shift_at_the_full_batch_alone():
    found = modelmix_epsilon(10.0, 60, delta=1e-5, width=60, neighboring=REPLACE)
    # The same in units in which the sensitivity is twice as large.
    assert found == pytest.approx(modelmix_epsilon(5.0, 60, delta=1e-5, width=30))
    with pytest.raises(
        ValueError, match=r"^neighboring='replace_one' cannot .* rate 0.5; use the full batch"
    ):
        modelmix_epsilon(10.0, 60, delta=1e-5, width=60, sampling_rate=0.5, neighboring=REPLACE)


def test_nothing_is_claimed_where_nothing_was_tested():
    terms = {"sampling_rate": 1.0, "linf_split": 1, "n_steps": 10, "delta": 1e-5}
    assert epsilon_for(shift=6.01, width=10, **terms) == math.inf
    assert epsilon_for(shift=1.0, width=0.049, **terms) == math.inf
    assert epsilon_for(shift=6.0, width=10, **terms) < math.inf
    assert modelmix_epsilon(0.1, 10, delta=1e-5, width=5) == epsilon_of(0.1, 10, delta=1e-5)


@pytest.mark.parametrize("width", [1.0, 1000.0])
def test_the_rounding_of_many_coordinates_lowers_no_divergence(width):
    """A row that spreads over more coordinates costs the same in the limit, and a margin for rounding."""
    orders = np.arange(2.0, 30.0)

    def divergences(s):
        return renyi(orders, 1, shift=0.05 / math.sqrt(s), width=width, sampling_rate=1.0, linf_split=s)

    limit = divergences(100) - 1e-11 / (orders - 1)  # spread further, the bound hardly moves
    for s in (10**4, 10**6, 10**9, 2**53):
        assert np.all(divergences(s) >= limit * 0.99)


def test_many_splits_at_a_low_cost_are_never_negative():
    assert epsilon_for(shift=1e-4, width=100, sampling_rate=1, linf_split=2, n_steps=1, delta=0.5) == 0


def test_events_are_accounted_for_by_the_smaller_bound_and_named():
    event = ModelMixEvent(5.0, 60, width=30.0)
    assert event.unamplified == GaussianEvent(5.0, 60)
    assert event.mu(ADD) is None
    assert amplified_epsilon(event.unamplified, 1e-5, ADD) == math.inf
    assert epsilon_of_event(event, 1e-5, ADD) == amplified_epsilon(event, 1e-5, ADD)
    narrow = ModelMixEvent(5.0, 60, width=0.1)
    assert epsilon_of_event(narrow, 1e-5, ADD) == epsilon_of(5.0, 60, delta=1e-5)
    assert accountant_name(event) == (
        "the smaller of Renyi DP with amplification and exact Gaussian (closed form)"
    )
    with pytest.raises(ValueError, match=r"^noise='discrete' cannot be accounted for with ModelMix"):
        epsilon_of_event(ModelMixEvent(5.0, 60, 1.0, "discrete", width=30.0), 1e-5, ADD)


@pytest.mark.parametrize(
    ("n_steps", "rate", "width"),
    [(60, 1.0, 60.0), (60, 0.1, 5.0), pytest.param(500, 0.02, 5.0, marks=pytest.mark.slow), (60, 1.0, 1.0)],
)
def test_calibration_stays_within_the_budget_and_close_to_it(n_steps, rate, width):
    family = partial(ModelMixEvent, width=width)
    terms = {"sampling_rate": rate, "family": family}
    sigma = noise_multiplier_for(2.0, 1e-5, n_steps=n_steps, **terms)
    plain = noise_multiplier_for(2.0, 1e-5, n_steps=n_steps, sampling_rate=rate)
    assert sigma < plain if width > 1 else sigma == plain
    spent = epsilon_of_event(family(sigma, n_steps, rate, "float"), 1e-5, ADD)
    assert 2.0 * 0.999 < spent <= 2.0
    assert n_steps <= steps_for(2.0, 1e-5, noise_multiplier=sigma, **terms) <= 1.005 * n_steps


def test_calibration_finds_what_is_far_below_the_gaussian_multiplier():
    family = partial(ModelMixEvent, width=500.0)
    sigma = noise_multiplier_for(1.0, 1e-5, n_steps=60, family=family)
    assert sigma < 0.4 * noise_multiplier_for(1.0, 1e-5, n_steps=60)
    assert 0.999 < epsilon_of_event(family(sigma, 60, 1.0, "float"), 1e-5, ADD) <= 1


@pytest.mark.parametrize("width", [15.0, 1500.0])
def test_one_epsilon_takes_few_points_for_each_order_however_wide_the_mixing_is(width, monkeypatch):
    points, log_density = [], mixing._log_density
    monkeypatch.setattr(mixing, "_log_density", lambda z, half: points.append(z.size) or log_density(z, half))
    amplified_epsilon(ModelMixEvent(0.364, 5000, 0.02, width=width, linf_split=25), 1e-5, ADD)
    assert 0 < sum(points) < 5000


@pytest.mark.parametrize(
    ("change", "name"),
    [
        ({"noise_multiplier": 0}, "noise_multiplier"),
        ({"delta": 1.0}, "delta"),
        ({"width": -1.0}, "width"),
        ({"linf_split": 2.0}, "linf_split"),
        ({"conversion": "loose"}, "conversion"),
        ({"neighboring": "swap"}, "neighboring"),
    ],
)
def test_bad_input_is_named(change, name):
    """The fields of events, each with every kind of wrong value, are those of ``test_event_fields.py``."""
    good = {"noise_multiplier": 5.0, "n_steps": 10, "delta": 1e-5, "width": 10.0}
    with pytest.raises(ValueError, match=rf"^{name}="):
        modelmix_epsilon(**{**good, **change})


def test_fractional_orders_are_for_one_coordinate_alone():
    orders = np.array([1.5, 2.0, 2.5])
    terms = {"shift": 0.5, "width": 10.0, "sampling_rate": 0.1}
    assert np.isfinite(mixing.renyi(orders, 10, linf_split=1, **terms)).all()
    np.testing.assert_array_equal(
        np.isfinite(mixing.renyi(orders, 10, linf_split=2, **terms)), [False, True, False]
    )


def test_the_edges_of_what_was_tested_are_included():
    def claims(order, shift, width):
        found = mixing.renyi(np.array([order]), 1, shift=shift, width=width, sampling_rate=1.0, linf_split=1)
        return bool(np.isfinite(found[0]))

    assert claims(256.0, 0.5, 1.0) and not claims(257.0, 0.5, 1.0)
    assert claims(2.0, 6.0, 1.0) and not claims(2.0, 6.01, 1.0)
    assert claims(50.0, 5.0, 1.0) and not claims(50.0, 5.01, 1.0)
    assert claims(2.0, 0.5, 0.05) and not claims(2.0, 0.5, 0.049)


def test_every_step_of_a_divergence_has_its_margin():
    order, terms = np.array([3.0]), {"shift": 0.5, "width": 10.0, "sampling_rate": 1.0, "linf_split": 1}
    moment = mixing.log_moments(order, 0.5, 10.0, 1.0, 1)[0]
    one = mixing.renyi(order, 1, **terms)[0]
    assert mixing.renyi(order, 7, **terms)[0] == pytest.approx(7 * one, rel=1e-14)
    assert 2 * one - moment == pytest.approx(1e-9 * moment + 1e-13, rel=1e-3)


def test_both_conversions_are_the_least_over_the_orders():
    terms = {"shift": 0.5, "width": 10.0, "sampling_rate": 0.1, "linf_split": 4}
    orders = np.arange(2.0, 257.0)
    divergences = mixing.renyi(orders, 50, **terms)
    tight = np.log((orders - 1) / orders) - (np.log(1e-5) + np.log(orders)) / (orders - 1)
    classic = np.log(1e5) / (orders - 1)
    for name, cost in (("tight", tight), ("classic", classic)):
        found = mixing.epsilon_for(n_steps=50, delta=1e-5, conversion=name, **terms)
        assert found == pytest.approx(np.min(divergences + cost), rel=1e-12)


def test_defaults_are_the_full_batch_without_a_split():
    plain = modelmix_epsilon(5.0, 20, delta=1e-5, width=30.0)
    named = {"sampling_rate": 1.0, "linf_split": 1, "conversion": "tight", "neighboring": "add_or_remove_one"}
    assert modelmix_epsilon(5.0, 20, delta=1e-5, width=30.0, **named) == plain
    for change in ({"linf_split": 2}, {"conversion": "classic"}, {"neighboring": "replace_one"}):
        assert modelmix_epsilon(5.0, 20, delta=1e-5, width=30.0, **named | change) != plain


@pytest.mark.parametrize("neighboring", [ADD, "zero_out", REPLACE])
def test_without_amplification_divergences_and_mu_are_those_of_the_releases(neighboring):
    """A ledger adds these up: under replace_one they are for twice the shift."""
    event = ModelMixEvent(2.0, 7, width=mixing.MIN_WIDTH)  # which is too narrow to claim anything
    orders = np.array([1.5, 2.0, 32.0])
    found = rdp_of_event(event, orders, neighboring)
    shift = 2.0 if neighboring == REPLACE else 1.0
    assert_relative(found, 7 * orders * (shift / 2.0) ** 2 / 2, 1e-9)
    assert mu_of_event(event, neighboring) == pytest.approx(math.sqrt(7) * shift / 2)
