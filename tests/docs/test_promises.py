"""Every test that the page of promises names exists."""

import ast
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "promises.md").read_text(encoding="utf-8")
ROWS = [line.strip("|").split(" | ") for line in PAGE.splitlines() if re.match(r"\| .*`tests/", line)]
NAMED = sorted(set(re.findall(r"`(tests/[^`]+)`", PAGE)))


def defined(tree):
    return {node.name: node for node in tree.body if isinstance(node, (ast.FunctionDef, ast.ClassDef))}


@pytest.mark.parametrize("name", NAMED)
def test_the_test_exists(name):
    path, *parts = name.split("::")
    assert (ROOT / path).exists()
    if parts:
        tree = ast.parse((ROOT / path).read_text(encoding="utf-8"))
        for part in parts:
            assert part in defined(tree), f"{part} is not in {path}"
            tree = defined(tree)[part]


def test_every_row_says_where_it_is_stated_and_how_it_ended():
    assert len(ROWS) > 20
    for row in ROWS:
        assert len(row) == 5 and all(cell.strip() for cell in row), row
        assert re.search(r"\d", row[3]), f"no number of cases: {row}"
        assert row[4].strip().startswith(("holds", "broken")), row
