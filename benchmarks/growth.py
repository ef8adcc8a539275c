"""``python -m benchmarks.growth``: a step's time over two decades of each size, as CSV and a picture.

The sums of one step, on one thread, CPU time. What is not varied stands in :data:`CENTRE`. The
slopes in logarithmic axes are printed: 1 is linear growth, less is a fixed price that sizes share.
"""

import argparse
import math
import statistics
import time
from collections.abc import Sequence
from pathlib import Path

import pandas as pd
from matplotlib.figure import Figure
from threadpoolctl import threadpool_limits

from skmixdp._linear import classification_loss
from skmixdp._rows import InMemoryRows, Request
from skmixdp.components import L2Clip
from skmixdp.components.queries import clipped_residuals

from .problems import Size, make_problem

CENTRE = {"n": 20_000, "d_in": 256, "k": 30, "steps": 3}

#: Two decades of each.
GRIDS = {
    "n": [2_000, 20_000, 200_000],
    "d_in": [64, 640, 6_400],
    "k": [10, 100, 1_000],
    "steps": [1, 10, 100],
}


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.growth", description=__doc__)
    parser.add_argument("--out", type=Path, default=Path("results/benchmarks"))
    parser.add_argument("--shrink", type=int, default=1, help="divide sizes, for a quick look")
    parser.add_argument("--repetitions", type=int, default=3)
    options = parser.parse_args(arguments)
    options.out.mkdir(parents=True, exist_ok=True)
    with threadpool_limits(1):
        found = measure_growth(options.shrink, options.repetitions)
    found.to_csv(options.out / "growth.csv", index=False)
    plot(found, options.out / "growth.png")
    for name, slope in slopes(found).items():
        print(f"{name}: time grows with power {slope:.2f}")


def measure_growth(shrink: int = 1, repetitions: int = 3) -> pd.DataFrame:
    """Seconds of CPU time for each value of each size: columns size, value, seconds."""
    lines = []
    for name, values in GRIDS.items():
        for value in values:
            sizes = {**CENTRE, name: value}
            sizes = {size: v if size == "steps" else max(3, v // shrink) for size, v in sizes.items()}
            lines.append({"size": name, "value": sizes[name], "seconds": _seconds(**sizes, of=repetitions)})
    return pd.DataFrame(lines)


def slopes(found: pd.DataFrame) -> dict[str, float]:
    """Power with which the time grows over the whole range of each size."""
    powers = {}
    for name, group in found.groupby("size", sort=False):
        first, last = group.iloc[0], group.iloc[-1]
        powers[str(name)] = math.log(last.seconds / first.seconds) / math.log(last.value / first.value)
    return powers


def plot(found: pd.DataFrame, path: Path) -> None:
    """Time against each size, with a line of slope 1."""
    figure = Figure(figsize=(10, 2.8), layout="constrained")
    for axes, (name, group) in zip(
        figure.subplots(1, len(GRIDS), sharey=True), found.groupby("size", sort=False), strict=True
    ):
        axes.loglog(group["value"], group["seconds"], "o-")
        last = group.iloc[-1]
        axes.loglog(
            group["value"], last.seconds * group["value"] / last.value, ":", color="black", label="linear"
        )
        axes.set_xlabel(str(name))
        axes.legend(fontsize=8)
    figure.axes[0].set_ylabel("CPU time, s")
    figure.savefig(path, dpi=150)


def _seconds(n: int, d_in: int, k: int, steps: int, of: int) -> float:
    problem = make_problem(Size(n, d_in, k, 0))
    rows, loss, clip = InMemoryRows(problem.X, problem.y), classification_loss(k), L2Clip(0.5)
    request = Request(problem.W, lambda Z, block: clipped_residuals(Z, block, loss, clip))
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
