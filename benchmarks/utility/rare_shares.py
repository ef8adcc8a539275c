"""``python -m benchmarks.utility.rare_shares``: probabilities of a class of .2 to 10%.

Each seed divides a table in half: private rows and test rows. A table is made by scikit-learn or NumPy, or it
is the census with another column as the label. ``--public`` takes this number of public rows from the private
ones, as many of each class. Constants of the library were chosen on the tables of the
first half; those of the second were looked at once.
"""

import argparse
import sys
import warnings
from collections.abc import Callable, Sequence
from functools import cache, partial
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from scipy.optimize import brentq
from scipy.special import expit, logit
from sklearn.datasets import make_classification
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import log_loss

from benchmarks.utility.data import adult
from benchmarks.utility.data.files import data_folder
from skmixdp import AdditiveDPClassifier, MixedDPLogisticRegression

Array = NDArray[Any]
Make = Callable[[np.random.Generator], tuple[Array, Array]]

MODELS = {"linear": MixedDPLogisticRegression, "additive": AdditiveDPClassifier}


def drawn(share: float, n: int, kind: str, width: int, rng: np.random.Generator) -> tuple[Array, Array]:
    """Rows of a logistic model with this share of class 1."""
    X = rng.normal(size=(n, width))
    if kind == "skewed":
        X[:, ::2] = rng.gamma(1, 1, size=X[:, ::2].shape)
    elif kind == "units":
        X = X * 10.0 ** rng.integers(-3, 4, width) + 10 * rng.normal(size=width)
    elif kind == "binary":
        X[:, ::2] = X[:, ::2] > 1
    outputs = (X - X.mean(axis=0)) / X.std(axis=0) @ rng.normal(size=width) * 1.2 / np.sqrt(width)
    middle = brentq(lambda middle: expit(outputs + middle).mean() - share, -30, 10)
    return X, (rng.random(n) < expit(outputs + middle)).astype(int)


def clusters(share: float, n: int, width: int, rng: np.random.Generator) -> tuple[Array, Array]:
    """Two clusters for each class."""
    seed, informative = int(rng.integers(10**6)), max(2, width // 2)
    terms: dict[str, Any] = {"weights": [1 - share], "flip_y": 0.0, "n_informative": informative}
    X, y = make_classification(n, width, random_state=seed, **terms)
    return X, y


@cache
def _census() -> tuple[pd.DataFrame, Array]:
    folder = data_folder("adult")
    parts = [pd.read_csv(folder / f"{part}.csv.xz") for part in ("train", "test")]
    table = pd.concat(parts, ignore_index=True)
    return table, adult.features(table)


def census(column: str, value: str, without: Sequence[str], rng: np.random.Generator) -> tuple[Array, Array]:
    """Whether a column of the census has a value, by the others; ``+`` is any number above 0."""
    table, X = _census()
    given = table[column]
    y = given > 0 if value == "+" else given.astype(str).str.strip() == value
    names = [*adult.BOUNDS, *adult.DOLLARS]
    names += [name for name, categories in adult.CATEGORIES.items() for _ in categories.split()]
    return X[:, [name not in (column, *without) for name in names]], y.to_numpy().astype(int)


HALVES: tuple[dict[str, Make], dict[str, Make]] = (
    {
        "normal, 5 columns, 2%": partial(drawn, 0.02, 60_000, "normal", 5),
        "skewed, 8 columns, .5%": partial(drawn, 0.005, 60_000, "skewed", 8),
        "other units, 12 columns, 10%": partial(drawn, 0.1, 30_000, "units", 12),
        "clusters, 20 columns, 1%": partial(clusters, 0.01, 40_000, 20),
        "census, widowed": partial(census, "marital-status", "Widowed", ["relationship"]),
        "census, capital losses": partial(census, "capital-loss", "+", []),
    },
    {
        "normal, 5 columns, .2%": partial(drawn, 0.002, 60_000, "normal", 5),
        "binary, 30 columns, 5%": partial(drawn, 0.05, 40_000, "binary", 30),
        "skewed, 6 columns, 3%": partial(drawn, 0.03, 30_000, "skewed", 6),
        "clusters, 10 columns, 4%": partial(clusters, 0.04, 30_000, 10),
        "census, doctorate": partial(census, "education-num", "16", []),
        "census, born in Mexico": partial(census, "native-country", "Mexico", []),
    },
)


def measured(
    make: Make, model: str, epsilon: float, seed: int, n_public: int = 0
) -> tuple[float, float, float, float]:
    """Log-loss over that of the share, mean prediction over the share of private rows, slope, positives.

    The slope is that of a logistic regression of the test labels on the predicted logits.
    """
    rng = np.random.default_rng(seed)
    X, y = make(rng)
    order, half = rng.permutation(len(y)), len(y) // 2
    private, test = order[:half], order[half:]
    public = np.concatenate([private[y[private] == label][: n_public // 2] for label in (0, 1)])
    private = private[~np.isin(private, public)]
    known = {"X_pub": X[public], "y_pub": y[public]} if n_public else {}
    terms: dict[str, Any] = {"epsilon": epsilon, "classes": [0, 1], "random_state": seed}
    p = MODELS[model](**terms).fit(X[private], y[private], **known).predict_proba(X[test])[:, 1]
    constant = log_loss(y[test], np.full(len(test), y[private].mean()))
    p = np.clip(p, 1e-12, 1 - 1e-12)
    slope = LogisticRegression(C=1e9).fit(logit(p)[:, np.newaxis], y[test]).coef_[0, 0]
    return log_loss(y[test], p) / constant, p.mean() / y[private].mean(), slope, float(y[private].sum())


def main(argv: Sequence[str] | None = None) -> None:
    """Print the tables, and write all numbers to a file if one is named."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--half", type=int, choices=(1, 2), default=1)
    parser.add_argument("--model", choices=MODELS, default="linear")
    parser.add_argument("--epsilons", type=float, nargs="+", default=[0.5, 1.0, 3.0, 8.0, 1e6])
    parser.add_argument("--seeds", type=int, default=4)
    parser.add_argument("--public", type=int, default=0)
    parser.add_argument("--out", type=Path)
    args = parser.parse_args(argv)
    warnings.simplefilter("ignore")  # of seeds, and of noise
    lines = []
    sys.stdout.write("| table | positives | epsilon | log-loss | mean prediction | slope |\n")
    sys.stdout.write("| --- | --- | --- | --- | --- | --- |\n")
    for name, make in HALVES[args.half - 1].items():
        for epsilon in args.epsilons:
            terms = (make, args.model, epsilon)
            runs = np.array([measured(*terms, seed, args.public) for seed in range(args.seeds)])
            lines += [(name, epsilon, seed, *run) for seed, run in enumerate(runs.tolist())]
            errors = runs.std(axis=0, ddof=1) / np.sqrt(len(runs))
            cells = [f"{m:.3f} ± {e:.3f}" for m, e in zip(runs.mean(axis=0)[:3], errors[:3], strict=True)]
            sys.stdout.write(f"| {name} | {runs[:, 3].mean():.0f} | {epsilon:g} | {' | '.join(cells)} |\n")
            sys.stdout.flush()
    if args.out is not None:
        columns = ["table", "epsilon", "seed", "log_loss", "mean", "slope", "positives"]
        pd.DataFrame(lines, columns=columns).to_csv(args.out, index=False)


if __name__ == "__main__":
    main()
