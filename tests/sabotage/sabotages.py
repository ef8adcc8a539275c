"""Ways to break the guarantee, each with the tests that have to notice: ``sabotages.txt``.

A sabotage is a replacement in the source, so small that a review could overlook it. Nearly all of them leave
every fit running, and its report as it was. In the file, each is a paragraph: its name, what would be wrong,
and lines that begin with a mark. ``@`` names what is edited, ``-`` is replaced by ``+``, and ``!`` is a test.
"""

from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class Edit:
    """A replacement in the source of a function, method or constant.

    Attributes
    ----------
    name : str
        Qualified name, without the module: ``PoissonBatch.draw``.
    old, new : str
        The tokens of ``old`` occur exactly once in all that has this name in the package. They are those that
        :func:`ast.unparse` writes, so line breaks, comments, quotes and needless brackets do not matter.
    """

    name: str
    old: str
    new: str


@dataclass(frozen=True)
class Sabotage:
    """A way to break the guarantee."""

    name: str
    breaks: str
    edits: tuple[Edit, ...]
    tests: tuple[str, ...]


def read(text: str) -> tuple[Sabotage, ...]:
    """The sabotages in a text; lines with ``#`` are headings."""
    found = []
    for paragraph in text.split("\n\n"):
        lines = [line for line in paragraph.strip("\n").split("\n") if not line.startswith("#")]
        if not any(lines):
            continue
        name, breaks, *marked = lines
        edits: list[tuple[str, list[str], list[str]]] = []
        tests = []
        for line in marked:
            mark, rest = line[0], line[2:]
            if mark == "@":
                edits.append((rest, [], []))
            elif mark == "!":
                tests.append(rest)
            else:
                edits[-1]["-+".index(mark) + 1].append(rest)
        made = (Edit(edited, "\n".join(old), "\n".join(new)) for edited, old, new in edits)
        found.append(Sabotage(name, breaks, tuple(made), tuple(tests)))
    return tuple(found)


SABOTAGES = read(Path(__file__).with_suffix(".txt").read_text(encoding="utf-8"))
