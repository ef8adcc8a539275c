"""Every test that the page of promises names exists."""

import ast
import re
from pathlib import Path

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "promises.md").read_text(encoding="utf-8")
ROWS = [
    line.strip("|").split(" | ")
    for line in PAGE.splitlines()
    if re.match(r"\| .*`(?:benchmarks/)?tests/", line)
]
NAMED = sorted(set(re.findall(r"`((?:benchmarks/)?tests/[^`]+)`", PAGE)))


def defined(tree):
    return {node.name: node for node in tree.body if isinstance(node, (ast.FunctionDef, ast.ClassDef))}


def exists(name):
    """Whether a file is there, and the test or class in it that is named."""
    path, *parts = name.split("::")
    if not (ROOT / path).exists():
        return False
    tree = ast.parse((ROOT / path).read_text(encoding="utf-8")) if parts else None
    for part in parts:
        if part not in defined(tree):
            return False
        tree = defined(tree)[part]
    return True


def test_every_named_test_exists():
    assert len(NAMED) > 40
    assert [name for name in NAMED if not exists(name)] == []


def test_a_name_that_is_missing_is_found():
    assert not exists("tests/docs/no_such.py")
    assert not exists("tests/docs/test_promises.py::no_such")
    assert exists("tests/fuzz/test_found.py::TestBudgets::test_extreme_budgets_are_kept")
    assert not exists("tests/fuzz/test_found.py::TestBudgets::no_such")


def test_every_row_says_where_it_is_stated_and_how_it_ended():
    assert len(ROWS) > 20
    for row in ROWS:
        assert len(row) == 5 and all(cell.strip() for cell in row), row
        assert re.search(r"\d", row[3]), f"no number of cases: {row}"
        assert row[4].strip().startswith(("holds", "broken")), row
