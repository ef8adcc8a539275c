"""``python -m benchmarks.growth``: how the time of steps and fits grows, as CSV, a table and a picture.

The sums of one step on one thread, in CPU time, over two decades of rows, features, outputs and steps. Then
one pass over Dask rows on 1, 2 and 4 worker processes of one thread, on the clock and in CPU time of all
workers together. Last, fits of ten steps without public rows to each of :data:`CONTAINERS`: CPU time, and
peak anonymous memory beyond what was there before. What does not vary is in :data:`CENTRE`, :data:`DASK` and
:data:`FIT`.

A power is fitted to each size: time grows as ``size ** power``. It is 1 for linear growth, and lower if sizes
share a fixed cost. Ideal workers have -1 on the clock, as far as there are cores, and 0 in CPU time.
"""

import argparse
import importlib.util
import multiprocessing
import os
import statistics
import tempfile
import time
import warnings
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import scipy.sparse as sp
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from threadpoolctl import threadpool_limits

from skmixdp import MixedDPLogisticRegression
from skmixdp._linear.losses import classification_loss
from skmixdp._rows.blockwise import InMemoryRows
from skmixdp._rows.source import PrivateQuery, Request
from skmixdp.components import L2Clip
from skmixdp.components.clipping import clipped_residuals
from skmixdp.datasets import open_rows

from .problems import Size, make_problem
from .scale import anonymous_mib, passes_on_workers, peak_anonymous_mib

CENTRE = {"n": 20_000, "d_in": 256, "k": 30, "steps": 3}

#: Two decades of each.
GRIDS = {
    "n": [2_000, 20_000, 200_000],
    "d_in": [64, 640, 6_400],
    "k": [10, 100, 1_000],
    "steps": [1, 10, 100],
}

#: Rows on workers, and how many workers.
DASK = {"n": 400_000, "d_in": 256, "k": 30}
WORKERS = (1, 2, 4)

#: Rows of a fit, and what varies in it.
FIT = {"n": 40_000, "d": 60, "k": 4}
FIT_GRIDS = {"n": [10_000, 40_000, 160_000], "d": [15, 60, 240], "k": [4, 20, 100]}

#: What holds the rows, and the library that it needs beyond those of this package.
CONTAINERS = {
    "array": "",
    "memory map": "",
    "sparse": "",
    "pandas": "",
    "polars": "polars",
    "CSV": "",
    "Parquet": "pyarrow",
    "Dask": "dask",
}

#: Entries of a sparse row, and rows of a row group or chunk.
_ENTRIES, _CHUNK = 10, 10_000

_COLOURS = {"CPU": "C0", "wall": "C1"}


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.growth", description=__doc__)
    parser.add_argument("--out", type=Path, default=Path("results/benchmarks"))
    parser.add_argument("--shrink", type=int, default=1, help="divide sizes, for a quick look")
    parser.add_argument("--repetitions", type=int, default=3, help="a third as many of fits")
    options = parser.parse_args(arguments)
    options.out.mkdir(parents=True, exist_ok=True)
    with threadpool_limits(1):
        found = measure_growth(options.shrink, options.repetitions)
    if importlib.util.find_spec("distributed") is None:
        print("distributed is not installed, so passes on workers are left out.", flush=True)
    else:
        found = pd.concat([found, measure_workers(options.shrink, options.repetitions)], ignore_index=True)
    found.to_csv(options.out / "growth.csv", index=False)
    plot(found, options.out / "growth.png")
    if Path("/proc/self/status").exists():
        fits = measure_containers(options.shrink, -(-options.repetitions // 3))
        fits.to_csv(options.out / "containers.csv", index=False)
        (options.out / "containers.md").write_text(table := containers_table(fits))
        print(table)
    for (name, clock), power in slopes(found).items():
        print(f"{name}: {clock} time grows with power {power:.2f}")
    print(f"{n_cores()} cores, load {os.getloadavg()[0]:.1f}" if hasattr(os, "getloadavg") else "")


def measure_growth(shrink: int = 1, repetitions: int = 3) -> pd.DataFrame:
    """Seconds for each value of each size: columns size, value, clock (always "CPU") and seconds."""
    lines = []
    for name, values in GRIDS.items():
        for value in values:
            sizes = {**CENTRE, name: value}
            sizes = {size: v if size == "steps" else max(3, v // shrink) for size, v in sizes.items()}
            seconds = _seconds(**sizes, of=repetitions)
            lines.append({"size": name, "value": sizes[name], "clock": "CPU", "seconds": seconds})
            print(f"{name} {sizes[name]:,}: {1e3 * seconds:.3g} ms", flush=True)
    return pd.DataFrame(lines)


def measure_workers(shrink: int = 1, repetitions: int = 3) -> pd.DataFrame:
    """The same columns for passes on Dask workers: the clock is "wall" or "CPU", of all workers together."""
    sizes = {**DASK, "n": DASK["n"] // shrink}
    passes = passes_on_workers(WORKERS, sizes["n"], sizes["d_in"], sizes["k"], turns=repetitions)
    lines = [
        {"size": "workers", "value": count, "clock": clock, "seconds": seconds}
        for count, spent in passes.items()
        for clock, seconds in (("wall", spent.wall), ("CPU", spent.cpu))
    ]
    return pd.DataFrame(lines)


def measure_containers(shrink: int = 1, repetitions: int = 3) -> pd.DataFrame:
    """Columns container, size, value, seconds of CPU, and MiB, the peak beyond the memory before.

    Rows are written by one process and read by another one, whose memory holds nothing else.
    """
    context: Any = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload([measure_containers.__module__])
    lines = []
    with tempfile.TemporaryDirectory() as folder, context.Pool(1, maxtasksperchild=1) as pool:
        for container, library in CONTAINERS.items():
            if library and importlib.util.find_spec(library) is None:
                print(f"{library} is not installed, so {container} is left out.", flush=True)
                continue
            for name, value in [(name, value) for name, values in FIT_GRIDS.items() for value in values]:
                sizes = {**FIT, name: value}
                sizes["n"] //= shrink
                pool.apply(_write, (container, folder, sizes))
                seconds, mib = pool.apply(_fit, (container, folder, sizes["k"], repetitions))
                line = {"container": container, "size": name, "value": sizes[name]}
                lines.append({**line, "seconds": seconds, "MiB": mib})
                print(f"{container}, {name} {sizes[name]:,}: {seconds:.2f} s, {mib:.1f} MiB", flush=True)
    return pd.DataFrame(lines)


def _write(container: str, folder: str, sizes: dict[str, int]) -> None:
    """Rows and labels in files of the folder, as :func:`_fit` opens them."""
    problem, path = make_problem(Size(sizes["n"], sizes["d"], sizes["k"], 0)), Path(folder)
    X, y = problem.X, problem.y
    np.save(path / "y.npy", y)
    frame = pd.DataFrame(X).add_prefix("x").assign(label=y)
    if container == "CSV":
        frame.to_csv(path / "rows.csv", index=False)
    elif container == "Parquet":
        frame.to_parquet(path / "rows.parquet", row_group_size=_CHUNK)
    elif container == "sparse":
        columns = np.random.default_rng(0).integers(sizes["d"], size=(len(X), _ENTRIES))
        ends = np.arange(0, columns.size + 1, _ENTRIES)
        rows = sp.csr_array((X[:, :_ENTRIES].ravel(), columns.ravel(), ends), shape=X.shape)
        rows.sum_duplicates()
        sp.save_npz(path / "rows.npz", rows)
    else:
        np.save(path / "rows.npy", X)


def _open(container: str, folder: Path) -> Any:
    if container in ("CSV", "Parquet"):
        return open_rows(folder / f"rows.{container.lower()}", label="label")
    if container == "sparse":
        return sp.load_npz(folder / "rows.npz")
    X = np.load(folder / "rows.npy", mmap_mode="r" if container == "memory map" else None)
    if container == "pandas":
        return pd.DataFrame(X)
    if container == "polars":
        import polars as pl

        return pl.DataFrame(X)
    if container == "Dask":
        import dask.array as da

        return da.from_array(X, chunks=(_CHUNK, X.shape[1]))
    return X


def _fit(container: str, folder: str, k: int, repetitions: int) -> tuple[float, float]:
    """CPU seconds of a fit, and the MiB that the first one takes."""
    warnings.simplefilter("ignore")
    rows, y = _open(container, Path(folder)), np.load(Path(folder) / "y.npy")
    labels = () if container in ("CSV", "Parquet") else (y,)
    head = MixedDPLogisticRegression(n_steps=10, classes=range(k))
    times = []

    def fit() -> None:
        start = time.process_time()
        head.fit(rows, *labels)
        times.append(time.process_time() - start)

    with threadpool_limits(1):
        before = anonymous_mib()
        peak = peak_anonymous_mib(fit) - before
        for _ in range(repetitions - 1):
            fit()
    return statistics.median(times), peak


def containers_table(fits: pd.DataFrame) -> str:
    """A line for each container in Markdown: the fit of :data:`FIT`, and powers of time and peak."""
    names = [f"{what} in {name}" for what in ("time", "peak") for name in FIT_GRIDS]
    lines = [["container", "s", "MiB", *names], ["---"] * (3 + len(names))]
    for container, rows in fits.groupby("container", sort=False):
        middle = rows[rows["size"] == "n"].iloc[1]
        powers = [
            round(np.polyfit(np.log(group["value"]), np.log(group[what].clip(lower=0.1)), 1)[0], 2) + 0.0
            for what in ("seconds", "MiB")
            for _, group in rows.groupby("size", sort=False)
        ]
        numbers = [f"{middle['seconds']:.2f}", f"{middle['MiB']:.0f}", *(f"{power:.2f}" for power in powers)]
        lines.append([str(container), *numbers])
    return "".join(f"| {' | '.join(line)} |\n" for line in lines)


def slopes(found: pd.DataFrame) -> dict[tuple[str, str], float]:
    """Power with which each kind of time grows in each size, by least squares of the logarithms."""
    return {
        (str(name), str(clock)): float(np.polyfit(np.log(group["value"]), np.log(group["seconds"]), 1)[0])
        for (name, clock), group in found.groupby(["size", "clock"], sort=False)
    }


def plot(found: pd.DataFrame, path: Path) -> None:
    """Time against each size, with its fitted power and a line of slope 1, or -1 for workers."""
    names = list(found["size"].unique())
    figure = Figure(figsize=(2.6 * len(names), 3.2), layout="constrained")
    powers = slopes(found)
    for axes, name in zip(np.ravel(figure.subplots(1, len(names))), names, strict=True):
        rows = found[found["size"] == name]
        for clock, group in rows.groupby("clock", sort=False):
            label = f"{clock} time: power {powers[name, str(clock)]:.2f}"
            axes.loglog(group["value"], group["seconds"], "o-", color=_COLOURS[str(clock)], label=label)
        _ideal(axes, rows[rows["clock"] == rows["clock"].iloc[0]])
        axes.set_xlabel(name)
        axes.legend(fontsize=7)
    figure.axes[0].set_ylabel("seconds")
    figure.suptitle(f"Time of a step; one thread, and Dask workers on a machine with {n_cores()} cores")
    figure.savefig(path, dpi=150)


def _ideal(axes: Axes, group: pd.DataFrame) -> None:
    """A line of linear growth; of workers, the time of one divided by their number."""
    values, seconds = group["value"].to_numpy(), group["seconds"].to_numpy()
    if group["size"].iloc[0] != "workers":
        axes.plot(values, seconds[-1] * values / values[-1], ":", color="black", label="linear")
        return
    axes.plot(values, seconds[0] / values, ":", color="black", label="a core for each")
    for scale, axis in ((axes.set_xscale, axes.xaxis), (axes.set_yscale, axes.yaxis)):
        scale("log", base=2)
        axis.set_major_formatter("{x:g}")


def n_cores() -> int:
    """Number of cores that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def _seconds(n: int, d_in: int, k: int, steps: int, of: int) -> float:
    problem = make_problem(Size(n, d_in, k, 0))
    rows, loss, clip = InMemoryRows(problem.X, problem.y), classification_loss(k), L2Clip(0.5)
    request = Request(PrivateQuery(problem.W, lambda Z, block: clipped_residuals(Z, block, loss, clip), ()))
    spent = []
    rows.private_sums([request])
    for _ in range(of):
        start = time.process_time()
        for _ in range(steps):
            rows.private_sums([request])
        spent.append(time.process_time() - start)
    return statistics.median(spent)


if __name__ == "__main__":
    main()
