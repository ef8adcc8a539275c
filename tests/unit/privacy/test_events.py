"""The three functions of the public interface, and what they refuse."""

import math
from functools import partial
from itertools import product

import numpy as np
import pytest
from dp_accounting import dp_event, privacy_accountant
from dp_accounting.pld import pld_privacy_accountant

from skmixdp.algorithms.modelmix import ModelMixEvent
from skmixdp.privacy import (
    GaussianEvent,
    epsilon_of,
    epsilon_of_event,
    mu_of_budget,
    noise_multiplier_for,
    rdp_of_event,
    steps_for,
)
from skmixdp.privacy.accounting.budgets import Budget
from skmixdp.privacy.accounting.events import accountant_name
from skmixdp.privacy.accounting.gaussian import ORDERS
from tests.private_names import Transaction


def test_published_values():
    assert epsilon_of(20, 240, delta=1e-5) == pytest.approx(3.26454999, abs=1e-8)
    assert steps_for(3, 1e-5, noise_multiplier=20) == 206
    assert mu_of_budget(1, 1e-5) == pytest.approx(0.26805, abs=1e-5)


@pytest.mark.parametrize("neighboring", ["add_or_remove_one", "replace_one"])
@pytest.mark.parametrize("noise", ["float", "discrete"])
def test_any_two_determine_the_third(neighboring, noise):
    terms = {"neighboring": neighboring, "noise": noise}
    for epsilon, delta, n_steps in product((1e-3, 0.1, 1, 3, 100), (1e-12, 1e-5, 0.1), (1, 50, 10_000)):
        sigma = noise_multiplier_for(epsilon, delta, n_steps=n_steps, **terms)
        spent = epsilon_of(sigma, n_steps, delta=delta, **terms)
        assert spent <= epsilon
        assert spent == pytest.approx(epsilon, rel=1e-6)
        assert steps_for(epsilon, delta, noise_multiplier=sigma, **terms) == n_steps
        assert steps_for(spent, delta, noise_multiplier=sigma, **terms) == n_steps


def test_replacing_a_row_costs_twice_the_sensitivity():
    assert epsilon_of(20, 100, delta=1e-5, neighboring="replace_one") == pytest.approx(
        epsilon_of(10, 100, delta=1e-5)
    )


def test_discrete_noise_costs_a_little_more_and_never_less():
    for sigma, n_steps in [(20, 240), (5, 1), (0.5, 1)]:
        exact = epsilon_of(sigma, n_steps, delta=1e-5)
        assert exact < epsilon_of(sigma, n_steps, delta=1e-5, noise="discrete") < 1.25 * exact


def test_discrete_epsilon_is_that_of_the_renyi_orders():
    # At any order, rho-zCDP gives this epsilon; the library's is their minimum.
    rho, delta = 100 / (2 * 20**2), 1e-5
    orders = np.linspace(1.01, 200, 200_001)
    each = rho * orders + np.log1p(-1 / orders) - (np.log(delta) + np.log(orders)) / (orders - 1)
    assert epsilon_of(20, 100, delta=delta, noise="discrete") == pytest.approx(each.min(), rel=1e-6)


@pytest.mark.parametrize(
    ("neighboring", "relation"),
    [
        ("add_or_remove_one", privacy_accountant.NeighboringRelation.ADD_OR_REMOVE_ONE),
        ("replace_one", privacy_accountant.NeighboringRelation.REPLACE_ONE),
    ],
)
@pytest.mark.untraced
def test_sampled_epsilon_is_dp_accountings(neighboring, relation):
    accountant = pld_privacy_accountant.PLDAccountant(relation)
    step = dp_event.PoissonSampledDpEvent(0.05, dp_event.GaussianDpEvent(2.0))
    accountant.compose(step, 100)
    found = epsilon_of(2.0, 100, delta=1e-5, sampling_rate=0.05, neighboring=neighboring)
    # Its default discretisation; ours stops where a finer one gains less than this.
    assert found == pytest.approx(accountant.get_epsilon(1e-5), rel=3e-4)


@pytest.mark.parametrize(
    ("epsilon", "rate", "n_steps"),
    [
        (2, 0.05, 100),
        # Little noise, at which the discretisations end before epsilon settles.
        pytest.param(0.3, 0.001, 2000, marks=pytest.mark.slow),
        # Steps so small that a coarse discretisation sees nothing else.
        pytest.param(0.1, 0.2, 10_000, marks=pytest.mark.slow),
        (8, 0.5, 10),
        # A start that the coarse discretisation finds too small is raised.
        (0.1, 0.9, 10_000),
    ],
)
@pytest.mark.untraced
def test_sampled_calibration_stays_within_the_budget_and_close_to_it(epsilon, rate, n_steps):
    sigma = noise_multiplier_for(epsilon, 1e-5, n_steps=n_steps, sampling_rate=rate)
    spent = epsilon_of(sigma, n_steps, delta=1e-5, sampling_rate=rate)
    assert epsilon * 0.9989 < spent <= epsilon
    assert sigma < noise_multiplier_for(epsilon, 1e-5, n_steps=n_steps)
    if n_steps == 10:
        assert steps_for(epsilon, 1e-5, noise_multiplier=sigma, sampling_rate=rate) == n_steps


@pytest.mark.parametrize(
    ("change", "name"),
    [
        ({"noise_multiplier": 0}, "noise_multiplier"),
        ({"n_steps": 1.5}, "n_steps"),
        ({"sampling_rate": 1.1}, "sampling_rate"),
        *(({"delta": delta}, "delta") for delta in (0, 1, math.nan)),
        ({"neighboring": "swap"}, "neighboring"),
        ({"noise": "loud"}, "noise"),
    ],
)
def test_bad_input_is_named(change, name):
    """The fields of events, each with every kind of wrong value, are those of ``test_event_fields.py``."""
    good = {"noise_multiplier": 20, "n_steps": 100, "delta": 1e-5}
    with pytest.raises(ValueError, match=rf"^{name}="):
        epsilon_of(**{**good, **change})


@pytest.mark.parametrize("epsilon", [0, -1, math.nan, math.inf, None])
def test_epsilon_must_be_positive(epsilon):
    for call in (
        lambda: noise_multiplier_for(epsilon, 1e-5, n_steps=10),
        lambda: steps_for(epsilon, 1e-5, noise_multiplier=20),
        lambda: mu_of_budget(epsilon, 1e-5),
    ):
        with pytest.raises(ValueError, match=r"^epsilon="):
            call()


def test_unknown_events_are_refused():
    with pytest.raises(TypeError, match="no accountant knows the event"):
        epsilon_of_event(object(), 1e-5, "add_or_remove_one")


def test_no_event_has_discrete_noise_on_sampled_batches():
    for kind in (GaussianEvent, partial(ModelMixEvent, width=9.0)):
        with pytest.raises(ValueError, match=r"^sampling_rate=0\.5 cannot .* noise='discrete'; use the full"):
            kind(1.0, 1, 0.5, "discrete")


@pytest.mark.parametrize("rate", [1.0, 0.1])
@pytest.mark.untraced
def test_zeroing_out_has_the_numbers_of_adding_or_removing(rate):
    added, zeroed = (
        (
            epsilon_of(3.0, 5, delta=1e-5, sampling_rate=rate, neighboring=relation),
            noise_multiplier_for(1.0, 1e-5, n_steps=5, sampling_rate=rate, neighboring=relation),
            rdp_of_event(GaussianEvent(3.0, 5, rate), ORDERS, relation).tolist(),
        )
        for relation in ("add_or_remove_one", "zero_out")
    )
    assert added == zeroed


def test_the_accountant_is_named():
    assert "exact" in accountant_name(GaussianEvent(1.0, 1))
    assert "dp-accounting" in accountant_name(GaussianEvent(1.0, 1, 0.5))
    assert "zero-concentrated" in accountant_name(GaussianEvent(1.0, 1, 1.0, "discrete"))


def test_mu_is_stated_only_where_it_is_exact():
    assert GaussianEvent(20, 100).mu("add_or_remove_one") == pytest.approx(0.5)
    assert GaussianEvent(20, 100).mu("replace_one") == pytest.approx(1.0)
    assert GaussianEvent(20, 100, 0.1).mu("add_or_remove_one") is None
    assert GaussianEvent(20, 100, 1.0, "discrete").mu("add_or_remove_one") is None


@pytest.mark.parametrize(
    "terms",
    [
        {},
        {"neighboring": "replace_one"},
        {"noise": "discrete"},
        pytest.param({"sampling_rate": 0.05}, marks=pytest.mark.untraced),
        pytest.param({"family": partial(ModelMixEvent, width=9.0)}, marks=pytest.mark.untraced),
    ],
    ids=["full batch", "replace_one", "discrete", "sampled", "mixed"],
)
def test_the_multiplier_that_is_named_is_enough_and_not_far_too_much(terms):
    with pytest.raises(ValueError, match="is too small for one step") as caught:
        steps_for(0.1, 1e-5, noise_multiplier=0.3, **terms)
    named = float(str(caught.value).split(">= ")[1].split(" ")[0])
    exact = noise_multiplier_for(0.1, 1e-5, n_steps=1, **terms)
    assert exact <= named <= exact + 1e-3 + 1e-12
    assert steps_for(0.1, 1e-5, noise_multiplier=named, **terms) >= 1


def test_defaults_are_full_batches_of_continuous_noise_and_rows_that_come_or_go():
    named = {"sampling_rate": 1.0, "neighboring": "add_or_remove_one", "noise": "float"}
    assert epsilon_of(5.0, 20, delta=1e-5) == epsilon_of(5.0, 20, delta=1e-5, **named)
    assert noise_multiplier_for(1.0, 1e-5, n_steps=9) == noise_multiplier_for(1.0, 1e-5, n_steps=9, **named)
    assert steps_for(1.0, 1e-5, noise_multiplier=20) == steps_for(1.0, 1e-5, noise_multiplier=20, **named)
    del named["sampling_rate"]
    assert mu_of_budget(1.0, 1e-5) == mu_of_budget(1.0, 1e-5, **named)


@pytest.mark.parametrize(
    ("terms", "match"),
    [
        ({"delta": 0.0}, "delta=0.0"),
        ({"neighboring": "swap"}, "neighboring='swap'"),
        ({"noise": "loud"}, "noise='loud'"),
    ],
)
def test_the_terms_of_a_budget_are_checked(terms, match):
    with pytest.raises(ValueError, match=match.replace(".", r"\.")):
        mu_of_budget(**{"epsilon": 1.0, "delta": 1e-5, **terms})


@pytest.mark.parametrize(
    ("epsilon", "n_steps", "noise_multiplier", "match"),
    [
        (1.0, 5, 20.0, "cannot all be given"),
        (None, 5, None, "epsilon=None needs both"),
        (None, None, 20.0, "epsilon=None needs both"),
    ],
)
def test_a_budget_is_two_of_three_terms(epsilon, n_steps, noise_multiplier, match):
    with pytest.raises(ValueError, match=match):
        Budget(epsilon, 1e-5, n_steps, noise_multiplier, "zero_out", "float")


@pytest.mark.parametrize("terms", [(0.0, None, None), (None, 0, 1.0), (None, 5, -1.0), (None, 5, math.inf)])
def test_each_term_of_a_budget_is_checked(terms):
    epsilon, n_steps, noise_multiplier = terms
    with pytest.raises(ValueError, match="must be"):
        Budget(epsilon, 1e-5, n_steps, noise_multiplier, "zero_out", "float")
    if n_steps == 0:
        with pytest.raises(ValueError, match="n_steps=0 must be"):
            noise_multiplier_for(1.0, 1e-5, n_steps=n_steps)


@pytest.mark.parametrize("terms", [(1.0, None, None), (None, 5, 20.0)])
def test_the_event_of_a_whole_budget_has_its_noise(terms):
    epsilon, n_steps, noise_multiplier = terms
    assert Budget(epsilon, 1e-5, n_steps, noise_multiplier, "zero_out", "discrete").whole.noise == "discrete"


def test_the_budget_of_a_sum_is_an_epsilon():
    terms = {"delta": 1e-5, "neighboring": "zero_out", "noise": "float", "random_state": None, "ledger": None}
    with pytest.raises(ValueError, match="epsilon=None does not determine the noise"):
        Transaction.of_release("test", epsilon=None, **terms)
    event = Transaction.of_release("test", epsilon=1.0, **terms).budget.whole
    assert epsilon_of_event(event, 1e-5, "zero_out") == pytest.approx(1.0, rel=1e-6)
