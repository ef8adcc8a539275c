"""Rows larger than memory, and rows on several workers: time and memory of passes and of a fit.

``python -m benchmarks.scale --out results/scale`` writes ``memory_map.md`` and ``dask.md``. The file of
rows is made in ``--out`` and removed afterwards. Each figure is printed as soon as it is measured.
"""

import argparse
import os
import statistics
import threading
import time
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from skmixdp import MixedDPLogisticRegression
from skmixdp._linear.losses import SoftmaxLoss
from skmixdp._rows.row_map import RowMap
from skmixdp._rows.source import PrivateQuery, PrivateRows, Request
from skmixdp._rows.table import ArrayTable, special_table
from skmixdp.components.clipping import L2Clip, clipped_residuals

Array = NDArray[Any]

_D, _K, _N_PUB, _BLOCK = 512, 10, 500, 20_000
_STEPS = 10

#: Chunks of Dask rows: as many for each of 1, 2 or 4 workers.
_CHUNKS = 16

#: Rows that are held in memory for comparison; their time is multiplied up.
_PART = 200_000


@dataclass(frozen=True)
class Spent:
    """Seconds on the clock, and of this process's CPU."""

    wall: float
    cpu: float

    def __str__(self) -> str:
        return f"{self.wall:.1f} s ({self.cpu:.1f} s CPU)"


def spent(work: Callable[[], object]) -> Spent:
    wall, cpu = time.perf_counter(), time.process_time()
    work()
    return Spent(time.perf_counter() - wall, time.process_time() - cpu)


def write_rows(path: Path, n: int, seed: int = 0) -> Array:
    """Gaussian classes in half precision, block by block; returns the labels."""
    rng = np.random.default_rng(seed)
    centres = rng.standard_normal((_K, _D), dtype=np.float32)
    y = rng.integers(_K, size=n)
    rows = np.lib.format.open_memmap(path, "w+", np.float16, (n, _D))
    for start in range(0, n, _BLOCK):
        labels = y[start : start + _BLOCK]
        block = rng.integers(-128, 128, size=(len(labels), _D), dtype=np.int8) / np.float32(32)
        rows[start : start + _BLOCK] = block + centres[labels]
    rows.flush()
    return y


def forget(path: Path) -> None:
    """Have the system drop the file's pages."""
    with path.open("rb") as file:
        os.fsync(file.fileno())
        os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)


def cold_read(path: Path) -> Spent:
    """Reading the file from disk, and nothing else."""
    forget(path)
    buffer = bytearray(2**24)

    def read() -> None:
        with path.open("rb", buffering=0) as file:
            while file.readinto(buffer):
                pass

    return spent(read)


def anonymous_mib() -> float:
    """Resident memory that is no page of a file, in MiB."""
    status = Path("/proc/self/status").read_text()
    return int(next(line for line in status.splitlines() if line.startswith("RssAnon")).split()[1]) / 1024


def peak_anonymous_mib(work: Callable[[], object]) -> float:
    peak, over = anonymous_mib(), threading.Event()

    def watch() -> None:
        nonlocal peak
        while not over.wait(0.01):
            peak = max(peak, anonymous_mib())

    watcher = threading.Thread(target=watch)
    watcher.start()
    try:
        work()
    finally:
        over.set()
        watcher.join()
    return peak


def one_pass(rows: PrivateRows, W: Array, k: int = _K) -> Callable[[], object]:
    """The private part of one step."""
    loss, clip = SoftmaxLoss(k), L2Clip(0.5)
    request = Request(PrivateQuery(W, lambda Z, block: clipped_residuals(Z, block, loss, clip), ()))
    return lambda: rows.private_sums([request])


class Figures:
    """A table of two columns in Markdown, each line of which is printed as soon as it is there."""

    def __init__(self) -> None:
        self.text = ""
        for line in ("| | |", "| --- | --- |"):
            self._add(line)

    def tell(self, name: str, value: object) -> None:
        self._add(f"| {name} | {value} |")

    def _add(self, line: str) -> None:
        self.text += line + "\n"
        print(line, flush=True)


def measure_memory_map(folder: Path, n: int, figures: Figures) -> None:
    path = folder / "rows.npy"
    try:
        figures.tell("rows, features, classes", f"{n:,} x {_D}, {_K}")
        y = write_rows(path, n)
        figures.tell("file", f"{path.stat().st_size / 2**30:.1f} GiB")
        _measure_memory_map(path, y, n, figures.tell)
    finally:
        path.unlink(missing_ok=True)


def _measure_memory_map(path: Path, y: Array, n: int, tell: Callable[[str, object], None]) -> None:
    X = np.load(path, mmap_mode="r")
    X_pub, y_pub = np.array(X[:_N_PUB], np.float32), y[:_N_PUB]
    W = np.random.default_rng(1).standard_normal((_K, _D + 1))
    row_map = RowMap.of(X_pub, True, True, True)
    read = cold_read(path)
    tell("cold read of the file", read)
    single = np.dtype(np.float32)

    clf = MixedDPLogisticRegression(n_steps=_STEPS, delta=1e-8)
    forget(path)
    fit: list[Spent] = []
    before = anonymous_mib()
    peak = peak_anonymous_mib(lambda: fit.append(spent(lambda: clf.fit(X, y, X_pub=X_pub, y_pub=y_pub))))
    tell(f"fit of {_STEPS} steps from a cold file, checks included", fit[0])
    tell(f"peak RssAnon of that fit (before it: {before:.0f} MiB)", f"{peak:.0f} MiB")

    table = special_table(X)
    assert table is not None
    mapped = one_pass(table.private_rows(y, row_map, single, exact=False), W)
    forget(path)
    cold = spent(mapped)
    tell("one pass, cold", cold)
    part = ArrayTable(np.array(X[:_PART], np.float32))
    held = one_pass(part.private_rows(y[:_PART], row_map, single, exact=False), W)
    held()
    warm, memory = [], []
    for _ in range(2):  # in turns, so that both meet the same disturbances
        memory += [spent(held) for _ in range(3)]
        warm.append(spent(mapped))
    scale = n / min(_PART, n)
    held_wall, held_cpu = (
        scale * statistics.median(getattr(s, what) for s in memory) for what in ("wall", "cpu")
    )
    warm_wall, warm_cpu = (statistics.median(getattr(s, what) for s in warm) for what in ("wall", "cpu"))
    tell("one pass, pages in memory", Spent(warm_wall, warm_cpu))
    in_memory = f"one pass over float32 rows in memory (from {min(_PART, n):,} rows)"
    tell(in_memory, Spent(held_wall, held_cpu))
    least = max(read.wall, held_wall)
    tell("cold pass / larger of cold read and pass in memory", f"{cold.wall / least:.2f}")
    tell("warm pass / larger of cold read and pass in memory", f"{warm_wall / least:.2f}")
    tell("warm pass / pass in memory, CPU time", f"{warm_cpu / held_cpu:.2f}")


def measure_dask(n: int, figures: Figures) -> None:
    """A fit's passes on one worker process and on two."""
    figures.tell("rows, features, classes, chunks", f"{n:,} x {_D}, {_K}, {_CHUNKS}")
    passes = {count: spent.wall for count, spent in passes_on_workers((1, 2), n, _D, _K, turns=15).items()}
    figures.tell("one pass, one worker process", f"{passes[1]:.2f} s")
    figures.tell("one pass, two worker processes", f"{passes[2]:.2f} s")
    figures.tell("speed-up", f"{passes[1] / passes[2]:.2f}")


def passes_on_workers(
    counts: Sequence[int], n_rows: int, d_in: int, k: int, *, turns: int
) -> dict[int, Spent]:
    """Median time of a pass over Dask rows, for each number of worker processes with one thread.

    All clusters are open at the same time and take turns. CPU time is the sum over the workers of a cluster.
    """
    import dask.array as da
    from distributed import Client, LocalCluster

    rng = np.random.default_rng(0)
    y = rng.integers(k, size=n_rows)
    W = rng.standard_normal((k, d_in + 1))
    row_map = RowMap(np.zeros(d_in), True, 0.4)
    chunks = (-(-n_rows // _CHUNKS), d_in)
    X = da.random.default_rng(0).standard_normal((n_rows, d_in), dtype=np.float32, chunks=chunks)
    with ExitStack() as open_clusters:
        passes = {}
        for count in counts:
            workers = LocalCluster(
                n_workers=count, threads_per_worker=1, processes=True, dashboard_address=":0"
            )
            client = open_clusters.enter_context(Client(open_clusters.enter_context(workers)))
            table = special_table(X)
            assert table is not None
            rows = table.private_rows(y, row_map, np.dtype(np.float32), exact=False)
            passes[count] = partial(_spent_on, client, one_pass(rows, W, k))
            passes[count]()
        found = [{count: spent_on() for count, spent_on in passes.items()} for _ in range(turns)]
    return {
        count: Spent(
            statistics.median(turn[count].wall for turn in found),
            statistics.median(turn[count].cpu for turn in found),
        )
        for count in passes
    }


def _spent_on(client: Any, work: Callable[[], object]) -> Spent:
    """Seconds on the clock, and of the CPU of all workers together."""
    with client.as_current():
        before = client.run(time.process_time)
        wall = spent(work).wall
        after = client.run(time.process_time)
    return Spent(wall, sum(after[worker] - before[worker] for worker in after))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--rows", type=int, default=5_000_000)
    parser.add_argument("--dask-rows", type=int, default=800_000)
    parser.add_argument("--parts", nargs="+", default=["memory_map", "dask"], choices=["memory_map", "dask"])
    given = parser.parse_args()
    given.out.mkdir(parents=True, exist_ok=True)
    for part in given.parts:
        figures = Figures()
        if part == "memory_map":
            measure_memory_map(given.out, given.rows, figures)
        else:
            measure_dask(given.dask_rows, figures)
        (given.out / f"{part}.md").write_text(figures.text)


if __name__ == "__main__":
    main()
