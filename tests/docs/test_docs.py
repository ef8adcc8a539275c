"""The code of the README and of the docs runs as printed, top to bottom."""

import ast
import re
from functools import cache
from pathlib import Path

import numpy as np
import pytest
import sklearn
from scipy.stats import t as student
from sklearn.datasets import load_digits
from sklearn.linear_model import LogisticRegression
from sklearn.utils import shuffle

from examples import quickstart

ROOT = Path(__file__).parents[2]
PAGES = [
    ROOT / "README.md",
    ROOT / "CONTRIBUTING.md",
    *sorted((ROOT / "docs").glob("*.md")),
    *sorted((ROOT / "docs" / "reproduce").glob("*.md")),
]
#: Pages whose code runs in another test, since it also has commands.
ELSEWHERE = {"first_steps.md"}


def blocks(page, language):
    return re.findall(rf"^```{language}\n(.*?)^```", page.read_text(encoding="utf-8"), flags=re.M | re.S)


@pytest.mark.parametrize(
    "page",
    [
        # `make docs` runs the pages that it builds.
        pytest.param(page, id=page.name, marks=pytest.mark.slow if page.parent.name == "docs" else ())
        for page in PAGES
        if blocks(page, "python") and page.name not in ELSEWHERE
    ],
)
def test_code_runs_as_printed(page, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    namespace = {"__name__": "__main__"}
    with sklearn.config_context():  # a page may change settings for itself
        for number, code in enumerate(blocks(page, "python")):
            exec(compile(code, f"{page.name}, block {number}", "exec"), namespace)


def test_the_readme_examples_are_short(capsys, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    table, features = blocks(ROOT / "README.md", "python")
    for example in (table, features):
        assert len([line for line in example.splitlines() if line and "import" not in line]) <= 10
    exec(features, {})
    accuracy = float(re.search(r"test accuracy (0\.\d+)", capsys.readouterr().out)[1])
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    low, high = re.search(r"about 0\.\d+ \((0\.\d+) to (0\.\d+) in 100 runs\)", text).groups()
    # The range is that of a hundred runs; two points more on either side is beyond any run.
    assert float(low) - 0.02 < accuracy < float(high) + 0.02
    exec(table, {})
    printed = capsys.readouterr().out
    for shown in ("ROC AUC", "(1, 0.0001)-differential privacy", "epsilon 1 of (2, 0.0001) is spent"):
        assert shown in printed


def test_the_readme_says_what_no_privacy_gives():
    X, y = shuffle(*load_digits(return_X_y=True), random_state=0)
    clf = LogisticRegression(C=0.01, max_iter=3000).fit(X[:1397], y[:1397])
    said = re.search(r"Without privacy, it is (0\.\d+)", (ROOT / "README.md").read_text(encoding="utf-8"))[1]
    assert clf.score(X[1397:], y[1397:]) == pytest.approx(float(said), abs=0.005)


def test_the_readme_is_short():
    assert len((ROOT / "README.md").read_text(encoding="utf-8").splitlines()) <= 99


def rows_of_results(page):
    """Header and rows of a page's tables of accuracies, cell by cell."""
    lines = re.findall(r"^\| .* \|$", page.read_text(encoding="utf-8"), flags=re.M)
    rows = [tuple(cell.strip() for cell in line.strip("|").split("|")) for line in lines]
    return [row for row in rows if row[0] == "method" or any("±" in cell for cell in row)]


def test_the_page_of_the_quickstart_has_its_methods():
    shown = rows_of_results(ROOT / "docs" / "quickstart_results.md")
    assert [row[0] for row in shown[: len(quickstart.METHODS) + 1]] == ["method", *quickstart.METHODS]


def test_the_picture_of_the_readme_has_the_methods_of_its_page():
    page = (ROOT / "benchmarks" / "utility" / "front.md").read_text(encoding="utf-8")
    assert "docs/images/front.png" in (ROOT / "README.md").read_text(encoding="utf-8")
    for method in ("no privacy", "skmixdp", "DP-EBM", "diffprivlib"):
        assert re.search(rf"^\| {method}[^|]*\| [\d.]+", page, flags=re.M)


def test_the_readme_states_the_time_that_the_benchmark_measured():
    said, measured = (
        " ".join(page.read_text(encoding="utf-8").split())
        for page in (ROOT / "README.md", ROOT / "benchmarks" / "README.md")
    )
    pattern = r"A default fit\*\* at d_in (\d+), .*? takes ([\d.]+) s "
    d_in, seconds = re.search(pattern, measured).groups()
    stated = re.search(rf"rows, {d_in} features and 10 classes took ([\d.]+) to ([\d.]+) s on one core", said)
    assert float(stated[1]) <= float(seconds) <= float(stated[2])


def test_the_page_of_benchmarks_says_of_the_default_what_was_found():
    """What is told apart in the table, by Holm's correction of all its t-tests over five splits."""
    text = (ROOT / "docs" / "quickstart_results.md").read_text(encoding="utf-8")
    number = r"([-+][\d.]+)"
    rows = re.findall(
        rf"^\| ([\w -]+?) +\| ([\d.]+) +\| {number} +\| {number} to {number} ", text, flags=re.M
    )
    assert len(rows) == 15
    half_widths = [(float(high) - float(low)) / 2 for *_, low, high in rows]
    errors = np.divide(half_widths, student.ppf(0.975, 4))
    p = 2 * student.sf(np.abs([float(mean) for _, _, mean, *_ in rows]) / errors, 4)
    order = np.argsort(p)
    passed = np.minimum.accumulate(p[order] <= 0.05 / np.arange(len(p), 0, -1))
    better = {rows[n][:2] for n in order[passed] if float(rows[n][2]) > 0}
    expected = [("Fully-Private", "0.5"), ("Fully-Private", "1"), ("Only-Public", "1"), ("Only-Public", "3")]
    assert better == set(expected)
    said = " ".join((ROOT / "docs" / "benchmarks.md").read_text(encoding="utf-8").split())
    assert "the default beats Fully-Private at epsilon 0.5 and 1, and Only-Public at 1 and 3." in said


# -- pages for those who carry on ------------------------------------------------------------


@cache
def names_in(file):
    """Functions, classes and methods that a source file defines."""
    found = set()
    for node in ast.parse(file.read_text(encoding="utf-8")).body:
        if isinstance(node, (ast.FunctionDef, ast.ClassDef)):
            found.add(node.name)
        if isinstance(node, ast.ClassDef):
            found |= {f"{node.name}.{part.name}" for part in node.body if isinstance(part, ast.FunctionDef)}
    return found


def missing_names(page):
    """What a page names in the source, as ``path`` or ``path::name``, and is not there."""
    named = re.findall(r"`((?:skmixdp|tests|benchmarks|examples)/[\w./]*)(?:::([\w.]+))?`", page)
    included = re.findall(r"literalinclude\} \.\./(\S+)\n:language: python\n:pyobject: (\S+)", page)
    return [
        f"{path}::{name}"
        for path, name in [*named, *included]
        if not (ROOT / path).exists() or (name and name not in names_in(ROOT / path))
    ]


def test_named_files_and_functions_exist():
    missing = {page.name: missing_names(page.read_text(encoding="utf-8")) for page in PAGES}
    # The one is written by a program, and tests/sabotage checks its names; the other is about what was.
    del missing["sabotage.md"], missing["history.md"]
    assert {page: names for page, names in missing.items() if names} == {}


def test_a_name_that_is_missing_is_found():
    page = "`tests/docs/test_docs.py::blocks`, `tests/docs/test_docs.py::no_such`, `skmixdp/no_such.py`"
    assert missing_names(page) == ["tests/docs/test_docs.py::no_such", "skmixdp/no_such.py::"]


def test_ten_steps_name_enough_of_the_code():
    page = (ROOT / "docs" / "how_a_fit_works.md").read_text(encoding="utf-8")
    assert len(re.findall(r"^## \d+\. ", page, flags=re.M)) == 10
    assert len(re.findall(r"\.py::", page)) > 30


def test_the_map_names_every_room():
    page = (ROOT / "docs" / "contributing.md").read_text(encoding="utf-8")
    package = ROOT / "skmixdp"
    rooms = {f"{path.name}/" for path in package.iterdir() if (path / "__init__.py").exists()}
    rooms |= {path.name for path in package.glob("*.py")} - {"__init__.py"}
    assert rooms == set(re.findall(r"`skmixdp/([\w.]+/?)`", page.split("## Adding")[0]))
