"""How fine the privacy loss is discretised, and how few accountants a calibration asks.

The accountant is replaced by a curve whose discretisation error is known. What the real one says is in
``test_calibrate.py``.
"""

import math

import numpy as np
import pytest

from skmixdp.privacy import GaussianEvent
from skmixdp.privacy.accounting import sampled

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
    def use(curve):
        monkeypatch.setattr(sampled, "_epsilon", curve)
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
    ("error", "power", "upper", "rate", "epsilon", "most"),
    [
        (10.0, 1.0, 2.0, 0.9, 1.0, 8),
        (10.0, 2.0, 1.5, 0.9, 1.0, 7),
        (10.0, 1.0, 200.0, 0.01, 1.0, 8),  # sampling helps much
        (10.0, 1.0, 200.0, 0.5, 1.0, 16),  # more than the central limit foretells
        (10.0, 1.0, 200.0, 0.001, 1.0, 10),  # less than that
        (10.0, 1.0, 1.0, 0.9, 1.0, 8),  # the coarse discretisation finds the start too small
        (4e4, 1.0, 4.0, 0.9, 1.0, 17),  # its root is worth little
        (10.0, 1.0, 200.0, 0.9, 0.01, 7),  # it must be smaller to see a small budget
    ],
)
def test_a_calibration_asks_few_accountants(use, error, power, upper, rate, epsilon, most):
    curve = use(Curve(error, power=power))
    terms = {"n_steps": 10, "sampling_rate": rate, "neighboring": ADD}
    sigma = sampled.noise_multiplier_for(epsilon, 1e-5, upper=upper, **terms)
    n_asked = len(curve.asked)
    spent = sampled.epsilon_of(GaussianEvent(sigma, 10, 0.1), 1e-5, ADD)
    assert epsilon * math.exp(-1e-3) <= spent <= epsilon
    assert n_asked <= most
    assert curve.asked[0] == min(5e-3, epsilon / 50)


def test_corrections_are_bounded():
    assert [sampled._bounded(step) for step in (-1.0, -0.3, 0.1, 0.3, 0.5)] == [-0.3, -0.3, 0.1, 0.3, 0.3]


def test_divergences_are_rounded_up_and_never_below_zero():
    orders = np.array([2.0, 64.0])
    tiny = sampled.renyi(GaussianEvent(1e9, 100, 1e-6), orders, ADD)
    rounding = 1e-13 * 100 / (orders - 1)
    np.testing.assert_allclose(tiny, rounding, rtol=1e-3)
    assert np.all(tiny > 0.99 * rounding)


def test_replacing_a_row_is_removing_one_and_adding_another():
    event, orders = GaussianEvent(2.0, 10, 0.05), np.array([1.5, 3.0, 20.0])
    out = sampled.renyi(event, 2 * orders, ADD)
    back = sampled.renyi(event, 2 * orders - 1, ADD)
    found = sampled.renyi(event, orders, "replace_one")
    np.testing.assert_allclose(found, (2 * orders - 1) / (2 * orders - 2) * out + back, rtol=1e-12)
