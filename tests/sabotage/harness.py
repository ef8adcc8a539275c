"""Breaks a copy of the package on purpose, and runs the tests that have to notice."""

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from .sabotages import Edit, Sabotage
from .source import Definition, definitions, sources_in

ROOT = Path(__file__).parents[2]

#: Name and folder of what is broken.
PACKAGE = "skmixdp"

#: Seconds of the processor within which a sabotage must be found.
LIMIT = 60.0

#: Seconds after which tests are given up, on however busy a machine.
_PATIENCE = 300.0

#: All that tests need of the repository.
_COPIED = (PACKAGE, "tests", "pyproject.toml", "setup.cfg")


@dataclass(frozen=True)
class Outcome:
    """What became of named tests."""

    passed: int
    skipped: int
    failed: tuple[str, ...]
    broken: tuple[str, ...]
    seconds: float
    output: str

    @property
    def caught(self) -> bool:
        """Whether a test noticed, by an assertion and within the limit."""
        return bool(self.failed) and not self.broken and self.seconds <= LIMIT


def copy_to(folder: Path) -> None:
    """Copy package and tests, without what was compiled of them."""
    for name in _COPIED:
        source = ROOT / name
        if source.is_dir():
            shutil.copytree(source, folder / name, ignore=shutil.ignore_patterns("__pycache__"))
        else:
            shutil.copy(source, folder / name)


def place_of(edit: Edit, sources: Mapping[Path, str]) -> Definition:
    """What an edit changes in the sources of the package.

    Raises
    ------
    ValueError
        If what is to be replaced does not occur exactly once: the sabotage would do nothing, or
        something else.
    """
    places = [found for found in definitions(sources, edit.name) for _ in found.spans_of(edit.old)]
    if len(places) != 1:
        raise ValueError(
            f"{edit.old!r} occurs {len(places)} times in what is named {edit.name} and must occur once; "
            "write the sabotage anew for the code as it is."
        )
    return places[0]


def apply(sabotage: Sabotage, folder: Path) -> None:
    """Break the package in a folder."""
    for edit in sabotage.edits:
        place = place_of(edit, sources_in(folder / PACKAGE))
        place.path.write_text(place.edited(edit.old, edit.new), encoding="utf-8")


def run_tests(folder: Path, tests: Sequence[str], patience: float = _PATIENCE) -> Outcome:
    """Run tests of a copy of the repository in a process of their own, up to the first that fails."""
    report = folder / "outcomes.json"
    # What an outer run of pytest has set is not meant for this one.
    inherited = {name: value for name, value in os.environ.items() if not name.startswith("PYTEST_")}
    environment = {**inherited, "PYTHONPATH": str(folder), "OMP_NUM_THREADS": "1"}
    try:
        done = subprocess.run(
            [sys.executable, "-m", "tests.sabotage.outcomes", str(report), *tests],
            cwd=folder,
            env=environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            timeout=patience,
            check=False,
        )
    except subprocess.TimeoutExpired:
        return Outcome(0, 0, (), (f"no verdict within {patience:g} s",), patience, "")
    if not report.exists():
        return Outcome(0, 0, (), (f"pytest ended with {done.returncode}, early",), 0.0, done.stdout)
    found = json.loads(report.read_text(encoding="utf-8"))
    broken = list(found["broken"])
    if done.returncode not in (0, 1):
        broken.append(f"pytest ended with {done.returncode}")
    return Outcome(
        found["passed"],
        found["skipped"],
        tuple(found["failed"]),
        tuple(broken),
        found["seconds"],
        done.stdout,
    )


def outcome_of(sabotage: Sabotage, folder: Path) -> Outcome:
    """What becomes of a sabotage's tests in a copy that is made in an empty folder."""
    copy_to(folder)
    apply(sabotage, folder)
    return run_tests(folder, sabotage.tests)
