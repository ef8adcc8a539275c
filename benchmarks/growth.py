"""``python -m benchmarks.growth``: how the time of a step grows, as CSV and a picture.

The sums of one step on one thread, in CPU time, over two decades of rows, features, outputs and steps. Then
one pass over Dask rows on 1, 2 and 4 worker processes of one thread, on the clock and in CPU time of all
workers together. What does not vary is in :data:`CENTRE` and :data:`DASK`.

A power is fitted to each size: time grows as ``size ** power``. It is 1 for linear growth, and lower if sizes
share a fixed cost. Ideal workers have -1 on the clock, as far as there are cores, and 0 in CPU time.
"""

import argparse
import importlib.util
import os
import statistics
import time
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from threadpoolctl import threadpool_limits

from skmixdp._linear import classification_loss
from skmixdp._rows import InMemoryRows, PrivateQuery, Request
from skmixdp.components import L2Clip
from skmixdp.components.clipping import clipped_residuals

from .problems import Size, make_problem
from .scale import passes_on_workers

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

_COLOURS = {"CPU": "C0", "wall": "C1"}


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.growth", description=__doc__)
    parser.add_argument("--out", type=Path, default=Path("results/benchmarks"))
    parser.add_argument("--shrink", type=int, default=1, help="divide sizes, for a quick look")
    parser.add_argument("--repetitions", type=int, default=3)
    options = parser.parse_args(arguments)
    options.out.mkdir(parents=True, exist_ok=True)
    with threadpool_limits(1):
        found = measure_growth(options.shrink, options.repetitions)
    if importlib.util.find_spec("distributed") is None:
        print("distributed is not installed, so passes on workers are left out.")
    else:
        found = pd.concat([found, measure_workers(options.shrink, options.repetitions)], ignore_index=True)
    found.to_csv(options.out / "growth.csv", index=False)
    plot(found, options.out / "growth.png")
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
