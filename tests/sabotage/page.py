"""The page of the documentation that lists all sabotages."""

from collections.abc import Iterable, Mapping

from .harness import ROOT
from .sabotages import Sabotage

PAGE = ROOT / "docs" / "sabotage.md"

_HEAD = """---
nosearch: true
---

# Broken on purpose

A test of a guarantee can pass for the wrong reason. So the guarantee is broken on purpose, in many ways.
[Replay and sabotage](replay_and_sabotage.md) explains how, and how to add one.
Each row of the table is a change of one or two lines of the source. It is applied to a copy of the package,
and one of the named tests must then fail. Without the change, all of them pass. With most of these changes,
every fit still runs and every report looks the same. Some of them were bugs of earlier versions.

`make sabotage` tries all changes and prints the table. They are defined in `tests/sabotage/sabotages.txt`.
Each names a function, a method or a constant, and what is replaced in it. So functions can move between files
and lines can be formatted anew. If what is to be replaced is no longer there, a quick test fails.

"""

_COLUMNS = ("change", "what would be wrong", "found by", "seconds")


def cells(sabotage: Sabotage) -> tuple[str, str, str]:
    """What a row of the table says, but for the seconds."""
    found_by = "<br>".join(f"`{test}`" for test in sabotage.tests)
    return sabotage.name, sabotage.breaks, found_by


def table(sabotages: Iterable[Sabotage], seconds: Mapping[str, float]) -> str:
    """Markdown of the table; ``seconds`` by the name of a sabotage, a dash where it has none."""
    rows = [
        (*cells(sabotage), f"{seconds[sabotage.name]:.0f}" if sabotage.name in seconds else "-")
        for sabotage in sabotages
    ]
    lines = [_COLUMNS, ("---", "---", "---", "---:"), *rows]
    return "".join(f"| {' | '.join(line)} |\n" for line in lines)


def page(sabotages: Iterable[Sabotage], seconds: Mapping[str, float]) -> str:
    """The page as a whole."""
    return _HEAD + table(sabotages, seconds)


def rows_of(text: str) -> list[tuple[str, ...]]:
    """The rows of the table in a page, cell by cell."""
    lines = [line for line in text.splitlines() if line.startswith("| ")]
    return [tuple(cell.strip() for cell in line.strip("|").split("|")) for line in lines[2:]]


def seconds_in(text: str) -> dict[str, float]:
    """What a page says of how long each sabotage took."""
    return {row[0]: float(row[3]) for row in rows_of(text) if row[3] != "-"}
