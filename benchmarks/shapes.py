"""``python -m benchmarks.shapes``: passes and default fits on tables and features, with one thread and two.

Tables in Markdown, with a line for each of :data:`PASSES`, :data:`FITS` and :data:`ADDITIVE`. What is
compared takes turns in one process. Of all turns, the shortest counts.

A pass is the private sums of one step, as often in a row as a fit makes them. It is compared with its two
matrix products, over rows that are held row by row, whole or in blocks, whichever is faster. A fit has the
defaults at epsilon 1. It is compared with scikit-learn's ``lbfgs``, which is not private. A fit of an
additive model is compared with that of the linear default.

With one thread, times are CPU times. With two threads they are times on the clock, which mean something only
on two idle cores. So the load before and after is printed.
"""

import argparse
import os
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from sklearn.linear_model import LogisticRegression
from threadpoolctl import threadpool_limits

from skmixdp import AdditiveDPClassifier, MixedDPLogisticRegression
from skmixdp._linear.losses import classification_loss
from skmixdp._rows.blockwise import InMemoryRows
from skmixdp._rows.source import PrivateQuery, Request
from skmixdp._utils.process import worker_session
from skmixdp.components import L2Clip
from skmixdp.components.clipping import clipped_residuals

from .growth import n_cores
from .problems import Size, make_problem

PASSES = (
    Size(1_000_000, 20, 3, 0),
    Size(1_000_000, 20, 2, 0),
    Size(200_000, 14, 2, 0),
    Size(1_000_000, 5, 2, 0),
    Size(1_000_000, 20, 10, 0),
    Size(500_000, 100, 10, 0),
    Size(50_000, 512, 10, 0),
    Size(50_000, 512, 100, 0),
    Size(50_000, 2048, 10, 0),
    Size(50_000, 2048, 100, 0),
)

FITS = (
    Size(50_000, 512, 10, 500),
    Size(50_000, 512, 10, 0),
    Size(1_000_000, 20, 3, 60),
    Size(1_000_000, 20, 3, 0),
    Size(5_000, 10_000, 5, 250),
)

ADDITIVE = (Size(1_000_000, 20, 2, 0), Size(1_000_000, 20, 3, 0))

#: Rows in a block of plain products, other than all of them.
_BLOCK_ROWS = (1024, 16_384)

_THREADS = 2

_PARTS = ("passes", "fits", "additive")


@dataclass(frozen=True)
class Spent:
    """Seconds on the clock and of all threads of this process, each the least of all turns."""

    wall: float
    cpu: float


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.shapes", description=__doc__)
    parser.add_argument("--out", type=Path, default=Path("results/benchmarks"))
    parser.add_argument("--parts", nargs="+", choices=_PARTS, default=_PARTS)
    parser.add_argument("--shrink", type=int, default=1, help="divide numbers of rows, for a quick look")
    parser.add_argument("--turns", type=int, default=15, help="of passes; fits take a quarter as many")
    options = parser.parse_args(arguments)
    options.out.mkdir(parents=True, exist_ok=True)
    measured: dict[str, Callable[[], pd.DataFrame]] = {
        "passes": lambda: measure_passes(options.shrink, options.turns),
        "fits": lambda: measure_fits(options.shrink, max(1, options.turns // 4)),
        "additive": lambda: measure_additive(options.shrink, max(1, options.turns // 4)),
    }
    for part in options.parts:
        before = _load()
        table = _markdown(measured[part]())
        (options.out / f"shapes_{part}.md").write_text(table)
        print(f"{table}\n{n_cores()} cores, load {before} before and {_load()} after\n")


def measure_passes(shrink: int = 1, turns: int = 15) -> pd.DataFrame:
    """Times of passes in ms, and ratios; a line for each shape."""
    return pd.DataFrame([measure_pass(_shrunk(size, shrink), turns) for size in PASSES])


def measure_fits(shrink: int = 1, turns: int = 3) -> pd.DataFrame:
    """Times of default fits and of ``lbfgs`` in seconds, and ratios; a line for each shape."""
    return pd.DataFrame([measure_fit(_shrunk(size, shrink), turns) for size in FITS])


def measure_additive(shrink: int = 1, turns: int = 3) -> pd.DataFrame:
    """Times of fits of additive models and of linear ones in seconds, and ratios; a line for each shape."""
    return pd.DataFrame([measure_curves(_shrunk(size, shrink), turns) for size in ADDITIVE])


def measure_pass(size: Size, turns: int) -> dict[str, Any]:
    """Times of passes of one shape."""
    problem = make_problem(size)
    loss, clip, X = classification_loss(size.k), L2Clip(0.5), problem.X
    W = problem.W[: loss.n_outputs]
    rows = InMemoryRows(problem.held(), problem.y.astype(np.min_scalar_type(-size.k)))  # as in a fit
    query = partial(clipped_residuals, loss=loss, clip=clip)
    request = Request(PrivateQuery(W, query, (), clip_threshold=clip.threshold))
    points = W.astype(X.dtype)
    C = np.ones((len(X), len(W)), X.dtype)
    flat = X.reshape(-1)

    cases: dict[str, Callable[[], object]] = {"read": lambda: np.dot(flat, flat)}
    for block_rows in (*_BLOCK_ROWS, len(X)):
        cases[f"products {block_rows}"] = partial(_products, X, points, C, block_rows)
    cases["one thread"] = cases["two threads"] = lambda: rows.private_sums([request])
    spent: dict[str, list[Spent]] = {name: [] for name in cases}
    for _ in range(turns + 1):
        for name, run in cases.items():
            with threadpool_limits(_THREADS if name == "two threads" else 1), worker_session():
                run()  # A fit makes one pass after the other, with the same threads.
                spent[name].append(_seconds(run))
    least = {name: _least(times[1:]) for name, times in spent.items()}
    products = min(found.cpu for name, found in least.items() if name.startswith("products"))
    one, two = least["one thread"], least["two threads"]
    return {
        "rows, features, classes": shape_of(size),
        "read once, ms": 1e3 * least["read"].cpu,
        "products, ms": 1e3 * products,
        "pass, ms": 1e3 * one.cpu,
        "pass / products": one.cpu / products,
        "two threads, ms": 1e3 * two.wall,
        "one / two threads": one.wall / two.wall,
    }


def _products(X: NDArray[Any], W: NDArray[Any], C: NDArray[Any], block_rows: int) -> None:
    for start in range(0, len(X), block_rows):
        rows = slice(start, start + block_rows)
        X[rows] @ W.T
        C[rows].T @ X[rows]


def measure_fit(size: Size, turns: int) -> dict[str, Any]:
    """Times of default fits of one shape."""
    problem = make_problem(size)
    public = {"X_pub": problem.X_pub, "y_pub": problem.y_pub} if size.n_pub else {}
    head = MixedDPLogisticRegression(epsilon=1.0, random_state=0)
    lbfgs = LogisticRegression(max_iter=1000)
    cases: dict[str, tuple[int, Callable[[], object]]] = {
        "lbfgs": (1, lambda: lbfgs.fit(problem.X, problem.y)),
        "one thread": (1, lambda: head.fit(problem.X, problem.y, **public)),
        "two threads": (_THREADS, lambda: head.fit(problem.X, problem.y, **public)),
    }
    spent: dict[str, list[Spent]] = {name: [] for name in cases}
    for _ in range(turns):
        for name, (n_threads, run) in cases.items():
            with threadpool_limits(n_threads):
                spent[name].append(_seconds(run))
    least = {name: _least(times) for name, times in spent.items()}
    one, two = least["one thread"], least["two threads"]
    return {
        "rows, features, classes": shape_of(size),
        "public rows": size.n_pub,
        "steps": head.n_iter_,
        "lbfgs, s": least["lbfgs"].cpu,
        "fit, s": one.cpu,
        "fit / lbfgs": one.cpu / least["lbfgs"].cpu,
        "two threads, s": two.wall,
        "one / two threads": one.wall / two.wall,
    }


def measure_curves(size: Size, turns: int) -> dict[str, Any]:
    """Times of fits of an additive model and of the linear default of one shape, with one thread."""
    problem = make_problem(size)
    linear, additive = (
        kind(epsilon=1.0, classes=range(size.k), random_state=0)
        for kind in (MixedDPLogisticRegression, AdditiveDPClassifier)
    )
    spent: dict[str, list[Spent]] = {"linear": [], "additive": []}
    for _ in range(turns + 1):
        for name, head in (("linear", linear), ("additive", additive)):
            with threadpool_limits(1):
                spent[name].append(_seconds(lambda head=head: head.fit(problem.X, problem.y)))
    least = {name: _least(times[1:]) for name, times in spent.items()}  # the first loads compiled loops
    return {
        "rows, features, classes": shape_of(size),
        "entries of a row": additive.coef_.shape[1],
        "linear steps": linear.n_iter_,
        "additive steps": additive.n_iter_,
        "linear, s": least["linear"].cpu,
        "additive, s": least["additive"].cpu,
        "additive / linear": least["additive"].cpu / least["linear"].cpu,
    }


def _seconds(run: Callable[[], object]) -> Spent:
    wall, cpu = time.perf_counter(), time.process_time()
    run()
    return Spent(time.perf_counter() - wall, time.process_time() - cpu)


def _least(times: Sequence[Spent]) -> Spent:
    return Spent(min(each.wall for each in times), min(each.cpu for each in times))


def _shrunk(size: Size, shrink: int) -> Size:
    return Size(max(size.n // shrink, 100), size.d_in, size.k, size.n_pub)


def shape_of(size: Size) -> str:
    """A shape in words."""
    return f"{size.n:,} x {size.d_in:,}, {size.k}"


def _load() -> str:
    return f"{os.getloadavg()[0]:.1f}" if hasattr(os, "getloadavg") else "unknown"


def _markdown(table: pd.DataFrame) -> str:
    """The table with three significant digits."""
    cells = [[cell if isinstance(cell, str) else f"{cell:.3g}" for cell in line] for line in table.to_numpy()]
    lines = [list(table.columns), ["---"] * len(table.columns), *cells]
    return "".join(f"| {' | '.join(line)} |\n" for line in lines)


if __name__ == "__main__":
    main()
