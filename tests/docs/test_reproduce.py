"""The lists of the papers' claims: each row has a verdict, and the summary counts them all."""

import re
from pathlib import Path

import pytest

DOCS = Path(__file__).parents[2] / "docs"
PAPERS = ("adamix", "coupling", "pda_dpmd", "pazo", "modelmix")


def rows(text, first):
    """Cells of the rows of the table whose header starts with a text."""
    table = text[text.index(f"| {first} |") :].split("\n\n")[0]
    return [[cell.strip() for cell in line.split("|")[1:-1]] for line in table.splitlines()[2:]]


@pytest.mark.parametrize("paper", PAPERS)
def test_each_claim_has_a_verdict_and_is_counted(paper):
    claims = rows((DOCS / "reproduce" / f"{paper}.md").read_text(encoding="utf-8"), "the paper's item")
    assert all(len(claim) == 5 and claim[3] for claim in claims)
    (counts,) = [
        counts
        for name, *counts in rows((DOCS / "reproduce.md").read_text(encoding="utf-8"), "paper")
        if f"reproduce/{paper}.md" in name
    ]
    assert sum(int(count) for count in counts) == len(claims)
    untested = [claim for claim in claims if re.match("not tested|cannot|nothing", claim[3])]
    assert int(counts[-1]) == len(untested)
    denied = [claim for claim in claims if re.match(r"\*\*|not (seen|an)", claim[3])]
    assert int(counts[2]) == len(denied)
