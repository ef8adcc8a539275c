"""A process that is killed leaves no lock behind that others wait for."""

import os
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from tests.private_names import progress_bar
from tests.stand_ins import Terminal

ROOT = Path(__file__).parents[2]


FIT = """
import os, signal, sys
import numpy as np
from tqdm import tqdm
from skmixdp import MixedDPLogisticRegression
lock = tqdm.get_lock().mp_lock  # which forked processes share
child = os.fork()
if child == 0:
    lock.acquire()
    os.kill(os.getpid(), signal.SIGKILL)
os.waitpid(child, 0)
assert not lock.acquire(block=False)
X, y = np.random.default_rng(0).normal(size=(30, 3)), np.arange(30) % 2
for verbose in (0, 1):
    head = MixedDPLogisticRegression(delta=1e-3, n_steps=2, classes=[0, 1], verbose=verbose)
    print(head.fit(X, y).n_iter_, flush=True)
os._exit(0)  # tqdm would wait for its lock at the end
"""


@pytest.mark.slow
@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
def test_a_child_that_was_killed_with_tqdms_lock_stops_no_fit():
    command = [sys.executable, "-c", FIT]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, cwd=ROOT, check=False)
    assert (done.returncode, done.stdout) == (0, "2\n2\n")
    assert "2/2" in done.stderr


def test_bars_start_no_threads(monkeypatch):
    monkeypatch.setattr(sys, "stderr", Terminal())
    before = threading.active_count()
    for verbose in (0, 1):
        assert list(progress_bar(range(3), verbose=verbose, desc="rows")) == [0, 1, 2]
        with progress_bar(total=3, verbose=verbose, desc="rows") as bar:
            bar.update(3)
    assert threading.active_count() == before
    assert "3/3" in sys.stderr.getvalue()


def test_a_hidden_bar_shows_nothing_and_passes_items_on(capsys):
    for options in ({"verbose": 0}, {"verbose": 1, "hidden": ""}):
        assert list(progress_bar(iter("ab"), **options)) == ["a", "b"]
        assert progress_bar(total=2, **options) is None
    assert capsys.readouterr() == ("", "")
