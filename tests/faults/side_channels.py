"""What a fit tells next to its results: ``python -m tests.faults.side_channels [--fits N] [--only X]``.

Each line compares a data set with its neighbour, in which one row is zeroed out. Their fits alternate.
The table says how much longer one takes in processor time, and how well a threshold on the time of a single
fit tells them apart: 0.5 is chance, and the range is a 99% interval. Everything else that a fit leaves must
not differ by more than chance: the number of steps, warnings, errors, the size of a pickle, and the most
memory. (Steps and warnings may depend on what was released, and so on chance.)
"""

import argparse
import gc
import math
import pickle
import statistics
import sys
import time
import tracemalloc
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp
from scipy.stats import fisher_exact, mannwhitneyu

from skmixdp import MixedDPLogisticRegression, MixedDPRidge, RowMapping
from skmixdp.algorithms import PAZO

N_ROWS, N_PUBLIC, N_FEATURES, N_CLASSES = 600, 60, 32, 4
ROW = 123

#: Level of the tests of what must not differ; about 200 are made.
_LEVEL = 1e-4

_rng = np.random.default_rng(0)
_CENTRES = _rng.normal(size=(N_CLASSES, N_FEATURES))
Y, Y_PUB = np.arange(N_ROWS) % N_CLASSES, np.arange(N_PUBLIC) % N_CLASSES
X = _CENTRES[Y] + _rng.normal(size=(N_ROWS, N_FEATURES))
X_PUB = _CENTRES[Y_PUB] + _rng.normal(size=(N_PUBLIC, N_FEATURES))


def with_row(value: Any) -> Any:
    rows = X.copy()
    rows[ROW] = value
    return rows


#: The one row in which the data sets differ. In the neighbour it is zeroed out.
ROWS: dict[str, tuple[Any, Any]] = {
    "nothing": (with_row(0.0), Y),
    "ordinary": (X, Y),
    "huge": (with_row(1e150), Y),
    "tiny": (with_row(1e-160), Y),
    "subnormal": (with_row(5e-310), Y),
    "one subnormal entry": (with_row(np.where(np.arange(N_FEATURES) == 3, 5e-310, X[ROW])), Y),
    "a duplicate": (with_row(X[ROW + 1]), Y),
    "negative zeros": (with_row(-0.0), Y),
    "alone in its class": (X, np.where(np.arange(N_ROWS) == ROW, 3, np.arange(N_ROWS) % 3)),
}


@dataclass(frozen=True)
class Kind:
    """A way to fit: the estimator, and how its rows are held."""

    make: Callable[[], Any]
    hold: Callable[[Any], Any] = np.asarray
    regression: bool = False

    def fit(self, rows: Any, labels: Any) -> Any:
        y, y_pub = (X @ _CENTRES[0], X_PUB @ _CENTRES[0]) if self.regression else (labels, Y_PUB)
        return self.make().fit(rows, y, X_pub=self.hold(X_PUB), y_pub=y_pub)


def _logistic(**parameters: Any) -> Callable[[], Any]:
    return lambda: MixedDPLogisticRegression(**({"n_steps": 5, "delta": 1e-4} | parameters))


KINDS = {
    "default": Kind(_logistic(n_steps=None)),
    "noisy-gd": Kind(_logistic(algorithm="noisy-gd")),
    "rows as they are": Kind(_logistic(rows=RowMapping(norm=None, center=False))),
    "float64, as they are": Kind(_logistic(rows=RowMapping(norm=None, center=False), dtype="float64")),
    "discrete noise": Kind(_logistic(n_steps=2, noise="discrete")),
    "sparse": Kind(_logistic(rows=RowMapping(center=False)), sp.csr_array),
    "ridge": Kind(lambda: MixedDPRidge(n_steps=5, delta=1e-4), regression=True),
    "zeroth order": Kind(lambda: MixedDPLogisticRegression(PAZO("m"), n_steps=5, delta=1e-4)),
}


@dataclass(frozen=True)
class Traces:
    """What one fit leaves next to its results."""

    milliseconds: float
    n_steps: float
    pickled: int
    said: frozenset[str]

    @classmethod
    def of(cls, kind: Kind, rows: Any, labels: Any) -> "Traces":
        with warnings.catch_warnings(record=True, action="always") as caught:
            started = time.process_time_ns()
            try:
                model = kind.fit(rows, labels)
            except Exception as error:
                return cls(math.nan, 0, 0, frozenset([f"{type(error).__name__}: {error}"]))
            milliseconds = (time.process_time_ns() - started) / 1e6
        said = frozenset(f"{w.category.__name__}: {w.message}" for w in caught)
        return cls(milliseconds, model.n_iter_, len(pickle.dumps(model)), said)


def peak_memory(kind: Kind, rows: Any, labels: Any) -> int:
    """Most bytes that a fit holds at a time."""
    gc.collect()
    tracemalloc.start()
    try:
        kind.fit(rows, labels)
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


@dataclass(frozen=True)
class Comparison:
    """Two neighbours compared."""

    slower: float
    auc: float
    margin: float
    differing: list[str]


def compared(kind: Kind, rows: Any, labels: Any, n_fits: int) -> Comparison:
    """A data set compared with its neighbour."""
    pair = [kind.hold(rows), kind.hold(with_row(0.0))]
    found: tuple[list[Traces], list[Traces]] = ([], [])
    for number in range(2 * n_fits):
        which = number % 2 if number // 2 % 2 else 1 - number % 2
        found[which].append(Traces.of(kind, pair[which], labels))
    differing = []
    for name in ("n_steps", "pickled"):
        values = [[getattr(traces, name) for traces in own] for own in found]
        if _p_value(*values) < _LEVEL:
            differing.append(f"{name}: {statistics.mean(values[0]):.4g} and {statistics.mean(values[1]):.4g}")
    for text in frozenset().union(*(traces.said for own in found for traces in own)):
        counts = [sum(text in traces.said for traces in own) for own in found]
        if fisher_exact([counts, [n_fits - count for count in counts]]).pvalue < _LEVEL:
            differing.append(f"{counts[0]} and {counts[1]} times of {n_fits}: {text}")
    times = [[traces.milliseconds for traces in own] for own in found]
    if np.isnan(times).any():  # a data set was refused, which tells it apart
        return Comparison(math.nan, math.nan, math.nan, differing)
    with warnings.catch_warnings(action="ignore"):
        memory = [[peak_memory(kind, held, labels) for _ in range(10)] for held in pair]
    medians = [statistics.median(own) for own in memory]
    if abs(medians[0] - medians[1]) > 2048 and _p_value(*memory) < _LEVEL:  # Python's own objects vary
        differing.append(f"memory: {medians[0]:.0f} and {medians[1]:.0f} bytes")
    auc = float(mannwhitneyu(*times).statistic) / n_fits**2
    margin = 2.576 * math.sqrt((2 * n_fits + 1) / (12 * n_fits**2))
    slower = statistics.median(times[0]) / statistics.median(times[1]) - 1
    return Comparison(slower, auc, margin, differing)


def _p_value(one: list[float], other: list[float]) -> float:
    return 1.0 if len({*one, *other}) == 1 else float(mannwhitneyu(one, other).pvalue)


def lines(n_fits: int, only: str) -> Iterator[tuple[str, str, Comparison]]:
    """Kind, row and comparison of each pair."""
    for name, kind in KINDS.items():
        for row, (rows, labels) in ROWS.items():
            if only in f"{name}, {row}":
                yield name, row, compared(kind, rows, labels, n_fits)


def main() -> int:
    """0 if nothing but time differs."""
    parser = argparse.ArgumentParser(prog="python -m tests.faults.side_channels", description=__doc__)
    parser.add_argument("--fits", type=int, default=200, help="fits of each data set (default: %(default)s)")
    parser.add_argument("--only", default="", help="compare what has X in its name", metavar="X")
    options = parser.parse_args()
    found = False
    print("| fit | the row | time | told apart by time | other traces |")
    print("|---|---|---|---|---|")
    for name, row, c in lines(options.fits, options.only):
        cells = (
            *(name, row, f"{c.slower:+.1%}", f"{c.auc:.2f} ± {c.margin:.2f}"),
            "; ".join(c.differing) or "equal",
        )
        print(f"| {' | '.join(cells)} |", flush=True)
        found |= bool(c.differing)
    return int(found)


if __name__ == "__main__":
    sys.exit(main())
