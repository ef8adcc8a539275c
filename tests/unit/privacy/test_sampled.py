"""How fine the privacy loss is discretised, how few accountants are asked, and that no bound is too low."""

import logging
import math

import mpmath
import numpy as np
import pytest
from scipy.stats import binom

from skmixdp.privacy import GaussianEvent, epsilon_of, noise_multiplier_for
from skmixdp.privacy.accounting import sampled
from skmixdp.privacy.accounting.gaussian import log_delta
from tests.rounding import assert_relative

ADD = "add_or_remove_one"


class Curve:
    """Epsilon on an interval: ``scale / sigma**power``, too large by ``error * interval**2`` of itself."""

    def __init__(self, error, scale=2.0, power=1.0):
        self.error, self.scale, self.power = error, scale, power
        self.asked = []

    def exact(self, sigma):
        return self.scale / sigma**self.power

    def __call__(self, event, delta, neighboring, interval):
        assert (delta, neighboring) == (1e-5, ADD)
        self.asked.append(interval)
        return self.exact(event.noise_multiplier) * (1 + self.error * interval**2)


@pytest.fixture
def use(monkeypatch):
    def use(curve, coarse=math.inf):
        monkeypatch.setattr(sampled, "_epsilon", curve)
        # What else bounds epsilon takes no part.
        monkeypatch.setattr(sampled.gaussian, "epsilon_for", lambda mu, delta: math.inf)
        monkeypatch.setattr(sampled, "_MOST_CELLS", math.inf)
        monkeypatch.setattr(sampled, "_COARSE", coarse)
        return curve

    return use


@pytest.mark.parametrize(
    ("sigma", "finest"),
    [(0.1, 2e-4), (1.0, 2e-4), (1.5, 2e-4), (1.6, 4e-5), (3.5, 4e-5), (3.6, 8e-6), (50, 8e-6)],
)
def test_intervals_shrink_by_fifths_as_far_as_the_noise_allows(use, sigma, finest):
    curve = use(Curve(1e12))
    found = sampled.epsilon_of(GaussianEvent(sigma, 10, 0.1), 1e-5, ADD)
    intervals = [5e-3, 1e-3, 2e-4, 4e-5, 8e-6]
    assert curve.asked == intervals[: intervals.index(finest) + 1]
    assert found == curve.exact(sigma) * (1 + 1e12 * finest**2)


def test_one_interval_is_enough_for_a_large_epsilon(use):
    curve = use(Curve(0.0), coarse=0.01)
    sampled.epsilon_of(GaussianEvent(50.0, 10, 0.1), 1e-5, ADD)
    assert curve.asked == [5e-3]


@pytest.mark.parametrize(("fall", "n_asked"), [(0.9e-3, 2), (1.1e-3, 3)])
def test_an_epsilon_that_falls_by_less_than_a_thousandth_has_settled(use, fall, n_asked):
    curve = use(Curve(fall / (5e-3**2 - 1e-3**2)))
    found = sampled.epsilon_of(GaussianEvent(50.0, 10, 0.1), 1e-5, ADD)
    assert len(curve.asked) == n_asked
    assert found == curve(GaussianEvent(50.0, 10, 0.1), 1e-5, ADD, curve.asked[-1])


def test_every_interval_gives_an_upper_bound_so_the_least_counts(use):
    use(Curve(-1e3))
    found = sampled.epsilon_of(GaussianEvent(50.0, 10, 0.1), 1e-5, ADD)
    assert found == 0.04 * (1 - 1e3 * 5e-3**2)


@pytest.mark.parametrize(
    ("power", "upper", "rate", "epsilon"),
    [
        (1.0, 2.5, 0.9, 1.0),
        (2.0, 1.5, 0.9, 1.0),
        (1.0, 200.0, 0.01, 1.0),  # sampling helps much
        (1.0, 200.0, 0.5, 1.0),  # more than the central limit foretells
        (1.0, 200.0, 0.001, 1.0),  # less than that
        (1.0, 250.0, 0.9, 0.01),
    ],
)
def test_a_calibration_asks_few_accountants(use, power, upper, rate, epsilon):
    curve = use(Curve(10.0, power=power))
    terms = {"n_steps": 10, "sampling_rate": rate, "neighboring": ADD}
    sigma = sampled.noise_multiplier_for(epsilon, 1e-5, upper=upper, **terms)
    spent = sampled.epsilon_of(GaussianEvent(sigma, 10, 0.1), 1e-5, ADD)
    assert epsilon * (1 - 1e-3) <= spent <= epsilon
    assert curve.asked.count(5e-3) <= 13


# -- no bound is too low -------------------------------------------------------------------


def exact_delta(epsilon, rate, sigma):
    """Delta of one sampled release, for a row that comes or goes: the larger of both directions."""
    with mpmath.workdps(40):
        rate, sigma, factor = mpmath.mpf(rate), mpmath.mpf(sigma), mpmath.exp(mpmath.mpf(epsilon))

        def tail(x):
            return mpmath.erfc(x / sigma / mpmath.sqrt(2)) / 2

        def where_ratio_is(value):
            return sigma**2 * mpmath.log((value - 1 + rate) / rate) + mpmath.mpf(0.5)

        x = where_ratio_is(factor)
        out = (1 - rate) * tail(x) + rate * tail(x - 1) - factor * tail(x)
        if 1 / factor <= 1 - rate:
            return out
        x = where_ratio_is(1 / factor)
        into = 1 - tail(x) - factor * ((1 - rate) * (1 - tail(x)) + rate * (1 - tail(x - 1)))
        return max(out, into)


def check_one_release(rate, sigma, delta):
    found = epsilon_of(sigma, 1, delta=delta, sampling_rate=rate)
    assert exact_delta(found, rate, sigma) <= delta, (rate, sigma, delta)


@pytest.mark.parametrize("rate", [1e-6, 0.1, 1 - 1e-3])
@pytest.mark.untraced
def test_no_epsilon_of_one_release_is_too_low(rate):
    for sigma, delta in ((0.5, 1e-5), (1.0, 1e-13), (30.0, 1e-20), (1e5, 0.3)):
        check_one_release(rate, sigma, delta)


@pytest.mark.slow
@pytest.mark.parametrize("rate", [1e-300, 1e-12, 1e-6, 1e-3, 0.1, 0.5, 0.9, 0.9998, 1 - 1e-6, 1 - 1e-12])
def test_no_epsilon_of_one_release_is_too_low_anywhere(rate):
    for sigma in (0.05, 0.1, 0.3, 1.0, 10.0, 1e3, 1e6, 1e9):
        for delta in (1e-20, 1e-15, 1e-12, 1e-9, 1e-5, 0.1, 0.9):
            check_one_release(rate, sigma, delta)


@pytest.mark.parametrize(("sigma", "n_steps"), [(30.0, 1000), (10.0, 1000)])
@pytest.mark.untraced
def test_the_rounding_of_fourier_transforms_does_not_lower_an_epsilon(sigma, n_steps):
    """Batches that leave out one row in a million cost what full batches cost, at any delta."""
    event = GaussianEvent(sigma, n_steps, 1 - 1e-6)
    for delta in (1e-12, 1e-13, 1e-15, 1e-18):
        exact = epsilon_of(sigma, n_steps, delta=delta)
        for interval in (1e-3, 2e-4):
            assert sampled._epsilon(event, delta, ADD, interval) >= exact * (1 - 1e-4)


def exact_divergence(order, rate, sigma):
    """Renyi divergence of a whole order of one sampled release, by the binomial sum."""
    with mpmath.workdps(40):
        rate, sigma = mpmath.mpf(rate), mpmath.mpf(sigma)
        terms = [
            mpmath.binomial(order, k)
            * (1 - rate) ** (order - k)
            * rate**k
            * mpmath.exp(k * (k - 1) / (2 * sigma**2))
            for k in range(order + 1)
        ]
        return mpmath.log(mpmath.fsum(terms)) / (order - 1)


@pytest.mark.parametrize("rate", [1e-300, 1e-6, 0.1, 0.9998])
def test_no_divergence_is_too_low(rate):
    orders = np.array([2.0, 3.0, 17.0, 64.0])
    for sigma in (0.1, 0.3, 1.0, 1e3, 1e6):
        found = sampled.renyi(GaussianEvent(sigma, 1, rate), orders, ADD)
        for order, divergence in zip(orders, found, strict=True):
            exact = exact_divergence(int(order), rate, sigma)
            assert exact <= divergence <= exact * (1 + 1e-6) + 1e-11


def test_an_order_whose_series_does_not_converge_is_infinite_and_writes_no_log(capfd):
    found = sampled.renyi(GaussianEvent(2.0, 1, 1 / 3), np.array([1.1, 2.0]), ADD)
    assert found[0] == math.inf > found[1]
    assert capfd.readouterr() == ("", "")
    assert not logging.getLogger("absl").filters


@pytest.mark.parametrize("sigma", [1e-120, 0.09, 2e6, 1e120])
def test_outside_of_what_the_libraries_can_do_the_number_of_batches_is_the_bound(sigma):
    for n_steps in (1, 2**53):
        # At most so many batches hold a row, but for a tenth of delta.
        most = 1 if n_steps == 1 else round(0.01 * n_steps * 1.001)
        found = epsilon_of(sigma, n_steps, delta=1e-5, sampling_rate=0.01)
        assert 0 <= found <= epsilon_of(sigma, most, delta=0.9e-5)
    assert np.all(sampled.renyi(GaussianEvent(sigma, 1, 0.01), np.array([2.0]), ADD) == math.inf)


@pytest.mark.parametrize("neighboring", [ADD, "replace_one"])
@pytest.mark.parametrize(
    ("sigma", "n_steps", "rate", "delta"),
    [
        *((0.05, 1, 0.3, 1e-5), (0.05, 40, 0.01, 1e-5), (0.3, 1000, 0.2, 1e-9), (3.0, 7, 0.9, 1e-3)),
        *((2.0, 5, 1e-6, 1e-7),),
    ],
)
def test_known_batches_are_an_upper_bound_that_is_nearly_exact(sigma, n_steps, rate, delta, neighboring):
    def mean_delta(epsilon):
        total = 0.0
        for n_batches in range(1, n_steps + 1):
            mu = (2 if neighboring == "replace_one" else 1) * math.sqrt(n_batches) / sigma
            total += float(binom.pmf(n_batches, n_steps, rate) * np.exp(log_delta(epsilon / mu, mu)[0]))
        return total

    found = sampled._epsilon_of_batches(GaussianEvent(sigma, n_steps, rate), delta, neighboring)
    assert mean_delta(found) <= delta
    assert found == 0 or mean_delta(found / 1.01) > delta
    check_one_release(rate, sigma, delta)


@pytest.mark.parametrize("rate", [1 - 1e-5, 1 - 1e-12, 1 - 1.2e-16])
def test_next_to_all_rows_are_all_rows(rate):
    for sigma in (0.2, 1.0, 30.0):
        full_batch = epsilon_of(sigma, 3, delta=1e-5)
        assert 0.999 * full_batch <= epsilon_of(sigma, 3, delta=1e-5, sampling_rate=rate) <= full_batch
    for epsilon, delta in ((8.0, 0.1), (40.0, 1e-12)):
        full = noise_multiplier_for(epsilon, delta, n_steps=1)
        sigma = noise_multiplier_for(epsilon, delta, n_steps=1, sampling_rate=rate)
        assert full * (1 - 1e-3) <= sigma <= full


@pytest.mark.parametrize(("sigma", "n_steps"), [(0.3, 2**53), (100.0, 10**8), (1.0, 10**9)])
def test_what_no_grid_can_hold_is_bounded_by_its_divergences(sigma, n_steps):
    found = epsilon_of(sigma, n_steps, delta=1e-5, sampling_rate=0.01)
    assert epsilon_of(sigma, n_steps // 10**4, delta=1e-5) < found < epsilon_of(sigma, n_steps, delta=1e-5)


def test_divergences_are_rounded_up_and_never_below_zero():
    orders = np.array([2.0, 64.0])
    tiny = sampled.renyi(GaussianEvent(1e5, 100, 1e-6), orders, ADD)
    rounding = 1e-13 * 100 / (orders - 1)
    assert_relative(tiny, rounding, 1e-3)
    assert np.all(tiny > 0.99 * rounding)


def test_replacing_a_row_is_removing_one_and_adding_another():
    event, orders = GaussianEvent(2.0, 10, 0.05), np.array([1.5, 3.0, 20.0])
    out = sampled.renyi(event, 2 * orders, ADD)
    back = sampled.renyi(event, 2 * orders - 1, ADD)
    found = sampled.renyi(event, orders, "replace_one")
    assert_relative(found, (2 * orders - 1) / (2 * orders - 2) * out + back, 1e-12)


@pytest.mark.parametrize(
    ("sigma", "n_steps", "rate", "neighboring", "most"),
    [(0.364, 5000, 0.02, ADD, 183), (0.364, 5000, 0.02, "replace_one", 224), (0.2, 1000, 0.01, ADD, 229)],
)
def test_little_noise_in_few_rows_costs_far_less_than_its_divergences(
    sigma, n_steps, rate, neighboring, most
):
    """Far from the central limit, a grid is smaller than the variance of the loss makes believe."""
    found = epsilon_of(sigma, n_steps, delta=1e-5, sampling_rate=rate, neighboring=neighboring)
    event = GaussianEvent(sigma, n_steps, rate)
    finer = sampled._epsilon(event, 1e-5, neighboring, 1e-3)
    assert finer <= found * (1 + 1e-9) and found < most


@pytest.mark.untraced
def test_the_rounding_of_large_grids_does_not_lower_an_epsilon():
    """A grid of ten million cells, in batches that leave out one row in a million."""
    event = GaussianEvent(1.0, 100_000, 1 - 1e-6)
    for delta in (1e-5, 1e-9, 3e-10):
        exact = epsilon_of(1.0, 100_000, delta=delta)
        assert exact > 0.5 * sampled._MOST_CELLS * sampled._INTERVALS[0]
        assert sampled._epsilon(event, delta, ADD, sampled._INTERVALS[0]) >= exact * (1 - 1e-6)
