"""The code of the README and of the docs runs as printed, top to bottom."""

import re
from pathlib import Path

import pytest
import sklearn

from examples import quickstart

ROOT = Path(__file__).parents[2]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]


def blocks(page, language):
    return re.findall(rf"^```{language}\n(.*?)^```", page.read_text(encoding="utf-8"), flags=re.M | re.S)


@pytest.mark.parametrize(
    "page", [page for page in PAGES if blocks(page, "python")], ids=lambda page: page.name
)
def test_code_runs_as_printed(page, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    namespace = {"__name__": "__main__"}
    with sklearn.config_context():  # a page may change settings for itself
        for number, code in enumerate(blocks(page, "python")):
            exec(compile(code, f"{page.name}, block {number}", "exec"), namespace)


def test_the_readme_example_is_short_and_shows_its_report(capsys):
    (example,) = blocks(ROOT / "README.md", "python")
    assert len([line for line in example.splitlines() if line.strip()]) <= 10
    exec(example, {})
    printed = capsys.readouterr().out
    accuracy = float(re.search(r"test accuracy (0\.\d+)", printed)[1])
    assert accuracy > 0.8
    # All of the report that the README shows is what the example prints.
    (shown,) = blocks(ROOT / "README.md", "text")
    assert shown.strip() == printed.split("\n", 1)[1].strip()


def rows_of_results(page):
    """Header and rows of a page's tables of accuracies, cell by cell."""
    lines = re.findall(r"^\| .* \|$", page.read_text(encoding="utf-8"), flags=re.M)
    rows = [tuple(cell.strip() for cell in line.strip("|").split("|")) for line in lines]
    return [row for row in rows if row[0] == "method" or any("±" in cell for cell in row)]


def test_the_readme_shows_the_results_of_the_quickstart():
    shown = rows_of_results(ROOT / "README.md")
    assert shown == rows_of_results(ROOT / "docs" / "quickstart_results.md")[: len(shown)]
    assert [row[0] for row in shown] == ["method", *quickstart.METHODS]


def test_the_readme_states_the_time_that_the_benchmark_measured():
    said, measured = (
        " ".join(page.read_text(encoding="utf-8").split())
        for page in (ROOT / "README.md", ROOT / "benchmarks" / "README.md")
    )
    pattern = r"A default fit\*\* at d_in (\d+) .*?: ([\d.]+) s .*?, so ([\d.]+) times that"
    d_in, seconds, ratio = re.search(pattern, measured).groups()
    assert f"rows of {d_in} features in {seconds} s" in said
    assert f" {ratio} times what" in said


def test_the_readme_says_of_the_default_what_was_found():
    text = (ROOT / "docs" / "quickstart_results.md").read_text(encoding="utf-8")
    verdicts = re.findall(r"^\| ([\w -]+?) +\| ([\d.]+) .*\| Default is better +\|$", text, flags=re.M)
    others = [("Fully-Private", str(e)) for e in (0.5, 1, 3)] + [("Only-Public", str(e)) for e in (0.5, 1, 3)]
    assert sorted(verdicts) == sorted([("AdaMix", "0.5"), ("Warm-started NGD", "3"), *others])
    said = " ".join((ROOT / "README.md").read_text(encoding="utf-8").split())
    assert "ahead of AdaMix at epsilon 0.5 and of warm-started NGD at 3" in said


def test_links_lead_somewhere():
    for page in PAGES:
        for target in re.findall(r"\]\(([^)#:]+)\)", page.read_text(encoding="utf-8")):
            assert (page.parent / target).exists(), f"{page.name} links to {target}"
