"""Rows on disk take no memory of their size; rows on workers survive the loss of a worker."""

import os
import signal
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from benchmarks import parquet
from benchmarks.scale import Figures
from skmixdp import MixedDPLogisticRegression
from skmixdp.privacy import NoiseSource
from tests.conftest import Silent

from .conftest import draw

MEASURED = """
import sys, threading, time
import numpy as np
from skmixdp import MixedDPLogisticRegression

def anonymous():
    with open("/proc/self/status") as status:
        return next(int(line.split()[1]) for line in status if line.startswith("RssAnon")) / 1024

X = np.load(sys.argv[1], mmap_mode="r")
y = np.arange(len(X)) % 10
X_pub, y_pub = np.array(X[:200], np.float32), y[:200]
MixedDPLogisticRegression(n_steps=1, random_state=0).fit(X_pub, y_pub, X_pub=X_pub, y_pub=y_pub)

def grown(rows):
    start, peak, over = anonymous(), 0.0, threading.Event()

    def watch():
        nonlocal peak
        while not over.wait(0.002):
            peak = max(peak, anonymous())

    watcher = threading.Thread(target=watch)
    watcher.start()
    MixedDPLogisticRegression(n_steps=2).fit(rows(), y, X_pub=X_pub, y_pub=y_pub).predict(X)
    over.set()
    watcher.join()
    return peak - start

print(grown(lambda: X), grown(lambda: np.array(X)))
"""


@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="memory is read from Linux's /proc")
@pytest.mark.slow
def test_a_memory_mapped_fit_and_prediction_take_little_memory(tmp_path):
    """100 MB of rows: what grows with them are some bytes of each row, not its features."""
    rows = np.lib.format.open_memmap(tmp_path / "rows.npy", "w+", np.float16, (100_000, 512))
    rng = np.random.default_rng(0)
    some = (rng.random((20_000, 512), np.float32) - 0.5).astype(np.float16)
    for start in range(0, len(rows), len(some)):
        rows[start : start + len(some)] = some[rng.permutation(len(some))]
    rows.flush()
    done = subprocess.run(
        [sys.executable, "-c", MEASURED, str(tmp_path / "rows.npy")],
        capture_output=True,
        text=True,
        check=True,
    )
    mapped, copied = map(float, done.stdout.split())
    assert mapped < 60
    assert copied > 180  # the measurement sees a copy of the rows in single precision


@pytest.fixture
def cluster():
    distributed = pytest.importorskip("distributed")
    with (
        distributed.LocalCluster(
            n_workers=2, threads_per_worker=1, processes=True, dashboard_address=None
        ) as workers,
        distributed.Client(workers) as client,
    ):
        yield client


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")  # a killed worker's connections complain
def test_a_worker_killed_in_the_middle_of_a_fit_changes_nothing(cluster, monkeypatch):
    import dask.array as da

    X, y = draw(4000, 20)
    monkeypatch.setattr(NoiseSource, "add_noise", Silent.add_noise)
    fit = {"X_pub": X[:100], "y_pub": y[:100]}
    want = MixedDPLogisticRegression(n_steps=6, random_state=0).fit(X, y, **fit)
    pids = cluster.run(os.getpid)
    assert len(set(pids.values())) == 2
    steps = []

    def kill_one(self, array, scale, grid):
        steps.append(array.shape)
        if len(steps) == 3:
            os.kill(min(pids.values()), signal.SIGKILL)
        return array

    monkeypatch.setattr(NoiseSource, "add_noise", kill_one)
    clf = MixedDPLogisticRegression(n_steps=6, random_state=0)
    clf.fit(da.from_array(X, chunks=(500, -1)), y, **fit)
    assert len(steps) == 6
    assert min(pids.values()) not in cluster.run(os.getpid).values()
    np.testing.assert_allclose(clf.coef_, want.coef_, atol=1e-6 * np.abs(want.coef_).max())
    predicted = clf.predict(da.from_array(X, chunks=(500, -1)))
    np.testing.assert_array_equal(predicted.compute(), want.predict(X))


def test_steps_over_parquet_rows_are_measured(tmp_path, monkeypatch):
    pytest.importorskip("pyarrow")
    monkeypatch.setattr(parquet, "_GROUP", 400)
    monkeypatch.setattr(parquet, "_FILE", 1000)
    parquet.measure(tmp_path, 3000, repeat=2, passes=1, figures=(figures := Figures()))
    assert "3,000 x 20, 3" in figures.text and "2 of 0.0 GiB together, each listed 2 times" in figures.text
    assert not list(tmp_path.iterdir())
