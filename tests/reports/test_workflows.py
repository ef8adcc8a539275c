"""Workflows of several releases: charges are reserved together, and one that must fail spends nothing."""

import multiprocessing
import os
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.base import clone
from sklearn.compose import make_column_transformer
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV, KFold, cross_val_score
from sklearn.pipeline import make_pipeline

from skmixdp import MixedDPLogisticRegression, fit_many, private_pipeline
from skmixdp.exceptions import BudgetExceededError
from skmixdp.preprocessing import NoisyScaler
from skmixdp.privacy import GaussianEvent, PrivacyLedger
from skmixdp.privacy.accounting.composition import divergences_of
from skmixdp.privacy.accounting.gaussian import ORDERS
from tests.private_names import Account, charge_together, take_back

RNG = np.random.default_rng(0)
X = RNG.standard_normal((200, 3))
Y = (X[:, 0] > 0).astype(int)


def scaling(epsilon, patients):
    return NoisyScaler(epsilon=epsilon, bounds=(-4, 4), ledger=patients)


def spender(epsilon, patients, **more):
    return MixedDPLogisticRegression(epsilon=epsilon, classes=[0, 1], ledger=patients, **more)


def as_planned(first, patients, *terms, **more):
    """A scaler and a head in a pipeline that reserves both charges."""
    return private_pipeline(scaling(first, patients), spender(*terms, patients, **more)).fit(X, Y)


def step_by_step(*steps):
    return make_pipeline(*steps).fit(X, Y)


@pytest.fixture
def patients():
    return PrivacyLedger(":memory:").add_dataset("patients", epsilon=1.0, delta=1e-5)


BATCHES = {"batch_size": 50, "n_steps": 20}
WORKFLOWS = {
    "a scaler and a head": lambda to: as_planned(0.9, to, 0.9),
    "a scaler that fits, and a head": lambda to: as_planned(0.3, to, 0.99),
    "a head of noise and steps": lambda to: as_planned(0.9, to, None, noise_multiplier=4.0, n_steps=3),
    "a scaler and a head of batches": lambda to: as_planned(0.5, to, 0.9, **BATCHES),
    "a scaler and batches of noise": lambda to: as_planned(0.5, to, 0.9, batch_size=50, noise_multiplier=2.0),
    "a plain pipeline": lambda to: step_by_step(scaling(0.9, to), spender(0.9, to)),
    "a plain pipeline of three": lambda to: step_by_step(
        scaling(0.5, to), scaling(0.5, to), spender(0.8, to)
    ),
    "a plain pipeline of columns": lambda to: step_by_step(
        make_column_transformer((scaling(0.9, to), [0, 1])), spender(0.9, to)
    ),
    "a plain pipeline of batches": lambda to: step_by_step(scaling(0.5, to), spender(0.9, to, **BATCHES)),
    "a cross-validated pipeline": lambda to: cross_val_score(
        make_pipeline(scaling(0.9, to), spender(0.9, to)), *(X, Y), cv=2, error_score="raise"
    ),
    "three heads": lambda to: fit_many([spender(0.9, to) for _ in range(3)], X, Y),
}


@pytest.mark.parametrize("name", WORKFLOWS)
@pytest.mark.filterwarnings("ignore")
def test_a_workflow_that_must_fail_spends_nothing(name, patients):
    with pytest.raises(BudgetExceededError):
        WORKFLOWS[name](patients)
    assert patients.spent == 0 and not patients.charges()


@pytest.mark.filterwarnings("ignore")
def test_a_workflow_that_fits_is_fitted(patients):
    as_planned(0.5, patients, 0.5)
    assert len(patients.charges()) == 2
    assert [charge.outcome for charge in patients.charges()] == ["finished"] * 2
    assert patients.spent == pytest.approx(0.731, abs=0.01)  # that of both together


@pytest.mark.parametrize("epsilon", [0.5, 0.0999])
@pytest.mark.filterwarnings("ignore")
def test_a_plain_pipeline_that_fits_is_fitted_and_charged_step_by_step(epsilon, patients):
    scaler = scaling(epsilon, patients)
    search = GridSearchCV(spender(0.5, patients).set_params(ledger=None), {"l2": [0.0]}, cv=KFold(2))
    for number, last in enumerate((spender(epsilon, patients), clone(scaler), search, LogisticRegression())):
        make_pipeline(scaler, last).fit(X, Y)
        assert len(patients.charges()) == (2, 4, 5, 6)[number]
        if epsilon == 0.5:  # the budget is spent
            break


@pytest.mark.filterwarnings("ignore")
def test_steps_of_batches_replace_what_was_reserved_for_them():
    patients = PrivacyLedger(":memory:").add_dataset("patients", epsilon=8.0, delta=1e-5)
    for options in ({"n_steps": 20}, {"noise_multiplier": 2.0}, {}):
        as_planned(0.5, patients, 0.9, batch_size=50, **options)
        assert patients.charges()[-1].event.sampling_rate == 50 / len(X)
    fresh = PrivacyLedger(":memory:").add_dataset("patients", epsilon=8.0, delta=1e-5)
    for charge in patients.charges():
        assert charge.outcome == "finished"
        fresh.charge(charge.event, neighboring="add_or_remove_one")
    assert fresh.spent == pytest.approx(patients.spent, rel=1e-9)


@pytest.mark.parametrize("composition", ["gaussian", "renyi"])
@pytest.mark.filterwarnings("ignore")
def test_a_step_that_fails_before_its_release_gets_its_charge_back(composition):
    ledger = PrivacyLedger(":memory:")
    terms = {"epsilon": 1.0, "delta": 1e-5, "composition": composition}
    patients, alone = (ledger.add_dataset(name, **terms) for name in ("patients", "alone"))
    scaler = scaling(0.5, patients)
    with pytest.raises(ValueError, match="classes"):
        private_pipeline(scaler, spender(0.5, patients).set_params(classes=[7, 8])).fit(X, Y)
    outcomes = [charge.outcome for charge in patients.charges()]
    assert outcomes == ["taken back, since nothing was released", "finished"]
    assert "taken back" in ledger.report().to_html()
    clone(scaler).set_params(ledger=alone).fit(X)
    if composition == "gaussian":  # Renyi divergences of a single charge have a tighter accountant
        assert patients.spent == pytest.approx(alone.spent, rel=1e-9)
    assert patients.remaining == pytest.approx(alone.remaining, rel=1e-9)
    spender(patients.remaining * 0.999, patients).fit(X, Y)


@pytest.mark.filterwarnings("ignore")
def test_a_first_step_that_fails_spends_nothing(patients):
    scaler = NoisyScaler(epsilon=0.5, bounds=(4, -4), ledger=patients)
    with pytest.raises(ValueError, match="bounds"):
        private_pipeline(scaler, spender(0.5, patients)).fit(X, Y)
    assert patients.spent == 0 and patients.remaining == pytest.approx(1.0)


def spends_in_a_race(path, barrier, pipe):
    patients = PrivacyLedger(path)["patients"]
    scaler = scaling(0.6, patients)
    model = private_pipeline(scaler, spender(0.6, patients))
    barrier.wait(60)
    try:
        model.fit(X, Y)
    except BudgetExceededError:
        pipe.send(hasattr(scaler, "scale_"))
    else:
        pipe.send("fitted")


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
@pytest.mark.filterwarnings("ignore")
def test_of_two_processes_one_fits_all_steps_and_the_other_releases_nothing(tmp_path):
    """Each could charge one step of both, if the steps were charged one by one."""
    path = tmp_path / "ledger.sqlite"
    patients = PrivacyLedger(path).add_dataset("patients", epsilon=1.0, delta=1e-5)
    context = multiprocessing.get_context("fork")
    barrier, pipes = context.Barrier(2), []
    for _ in range(2):
        mine, theirs = context.Pipe()
        context.Process(target=spends_in_a_race, args=(path, barrier, theirs), daemon=True).start()
        pipes.append(mine)
    assert all(pipe.poll(120) for pipe in pipes)
    assert {pipe.recv() for pipe in pipes} == {"fitted", False}
    assert [charge.outcome for charge in patients.charges()] == ["finished"] * 2


@pytest.mark.filterwarnings("ignore")
def test_what_is_reserved_is_not_used_twice():
    """A charge in use is not taken back, and one that was taken back counts for no step."""
    patients = PrivacyLedger(":memory:").add_dataset("patients", epsilon=3.0, delta=1e-5)
    event = GaussianEvent(5.0, 1)
    terms = {"event": event, "neighboring": "add_or_remove_one"}
    (first,) = charge_together([(patients, terms)], "reserved")
    (used,) = charge_together([(patients, terms | {"reserved": first})])
    spent = patients.spent
    take_back(patients, used)
    take_back(patients, first)
    assert patients.spent == spent
    (again,) = charge_together([(patients, terms | {"reserved": first})])
    assert again.id != used.id and patients.spent > 1.2 * spent


@given(
    events=st.lists(st.tuples(st.floats(0.5, 1e6), st.sampled_from([1.0, 0.1])), min_size=1, max_size=6),
    composition=st.sampled_from(["gaussian", "renyi"]),
    data=st.data(),
)
@settings(max_examples=30, deadline=None)
def test_sums_without_a_charge_are_never_below_those_of_the_others(events, composition, data):
    account = others = Account("a", 1e4, 1e-5, composition=composition)
    taken = data.draw(st.integers(0, len(events) - 1))
    order = None
    for number, (multiplier, rate) in enumerate(events):
        event = GaussianEvent(multiplier, 1, rate)
        account = account.after(event, "add_or_remove_one")
        order = order or account.order
        if number == taken:
            out = event
        elif others.total == 0 and composition == "renyi":
            # The order that the first charge of all decided.
            total = float(divergences_of(event, "add_or_remove_one")[order == ORDERS][0])
            others = replace(others.after(event, "add_or_remove_one"), order=order, total=total)
        else:
            others = others.after(event, "add_or_remove_one")
    less = account.without(out)
    assert others.total <= less.total <= others.total + 1e-12 * account.total
    assert all(np.array(less.divergences) >= np.array(others.divergences or [0.0] * len(less.divergences)))
    assert less.order == account.order and less.composition == account.composition
