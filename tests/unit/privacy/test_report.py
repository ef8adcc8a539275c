import dataclasses
import json

import pytest

from skmixdp.privacy import PrivacyReport
from skmixdp.privacy.report import Document

REPORT = PrivacyReport(
    epsilon=1.0,
    delta=1e-5,
    mu=0.268051,
    noise_multiplier=20.0,
    n_steps=40,
    sampling_rate=1.0,
    neighboring="add_or_remove_one",
    accountant="exact Gaussian (closed form)",
    n_private=1347,
    n_public=50,
    treated_as_public=("the number of private rows", "the classes <declared>"),
    noise="cryptographic",
    warnings=("sums are floating-point numbers",),
)


def test_a_report_cannot_be_changed():
    with pytest.raises(dataclasses.FrozenInstanceError):
        REPORT.epsilon = 0.5


def test_text_states_the_guarantee_and_its_terms():
    text = str(REPORT)
    for words in (
        *("(1, 1e-05)-differential privacy", "added or removed", "1347 private, 50 public"),
        *("the number of private rows", "full batch", "closed form", "floating-point"),
    ):
        assert words in text
    assert "NOT PRIVATE" not in text
    long = dataclasses.replace(REPORT, warnings=("word " * 99, "a" * 150), leaks=("b " * 99,))
    *lines, last = str(long).splitlines()[3:]
    assert all(len(line) <= 97 for line in lines) and last.endswith(" " + "a" * 150)
    assert {line[:19] for line in lines if "word word" in line} == {"  warning".ljust(19), " " * 19}


def test_another_device_is_named():
    assert "computed on" not in str(REPORT)
    there = dataclasses.replace(REPORT, computed_on="cuda:1")
    assert "cuda:1; the noise is added on the processor" in str(there)


def test_what_the_budget_was_spent_on_is_listed():
    assert "budget spent on" not in str(REPORT)
    divided = dataclasses.replace(REPORT, shares=(("mean", 0.02), ("training", 0.98)))
    assert "budget spent on" in str(divided) and "2.0% mean, 98.0% training" in str(divided)


def test_html_is_escaped():
    page = REPORT._repr_html_()
    assert page.startswith("<table>")
    assert "&lt;declared&gt;" in page
    assert "<declared>" not in page


def test_json_round_trip():
    fields = json.loads(REPORT.to_json())
    assert fields == REPORT.to_dict()
    assert fields["private"] is True
    assert fields["treated_as_public"] == list(REPORT.treated_as_public)


def test_a_seeded_run_is_reported_as_not_private():
    seeded = dataclasses.replace(REPORT, noise="seeded")
    assert not seeded.private
    assert "NOT PRIVATE" in str(seeded)
    assert "NOT PRIVATE" in seeded._repr_html_()


def test_a_known_leak_comes_first_and_no_document_is_private():
    leaks = ("a scaler reads <all> rows", "classes come from labels", "a scaler reads <all> rows")
    leaky = dataclasses.replace(REPORT, leaks=leaks)
    first = "NO GUARANTEE: a scaler reads <all> rows; and classes come from labels"
    assert str(leaky).splitlines()[0] == leaky.no_guarantee == leaky.to_dict()["no_guarantee"] == first
    assert not leaky.private and leaky.to_dict()["private"] is False
    assert "a scaler reads &lt;all&gt; rows" in leaky._repr_html_()
    assert REPORT.no_guarantee == "" and REPORT.private


def test_a_document_without_noise_of_its_own_names_its_leaks():
    @dataclasses.dataclass(frozen=True)
    class Short(Document):
        title = "Short"
        leaks: tuple[str, ...] = ()

        def _rows(self):
            return [("rows", "3")]

    assert str(Short()) == "Short\n  rows  3" and Short().private
    assert str(Short(("one", "two"))) == "NO GUARANTEE: one; and two\nShort\n  rows  3"


def test_other_terms_are_put_in_words():
    other = dataclasses.replace(REPORT, mu=None, sampling_rate=0.1, neighboring="replace_one")
    text = str(other)
    assert "not exact" in text
    assert "0.1" in text
    assert "replaced" in text


def test_both_epsilons_are_shown_where_they_differ():
    assert "without amplification" not in str(REPORT)
    both = dataclasses.replace(REPORT, epsilon_unamplified=1.25)
    assert "(1.25, 1e-05)" in str(both)
    assert both.to_dict()["epsilon_unamplified"] == 1.25


def test_a_fit_that_a_ledger_paid_for_says_what_is_spent():
    paid = dataclasses.replace(
        REPORT, dataset="patients", dataset_epsilon=3.0, dataset_delta=1e-6, dataset_spent=2.5
    )
    assert "patients: epsilon 2.5 of (3, 1e-06) is spent" in str(paid)
    assert "patients" not in str(REPORT) and REPORT.to_dict()["dataset"] is None


def test_the_ledger_comes_before_the_warnings_which_come_last():
    charged = dataclasses.replace(
        REPORT,
        warnings=("one", "two"),
        dataset="patients",
        dataset_epsilon=3.0,
        dataset_delta=1e-6,
        dataset_spent=1.25,
        epsilon_unamplified=2.0,
        computed_on="cuda:1",
    )
    names = [line.split("  ")[1].strip() for line in str(charged).splitlines()[1:]]
    assert names[:3] == ["guarantee", "without amplification", "neighbours"]
    assert names[-4:] == ["computed on", "ledger", "warning", "warning"]
    assert "patients: epsilon 1.25 of (3, 1e-06) is spent" in str(charged)
