"""``python -m benchmarks.utility.evaluation``: how often intervals of private evaluations cover.

Each run draws rows from a fixed pool of a million, with replacement, and evaluates a fixed model on them. An
interval for "rows drawn like these" should hold the metric on the whole pool, and one for "these rows" that
on the drawn rows. Both exact metrics use scores and residuals as they are, not as cells. The table shows the
share of runs in which they do, the median length of the first, and the median error on the drawn rows.

The pools, with l the log-odds of the label: "even" (l normal, spread 2.5), "rare" (3.7% of positive rows),
"over-confident" (scores are 2.5 l) and "sure" (l near 6 or -6). For ten classes, the layouts "top" and
"one_vs_rest". For a regression, targets with heavy tails.
"""

import argparse
import warnings
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit, softmax
from sklearn.base import BaseEstimator, ClassifierMixin, RegressorMixin
from sklearn.datasets import make_classification
from sklearn.metrics import roc_auc_score

from skmixdp import MixedDPLogisticRegression
from skmixdp.inspection import EvaluationDisplay
from skmixdp.model_selection import OneVsRestEvaluation, ResidualEvaluation, private_evaluation

Array = NDArray[Any]

POOL, SIZES = 1_000_000, (500, 2_000, 10_000, 100_000)


class Given(ClassifierMixin, BaseEstimator):  # type: ignore[misc]
    """A classifier whose probabilities are the rows."""

    def fit(self, X: Array, y: Any = None) -> "Given":
        """Learn the number of classes."""
        self.classes_ = np.arange(X.shape[1])
        return self

    def predict_proba(self, X: Array) -> Array:
        """The rows."""
        return X


class GivenPredictions(RegressorMixin, BaseEstimator):  # type: ignore[misc]
    """A regressor that predicts the first column."""

    def fit(self, X: Array, y: Any = None) -> "GivenPredictions":
        """Learn the number of columns."""
        self.n_features_in_ = X.shape[1]
        return self

    def predict(self, X: Array) -> Array:
        """The first column."""
        return np.asarray(X[:, 0])


def pool_of(name: str) -> tuple[Array, Array]:
    """Rows, which are probabilities or predictions, and their labels or targets."""
    rng = np.random.default_rng(0)
    if name == "regression":
        predicted = rng.normal(0, 1, POOL)
        return predicted[:, np.newaxis], predicted + 0.5 * rng.standard_t(4, POOL)
    if name.startswith("ten"):
        y = rng.integers(0, 10, POOL)
        logits = rng.normal(size=(POOL, 10))
        logits[np.arange(POOL), y] += 3.0
        return softmax(1.2 * logits, axis=1), y
    logits = {
        "even": lambda: rng.normal(0, 2.5, POOL),
        "rare": lambda: rng.normal(-4.5, 1.7, POOL),
        "over-confident": lambda: rng.normal(0.3, 1, POOL),
        "sure": lambda: rng.choice([-1, 1], POOL) * rng.normal(6, 1.5, POOL),
    }[name]()
    y = (rng.random(POOL) < expit(logits)).astype(int)
    p = expit(logits * (2.5 if name == "over-confident" else 1.0))
    return np.column_stack([1 - p, p]), y


#: Options of the evaluation of each pool.
POOLS: dict[str, dict[str, Any]] = {
    "even": {},
    "rare": {},
    "over-confident": {},
    "sure": {},
    "ten, top": {"layout": "top"},
    "ten, one-versus-rest": {"layout": "one_vs_rest"},
    "regression": {"target_bounds": (-6.0, 6.0), "residual_bound": 6.0},
}


def exact_scores(logits: Array, score: Array, y: Array) -> dict[str, float]:
    """Metrics of probabilities of the answer 1, by the names of a summary."""
    with np.errstate(divide="ignore"):
        odds = np.clip(np.log(score) - np.log1p(-score), logits[0], logits[-1])
    middles = expit((logits[1:] + logits[:-1]) / 2)
    place = np.clip(np.searchsorted(logits, odds, side="right") - 1, 0, len(middles) - 1)
    group = np.minimum((10 * middles).astype(int), 9)[place]
    gaps = np.bincount(group, y - score, minlength=10)
    yes, positive = score >= 0.5, np.mean(y)
    hits = np.mean(yes & (y == 1))
    return {
        "accuracy": float(np.mean(yes == (y == 1))),
        "precision": float(hits / max(np.mean(yes), 1e-12)),
        "recall": float(hits / positive),
        "f1": float(2 * hits / (np.mean(yes) + positive)),
        "ROC AUC": float(roc_auc_score(y, odds)),
        "log-loss": float(np.mean(np.logaddexp(0, np.where(y == 1, -odds, odds)))),
        "calibration error": float(np.abs(gaps).sum() / len(y)),
    }


def exact(found: Any, X: Array, y: Array) -> dict[str, float]:
    """The metrics of an evaluation, from rows and labels without cells or noise."""
    if isinstance(found, ResidualEvaluation):
        residual, target = np.clip(y - X[:, 0], -6, 6), np.clip(y, -6, 6)
        squares = np.mean(residual**2)
        return {
            "mean absolute error": float(np.mean(np.abs(residual))),
            "root mean squared error": float(np.sqrt(squares)),
            "mean residual": float(np.mean(residual)),
            "R2": float(1 - squares / np.var(target)),
        }
    if isinstance(found, OneVsRestEvaluation):
        parts = [exact_scores(found.logits, X[:, j], (y == j) * 1) for j in range(X.shape[1])]
        own = np.clip(X[np.arange(len(y)), y], expit(-8), expit(8))
        return {
            "ROC AUC, mean": float(np.mean([part["ROC AUC"] for part in parts])),
            "log-loss": float(np.mean(-np.log(own))),
            "f1 at 0.5, mean": float(np.mean([part["f1"] for part in parts])),
        }
    if found.question == "correct":
        right = (X.argmax(axis=1) == y) * 1
        metrics = exact_scores(found.logits, X.max(axis=1), right)
        named = ("ROC AUC", "log-loss", "calibration error")
        return {"accuracy": float(np.mean(right)), **{name: metrics[name] for name in named}}
    at_half = ("accuracy", "precision", "recall", "f1")
    metrics = exact_scores(found.logits, X[:, 1], y)
    return {f"{name} at 0.5" if name in at_half else name: value for name, value in metrics.items()}


def coverage(name: str, n_rows: int, runs: int, epsilon: float, seed: int = 0) -> dict[str, list[float]]:
    """For each metric: how often intervals cover the pool, and the rows; length and bias (medians)."""
    X, y = pool_of(name)
    model = (GivenPredictions() if name == "regression" else Given()).fit(X)
    rng = np.random.default_rng(seed)
    whole: dict[str, float] = {}
    counted: dict[str, list[list[float]]] = {}
    for run in range(runs):
        drawn = rng.integers(0, POOL, n_rows)
        rows, labels = X[drawn], y[drawn]
        found = private_evaluation(
            model, rows, labels, epsilon=epsilon, delta=1e-6, random_state=seed + run, **POOLS[name]
        )
        whole = whole or exact(found, X, y)
        known = exact(found, rows, labels)
        estimates, own = found.summary(), found.with_intervals(sampling=False).summary()
        for metric, value in known.items():
            wide, narrow = estimates[metric], own[metric]
            counted.setdefault(metric, []).append(
                [
                    wide.low <= whole[metric] <= wide.high,
                    narrow.low <= value <= narrow.high,
                    wide.high - wide.low,
                    wide.value - value,
                ]
            )
    return {
        metric: [*np.mean(table, axis=0)[:2].tolist(), *np.nanmedian(table, axis=0)[2:].tolist()]
        for metric, table in counted.items()
    }


def draw(path: Path) -> None:
    """Draw an evaluation of one model, from fewer and from more rows."""
    import matplotlib.pyplot as plt

    X, y = make_classification(
        42_000, 10, n_informative=5, n_redundant=0, weights=[0.9], class_sep=1.2, flip_y=0.02, random_state=0
    )
    clf = MixedDPLogisticRegression(epsilon=1.0, classes=[0, 1], random_state=0).fit(X[:12_000], y[:12_000])
    figure, rows = plt.subplots(2, 3, figsize=(12, 7.6), layout="constrained")
    for axes, n_rows in zip(rows, (2_000, 20_000), strict=True):
        drawn = slice(12_000, 12_000 + n_rows)
        found = private_evaluation(clf, X[drawn], y[drawn], epsilon=1.0, random_state=1)
        for ax, kind in zip(axes, ("roc", "precision_recall", "calibration"), strict=True):
            EvaluationDisplay.from_evaluation(found, kind=kind, ax=ax)
        axes[0].set_title(f"{n_rows:,} private rows", loc="left")
    figure.savefig(path, dpi=110)
    plt.close(figure)


def main(argv: Sequence[str] | None = None) -> None:
    """Print the table, or draw the picture."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--epsilon", type=float, default=1.0)
    parser.add_argument("--runs", type=int, default=1000)
    parser.add_argument("--rows", type=int, nargs="+", default=SIZES)
    parser.add_argument("--pools", nargs="+", default=list(POOLS))
    parser.add_argument("--picture", type=Path, nargs="?", const=Path("docs/images/evaluation.png"))
    args = parser.parse_args(argv)
    warnings.simplefilter("ignore")  # of seeds
    if args.picture is not None:
        draw(args.picture)
        return
    print("| pool | rows | metric | covers the pool | covers the rows | median length | median error |")
    print("| --- | --- | --- | --- | --- | --- | --- |")
    for name in args.pools:
        for n_rows in args.rows:
            for metric, found in coverage(name, n_rows, args.runs, args.epsilon).items():
                shares = " | ".join(f"{share:.3f}" for share in found[:2])
                sizes = f"{found[2]:.3f} | {found[3]:+.4f}"
                print(f"| {name} | {n_rows:,} | {metric} | {shares} | {sizes} |", flush=True)


if __name__ == "__main__":
    main()
