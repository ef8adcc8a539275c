"""A quick version of ``python -m tests.faults``, and what shows that it would find something."""

import os
import random
import re
import subprocess
import sys
import warnings
from pathlib import Path

import pytest

from tests.faults import jobs
from tests.faults.harness import Job, can_mount, try_job
from tests.faults.jobs import JOBS
from tests.private_names import _ledger, transaction

ROOT = Path(__file__).parents[2]

pytestmark = [pytest.mark.skipif(not Path("/proc/self/fd").exists(), reason="needs Linux"), pytest.mark.slow]


def test_kills_and_cancellations_leave_everything_whole_and_charged():
    command = [sys.executable, "-m", "tests.faults", "--quick", "--rounds", "1"]
    environment = {**os.environ, "OMP_NUM_THREADS": "1"}
    done = subprocess.run(
        command, capture_output=True, text=True, timeout=500, cwd=ROOT, env=environment, check=False
    )
    assert done.returncode == 0, done.stderr
    rows = [re.split(r"  +", line) for line in done.stdout.splitlines()]
    assert rows[0] == ["what", "fault", "rounds", "struck", "findings"]
    assert {row[0] for row in rows[1:-2]} == {kind.name for kind in JOBS}
    rounds, struck, findings = map(int, rows[-1][1:])
    assert findings == 0 and struck > rounds / 2 > 10


@pytest.fixture
def found():
    """What is found in some rounds of a fault."""

    def run(job, kind, n_rounds=6):
        with warnings.catch_warnings(action="ignore"):
            return try_job(job, kind, n_rounds, random.Random(0)).findings

    return run


class HalfWritten(Job):
    """Writes a file in parts, and takes any file for a result."""

    name = "half-written file"
    size = 3000

    def run(self, folder, say):
        with (folder / "file").open("wb", buffering=0) as file:
            for _ in range(30):
                file.write(bytes(100))

    def check(self, folder, said):
        path = folder / "file"
        assert not path.exists() or len(path.read_bytes()) == 3000


@pytest.mark.parametrize("kind", ["call", "system call", "cancel", "file limit"])
def test_a_half_written_file_would_be_found(found, kind):
    assert found(HalfWritten(), kind)


@pytest.mark.skipif(not can_mount(), reason="needs the right to mount file systems")
def test_a_file_that_fills_the_disk_would_be_found(found):
    assert found(HalfWritten(), "full disk")


class Late(jobs.Fit):
    """A fit whose former results are lost."""

    def run(self, folder, say):
        (folder / "model.safetensors").unlink()
        super().run(folder, say)


def test_a_result_that_is_lost_for_a_while_would_be_found(found):
    assert any("model.safetensors" in finding for finding in found(Late(), "call"))


def test_a_release_before_its_charge_would_be_found(found, monkeypatch):
    charge = transaction.charge_together
    monkeypatch.setattr(transaction, "charge_together", lambda requests: [None] * len(requests))
    with pytest.raises(AssertionError, match="a release with 0 charges"):
        found(jobs.Fit(), "call")
    monkeypatch.setattr(transaction, "charge_together", charge)


def test_a_charge_that_is_not_counted_would_be_found(found, monkeypatch):
    monkeypatch.setattr(_ledger, "write_account", lambda connection, account: None)
    with pytest.raises(AssertionError):
        found(jobs.Charges(), "call")
