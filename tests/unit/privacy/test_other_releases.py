"""Releases of other tools in a ledger: a reserved part of the budget, in which epsilons and deltas add up."""

import math
from dataclasses import replace

import dp_accounting
import pytest

from skmixdp.exceptions import BudgetExceededError
from skmixdp.privacy import (
    GaussianEvent,
    LedgerDataset,
    OtherRelease,
    PrivacyLedger,
    event_from_json,
    event_to_json,
    noise_multiplier_for,
)
from skmixdp.privacy.report import attack_success
from tests.private_names import Account, charge_together

ADD = {"neighboring": "add_or_remove_one"}
FIT = GaussianEvent(20, 100)


def people(others=(0.5, 1e-6), **options):
    ledger = PrivacyLedger(":memory:")
    return ledger.add_dataset("people", epsilon=3.0, delta=1e-5, others=others, **options)


def test_a_release_without_a_guarantee_marks_the_data_set():
    """Whatever is charged before and after it."""
    charges = [(OtherRelease(0.1), True), (OtherRelease(0.1), False), (FIT, True), (OtherRelease(0.1), True)]
    reserved, private = people(), []
    for event, is_private in charges:
        reserved.charge(event, **ADD, private=is_private)
        private.append(reserved.account.private)
    assert private == [True, False, False, False] and reserved.account.attack_success == 1.0


def test_the_rest_of_the_budget_is_that_of_a_smaller_one():
    smaller = PrivacyLedger(":memory:").add_dataset("people", epsilon=2.5, delta=9e-6)
    reserved = people()
    for release in (OtherRelease(0.2), OtherRelease(0.1, 1e-7)):
        reserved.charge(release, **ADD)
    assert reserved.fits_left(epsilon=0.5, delta=1e-6) == smaller.fits_left(epsilon=0.5, delta=1e-6)
    for dataset in (reserved, smaller):
        dataset.charge(FIT, **ADD)
    assert reserved.spent == pytest.approx(smaller.spent + 0.3)
    assert reserved.account.total == smaller.account.total
    for dataset in (reserved, smaller):
        for _ in range(dataset.fits_left(event=FIT)):
            dataset.charge(FIT, **ADD)
        with pytest.raises(BudgetExceededError):
            dataset.charge(FIT, **ADD)
    assert reserved.spent <= 3.0


@pytest.mark.parametrize(
    ("release", "fits"),
    [
        *((OtherRelease(0.1), 5), (OtherRelease(0.5), 1), (OtherRelease(0.1, 2.5e-7), 4)),
        *((OtherRelease(0.51), 0), (OtherRelease(1e-3, 2e-6), 0)),
    ],
)
def test_epsilons_and_deltas_add_up(release, fits):
    dataset = people()
    assert dataset.fits_left(event=release) == fits
    for _ in range(fits):
        dataset.charge(release, **ADD)
    with pytest.raises(BudgetExceededError, match="reserves") as refused:
        dataset.charge(release, **ADD)
    assert "add_dataset(..., others=" in str(refused.value)
    assert len(dataset.charges()) == fits and dataset.spent == pytest.approx(fits * release.epsilon)


def test_a_tiny_release_is_charged():
    dataset, tiny = people(), OtherRelease(5e-324)
    assert dataset.fits_left(event=tiny) == 2**53
    dataset.charge(tiny, **ADD)
    assert len(dataset.charges()) == 1


def test_without_a_reserved_part_they_are_refused():
    dataset = people(others=None)
    with pytest.raises(BudgetExceededError, match="others="):
        dataset.charge(OtherRelease(1e-9), **ADD)
    assert dataset.fits_left(event=OtherRelease(1e-9)) == 0


@pytest.mark.parametrize("composition", [None, "gaussian", "renyi"])
def test_any_order_of_charges_gives_the_same_account(composition):
    accounts = []
    for order in ((FIT, OtherRelease(0.25)), (OtherRelease(0.25), FIT)):
        dataset = people(composition=composition)
        for event in order:
            dataset.charge(event, **ADD)
        accounts.append(dataset.account)
    assert accounts[0] == accounts[1]
    events = {FIT: 1, OtherRelease(0.25): 1}
    assert accounts[0].agrees_with(events)
    if composition != "renyi":
        assert not replace(accounts[0], total=0.0, order=None).agrees_with(events)


def test_a_pure_release_first_leaves_the_composition_open():
    dataset = people()
    dataset.charge(OtherRelease(0.1), **ADD)
    assert dataset.account.composition is None
    dataset.charge(GaussianEvent(2.0, 10, 0.01), **ADD)
    assert dataset.account.composition == "renyi"


def test_the_relation_and_the_unit_hold_for_them():
    dataset = people(unit="patient")
    with pytest.raises(ValueError, match="unit='row'"):
        dataset.charge(OtherRelease(0.1), **ADD)
    dataset.charge(OtherRelease(0.1), **ADD, unit="patient")
    with pytest.raises(ValueError, match="neighboring='replace_one'"):
        dataset.charge(OtherRelease(0.1), neighboring="replace_one", unit="patient")


def test_it_survives_the_file_and_reports(tmp_path):
    ledger = PrivacyLedger(tmp_path / "ledger.sqlite")
    ledger.add_dataset("people", epsilon=3.0, delta=1e-5, others=(0.5, 1e-6))
    ledger["people"].charge(OtherRelease(0.2), **ADD, description="mean age, by OpenDP")
    again = PrivacyLedger(tmp_path / "ledger.sqlite")["people"]
    assert again.charges()[0].event == OtherRelease(0.2) and again.spent == pytest.approx(0.2)
    report = again.report()
    assert "others epsilon 0.2 of 0.5" in str(report) and "for other tools" in report.to_html()
    assert report.to_dict()["datasets"][0]["others_epsilon"] == 0.5
    with pytest.raises(ValueError, match=r"others_epsilon=0\.4"):
        ledger.add_dataset("people", epsilon=3.0, delta=1e-5, others=(0.4, 1e-6))


def test_the_success_of_an_attack_is_that_of_the_whole_budget():
    dataset = people()
    dataset.charge(FIT, **ADD)
    assert dataset.account.attack_success == attack_success(3.0, 1e-5)


def test_events_of_dp_accounting():
    """Laplace noise of scale 10 sensitivities has epsilon 0.1, and a bit less at delta 1e-7."""
    release = OtherRelease.of(dp_accounting.LaplaceDpEvent(10.0), delta=1e-7)
    assert 0.0999 < release.epsilon < 0.1001 and release.delta == 1e-7
    assert event_from_json(event_to_json(release)) == release
    with pytest.raises(ValueError, match="no finite epsilon"):
        OtherRelease.of(dp_accounting.NonPrivateDpEvent(), delta=1e-7)


@pytest.mark.parametrize(
    "others", [(0, 0), (3.0, 0), (0.5, 1e-5), (0.5, -1e-9), 0.5, ("a", 0), (float("nan"), 0)]
)
def test_parts_that_are_no_part_are_refused(others):
    with pytest.raises(ValueError, match="others="):
        people(others=others)


@pytest.mark.parametrize(
    "values", [(0, 0), (-1, 0), (float("inf"), 0), (1, 1), (1, -1e-9), (True, 0), ("1", 0)]
)
def test_releases_outside_their_range_are_refused(values):
    with pytest.raises(ValueError, match=r"(epsilon|delta)="):
        OtherRelease(*values)


def test_an_account_with_no_part_left_for_fits_is_refused():
    with pytest.raises(ValueError, match="smaller than the budget"):
        Account("people", 1.0, 1e-5, others_epsilon=1.0)


def test_one_reserved_charge_that_another_overtakes_is_refused_by_itself(monkeypatch):
    """Its budget was there when it was checked, and is spent when it is charged."""
    dataset, prepare = people(), LedgerDataset._charging

    def overtaken(self, *arguments, **terms):
        work = prepare(self, *arguments, **terms)
        monkeypatch.undo()
        self.charge(whole, **ADD)
        return work

    whole = GaussianEvent(noise_multiplier_for(2.5, 9e-6, n_steps=1), 1)
    monkeypatch.setattr(LedgerDataset, "_charging", overtaken)
    with pytest.raises(BudgetExceededError) as refused:
        charge_together([(dataset, {"event": FIT, **ADD})], outcome="reserved")
    assert "together" not in str(refused.value) and len(dataset.charges()) == 1


def test_an_account_without_room_stays_as_it_is():
    full = Account(
        "people", 1.0, 1e-5, "add_or_remove_one", "gaussian", total=math.inf, spent=math.inf, n_charges=1
    )
    assert full.without(FIT) is full
