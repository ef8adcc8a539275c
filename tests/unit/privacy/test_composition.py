"""Divergences of events, and the filters that sum them, against dp-accounting."""

import math
from dataclasses import dataclass

import numpy as np
import pytest
from dp_accounting import dp_event, privacy_accountant
from dp_accounting.pld import pld_privacy_accountant
from dp_accounting.rdp import rdp_privacy_accountant
from scipy.special import logsumexp
from scipy.stats import norm

from skmixdp.algorithms.modelmix import ModelMixEvent, modelmix_epsilon
from skmixdp.privacy import (
    GaussianEvent,
    PrivacyFilter,
    epsilon_of,
    epsilon_of_event,
    mu_of_event,
    rdp_of_event,
)
from skmixdp.privacy.accounting.gaussian import ORDERS, epsilon_of_rdp, rdp_limits
from tests.rounding import assert_relative

ADD, REPLACE = "add_or_remove_one", "replace_one"
DELTA = 1e-5


def theirs(event):
    """The same releases in dp-accounting's words."""
    release = dp_event.GaussianDpEvent(event.noise_multiplier)
    if event.sampling_rate < 1:
        release = dp_event.PoissonSampledDpEvent(event.sampling_rate, release)
    return dp_event.SelfComposedDpEvent(release, event.n_steps)


MIXED = [
    GaussianEvent(10.0, 50),
    GaussianEvent(1.1, 100, 0.02),
    GaussianEvent(30.0, 7, noise="discrete"),
    GaussianEvent(4.0, 1),
]


def test_mixed_events_compose_as_in_dp_accounting():
    accountant = rdp_privacy_accountant.RdpAccountant(ORDERS)
    for event in MIXED:
        accountant.compose(theirs(event))
    divergences = sum(rdp_of_event(event, ORDERS, ADD) for event in MIXED)
    assert_relative(divergences, accountant.rdp, 1e-9)
    assert epsilon_of_rdp(divergences, DELTA, ORDERS) == pytest.approx(
        accountant.get_epsilon(DELTA), rel=1e-9
    )


def test_replacing_a_row_at_full_batch_is_four_times_the_divergence():
    event = MIXED[0]
    assert_relative(rdp_of_event(event, ORDERS, REPLACE), 4 * rdp_of_event(event, ORDERS, ADD))


@pytest.mark.parametrize(("sigma", "rate"), [(1.1, 0.02), (0.8, 0.3), (4.0, 0.9)])
def test_replacing_a_row_of_sampled_batches_is_bounded_from_above(sigma, rate):
    # The two ends lie furthest apart where the row is replaced by its opposite.
    z = np.linspace(-60, 60, 400_001)
    absent = np.log1p(-rate) + norm.logpdf(z, 0, sigma)
    ends = [np.logaddexp(absent, math.log(rate) + norm.logpdf(z, side, sigma)) for side in (1, -1)]
    orders = np.array([1.5, 2.0, 4.0, 8.0])
    exact = [
        (logsumexp(order * ends[0] + (1 - order) * ends[1]) + math.log(z[1] - z[0])) / (order - 1)
        for order in orders
    ]
    found = rdp_of_event(GaussianEvent(sigma, 1, rate), orders, REPLACE)
    assert np.all(found >= exact)
    assert np.all(found <= rdp_of_event(GaussianEvent(sigma, 1), orders, REPLACE))
    assert np.any(found < 6 * np.array(exact))


def test_sampling_never_costs_more_than_the_full_batch():
    # At this rate dp-accounting's own sums exceed it by rounding, or do not converge.
    for sigma, rate in ((0.4, 0.999), (20.0, 1e-9)):
        sampled, full = (rdp_of_event(GaussianEvent(sigma, 3, q), ORDERS, ADD) for q in (rate, 1.0))
        assert np.all(sampled <= full) and np.all(sampled > 0)


def test_modelmix_has_the_divergences_behind_its_epsilon():
    for terms in ({"width": 30.0}, {"width": 15.0, "linf_split": 25, "sampling_rate": 0.02}):
        event = ModelMixEvent(10.0, 60, **terms)
        found = epsilon_of_rdp(rdp_of_event(event, ORDERS, ADD), DELTA, ORDERS)
        alone = modelmix_epsilon(10.0, 60, delta=DELTA, **terms)
        assert found == pytest.approx(alone, rel=0.05)
        in_the_open = rdp_of_event(event.unamplified, ORDERS, ADD)
        assert np.all(rdp_of_event(event, ORDERS, ADD) <= in_the_open)
    # Outside the region in which the amplification was tested it counts for nothing.
    wild = ModelMixEvent(0.1, 2, width=30.0)
    np.testing.assert_array_equal(
        rdp_of_event(wild, ORDERS, ADD), rdp_of_event(wild.unamplified, ORDERS, ADD)
    )


def test_gaussian_dp_of_events():
    assert mu_of_event(GaussianEvent(10.0, 50), ADD) == pytest.approx(math.sqrt(0.5))
    assert mu_of_event(GaussianEvent(10.0, 50), REPLACE) == pytest.approx(2 * math.sqrt(0.5))
    assert mu_of_event(GaussianEvent(10.0, 50, 0.1), ADD) == pytest.approx(math.sqrt(0.5))
    assert mu_of_event(ModelMixEvent(10.0, 50, width=3.0), ADD) == pytest.approx(math.sqrt(0.5))
    assert mu_of_event(GaussianEvent(10.0, 50, noise="discrete"), ADD) == math.inf
    assert mu_of_event("an unknown event", ADD) == math.inf


def test_unknown_events_are_refused():
    with pytest.raises(TypeError, match="no Renyi accountant knows the event 'an event'"):
        rdp_of_event("an event", ORDERS, ADD)
    with pytest.raises(ValueError, match="cannot be accounted for with ModelMix on batches"):
        rdp_of_event(ModelMixEvent(10.0, 60, 0.1, width=30.0), ORDERS, REPLACE)


def filled(event, *, epsilon, neighboring=ADD, composition=None):
    """A filter that takes the event for its first, and how often it admits it."""
    rule = PrivacyFilter.for_first(
        event, epsilon=epsilon, delta=DELTA, neighboring=neighboring, composition=composition
    )
    spent, times = 0.0, 0
    while rule.admits(spent, event):
        spent, times = spent + rule.cost(event), times + 1
    return rule, times


@pytest.mark.parametrize("neighboring", [ADD, REPLACE])
def test_full_batches_fill_a_budget_to_the_last_one(neighboring):
    event = GaussianEvent(30.0, 5)
    rule, times = filled(event, epsilon=3.0, neighboring=neighboring)
    assert rule.composition == "gaussian" and rule.order is None
    assert epsilon_of(30.0, 5 * times, delta=DELTA, neighboring=neighboring) <= 3.0
    assert epsilon_of(30.0, 5 * (times + 1), delta=DELTA, neighboring=neighboring) > 3.0


@pytest.mark.parametrize(
    "event",
    [GaussianEvent(1.1, 20, 0.02), GaussianEvent(30.0, 5, noise="discrete"), GaussianEvent(3.0, 5, 0.3)],
)
@pytest.mark.untraced
def test_what_a_renyi_filter_admits_is_within_the_budget_and_near_it(event):
    rule, times = filled(event, epsilon=3.0)
    assert rule.composition == "renyi" and rule.order in ORDERS and times > 1
    # By the tightest accountant for mechanisms that are fixed in advance.
    accountant = pld_privacy_accountant.PLDAccountant(
        privacy_accountant.NeighboringRelation.ADD_OR_REMOVE_ONE
    )
    accountant.compose(theirs(event), times)
    assert 2.3 < accountant.get_epsilon(DELTA) <= 3.0


def test_the_order_is_the_one_at_which_the_first_event_fits_most_often():
    event = GaussianEvent(1.1, 20, 0.02)
    rule, times = filled(event, epsilon=3.0)
    often = rdp_limits(3.0, DELTA, ORDERS) / rdp_of_event(event, ORDERS, ADD)
    assert times == math.floor(often.max()) and ORDERS[often.argmax()] == rule.order


@pytest.mark.untraced
def test_a_first_event_may_be_paid_for_by_its_own_accountant_and_is_then_the_last():
    event = GaussianEvent(1.1, 300, 0.02)
    alone = epsilon_of_event(event, DELTA, ADD)
    assert alone < epsilon_of_rdp(rdp_of_event(event, ORDERS, ADD), DELTA, ORDERS)
    rule, times = filled(event, epsilon=alone)
    assert times == 1
    assert not rule.admits(rule.cost(event), GaussianEvent(1e6, 1))
    assert filled(event, epsilon=0.99 * alone)[1] == 0


def test_declared_compositions():
    full, sampled = GaussianEvent(30.0, 5), GaussianEvent(30.0, 5, 0.1)
    renyi, often = filled(full, epsilon=3.0, composition="renyi")
    assert renyi.composition == "renyi" and often < filled(full, epsilon=3.0)[1]
    # A sum of Gaussian-DP counts sampled batches in full.
    assert filled(sampled, epsilon=3.0, composition="gaussian")[1] == filled(full, epsilon=3.0)[1]
    assert filled(sampled, epsilon=3.0)[1] > 10 * often


def test_events_that_cost_nothing_are_refused():
    @dataclass(frozen=True)
    class Free:
        pass

    rdp_of_event.register(Free, lambda event, orders, neighboring: 0.0 * orders)
    rule = PrivacyFilter(1.0, DELTA, ADD, "renyi", 8.0)
    with pytest.raises(ValueError, match="not a positive one; check its numbers"):
        rule.cost(Free())
    assert rule.cost(GaussianEvent(1e6, 1, 1e-9)) > 0 and rule.cost(GaussianEvent(1e120, 1)) > 0


def test_limits_are_the_conversion_rounded_down_by_a_part_in_a_thousand_million():
    for epsilon in (0.01, 1.0, 50.0):
        orders = np.array([1.1, 2.0, 64.0, 1024.0])
        cost = np.log((orders - 1) / orders) - (np.log(DELTA) + np.log(orders)) / (orders - 1)
        limits = rdp_limits(epsilon, DELTA, orders)
        assert_relative((epsilon - cost) - limits, 1e-9 * np.abs(epsilon - cost), 1e-4)
        assert epsilon_of_rdp(cost[-1:] * 0 + 0.5, DELTA, orders[-1:]) == pytest.approx(0.5 + cost[-1])


def test_the_orders_are_those_of_every_ledger_so_far():
    """A ledger keeps divergences by their place; a change of an order would give them another meaning."""
    tenths, whole, rest = ORDERS[:99], ORDERS[99:153], ORDERS[153:]
    assert_relative(tenths, np.linspace(1.1, 10.9, 99), 1e-15)
    np.testing.assert_array_equal(whole, np.linspace(11, 64, 54))
    assert rest.tolist() == [72, 80, 96, 112, 128, 160, 192, 256, 384, 512, 768, 1024]
