"""Numbers and claims of the pages are those of the code."""

import re
from pathlib import Path

import pytest

from skmixdp.privacy import mu_of_budget
from tests.private_names import CLEAR_OF_NOISE, MOST_COUNTED, respelt

ROOT = Path(__file__).parents[2]


def page(name):
    return " ".join((ROOT / name).read_text(encoding="utf-8").split())


def said(name, pattern):
    """All numbers that a page has at the place of the pattern's group."""
    found = [int(number.replace(",", "")) for number in re.findall(pattern, page(name))]
    assert found, f"{name} says nothing like {pattern!r}"
    return set(found)


@pytest.mark.parametrize(
    "pattern", [r"left out for more than ([\d,]+) columns", r"public rows or more, up to ([\d,]+) col"]
)
def test_the_limit_of_columns_of_the_check_of_units(pattern):
    assert said("docs/default.md", pattern) == {MOST_COUNTED}


def test_the_threshold_of_a_low_accuracy_is_that_of_the_warning():
    """At epsilon 1 and delta 1e-5, `n mu < 3 sqrt(d)` is `n epsilon < 11 sqrt(d)`."""
    assert "about ten times the root of the number of features (an estimate)" in page("docs/accuracy.md")
    assert 9 < CLEAR_OF_NOISE / mu_of_budget(1.0, 1e-5) < 12


def test_the_number_of_tutorials():
    tutorials = sorted((ROOT / "examples" / "gallery" / "tutorials").glob("plot_*.py"))
    words = {2: "Two", 3: "Three", 4: "Four"}
    assert f"{words[len(tutorials)]} tutorials" in page("docs/index.md")
    assert f"{words[len(tutorials)]} tutorials" in page("examples/gallery/README.rst")


def test_the_changelog_has_one_screen_for_each_version():
    """docs/history.md has the rest."""
    versions = (ROOT / "CHANGELOG.md").read_text(encoding="utf-8").split("\n## ")[1:]
    assert len(versions) >= 2 and all(len(version.splitlines()) <= 60 for version in versions)


def test_no_page_counts_the_examples():
    """Their number changes; pages say where they are."""
    for name in (
        "README.md",
        "CHANGELOG.md",
        "docs/index.md",
        "docs/jobs.md",
        "docs/first_steps.md",
        "examples/gallery/README.rst",
    ):
        assert not re.search(
            r"(?i)\b(ten|eleven|twelve|thirteen|fourteen|fifteen|sixteen|\d+) (short )?(examples|tasks)",
            page(name),
        )


def test_warnings_of_the_list_are_those_of_the_code():
    code = " ".join(
        " ".join(file.read_text(encoding="utf-8").split()) for file in (ROOT / "skmixdp").rglob("*.py")
    )
    code = re.sub(r"[\"'] f?[\"']", "", code)
    rows = re.findall(
        r"^\| `(.*?)` \|", (ROOT / "docs" / "warnings.md").read_text(encoding="utf-8"), flags=re.M
    )
    assert len(rows) > 10
    parts = [part.strip() for row in rows for part in row.split("...") if len(part.strip()) > 5]
    assert [part for part in parts if part not in code] == []


@pytest.mark.parametrize(
    ("name", "known", "remedy"),
    [
        ("churn", ["Churn?", "age"], "did you mean 'Churn?'?"),
        ("churn", ["churned", "age"], "name a column."),
        ("a b", ["A_B"], "did you mean 'A_B'?"),
        (3, [1, 2], "name a column."),
    ],
)
def test_names_of_the_same_letters_are_suggested(name, known, remedy):
    assert respelt(name, known, "name a column") == remedy
