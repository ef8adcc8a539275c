"""``python -m benchmarks.utility.several_labels``: several labels per row, on three data sets.

- ``garments``: the mean of two images of Fashion-MNIST (784 pixels), 10 kinds of clothes, 30,000 rows.
- ``questions``: the mean of two questions of BANKING77 (384 features), 77 intents, 5,001 rows.
- ``census``: six facts of each person in Adult, from other columns in their own units, 32,561 rows.

Each image or question is in one row only. Test rows are those of the original test sets. A seed draws the
pairs, the public rows and the noise. One fit of all labels is compared with one fit for each label, by the
same default and the same total budget, and with clipped stochastic gradient descent on the cross-entropy of
all labels (Poisson batches, unit rows, clip 1). Of the latter, the best rate and scaling in hindsight is
reported for each measure.
"""

import argparse
import math
import sys
import warnings
from collections.abc import Callable, Iterator, Sequence
from functools import cache
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from scipy.special import expit
from sklearn.metrics import f1_score, roc_auc_score
from sklearn.preprocessing import StandardScaler

from benchmarks.utility.data import banking77
from benchmarks.utility.data.files import data_folder
from benchmarks.utility.data.table import encoded
from skmixdp import MixedDPLogisticRegression
from skmixdp.privacy import epsilon_of, noise_multiplier_for

Array = NDArray[Any]
Parts = tuple[Array, Array, Array, Array]

DELTA = 1e-5

#: Steps and expected share of the rows in a batch of the reference, and its rates.
_STEPS, _BATCH = 100, 0.1
RATES = (1.0, 4.0, 16.0, 64.0)

MEASURES = ("macro AUC", "micro AUC", "macro F1", "micro F1")


def pairs(X: Array, y: Array, n_labels: int, rng: np.random.Generator) -> tuple[Array, Array]:
    """Means of two rows, and a 1 for the class of each: no row is in two pairs."""
    first, second = rng.permutation(len(X) // 2 * 2).reshape(2, -1)
    labels = np.zeros((len(first), n_labels), int)
    for half in (first, second):
        labels[np.arange(len(half)), y[half]] = 1
    return (X[first] + X[second]) / 2, labels


def garments(rng: np.random.Generator) -> Parts:
    """Two garments in one image."""
    with np.load(data_folder("fashion_mnist") / "fashion_mnist.npz") as file:
        found = {name: file[name] for name in file.files}
    scaled = (found[name].reshape(len(found[name]), -1) / np.float32(255) for name in ("x_train", "x_test"))
    train, test = scaled
    return *pairs(train, found["y_train"], 10, rng), *pairs(test, found["y_test"], 10, rng)


def questions(rng: np.random.Generator) -> Parts:
    """Two questions in one message."""
    rows = banking77.load(Path())
    return *pairs(rows.X, rows.y, 77, rng), *pairs(rows.X_test, rows.y_test, 77, rng)


def census(rng: np.random.Generator) -> Parts:
    """Facts of persons: income, sex, marriage, long hours, gains of capital, born abroad."""
    folder = data_folder("adult")
    tables = [pd.read_csv(folder / f"{part}.csv.xz") for part in ("train", "test")]
    table = pd.concat(tables)
    facts = (
        table["income"].str.strip().eq(">50K"),
        table["sex"].str.strip().eq("Female"),
        table["marital-status"].str.strip().eq("Married-civ-spouse"),
        table["hours-per-week"].ge(50),
        table["capital-gain"].gt(0),
        table["native-country"].str.strip().ne("United-States"),
    )
    used = ["age", "workclass", "fnlwgt", "education-num", "occupation", "race", "capital-loss"]
    X, y, n = encoded(table[used]), np.stack(facts, axis=1).astype(int), len(tables[0])
    order = rng.permutation(n)
    return X[:n][order], y[:n][order], X[n:], y[n:]


DATA: dict[str, Callable[[np.random.Generator], Parts]] = {
    "garments": garments,
    "questions": questions,
    "census": census,
}


def measured(y: Array, scores: Array, predicted: Array) -> tuple[float, ...]:
    """The measures, in percent."""
    areas = [roc_auc_score(y, scores, average=average) for average in ("macro", "micro")]
    return (*(100 * area for area in areas), *_f1(y, predicted))


def _f1(y: Array, predicted: Array) -> Iterator[float]:
    return (100 * f1_score(y, predicted, average=average, zero_division=0) for average in ("macro", "micro"))


def together(parts: Parts, public: dict[str, Any], epsilon: float, seed: int) -> list[tuple[float, ...]]:
    """One fit of all labels."""
    X, y, X_test, y_test = parts
    clf = MixedDPLogisticRegression(epsilon=epsilon, delta=DELTA, random_state=seed).fit(X, y, **public)
    proba = clf.predict_proba(X_test)
    return [measured(y_test, proba, proba > 0.5)]


def apart(parts: Parts, public: dict[str, Any], epsilon: float, seed: int) -> list[tuple[float, ...]]:
    """One fit for each label, which together are as private as one fit of this epsilon."""
    X, y, X_test, y_test = parts
    k = y.shape[1]
    multiplier = noise_multiplier_for(epsilon, DELTA, n_steps=1)
    own = epsilon_of(multiplier * math.sqrt(k), 1, delta=DELTA)
    proba = np.empty(y_test.shape)
    for j in range(k):
        y_pub = {"y_pub": public["y_pub"][:, j]} if public else {}
        head = MixedDPLogisticRegression(
            epsilon=own, delta=DELTA, classes=[0, 1], random_state=1000 * seed + j
        )
        proba[:, j] = head.fit(X, y[:, j], **(public | y_pub)).predict_proba(X_test)[:, 1]
    return [measured(y_test, proba, proba > 0.5)]


def descent(parts: Parts, public: dict[str, Any], epsilon: float, seed: int) -> list[tuple[float, ...]]:
    """DP-SGD (Abadi et al. 2016) from zero, for each rate and columns as they are or standardised.

    It does not use public rows. All private rows standardise the columns, which nobody accounts for.
    """
    X, y, X_test, y_test = parts
    rng, n = np.random.default_rng(seed), len(X)
    sigma = noise_multiplier_for(epsilon, DELTA, n_steps=_STEPS, sampling_rate=_BATCH)
    scaler, found = StandardScaler().fit(X), []
    for scaled, rate in product((False, True), RATES):
        rows, test = (_unit(scaler.transform(part) if scaled else part) for part in (X, X_test))
        W = np.zeros((y.shape[1], rows.shape[1]))
        for _ in range(_STEPS):
            batch = rng.random(n) < _BATCH
            own = rows[batch]
            R = expit(own @ W.T) - y[batch]
            lengths = np.linalg.norm(R, axis=1) * np.linalg.norm(own, axis=1)
            G = (R / np.maximum(lengths, 1)[:, np.newaxis]).T @ own
            W -= rate / (_BATCH * n) * (G + sigma * rng.normal(size=W.shape))
        scores = test @ W.T
        found.append(measured(y_test, scores, scores > 0))
    return found


def _unit(X: Array) -> Array:
    """Rows of unit length, and a constant."""
    X = X / np.maximum(np.linalg.norm(X, axis=1, keepdims=True), 1e-12)
    return np.column_stack([X, np.ones(len(X))]) / math.sqrt(2)


METHODS = {"one fit of all labels": together, "one fit for each label": apart, "DP-SGD, best rate": descent}


@cache
def _parts(name: str, seed: int) -> Parts:
    return DATA[name](np.random.default_rng(seed))


def main(argv: Sequence[str] | None = None) -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", nargs="+", choices=DATA, default=list(DATA))
    parser.add_argument("--methods", nargs="+", choices=METHODS, default=list(METHODS))
    parser.add_argument("--epsilon", nargs="+", type=float, default=[0.5, 1.0, 3.0])
    parser.add_argument("--public", nargs="+", type=int, default=[0])
    parser.add_argument("--seeds", type=int, default=3)
    args = parser.parse_args(argv)
    warnings.simplefilter("ignore")  # of seeds
    print(f"| data | public rows | epsilon | method | {' | '.join(MEASURES)} |")
    print("| --- " * (4 + len(MEASURES)) + "|")
    for name in args.data:
        for n_pub in args.public:
            for epsilon in args.epsilon:
                for method in args.methods:
                    runs = []
                    for seed in range(args.seeds):
                        X, y, X_test, y_test = _parts(name, seed)
                        public = {"X_pub": X[:n_pub], "y_pub": y[:n_pub]} if n_pub else {}
                        parts = X[n_pub:], y[n_pub:], X_test, y_test
                        runs.append(METHODS[method](parts, public, epsilon, seed))
                    values = np.array(runs)  # (seeds, settings, measures)
                    best = values.mean(axis=0).argmax(axis=0)
                    chosen = values[:, best, np.arange(len(MEASURES))]
                    cells = zip(chosen.mean(axis=0), chosen.std(axis=0), strict=True)
                    shown = " | ".join(f"{mean:.1f} ± {std:.1f}" for mean, std in cells)
                    print(f"| {name} | {n_pub} | {epsilon:g} | {method} | {shown} |")
                    sys.stdout.flush()


if __name__ == "__main__":
    main()
