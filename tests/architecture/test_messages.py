"""Messages tell of private rows by stated checks and releases alone: all are on a list of what they tell."""

import ast

import pytest

from .messages import FACTS, MESSAGES
from .test_architecture import PACKAGE
from .test_decisions import ROOMS as DECIDING
from .test_decisions import counted_in, counted_in_rooms

#: Where private rows are seen, and where messages about them are written.
ROOMS = (*DECIDING, "features", "_cli")
PAGE = PACKAGE.parent / "docs" / "guarantee.md"
WARNS = frozenset(("warn", "warn_later"))


def is_message(node):
    """Whether a node raises an error that it makes, or warns."""
    called = getattr(node, "func", None)
    warns = getattr(called, "attr", getattr(called, "id", None)) in WARNS
    return warns or (isinstance(node, ast.Raise) and node.exc is not None)


def messages():
    """All functions of the rooms that raise or warn, by file, and how often they do."""
    return {path: counts for path, counts in counted_in_rooms(ROOMS, is_message).items() if counts}


def test_every_message_is_on_the_list():
    found = messages()
    listed = {path: {name: n for name, (n, _) in told.items()} for path, (_, told) in MESSAGES.items()}
    assert found.keys() == listed.keys(), found.keys() ^ listed.keys()
    for path, counts in found.items():
        gone = {name: n for name, n in listed[path].items() if counts.get(name) != n}
        assert not gone, f"messages.py lists other numbers of messages in {path}: {gone}"
        others = sum(n for name, n in counts.items() if name not in listed[path])
        said = "new messages; look at whether private rows decide them, and list them with what they tell"
        assert others == MESSAGES[path][0], f"{path}: {said}"


def test_the_page_has_all_facts():
    assert {fact for _, told in MESSAGES.values() for _, fact in told.values()} == FACTS.keys()
    page = " ".join(PAGE.read_text(encoding="utf-8").split())
    assert [fact for fact, text in FACTS.items() if f"- **{fact}**: {text}" not in page] == []


@pytest.mark.parametrize(
    ("code", "count"),
    [
        ("raise ValueError(1)", 1),
        ("def f():\n    if x:\n        raise error", 1),
        ("try:\n    f()\nexcept Exception:\n    raise", 0),
        ("warnings.warn('a', UserWarning)", 1),
        ("from x import warn\nwarn('a')", 1),
        ("class A:\n    def f(self):\n        return warn_later(self.text) or [warn('b') for _ in y]", 2),
    ],
)
def test_what_counts_as_a_message(code, count):
    assert sum(counted_in(ast.parse(code), is_message).values()) == count
