"""Guarantees for rows and for persons: the words of a report, and the unit of a ledger's data set."""

import pytest

from skmixdp.privacy import GaussianEvent, PrivacyLedger, PrivacyReport
from skmixdp.privacy.report import counted, relation_words

EVENT = GaussianEvent(20, 100)
RELATIONS = ("add_or_remove_one", "zero_out", "replace_one")


@pytest.mark.parametrize("relation", RELATIONS)
def test_neighbours_are_those_of_the_unit(relation):
    assert relation_words(relation).startswith("one private row")
    assert relation_words(relation, "person").startswith("all rows of one person ")
    assert relation_words(relation, "patient").startswith("all rows of one person (column 'patient') ")


def test_a_report_counts_its_unit():
    terms = {"epsilon": 1.0, "delta": 1e-5, "mu": 0.3, "noise_multiplier": 3.0, "n_steps": 1}
    terms |= {"sampling_rate": 1.0, "neighboring": "add_or_remove_one", "accountant": "exact"}
    terms |= {
        "n_private": 70,
        "n_public": 5,
        "treated_as_public": (),
        "noise": "cryptographic",
        "warnings": (),
    }
    assert "70 private, 5 public" in str(PrivacyReport(**terms))
    text = str(PrivacyReport(**terms, unit="patient"))
    assert "70 persons (column 'patient')" in text and "rows          " not in text
    assert counted(7, "row") == "7 rows" and counted(7, "person") == "7 persons"


@pytest.mark.parametrize(("unit", "asked"), [("row", "patient"), ("patient", "row"), ("patient", "person")])
def test_a_charge_in_another_unit_is_refused(unit, asked):
    dataset = PrivacyLedger(":memory:").add_dataset("data", epsilon=3.0, delta=1e-5, unit=unit)
    with pytest.raises(ValueError, match=f"unit='{asked}' is not what dataset='data' protects") as refusal:
        dataset.charge(EVENT, neighboring="zero_out", unit=asked)
    assert dataset.spent == 0 and f"unit='{asked}'" in str(refusal.value)
    dataset.charge(EVENT, neighboring="zero_out", unit=unit)
    assert dataset.spent > 0
