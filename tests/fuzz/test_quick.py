"""A few cases of every target, the same each time; ``make fuzz`` runs 50,000 new ones."""

import json
import subprocess
import sys

import pytest

from .harness import run
from .targets import TARGETS


@pytest.mark.slow
@pytest.mark.filterwarnings("default")
@pytest.mark.parametrize("target", TARGETS, ids=lambda target: target.name)
def test_hostile_cases_are_refused_or_right(target):
    n_cases = 5 if target.fits else 10
    tally, failures = run(target, n_cases, first_seed=1, shrink=False)
    assert not failures, failures[0]
    assert tally.cases >= n_cases and tally.ended


def test_a_broken_promise_is_found():
    """Otherwise the other tests would show nothing."""
    from .harness import PromiseError, Target, attempt, case, check_html, check_message, finite

    def quotes(draw, tally):
        with case(tally):
            attempt(
                tally,
                lambda: draw.pick(()) if draw else None,
                IndexError,
                ValueError,
                secrets=["empty range"],
            )

    for action in (
        lambda: check_message("a\nb" * 9),
        lambda: check_message("something is wrong", ["epsilon"]),
        lambda: check_html("<script>", []),
        lambda: finite("x", [float("nan")]),
    ):
        with pytest.raises(PromiseError):
            action()
    assert run(Target("broken", 1, quotes), 3, 1, shrink=False)[1]


def forever():
    while True:
        pass


def test_what_is_unpickled_written_elsewhere_or_late_is_found(tmp_path, monkeypatch):
    import pickle

    from . import harness
    from .harness import PromiseError, Tally, case

    with pytest.raises(PromiseError, match="pickle"), case(Tally()):
        pickle.loads(b"cbuiltins\nlen\n.")
    with pytest.raises(PromiseError, match="outside"), case(Tally(), tmp_path):
        (tmp_path / ".." / "other.txt").write_text("x")
    monkeypatch.setattr(harness, "CPU_SECONDS", 0.05)
    with pytest.raises(PromiseError, match="took more"), case(Tally()):
        forever()


@pytest.mark.slow
def test_the_command_counts_its_cases(tmp_path):
    command = [sys.executable, "-m", "tests.fuzz", "--cases", "30", "--target", "JSON", "--seed", "1"]
    ended = subprocess.run(command, capture_output=True, text=True, check=True)
    line = next(line for line in ended.stdout.splitlines() if line.startswith("JSON"))
    assert int(line.split()[1]) >= 30 and "0 failures" in ended.stdout


@pytest.mark.slow
def test_atheris_counts_its_cases(tmp_path):
    pytest.importorskip("atheris")
    counts = tmp_path / "counts.json"
    command = [sys.executable, "-m", "tests.fuzz.coverage_guided", "event", "40", "1", str(counts)]
    subprocess.run(command, capture_output=True, check=True)
    assert json.loads(counts.read_text())["cases"] >= 40
