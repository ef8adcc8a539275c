"""``make mutants``: plants faults one at a time and counts those that no test notices.

Cosmic Ray makes the mutants; see :mod:`benchmarks.mutants.operators`. Its own runner starts a Python for each
mutant, which spends most of its time on imports here, runs one test command for all files, and changes the
files of the checkout in place. This one works in copies of the project, forks from a process that has
imported the libraries, and runs only tests that reach the changed statement, the quickest first.
"""

import argparse
import fnmatch
import hashlib
import importlib
import json
import math
import os
import random
import shutil
import signal
import sys
import time
import traceback
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from coverage import CoverageData
from hypothesis import HealthCheck, settings

from .operators import Mutant, Source

ROOT = Path(__file__).parents[2]

_UNIT, _PROPERTY = "tests/unit", "tests/property"
_GRADIENTS = (
    f"{_UNIT}/components/test_centred.py",
    f"{_UNIT}/components/test_clipping.py",
    f"{_UNIT}/components/test_queries.py",
    f"{_UNIT}/algorithms/test_differences.py",
    f"{_PROPERTY}/test_difference_bounds.py",
    f"{_PROPERTY}/test_sensitivity.py",
    f"{_PROPERTY}/test_weighted_rows.py",
    f"{_PROPERTY}/test_per_instance.py",
)
_RELEASE = (
    f"{_UNIT}/engine/test_release.py",
    f"{_UNIT}/engine/test_recorded_releases.py",
    f"{_UNIT}/test_frozen.py",
    "tests/statistical/test_noise_scale.py",
    "tests/statistical/test_discrete_noise.py",
)
_PRIVACY = (
    f"{_UNIT}/privacy",
    f"{_UNIT}/test_frozen.py",
    "tests/statistical/test_selection.py",
    "tests/reports/test_workflows.py",
)

#: What is mutated, and the tests that concern it.
TARGETS: dict[str, tuple[str, ...]] = {
    "skmixdp/privacy/ledger/_store.py": (
        f"{_UNIT}/privacy/test_ledger.py",
        f"{_UNIT}/privacy/test_ledger_processes.py",
    ),
    "skmixdp/privacy/*.py": _PRIVACY,
    "skmixdp/privacy/*/*.py": _PRIVACY,
    "skmixdp/_papers/modelmix/*.py": (
        f"{_UNIT}/privacy",
        f"{_UNIT}/algorithms/test_modelmix.py",
        *_GRADIENTS,
    ),
    "skmixdp/_engine/release.py": _RELEASE,
    "skmixdp/components/clipping.py": _GRADIENTS,
    "skmixdp/_papers/split_query.py": _GRADIENTS,
    "skmixdp/_papers/splits.py": _GRADIENTS,
    "skmixdp/_linear/sums.py": (
        f"{_UNIT}/linear/test_sums.py",
        f"{_UNIT}/algorithms/test_embedding.py",
        *_RELEASE,
    ),
}

#: Imported before the first fork.
_LIBRARIES = (
    "numpy",
    "pandas",
    "pytest",
    "randomgen",
    "scipy.optimize",
    "scipy.stats",
    "sklearn.base",
    "sklearn.model_selection",
    "dp_accounting.pld.pld_privacy_accountant",
    "dp_accounting.rdp.rdp_privacy_accountant",
)

#: Seconds, as measured on the sound package: longer tests are not asked, nor more of them together.
_LONGEST_TEST, _LONGEST_RUN = 15.0, 30.0

#: Of a property, at most; fewer than in the tests, so that a mutant that survives here may be killed there.
_EXAMPLES = 25

_OPTIONS = (
    "-q",
    "-p",
    "no:cacheprovider",
    "--override-ini=addopts=",
    "--import-mode=importlib",
    "-Wignore:Module already imported:pytest.PytestAssertRewriteWarning",
    "-m",
    "not slow",
)


# -- in a forked process -----------------------------------------------------------------------


class _Plugin:
    """Runs the chosen tests in the order of the choice, and notes how long each took and which failed."""

    def __init__(self, chosen: Sequence[str] | None, notes: Path) -> None:
        self.chosen, self.notes = chosen, notes
        self.durations: dict[str, float] = defaultdict(float)
        self.failed: list[str] = []

    def pytest_configure(self, config: Any) -> None:
        # A busy machine must not kill a mutant.
        settings.register_profile(
            "mutants",
            max_examples=_EXAMPLES,
            derandomize=True,
            database=None,
            deadline=None,
            suppress_health_check=list(HealthCheck),
        )
        settings.load_profile("mutants")

    def pytest_collection_modifyitems(self, config: Any, items: list[Any]) -> None:
        if self.chosen is not None:
            place = {name: index for index, name in enumerate(self.chosen)}
            items[:] = sorted((i for i in items if i.nodeid in place), key=lambda i: place[i.nodeid])

    def pytest_runtest_logreport(self, report: Any) -> None:
        self.durations[report.nodeid] += report.duration
        if report.failed:
            self.failed.append(report.nodeid)

    def pytest_sessionfinish(self) -> None:
        self.notes.write_text(json.dumps({"durations": self.durations, "failed": self.failed}))


def _pytest_in(copy: Path, arguments: Sequence[str], plugin: _Plugin, output: Path) -> int:
    """Fork a process that runs pytest in a copy of the project; its id."""
    process = os.fork()
    if process:
        return process
    status = 3
    try:
        os.setsid()
        os.chdir(copy)
        sys.path[:] = [str(copy), *(p for p in sys.path if Path(p or ".").resolve() != ROOT)]
        os.environ["PYTHONPATH"] = str(copy)
        for name in [
            name for name in sys.modules if name.split(".")[0] in ("benchmarks", "skmixdp", "tests")
        ]:
            del sys.modules[name]
        log = os.open(output, os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
        os.dup2(log, 1)
        os.dup2(log, 2)
        import pytest

        status = int(pytest.main([*_OPTIONS, *arguments], plugins=[plugin]))
    except BaseException:
        traceback.print_exc()
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(status)


# -- the sound package -------------------------------------------------------------------------


def _copy_project(place: Path) -> None:
    for name in ("skmixdp", "tests"):
        shutil.copytree(ROOT / name, place / name, ignore=shutil.ignore_patterns("__pycache__"))
    shutil.copy2(ROOT / "pyproject.toml", place)


@dataclass
class Baseline:
    """What the tests do without any fault.

    Attributes
    ----------
    durations : dict
        Test -> seconds.
    reached : dict
        Path -> line -> tests that run it.
    """

    durations: dict[str, float]
    reached: dict[str, dict[int, set[str]]]


def _baseline(work: Path, tests: Sequence[str], jobs: int) -> Baseline:
    """Run the tests, each file of them once for as long as neither it nor the package changes."""
    files = sorted({str(p.relative_to(ROOT)) for test in tests for p in _test_files(ROOT / test)})
    shared = [p for p in (ROOT / "tests").rglob("*.py") if not p.name.startswith("test_")]
    common = _digest(*sorted([*shared, *(ROOT / "skmixdp").rglob("*.py")]))
    digests = {name: _digest(ROOT / name) + common for name in files}
    kept = work / "baseline.json"
    known: dict[str, Any] = json.loads(kept.read_text()) if kept.exists() else {}
    known = {name: found for name, found in known.items() if found["digest"] == digests.get(name)}
    missing = [name for name in files if name not in known]
    notes, processes = [], []
    for number in range(jobs if missing else 0):
        copy = work / f"copy{number}"
        shutil.rmtree(copy, ignore_errors=True)
        _copy_project(copy)
        notes.append(work / f"copy{number}-notes.json")
        arguments = ["--cov=skmixdp", "--cov-report=", "--cov-context=test", *missing[number::jobs]]
        if missing[number::jobs]:
            log = work / f"baseline{number}.log"
            processes.append(_pytest_in(copy, arguments, _Plugin(None, notes[-1]), log))
    codes = [os.waitstatus_to_exitcode(os.waitpid(process, 0)[1]) for process in processes]
    if any(code not in (0, 1) for code in codes):
        raise SystemExit(f"the tests cannot be run: see {work}/baseline*.log.")
    for name in missing:
        known[name] = {"digest": digests[name], "durations": {}, "reached": defaultdict(dict)}
    for number in range(len(processes)):
        found = json.loads(notes[number].read_text())
        for test in found["failed"]:
            print(f"fails without any fault and is left out: {test}", flush=True)
        for test, seconds in found["durations"].items():
            if test not in found["failed"]:
                known[test.split("::")[0]]["durations"][test] = seconds
        copy = work / f"copy{number}"
        data = CoverageData(str(copy / ".coverage"))
        data.read()
        for measured in data.measured_files():
            path = str(Path(measured).relative_to(copy))
            for line, contexts in data.contexts_by_lineno(measured).items():
                for test in {context.split("|")[0] for context in contexts if context}:
                    known[test.split("::")[0]]["reached"][path].setdefault(str(line), []).append(test)
    kept.write_text(json.dumps(known))
    result = Baseline({}, defaultdict(lambda: defaultdict(set)))
    for found in known.values():
        result.durations |= found["durations"]
        for path, lines in found["reached"].items():
            for line, names in lines.items():
                result.reached[path][int(line)] |= set(names)
    return result


def _digest(*paths: Path) -> str:
    texts = "".join(f"{path}\0{path.read_text('utf-8')}" for path in paths)
    return hashlib.sha256(texts.encode()).hexdigest()


def _test_files(path: Path) -> list[Path]:
    return sorted(path.rglob("test_*.py")) if path.is_dir() else [path]


def _tests_of(mutant: Mutant, source: Source, baseline: Baseline) -> list[str]:
    """Tests that concern the file and reach the statement, the quickest first.

    What runs when the package is imported is reached by every test.
    """
    reached, durations = baseline.reached[mutant.path], baseline.durations
    names = {name for line in source.statement_lines(mutant.line) for name in reached.get(line, ())}
    if source.runs_at_import(mutant.line):
        names = set(durations)
    wanted = _concerning(mutant.path)
    names = {
        n for n in names if n in durations and n.startswith(tuple(f"{w}{c}" for w in wanted for c in ":/"))
    }
    chosen, total = [], 0.0
    for name in sorted(names, key=lambda name: (durations[name], name)):
        total += durations[name]
        if durations[name] > _LONGEST_TEST or total > _LONGEST_RUN:
            break
        chosen.append(name)
    return chosen


def _concerning(path: str) -> tuple[str, ...]:
    return next(tests for pattern, tests in TARGETS.items() if fnmatch.fnmatch(path, pattern))


# -- the mutants -------------------------------------------------------------------------------


@dataclass
class Outcome:
    """What became of a mutant: "killed", "survived", "timed out", or "not run" where no test reaches it."""

    mutant: Mutant
    change: tuple[str, str]
    outcome: str
    by: str = ""
    seconds: float = 0.0


@dataclass
class _Running:
    mutant: Mutant
    copy: Path
    began: float
    limit: float
    notes: Path


def run_mutants(
    mutants: Sequence[Mutant],
    sources: dict[str, Source],
    baseline: Baseline,
    work: Path,
    jobs: int,
    deadline: float,
    report: Callable[[Outcome], None],
) -> None:
    """Report the outcome of each mutant that is begun before the deadline."""
    copies = []
    for number in range(jobs):
        copy = work / f"copy{number}"
        shutil.rmtree(copy, ignore_errors=True)
        _copy_project(copy)
        copies.append(copy)
    waiting = list(reversed(mutants))
    running: dict[int, _Running] = {}
    while waiting or running:
        while waiting and copies and time.monotonic() < deadline:
            mutant = waiting.pop()
            source = sources[mutant.path]
            tests = _tests_of(mutant, source, baseline)
            if not tests:
                report(Outcome(mutant, source.changed_line(mutant), "not run"))
                continue
            copy = copies.pop()
            _write(copy / mutant.path, source.mutated(mutant))
            notes = work / f"{copy.name}-notes.json"
            notes.unlink(missing_ok=True)
            files = sorted({name.split("::")[0] for name in tests})
            process = _pytest_in(copy, ["-x", *files], _Plugin(tests, notes), work / f"{copy.name}.log")
            limit = 30 + 4 * sum(baseline.durations[name] for name in tests)
            running[process] = _Running(mutant, copy, time.monotonic(), limit, notes)
        if not running:
            break
        time.sleep(0.02)
        for process, run in list(running.items()):
            ended, code = os.waitpid(process, os.WNOHANG)
            seconds = time.monotonic() - run.began
            if not ended and seconds < run.limit:
                continue
            if not ended:
                os.killpg(process, signal.SIGKILL)
                os.waitpid(process, 0)
            del running[process]
            status = os.waitstatus_to_exitcode(code) if ended else None
            source = sources[run.mutant.path]
            _write(run.copy / run.mutant.path, source.text)
            copies.append(run.copy)
            outcome = "timed out" if status is None else "survived" if status == 0 else "killed"
            by = _killer(run.notes) if outcome == "killed" else ""
            report(Outcome(run.mutant, source.changed_line(run.mutant), outcome, by, seconds))


def _write(path: Path, text: str) -> None:
    """Change a file; what Python compiled of it is told by size and second, which a fault may not change."""
    path.write_text(text, "utf-8")
    for compiled in (path.parent / "__pycache__").glob(f"{path.stem}.*.pyc"):
        compiled.unlink()


def _killer(notes: Path) -> str:
    failed = json.loads(notes.read_text())["failed"] if notes.exists() else []
    return failed[0] if failed else "import of the package or of the tests"


def draw(mutants: Sequence[Mutant], size: int, seed: int) -> list[Mutant]:
    """A random sample in which each file has its share, in a random order."""
    rng = random.Random(seed)
    strata: dict[str, list[Mutant]] = defaultdict(list)
    for mutant in sorted(mutants):
        strata[mutant.path].append(mutant)
    quotas = {path: size * len(found) / len(mutants) for path, found in strata.items()}
    counts = {path: math.floor(quota) for path, quota in quotas.items()}
    short = min(size, len(mutants)) - sum(counts.values())
    for path in sorted(quotas, key=lambda path: counts[path] - quotas[path])[:short]:
        counts[path] += 1
    chosen = [m for path, found in strata.items() for m in rng.sample(found, min(counts[path], len(found)))]
    rng.shuffle(chosen)
    return chosen


def interval(killed: int, n: int) -> tuple[float, float]:
    """Wilson's interval at 95% for a share."""
    z, share = 1.959964, killed / n
    middle = (share + z**2 / (2 * n)) / (1 + z**2 / n)
    half = z * math.sqrt(share * (1 - share) / n + z**2 / (4 * n**2)) / (1 + z**2 / n)
    return middle - half, middle + half


def table(outcomes: Iterable[Outcome], totals: Counter[str]) -> str:
    """Figures of each file, in Markdown."""
    counts: dict[str, Counter[str]] = defaultdict(Counter)
    for outcome in outcomes:
        counts[outcome.mutant.path][outcome.outcome] += 1
        counts["all"][outcome.outcome] += 1
    lines = ["| file | mutants | tried | killed | timed out | survived |", "|---|---|---|---|---|---|"]
    for path in [*sorted(set(counts) - {"all"}), "all"]:
        c, total = counts[path], totals[path] if path != "all" else totals.total()
        survived = c["survived"] + c["not run"]
        lines.append(f"| {path} | {total} | {c.total()} | {c['killed']} | {c['timed out']} | {survived} |")
    c = counts["all"]
    noticed = c["killed"] + c["timed out"]
    low, high = interval(noticed, c.total())
    lines.append(
        f"\nNoticed: {noticed} of {c.total()}, {noticed / c.total():.1%} (95%: {low:.1%} to {high:.1%})."
    )
    return "\n".join(lines)


def main() -> None:
    """Command line."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--sample", type=int, help="number of mutants drawn at random; all without it")
    parser.add_argument("--seed", type=int, default=0, help="of the sample")
    parser.add_argument("--files", nargs="+", default=["*"], help="patterns of files to mutate")
    parser.add_argument(
        "--only",
        type=Path,
        help="a file with names of mutants to run again, which replace their earlier outcomes",
    )
    parser.add_argument("--minutes", type=float, default=math.inf, help="no mutant is begun later than this")
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--out", type=Path, default=Path("results/mutants"))
    arguments = parser.parse_args()

    work = arguments.out.absolute()
    work.mkdir(parents=True, exist_ok=True)
    paths = sorted({str(p.relative_to(ROOT)) for pattern in TARGETS for p in ROOT.glob(pattern)})
    sources = {path: Source(ROOT, path) for path in paths}
    mutants = [
        mutant
        for path, source in sources.items()
        if any(fnmatch.fnmatch(path, pattern) for pattern in arguments.files)
        for mutant in source.mutants()
    ]
    totals = Counter(mutant.path for mutant in mutants)
    print(f"{len(mutants)} mutants in {len(totals)} files.", flush=True)
    if arguments.only:
        names = set(arguments.only.read_text().split())
        mutants = [mutant for mutant in mutants if mutant.name in names]
    elif arguments.sample:
        mutants = draw(mutants, arguments.sample, arguments.seed)
    tests = sorted({t for found in TARGETS.values() for t in found})
    for library in _LIBRARIES:
        importlib.import_module(library)
    baseline = _baseline(work, tests, arguments.jobs)

    kept = work / "outcomes.json"
    outcomes: list[Outcome] = []
    if arguments.only and kept.exists():
        population = {mutant.name: mutant for path in paths for mutant in sources[path].mutants()}
        outcomes += [
            Outcome(**found | {"mutant": population[found["mutant"]]})
            for found in json.loads(kept.read_text())
            if found["mutant"] in population
        ]

    def keep(outcome: Outcome) -> None:
        """Print an outcome and write it down at once: a run that is stopped has told what it found."""
        outcomes[:] = [o for o in outcomes if o.mutant != outcome.mutant] + [outcome]
        kept.write_text(json.dumps([vars(o) | {"mutant": o.mutant.name} for o in outcomes], indent=1))
        mutant, (old, new) = outcome.mutant, outcome.change
        print(
            f"{outcome.outcome:<9} {outcome.seconds:5.1f} s  {mutant.name}  line {mutant.line}  {outcome.by}",
            flush=True,
        )
        if outcome.outcome in ("survived", "not run"):
            print(f"    - {old}\n    + {new}", flush=True)

    deadline = time.monotonic() + 60 * arguments.minutes
    run_mutants(mutants, sources, baseline, work, arguments.jobs, deadline, keep)
    summary = table(outcomes, totals)
    (work / "table.md").write_text(summary + "\n")
    print(f"\n{summary}")


if __name__ == "__main__":
    main()
