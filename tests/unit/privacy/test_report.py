import dataclasses
import json

import pytest

from skmixdp.privacy import PrivacyReport
from skmixdp.privacy.report import Report

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
    class Short(Report):
        title = "Short"
        leaks: tuple[str, ...] = ()

        def _rows(self):
            return [("rows", "3")]

    assert str(Short()) == "Short\n  rows  3" and Short().private
    assert str(Short(("one", "two"))) == "NO GUARANTEE: one; and two\nShort\n  rows  3"


@pytest.mark.parametrize(
    ("changes", "line", "words"),
    [
        ({"computed_on": "cuda:1"}, "computed on", "cuda:1; the noise is added on the processor"),
        ({"shares": (("mean", 0.02), ("training", 0.98))}, "budget spent on", "2.0% mean, 98.0% training"),
        ({"epsilon_unamplified": 1.25}, "without amplification", "(1.25, 1e-05)"),
        ({"mu": None}, "", "not exact"),
        ({"sampling_rate": 0.1}, "", "0.1"),
        ({"neighboring": "replace_one"}, "", "replaced"),
    ],
)
def test_a_line_is_there_if_it_applies(changes, line, words):
    other = dataclasses.replace(REPORT, **changes)
    assert line in str(other) and words in str(other) and words not in str(REPORT)
    assert not line or line not in str(REPORT)
    assert json.loads(other.to_json()).items() >= json.loads(json.dumps(changes)).items()


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
    assert "patients" not in str(REPORT) and REPORT.to_dict()["dataset"] is None
