"""Every task on the page of tasks leads to code that runs."""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs" / "jobs.md"
TASKS = dict(
    re.findall(r"^\| ([^|*]+?) \| \[[^\]]+\]\(([^)]+)\) \|$", PAGE.read_text(encoding="utf-8"), flags=re.M)
)


def section(link):
    """The part of a page that a link leads to: up to the next heading of its level, or the whole page."""
    name, _, anchor = link.partition("#")
    text = (PAGE.parent / name if name else PAGE).read_text(encoding="utf-8")
    if not anchor:
        return text
    outside = re.sub(r"^```.*?^```", lambda code: "\n" * code[0].count("\n"), text, flags=re.M | re.S)
    lines, found, depth = text.splitlines(keepends=True), [], 0
    for heading, line in zip(outside.splitlines(), lines, strict=True):
        level = len(re.match("#*", heading)[0])
        if 0 < level <= depth:
            break
        if level and re.sub(r"[^\w\- ]", "", heading.lower()).strip().replace(" ", "-") == anchor:
            depth = level
        if depth:
            found.append(line)
    return "".join(found)


def test_there_are_tasks_enough():
    assert len(TASKS) >= 30
    assert len(re.findall(r"^\| .* \| \[", PAGE.read_text(encoding="utf-8"), flags=re.M)) == len(TASKS)


@pytest.mark.parametrize("task", TASKS)
def test_a_task_leads_to_code_that_runs(task):
    """Code of pages runs in ``test_docs.py`` and its like; the gallery runs when it is built."""
    link = TASKS[task]
    if link.startswith("gallery/"):
        assert (ROOT / "examples" / link.replace(".rst", ".py")).exists()
    else:
        assert re.search(r"^```(python|bash)$", section(link), flags=re.M), f"no code that runs at {link}"


def test_a_section_ends_where_the_next_begins():
    assert "team.sqlite" in section("#a-budget-for-a-team")
    assert "onnxruntime" not in section("#a-budget-for-a-team")
    assert section("#no-such-section") == ""
