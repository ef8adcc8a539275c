"""Guarantees for rows and for persons: the words of a report, and the unit of a ledger's data set."""

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

from skmixdp.privacy import GaussianEvent, PrivacyLedger
from skmixdp.privacy.report import counted, relation_words
from skmixdp.privacy.units import unit_of, units_of
from tests.unit.privacy.test_report import REPORT

EVENT = GaussianEvent(20, 100)
RELATIONS = ("add_or_remove_one", "zero_out", "replace_one")


@pytest.mark.parametrize("relation", RELATIONS)
def test_neighbours_are_those_of_the_unit(relation):
    assert relation_words(relation).startswith("one private row")
    assert relation_words(relation, "person").startswith("all rows of one person ")
    assert relation_words(relation, "patient").startswith("all rows of one person (column 'patient') ")


def test_a_report_counts_its_unit():
    rows = replace(REPORT, n_private=70, n_public=5)
    assert "70 private, 5 public" in str(rows)
    text = str(replace(rows, unit="patient"))
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


def test_rows_are_units_without_ids():
    units = units_of(None, 7, "discrete")
    assert (units.codes, units.n_units, units.unit, units.plural) == (None, 7, "row", "private rows")


@pytest.mark.parametrize(
    "groups",
    [
        [3, 1, 3, 2],
        ["c", "a", "c", "b"],
        np.array([3.0, 1.0, 3.0, 2.0]),
        pd.Categorical(["c", "a", "c", "b"]),
    ],
    ids=lambda groups: type(groups[0]).__name__,
)
def test_persons_are_numbered_in_the_order_of_their_ids(groups):
    units = units_of(groups, 4, "float")
    assert units.codes.tolist() == [2, 0, 2, 1] and units.n_units == 3
    assert (units.unit, units.plural) == ("person", "persons")
    members = np.array([True, False, True, True])
    assert units_of(groups, 4, "float", members).codes.tolist() == [1, -1, 1, 0]


@pytest.mark.parametrize(
    ("groups", "match"),
    [
        ([1, 2, 3], r"shape \(3,\) and X 4 rows"),
        ([[1], [2], [3], [4]], r"shape \(4, 1\)"),
        ([1, 2, None, 3], "missing ids"),
        (pd.Series([1, 2, None, 3], dtype="Int64"), "missing ids"),
        (np.array(["a", None, "b", "c"], dtype=object), "missing ids"),
        (["a", float("nan"), "b", "c"], "missing ids"),
        (5, "one id for each row"),
        (np.array([True, False, True, False]), "bools"),
        ([1.0, np.inf, 2.0, 3.0], "missing ids"),
        (np.array([2.0**53, 1, 2, 0.5]), "so large that different ids are equal"),
        (np.ma.masked_array([1, 2, 3, 4], mask=[0, 0, 1, 0]), "missing ids"),
        ([True, False, True, False], "bools"),
        ([1, "1", 2, 3], "ids of one type"),
        ([("a",), {}, ("b",), {}], "ids of one type"),
        ([{}, {}, {}, {}], "ids of one type"),
        ([5, 5, 5, 5], r"1 person\(s\)"),
    ],
)
def test_bad_ids_are_refused(groups, match):
    with pytest.raises(ValueError, match=match):
        units_of(groups, 4, "float")


def test_discrete_noise_has_no_persons():
    with pytest.raises(ValueError, match="needs exact sums"):
        units_of([1, 2, 3, 4], 4, "discrete")


def test_the_unit_is_named_after_the_column():
    assert unit_of(None) == "row" and unit_of([1]) == "person"
    assert unit_of(pd.Series([1], name="patient")) == "patient"
    assert unit_of(pd.Series([1], name="row")) == unit_of(pd.Series([1])) == "person"


def test_unconvertible_ids_are_refused_without_quoting_them():
    class Secret:
        def __array__(self, dtype=None, copy=None):
            raise TypeError("Smith")

    with pytest.raises(ValueError, match="flat array of ids that can be read") as refusal:
        units_of(Secret(), 4, "float")
    assert "Smith" not in str(refusal.value)


@pytest.mark.parametrize("word", ["NA", "N/A", "NaN", " NA "])
def test_words_for_missing_cells_are_no_ids(word):
    with pytest.raises(ValueError, match="groups"):
        units_of(["Smith", word, "Jones", word], 4, "float")


def test_ids_that_cannot_be_ordered_are_refused():
    class Unordered:
        __hash__ = None

    with pytest.raises(ValueError, match="ids of one type") as refusal:
        units_of(np.array([Unordered() for _ in range(4)], dtype=object), 4, "float")
    assert refusal.value.__cause__ is None
