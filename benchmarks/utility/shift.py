"""``python -m benchmarks.utility.shift``: public rows of another distribution than the private ones.

Digits of scikit-learn, 5 public rows per class unless a case says otherwise, delta 1e-5. Each case changes
the public rows alone. The table compares the default with these public rows, the default without public rows,
and the head of the public rows alone. The last two columns need no private rows: the accuracy of the released
head on the public rows, and the accuracy of a head of half of the public rows on the other half.
"""

import argparse
import warnings
from collections.abc import Callable

import numpy as np
from sklearn.datasets import load_digits
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import StratifiedKFold, cross_val_score, train_test_split

from skmixdp import MixedDPLogisticRegression

Array = np.ndarray
PER_CLASS = 5


def images(change: Callable[[Array, np.random.Generator], Array]) -> Callable:
    """A case that changes the public images (n, 8, 8)."""

    def case(X: Array, y: Array, rng: np.random.Generator) -> tuple[Array, Array, Array]:
        chosen = per_class(y, np.full(10, PER_CLASS), rng)
        changed = change(X[chosen].reshape(-1, 8, 8), rng)
        return np.clip(changed, 0, 16).reshape(-1, 64), y[chosen], chosen

    return case


def per_class(y: Array, counts: Array, rng: np.random.Generator) -> Array:
    """Row numbers with so many rows of each class."""
    return np.concatenate([rng.permutation(np.flatnonzero(y == c))[:n] for c, n in enumerate(counts)])


def skewed(X: Array, y: Array, rng: np.random.Generator) -> tuple[Array, Array, Array]:
    """Half of the classes have 9 public rows, the others 1."""
    chosen = per_class(y, rng.permutation(np.repeat([9, 1], 5)), rng)
    return X[chosen], y[chosen], chosen


def wrong_labels(X: Array, y: Array, rng: np.random.Generator) -> tuple[Array, Array, Array]:
    """A third of the public labels are drawn at random."""
    chosen = per_class(y, np.full(10, PER_CLASS), rng)
    labels = np.where(rng.random(len(chosen)) < 1 / 3, rng.integers(0, 10, len(chosen)), y[chosen])
    return X[chosen], labels, chosen


CASES = {
    "the same distribution": images(lambda X, rng: X),
    "9 rows of five classes, 1 of the others": skewed,
    "a third of the labels at random": wrong_labels,
    "pixel noise, standard deviation 4": images(lambda X, rng: X + rng.normal(0, 4, X.shape)),
    "moved by a pixel": images(lambda X, rng: np.roll(X, 1, axis=2)),
    "half as bright": images(lambda X, rng: X / 2),
    "inverted": images(lambda X, rng: 16 - X),
    "rotated by 90 degrees": images(lambda X, rng: np.rot90(X, axes=(1, 2))),
}


def head(epsilon: float, seed: int) -> MixedDPLogisticRegression:
    """The default, seeded so that the table can be repeated."""
    return MixedDPLogisticRegression(epsilon=epsilon, classes=range(10), random_state=seed)


def measure(case: Callable, epsilon: float, seed: int) -> list[float]:
    """Accuracies on test rows of the default, and on public rows."""
    X, y = load_digits(return_X_y=True)
    X, X_test, y, y_test = train_test_split(X, y, test_size=400, random_state=seed, stratify=y)
    X_pub, y_pub, chosen = case(X, y, np.random.default_rng(seed))
    X, y = np.delete(X, chosen, axis=0), np.delete(y, chosen)
    fitted = head(epsilon, seed).fit(X, y, X_pub=X_pub, y_pub=y_pub)
    alone = LogisticRegression(max_iter=1000).fit(X_pub / 16, y_pub)
    folds = StratifiedKFold(2, shuffle=True, random_state=seed)
    return [
        fitted.score(X_test, y_test),
        head(epsilon, seed).fit(X, y).score(X_test, y_test),
        alone.score(X_test / 16, y_test),
        fitted.score(X_pub, y_pub),
        float(np.mean(cross_val_score(alone, X_pub / 16, y_pub, cv=folds))),
    ]


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--epsilons", type=float, nargs="+", default=[1.0, 3.0])
    parser.add_argument("--seeds", type=int, default=5)
    args = parser.parse_args()
    warnings.simplefilter("ignore")  # of seeds, and of classes with one public row
    print(
        "| public rows | epsilon | default | without public rows | public alone | on public rows | halves |"
    )
    print("| --- | --- | --- | --- | --- | --- | --- |")
    for name, case in CASES.items():
        for epsilon in args.epsilons:
            runs = [measure(case, epsilon, seed) for seed in range(args.seeds)]
            values = " | ".join(f"{100 * value:.1f}" for value in np.mean(runs, axis=0))
            print(f"| {name} | {epsilon:g} | {values} |", flush=True)


if __name__ == "__main__":
    main()
