"""Fuzz everything: ``python -m tests.fuzz --cases 50000``. Exits with 1 if a case fails.

Targets run in processes of their own, so that a crash ends one of them and is seen.
"""

import argparse
import json
import resource
import subprocess
import sys
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from .coverage_guided import FORMATS

#: Share of all cases that atheris makes, if it is there; hypothesis makes the others.
GUIDED = 0.2

#: Cases of one process: a hang or crash is noticed after so many at the latest.
BATCH = 2500

#: Bytes of address space for a batch; most of what the libraries reserve is never used.
MEMORY = 24 * 2**30

#: Seconds for a batch, on a slow and busy machine. A batch that takes longer hangs.
PATIENCE = 1800


def main() -> int:
    """Run the targets and print a table of their cases."""
    parser = argparse.ArgumentParser(prog="python -m tests.fuzz", description=__doc__)
    parser.add_argument("--cases", type=int, default=50_000, help="at least so many (default: %(default)s)")
    parser.add_argument("--seed", type=int, default=int(time.time()) % 10**6, help="default: the clock's")
    parser.add_argument("--target", help="only this one")
    parser.add_argument("--jobs", type=int, default=2, help="processes at a time (default: %(default)s)")
    parser.add_argument("--worker", type=Path, help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.worker is not None:
        return _work(args.target, args.cases, args.seed, args.worker)
    started, guided = time.time(), _has_atheris() and args.target is None
    if not guided:
        print("atheris is not used: hypothesis alone makes the cases")
    print(f"seed {args.seed}", flush=True)
    from .targets import TARGETS

    chosen = [target for target in TARGETS if args.target in (None, target.name)]
    total = sum(target.share for target in chosen)
    by_hypothesis = args.cases * (1 - GUIDED if guided else 1)
    jobs: list[tuple[str, list[str], int]] = []
    for target in chosen:
        left, seed = round(by_hypothesis * target.share / total), args.seed
        while left > 0:
            command = [
                "tests.fuzz",
                "--target",
                target.name,
                "--cases",
                str(min(BATCH, left)),
                "--seed",
                str(seed),
            ]
            jobs.append((target.name, [*command, "--worker"], min(BATCH, left)))
            left, seed = left - BATCH, seed + 1000
    if guided:
        for name in FORMATS:
            n = round(args.cases * GUIDED / len(FORMATS)) + 1
            jobs.append(
                (
                    f"bytes of {name} (atheris)",
                    ["tests.fuzz.coverage_guided", name, str(n), str(args.seed)],
                    n,
                )
            )
    jobs.sort(key=lambda job: "atheris" in job[0])  # the slow ones first
    with ThreadPoolExecutor(args.jobs) as pool:
        results = list(pool.map(lambda job: _told(*job), jobs))
    return _print_table(jobs, results, time.time() - started)


def _has_atheris() -> bool:
    try:
        import atheris  # noqa: F401
    except ImportError:
        return False
    return True


def _work(name: str, n_cases: int, seed: int, counts: Path) -> int:
    """One batch of a target in this process."""
    from .harness import run
    from .targets import TARGETS

    # What fills the memory shall fail where it does so, and not be killed.
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
    (target,) = (target for target in TARGETS if target.name == name)
    tally, failures = run(target, n_cases, seed)
    counts.write_text(json.dumps({"cases": tally.cases, "ended": dict(tally.ended)}))
    print("\n".join(failures))
    return 1 if failures else 0


def _told(name: str, command: list[str], n_cases: int) -> tuple[dict[str, object], str]:
    """Run a batch, and print how it went as soon as it ends."""
    counted, failure = _run(name, command, n_cases)
    print(f"  {name}: {counted['cases']} cases{', FAILED' if failure else ''}", flush=True)
    return counted, failure


def _run(name: str, command: list[str], n_cases: int) -> tuple[dict[str, object], str]:
    """What a batch counted, and why it failed: an empty text if it did not."""
    with tempfile.TemporaryDirectory() as folder:
        counts = Path(folder) / "counts.json"
        try:
            ended = subprocess.run(
                [sys.executable, "-m", *command, str(counts)],
                capture_output=True,
                text=True,
                timeout=PATIENCE,
            )
        except subprocess.TimeoutExpired as error:
            return {"cases": 0, "ended": {}}, f"{name} hangs: {' '.join(command)}\n{error.stdout}"
        found = json.loads(counts.read_text()) if counts.exists() else {"cases": 0, "ended": {}}
    if ended.returncode == 0:
        return found, ""
    return (
        found,
        f"{name} ends with {ended.returncode}: {' '.join(command)}\n"
        f"{ended.stdout[-8000:]}\n{ended.stderr[-3000:]}",
    )


def _print_table(
    jobs: list[tuple[str, list[str], int]], results: list[tuple[dict[str, object], str]], seconds: float
) -> int:
    names = list(dict.fromkeys(job[0] for job in jobs))
    print(f"\n{'target':<34}{'cases':>8}{'accepted':>10}{'refused':>9}  failures")
    n_cases = n_failures = 0
    for name in names:
        mine = [result for job, result in zip(jobs, results, strict=True) if job[0] == name]
        cases = sum(int(str(counted["cases"])) for counted, _ in mine)
        ended: dict[str, int] = {}
        for counted, _ in mine:
            for how, n in dict(counted["ended"]).items():  # type: ignore[call-overload]
                ended[how] = ended.get(how, 0) + n
        accepted = ended.get("done", 0) + ended.get("exit 0", 0)
        failures = sum(bool(text) for _, text in mine)
        print(f"{name:<34}{cases:>8}{accepted:>10}{sum(ended.values()) - accepted:>9}  {failures or ''}")
        n_cases, n_failures = n_cases + cases, n_failures + failures
    for _, text in results:
        if text:
            print(f"\n{'=' * 100}\n{text}")
    print(f"\n{n_cases} cases in {seconds / 60:.1f} minutes, {n_failures} failures")
    return 1 if n_failures else 0


if __name__ == "__main__":
    sys.exit(main())
