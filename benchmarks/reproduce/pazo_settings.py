"""PAZO's settings on a small head: directions, public rows, hyper-parameters and the length of the run.

Digits, 50 public rows, epsilon 1, delta 1e-5, seeds 0, 1, 2, 400 test rows. Each fit is repeated with
permuted private labels, as in :mod:`~benchmarks.reproduce.pazo_control`. Parts:

- ``directions``: Table 11, 1 or 5 directions;
- ``public``: Table 7, public rows of which all classes have as many, or five classes have few;
- ``hyper``: Figures 6 and 8, the parameters that PAZO adds, and "orthonormal or not" of Tables 2 to 5;
- ``steps``: Figure 4, batches of 64 as in the paper, 100 to 3,000 steps, with GEP and DP-SGD.

The rate of each cell is the best of a grid by the accuracy on the test rows, with true labels.

Run ``python -m benchmarks.reproduce.pazo_settings --part directions``. Runs that the table in ``--out`` has
are not repeated.
"""

import argparse
import warnings
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split
from tqdm.auto import tqdm

from skmixdp import MixedDPLogisticRegression
from skmixdp.algorithms import GEP, PAZO, Algorithm, DPZero, NoisyGD

from .adamix_ablation import DELTA, markdown, ranged

N_PUBLIC, N_TEST, EPSILON = 50, 400, 1.0
SEEDS, RATES = (0, 1, 2), (0.25, 1.0, 4.0)
BATCH, STEPS = 64, (100, 1_000, 3_000)

#: Public rows of each class, in the order of the classes: all alike, half and half, and a big imbalance.
COUNTS = {"5 of each class": (5,) * 10, "7 and 3": (7,) * 5 + (3,) * 5, "9 and 1": (9,) * 5 + (1,) * 5}


@dataclass(frozen=True)
class Cell:
    """A line and a column of a table, and the fit that fills it."""

    line: str
    column: str
    algorithm: Algorithm
    counts: tuple[int, ...] = COUNTS["5 of each class"]
    n_steps: int | None = None


def _mixing(n_directions: int = 5, **changed: Any) -> PAZO:
    """PAZO-M with the weight of rows, which uses private labels on this head."""
    return PAZO("m", n_directions=n_directions, **{"public_weight": "sample", **changed})


def _directions() -> Iterator[Cell]:
    for q in (1, 5):
        for name, algorithm in {
            "DPZero": DPZero(q),
            "PAZO-M": PAZO("m", n_directions=q),
            "PAZO-M, weight of rows": _mixing(q),
            "PAZO-P": PAZO("p", n_directions=q),
        }.items():
            yield Cell(name, f"q = {q}", algorithm)


def _public() -> Iterator[Cell]:
    for column, counts in COUNTS.items():
        for name, algorithm in {
            "PAZO-M": PAZO("m"),
            "PAZO-M, weight of rows, q = 5": _mixing(),
            "PAZO-P": PAZO("p"),
            "PAZO-S": PAZO("s"),
        }.items():
            yield Cell(name, column, algorithm, counts)


def _hyper() -> Iterator[Cell]:
    for weight in (0.25, 0.5, 0.75):
        yield Cell("PAZO-M: weight 0.25, 0.5, 0.75", f"weight {weight:g}", PAZO("m", public_weight=weight))
    for size in (8, 32, None):
        yield Cell("PAZO-M: public batch 8, 32, all", f"batch {size}", PAZO("m", public_batch_size=size))
    for k in (3, 6, 10):
        yield Cell("PAZO-P: 3, 6, 10 gradients", f"k {k}", PAZO("p", n_public_batches=k))
        yield Cell("PAZO-S: 3, 6, 10 candidates", f"k {k}", PAZO("s", n_candidates=k))
    for noise in (None, 0.01, 0.1):
        yield Cell(
            "PAZO-S: no noisy candidate, 0.01, 0.1", f"noise {noise}", PAZO("s", candidate_noise=noise)
        )
    for orthonormal in (True, False):
        yield Cell(
            "PAZO-P: orthonormal or not", f"orthonormal {orthonormal}", PAZO("p", orthonormal=orthonormal)
        )


def _steps() -> Iterator[Cell]:
    for n_steps in STEPS:
        for name, algorithm in {
            "DPZero": DPZero(),
            "PAZO-M": PAZO("m", public_batch_size=32),
            "PAZO-M, weight of rows, q = 5": _mixing(),
            "PAZO-P": PAZO("p"),
            "PAZO-S": PAZO("s"),
            "DP-SGD": NoisyGD(momentum=0.0),
            "GEP": GEP(10),
        }.items():
            yield Cell(name, f"{n_steps} steps", algorithm, n_steps=n_steps)


PARTS = {"directions": _directions, "public": _public, "hyper": _hyper, "steps": _steps}


@dataclass(frozen=True)
class Split:
    """Private, public and test rows."""

    X: Any
    y: Any
    X_pub: Any
    y_pub: Any
    X_test: Any
    y_test: Any


@lru_cache
def make_split(counts: tuple[int, ...], seed: int) -> Split:
    """Rows of a seed, with so many public rows of each class."""
    X, y = load_digits(return_X_y=True)
    X_train, X_test, y_train, y_test = train_test_split(X, y, test_size=N_TEST, random_state=seed, stratify=y)
    shown = np.concatenate([np.flatnonzero(y_train == label)[:n] for label, n in enumerate(counts)])
    hidden = np.setdiff1d(np.arange(len(y_train)), shown)
    return Split(X_train[hidden], y_train[hidden], X_train[shown], y_train[shown], X_test, y_test)


def score(cell: Cell, split: Split, rate: float, seed: int, *, permuted: bool) -> float:
    """Test accuracy of a fit whose steps are ``rate`` times the library's."""
    settings: dict[str, Any] = {"epsilon": EPSILON, "delta": DELTA, "classes": range(10)}
    if cell.n_steps is not None:
        settings |= {"n_steps": cell.n_steps, "batch_size": BATCH}
    labels = np.random.default_rng(1000 + seed).permutation(split.y) if permuted else split.y
    public = {"X_pub": split.X_pub, "y_pub": split.y_pub}
    automatic = MixedDPLogisticRegression(cell.algorithm, random_state=seed, **settings).fit(
        split.X, labels, **public
    )
    if rate != 1:
        step = rate * automatic.learning_rate_
        automatic = MixedDPLogisticRegression(
            cell.algorithm, learning_rate=step, random_state=seed, **settings
        )
        automatic.fit(split.X, labels, **public)
    return 100 * float(automatic.score(split.X_test, split.y_test))


@lru_cache
def alone(counts: tuple[int, ...], seed: int) -> float:
    """Test accuracy of the public rows of a split alone."""
    split = make_split(counts, seed)
    start = MixedDPLogisticRegression(NoisyGD(public_weight=1.0), n_steps=1, learning_rate=1e-9)
    start.fit(split.X, split.y, X_pub=split.X_pub, y_pub=split.y_pub)
    return 100 * float(start.score(split.X_test, split.y_test))


def run(cells: Sequence[Cell], seeds: Sequence[int], rates: Sequence[float], path: Path) -> pd.DataFrame:
    """All fits, with true and permuted labels, and the public rows alone; kept in a file."""
    found = pd.read_csv(path) if path.exists() else pd.DataFrame()
    done = (
        set(found[["line", "column", "seed", "rate"]].itertuples(index=False, name=None))
        if len(found)
        else set()
    )
    for cell in tqdm(cells, desc=path.stem):
        for seed in seeds:
            split = make_split(cell.counts, seed)
            for rate in rates:
                key = {"line": cell.line, "column": cell.column, "seed": seed, "rate": rate}
                if tuple(key.values()) in done:
                    continue
                true, permuted = (score(cell, split, rate, seed, permuted=p) for p in (False, True))
                row = {**key, "true": true, "permuted": permuted, "public": alone(cell.counts, seed)}
                found = pd.concat([found, pd.DataFrame([row])], ignore_index=True)
                found.to_csv(path, index=False)
    return found


def report(found: pd.DataFrame) -> str:
    """Accuracy with true and permuted labels at the best rate, and of public rows alone: means of seeds."""
    means = found.groupby(["line", "column", "rate"], sort=False)[["true", "permuted", "public"]].mean()
    lines = []
    for (line, column), own in means.groupby(level=["line", "column"], sort=False):
        rate = own["true"].idxmax()[2]
        best = own.loc[(line, column, rate)]
        seeds = found[(found["line"] == line) & (found["column"] == column) & (found["rate"] == rate)]["true"]
        lines.append(
            [line, column, f"{rate:g}", ranged(seeds), f"{best['permuted']:.1f}", f"{best['public']:.1f}"]
        )
    return markdown(["method", "setting", "rate", "true labels", "permuted", "public alone"], lines)


def main(argv: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description="PAZO's settings on a small head.")
    parser.add_argument("--out", type=Path, default=Path("results/reproduce"), help="folder to write to")
    parser.add_argument("--part", choices=tuple(PARTS), required=True, help="which table or figure")
    parser.add_argument("--quick", action="store_true", help="one seed, one rate, two cells")
    options = parser.parse_args(argv)
    warnings.simplefilter("ignore")  # of seeds
    cells = list(PARTS[options.part]())
    options.out.mkdir(parents=True, exist_ok=True)
    path = options.out / f"pazo_settings_{options.part}.csv"
    found = run(cells[:2], (0,), (1.0,), path) if options.quick else run(cells, SEEDS, RATES, path)
    print(f"\n{report(found)}")


if __name__ == "__main__":
    main()
