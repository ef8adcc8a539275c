"""Tries all sabotages and prints what found them: ``python -m tests.sabotage [--write] [--jobs N]``."""

import argparse
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from .harness import Outcome, outcome_of
from .page import PAGE, page, table
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
    parser.add_argument("--write", action="store_true", help="write the page of the documentation anew")
    options = parser.parse_args()
    with ThreadPoolExecutor(options.jobs) as pool:
        outcomes = list(pool.map(tried, SABOTAGES))
    seconds = {sabotage.name: outcome.seconds for sabotage, outcome in zip(SABOTAGES, outcomes, strict=True)}
    sys.stdout.write(table(SABOTAGES, seconds))
    missed = [pair for pair in zip(SABOTAGES, outcomes, strict=True) if not pair[1].caught]
    for sabotage, outcome in missed:
        sys.stderr.write(f"\n{sabotage.name} was not found: {outcome.broken}\n{outcome.output}\n")
    if options.write and not missed:
        PAGE.write_text(page(SABOTAGES, seconds), encoding="utf-8")
    return int(bool(missed))


if __name__ == "__main__":
    sys.exit(main())
