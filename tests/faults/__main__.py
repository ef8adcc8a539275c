"""Faults of machines and people, and what they leave: ``python -m tests.faults [--rounds N] [--only X]``.

The table says how often each fault was tried, how often it struck before the work was done, and what was
found. A finding is printed, and makes the exit code 1.
"""

import argparse
import random
import sys
import time
import warnings
from collections.abc import Iterator, Sequence

from tests.faults.harness import Row, can_mount, try_job
from tests.faults.jobs import JOBS
from tests.faults.races import lost_workers, race

#: What ``--quick`` tries; the others need more rounds than one to hit anything.
QUICK = ("call", "system call", "cancel")


def tried(n_rounds: int, only: str, seed: int, *, quick: bool = False) -> Iterator[Row]:
    """A row for each job and fault."""
    rng = random.Random(seed)
    mounts = can_mount()
    for kind in JOBS:
        faults = [fault for fault in kind.faults if fault in QUICK or not quick]
        chosen = [fault for fault in faults if only in f"{kind.name}, {fault}"]
        job = kind() if chosen else None
        for fault in chosen:
            if mounts or fault not in ("full disk", "read-only"):
                # A read-only folder and an old clock are the same each time.
                yield try_job(
                    job, fault, min(n_rounds, 3) if fault in ("read-only", "clock") else n_rounds, rng
                )
    if only in "ledger, race of two processes":
        yield race(10 * n_rounds, rng)
    for everyone, what in ((False, "Dask, a worker is killed"), (True, "Dask, all workers are killed")):
        if only in what and n_rounds >= 10:  # a cluster takes seconds
            yield lost_workers(n_rounds // 10, rng, everyone=everyone)


def table(rows: Sequence[Row]) -> str:
    """The rows, and their sum."""
    cells = [("what", "fault", "rounds", "struck", "findings")]
    cells += [(r.job, r.fault, str(r.rounds), str(r.hits), str(len(r.findings))) for r in rows]
    total = [sum(r.rounds for r in rows), sum(r.hits for r in rows), sum(len(r.findings) for r in rows)]
    cells.append(("all", "", *map(str, total)))
    widths = [max(len(row[i]) for row in cells) for i in range(5)]
    return "".join(
        "  ".join(
            cell.ljust(width) if i < 2 else cell.rjust(width)
            for i, (cell, width) in enumerate(zip(row, widths, strict=True))
        ).rstrip()
        + "\n"
        for row in cells
    )


def main() -> int:
    """0 if nothing was found."""
    parser = argparse.ArgumentParser(prog="python -m tests.faults", description=__doc__)
    parser.add_argument("--rounds", type=int, default=100, help="rounds of each fault (default: %(default)s)")
    parser.add_argument("--quick", action="store_true", help="kill and cancel, and nothing else")
    parser.add_argument("--only", default="", help="try what has X in its name", metavar="X")
    parser.add_argument("--seed", type=int, default=None, help="repeat the faults of an earlier run")
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    seed = random.SystemRandom().randrange(2**32) if options.seed is None else options.seed
    rows, started = [], time.monotonic()
    for row in tried(options.rounds, options.only, seed, quick=options.quick):
        rows.append(row)
        sys.stderr.write(f"{time.monotonic() - started:6.1f} s  {row.job}, {row.fault}\n")
        sys.stderr.write("".join(f"\n{finding}\n" for finding in row.findings))
    sys.stdout.write(table(rows))
    found = any(row.findings for row in rows)
    if found:
        sys.stderr.write(f"\n--seed {seed} tries the same again.\n")
    return int(found)


if __name__ == "__main__":
    sys.exit(main())
