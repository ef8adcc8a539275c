"""How many fits a budget covers: so many are really admitted, and one more is refused."""

import math

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from sklearn.datasets import load_iris

from skmixdp import MixedDPLogisticRegression
from skmixdp.algorithms.modelmix import ModelMixEvent
from skmixdp.exceptions import BudgetExceededError
from skmixdp.privacy import GaussianEvent, PrivacyFilter, PrivacyLedger, SelectionEvent, noise_multiplier_for
from tests.private_names import _SLACK

ADD, REPLACE = "add_or_remove_one", "replace_one"
FULL, SAMPLED = GaussianEvent(30.0, 5), GaussianEvent(3.0, 5, 0.05)
DISCRETE, MIXED = GaussianEvent(40.0, 5, noise="discrete"), ModelMixEvent(30.0, 5, width=90.0)
SELECTION = SelectionEvent(20.0, 4.0)
COARSE = GaussianEvent(noise_multiplier_for(1.0, 1e-5, n_steps=9, noise="discrete"), 9, noise="discrete")


def people(epsilon=3.0, **terms):
    return PrivacyLedger(":memory:").add_dataset("people", epsilon=epsilon, **({"delta": 1e-5} | terms))


def admitted(dataset, event, relation=ADD):
    """How many charges are admitted, by charging."""
    n = 0
    while True:
        try:
            dataset.charge(event, neighboring=relation)
        except BudgetExceededError:
            return n
        n += 1


#: Events with the relations under which accountants know them.
EVENTS = [
    *((event, ADD) for event in (FULL, SAMPLED, DISCRETE, MIXED, SELECTION)),
    *((event, REPLACE) for event in (FULL, SAMPLED, DISCRETE)),
]


@pytest.mark.parametrize("composition", ["gaussian", "renyi", None])
@pytest.mark.parametrize("earlier", [None, FULL, SAMPLED, DISCRETE])
@pytest.mark.parametrize(("event", "relation"), EVENTS)
@pytest.mark.untraced
def test_so_many_charges_are_admitted_and_one_more_is_refused(event, relation, earlier, composition):
    dataset = people(0.6, composition=composition, neighboring=relation)
    if earlier is not None:
        dataset.charge(earlier, neighboring=relation)
    left = dataset.fits_left(event=event)
    assert admitted(dataset, event, relation) == left
    assert dataset.fits_left(event=event) == 0


@pytest.mark.parametrize(
    ("epsilon", "delta"), [(1.0, None), (0.5, 1e-6), (0.2, 1e-4), (3.0, 1e-5), (4.0, None)]
)
@pytest.mark.parametrize("composition", ["gaussian", "renyi"])
@pytest.mark.untraced
def test_fits_of_a_budget(epsilon, delta, composition):
    dataset = people(composition=composition)
    left = dataset.fits_left(epsilon, delta=delta)
    multiplier = noise_multiplier_for(epsilon, delta or 1e-5, n_steps=40)
    assert admitted(dataset, GaussianEvent(multiplier, 40)) == left
    assert left == 0 or dataset.fits_left(epsilon, delta=delta) == 0


def test_estimators_can_be_fitted_so_often():
    X, y = load_iris(return_X_y=True)
    dataset = people(1.0)
    head = MixedDPLogisticRegression("noisy-gd", epsilon=0.4, classes=[0, 1, 2], ledger=dataset)
    left = dataset.fits_left(epsilon=0.4)
    assert 3 < left < 10
    for _ in range(left):
        head.fit(X, y)
    with pytest.raises(BudgetExceededError):
        head.fit(X, y)
    assert head.privacy_.dataset_spent == dataset.spent


def test_what_its_own_accountant_admits_fits_once():
    assert people(1.0, composition="gaussian").fits_left(event=COARSE) == 1
    assert people(0.99, composition="gaussian").fits_left(event=COARSE) == 0


def test_parts_of_a_budget_are_all_admitted():
    dataset = people(composition="gaussian")
    whole = noise_multiplier_for(3.0, 1e-5, n_steps=1)
    for parts in (1, 2, 3, 7, 1000, 100):
        part = GaussianEvent(whole * math.sqrt(parts), 1)
        assert dataset.fits_left(event=part) == parts
    assert admitted(dataset, part) == 100


def test_large_numbers_are_found_at_once():
    dataset = people()
    many = dataset.fits_left(event=GaussianEvent(1e6, 1))
    assert many == pytest.approx((1e6 / noise_multiplier_for(3.0, 1e-5, n_steps=1)) ** 2, rel=1e-3)
    assert people(1e3).fits_left(event=GaussianEvent(1e120, 1)) > 2**53
    assert people().fits_left(epsilon=1) == 7  # as the documentation says


@given(
    spent=st.one_of(st.just(0.0), st.floats(1e-3, 900.0)),
    cost=st.one_of(st.floats(0.5, 3.0), st.integers(1, 2**12).map(lambda m: 0.5 + m * 2.0**-44)),
    limit=st.one_of(st.floats(1.0, 1000.0), st.integers(1, 1000).map(float)),
)
@example(spent=511.0, cost=0.5 + 2.0**-45, limit=1000.0)  # half a unit in the last place: ties
@settings(max_examples=300, deadline=None)
def test_leaps_over_sums_take_the_steps_one_by_one(spent, cost, limit):
    class Rule(PrivacyFilter):
        limit, cost = None, None
        most = property(lambda self: self.limit * (1 + _SLACK))

    Rule.limit, Rule.cost = limit, lambda self, event: cost
    rule = Rule(1.0, 1e-5, ADD, "gaussian")
    n, total = 0, spent
    while total + cost <= rule.most:
        n, total = n + 1, np.nextafter(total + cost, np.inf)
    if n == 0 and spent == 0:
        return  # its own accountant would decide
    assert rule.repetitions(spent, GaussianEvent(1e-3, 1)) == n


@pytest.mark.parametrize(
    ("given", "error", "words"),
    [
        ({}, ValueError, "epsilon=None, delta=None and event=None do not describe one kind of fit"),
        ({"epsilon": 1.0, "event": FULL}, ValueError, "do not describe one kind of fit; pass epsilon"),
        ({"delta": 1e-5, "event": FULL}, ValueError, "do not describe one kind of fit"),
        ({"epsilon": 0}, ValueError, "epsilon=0 must be a positive finite number"),
        ({"epsilon": 1.0, "delta": 1}, ValueError, "delta=1 must be a number strictly between 0 and 1"),
        ({"event": "fit"}, TypeError, "no ledger can keep the event 'fit'"),
    ],
)
def test_bad_questions_are_refused(given, error, words):
    dataset = people()
    with pytest.raises(error, match=words):
        dataset.fits_left(**given)
    assert dataset.charges() == []
