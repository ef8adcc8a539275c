"""The code of the README and of the docs runs as printed, top to bottom."""

import re
from pathlib import Path

import pytest
import sklearn

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


def test_the_readme_shows_the_results_of_the_quickstart():
    results = (ROOT / "docs" / "quickstart_results.md").read_text(encoding="utf-8")
    rows = re.findall(r"^\| (?:method|AdaMix|Warm|Fully|Only|Non).*±.*\|$", results, flags=re.M)
    assert len(rows) == 5
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    assert all(row in readme for row in rows)


def test_links_lead_somewhere():
    for page in PAGES:
        for target in re.findall(r"\]\(([^)#:]+)\)", page.read_text(encoding="utf-8")):
            assert (page.parent / target).exists(), f"{page.name} links to {target}"
