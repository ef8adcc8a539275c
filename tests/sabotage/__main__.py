"""Tries sabotages, prints what found them: ``python -m tests.sabotage [--only X] [--write] [--jobs N]``."""

import argparse
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from .harness import Outcome, outcome_of
from .page import PAGE, page, seconds_in, table
from .sabotages import SABOTAGES, Sabotage


def tried(sabotage: Sabotage) -> Outcome:
    """The outcome of a sabotage in a folder that is gone afterwards."""
    with tempfile.TemporaryDirectory() as folder:
        outcome = outcome_of(sabotage, Path(folder))
    verdict = "found" if outcome.caught else "NOT FOUND"
    sys.stderr.write(f"{outcome.seconds:5.1f} s  {verdict}: {sabotage.name}\n")
    return outcome


def main() -> int:
    """0 if all were found."""
    parser = argparse.ArgumentParser(prog="python -m tests.sabotage", description=__doc__)
    parser.add_argument("--jobs", type=int, default=1, help="how many to try at a time")
    parser.add_argument("--only", default="", help="try those whose names contain X", metavar="X")
    parser.add_argument("--write", action="store_true", help="write the page of the documentation anew")
    options = parser.parse_args()
    chosen = [sabotage for sabotage in SABOTAGES if options.only in sabotage.name]
    with ThreadPoolExecutor(options.jobs) as pool:
        outcomes = dict(zip((s.name for s in chosen), pool.map(tried, chosen), strict=True))
    seconds = {name: outcome.seconds for name, outcome in outcomes.items()}
    sys.stdout.write(table(chosen, seconds))
    missed = {name: outcome for name, outcome in outcomes.items() if not outcome.caught}
    for name, outcome in missed.items():
        sys.stderr.write(f"\n{name} was not found: {outcome.broken}\n{outcome.output}\n")
    if options.write and not missed:
        known = seconds_in(PAGE.read_text(encoding="utf-8"))
        PAGE.write_text(page(SABOTAGES, known | seconds), encoding="utf-8")
    return int(bool(missed))


if __name__ == "__main__":
    sys.exit(main())
