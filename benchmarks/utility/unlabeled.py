"""``python -m benchmarks.utility.unlabeled``: public rows without labels.

Each seed draws public, private and unlabelled rows from the training rows, and no row is in two of them. The
private rows are the same for any number of unlabelled ones. Fits are the defaults, with classes or the scale
of targets declared.
"""

import argparse
import warnings
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.datasets import load_digits

from benchmarks.utility import data
from benchmarks.utility.problems import Array, Rows
from skmixdp import MixedDPLogisticRegression, MixedDPRidge, fit_many

#: Options of each data set, private rows, and numbers of unlabelled ones.
PROBLEMS: dict[str, tuple[dict[str, Any], int, tuple[int, ...]]] = {
    "BANKING77": ({"adapter": "banking77"}, 4_500, (100, 1_000, 5_000)),
    "Fashion-MNIST, random patches": (
        {"adapter": "held_out", "problem": "random patches"},
        8_000,
        (100, 1_000, 5_000),
    ),
    "digits": ({"adapter": "digits"}, 800, (100, 500)),
    "census": ({"adapter": "table", "source": "adult", "target": "income"}, 8_000, (100, 1_000, 5_000)),
    "diamonds, cut": (
        {"adapter": "table", "source": "ggplot2/diamonds", "target": "cut"},
        8_000,
        (100, 1_000, 5_000),
    ),
    "diamonds, price": (
        {"adapter": "table", "source": "ggplot2/diamonds", "target": "price", "bounds": [0, 20_000]},
        8_000,
        (100, 1_000, 5_000),
    ),
    "hotels": (
        {
            "adapter": "table",
            "source": "modeldata/hotel_rates",
            "target": "avg_price_per_room",
            "bounds": [0, 500],
        },
        4_000,
        (100, 1_000, 5_000),
    ),
}

#: Public rows of each class, or of a regression.
SHOTS, SHOTS_OF_TARGETS = 5, 30
SHIFTED = "digits, unlabelled rows of another kind"
EPSILONS = (0.1, 0.3, 1.0, 3.0)
MOST_TEST_ROWS = 4_000

#: What other unlabelled digits are like: changes of images (n, 8, 8) between 0 and 16 with labels (n,).
KINDS: dict[str, Callable[[Array, Array], Array]] = {
    "the same distribution": lambda images, y: images,
    "five of the ten classes": lambda images, y: images[y < 5],
    "moved by a pixel": lambda images, y: np.roll(images, 1, axis=2),
    "half as bright": lambda images, y: images / 2,
    "rotated by 90 degrees": lambda images, y: np.rot90(images, axes=(1, 2)),
    "inverted": lambda images, y: 16 - images,
}


def scores(rows: Rows, n_private: int, with_public: bool, n_unlabeled: int, seed: int) -> list[float]:
    """Accuracy or R2 in percent on test rows, for each epsilon."""
    order = np.random.default_rng(seed).permutation(len(rows.X))
    test, order = order[: rows.n_test], order[rows.n_test :]
    X_test, y_test = (rows.X[test], rows.y[test]) if rows.n_test else (rows.X_test, rows.y_test)
    classes = np.unique(rows.y)
    if rows.bounds is None:
        public = np.concatenate([order[rows.y[order] == label][:SHOTS] for label in classes])
    else:
        public = order[:SHOTS_OF_TARGETS]
    rest = order[~np.isin(order, public)]
    private, others = rest[:n_private], rest[n_private : n_private + n_unlabeled]
    assert len(others) == n_unlabeled
    told: dict[str, Any] = {"X_pub": rows.X[public], "y_pub": rows.y[public]} if with_public else {}
    if n_unlabeled:
        told["X_unlabeled"] = rows.X[others]
    heads = [head(rows, classes, with_public, epsilon, seed) for epsilon in EPSILONS]
    fit_many(heads, rows.X[private], rows.y[private], **told)
    return [100 * fitted.score(X_test[:MOST_TEST_ROWS], y_test[:MOST_TEST_ROWS]) for fitted in heads]


def head(rows: Rows, classes: Array, with_public: bool, epsilon: float, seed: int) -> Any:
    """The default, seeded so that the table can be repeated."""
    if rows.bounds is None:
        return MixedDPLogisticRegression(epsilon=epsilon, classes=classes, random_state=seed)
    low, high = rows.bounds
    scale = {} if with_public else {"target_center": (low + high) / 2, "target_scale": (high - low) / 4}
    return MixedDPRidge(epsilon=epsilon, random_state=seed, **scale)


def shifted(kind: str | None, with_public: bool, seed: int) -> list[float]:
    """Accuracies of digits whose 300 unlabelled rows are of a kind; None passes no such rows."""
    X, y = load_digits(return_X_y=True)
    order = np.random.default_rng(seed).permutation(len(X))
    test, public, others, private = np.split(order, [400, 450, 750])
    told: dict[str, Any] = {"X_pub": X[public], "y_pub": y[public]} if with_public else {}
    if kind is not None:
        images = KINDS[kind](X[others].reshape(-1, 8, 8), y[others])
        told["X_unlabeled"] = images.reshape(-1, 64)
    heads = [MixedDPLogisticRegression(epsilon=e, classes=range(10), random_state=seed) for e in EPSILONS]
    fit_many(heads, X[private], y[private], **told)
    return [100 * fitted.score(X[test], y[test]) for fitted in heads]


def line(names: Sequence[Any], runs: Sequence[Sequence[float]]) -> None:
    """Print a line of a table: the means over the seeds."""
    means = (f"{mean:.1f}" for mean in np.mean(runs, axis=0))
    print(f"| {' | '.join(map(str, (*names, *means)))} |", flush=True)


def main(argv: Sequence[str] | None = None) -> None:
    """Print the tables."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--cache", type=Path, default=Path("results/features"), help="folder of features")
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--problems", nargs="*", default=[*PROBLEMS, SHIFTED])
    args = parser.parse_args(argv)
    warnings.simplefilter("ignore")  # of seeds
    seeds, budgets = range(args.seeds), " | ".join(f"epsilon {epsilon:g}" for epsilon in EPSILONS)
    for name in args.problems:
        print(f"\n{name}\n\n| labelled | unlabelled | {budgets} |")
        print("| --- " * (2 + len(EPSILONS)) + "|")
        if name == SHIFTED:
            for with_public in (False, True):
                for kind in (None, *KINDS):
                    runs = [shifted(kind, with_public, seed) for seed in seeds]
                    line([50 * with_public, kind or "none"], runs)
            continue
        options, n_private, numbers = PROBLEMS[name]
        rows = data.load(cache=args.cache, **options)
        for with_public in (False, True):
            shots = 0 if not with_public else SHOTS if rows.bounds is None else SHOTS_OF_TARGETS
            for n in (0, *numbers):
                runs = [scores(rows, n_private, with_public, n, seed) for seed in seeds]
                line([shots, n], runs)


if __name__ == "__main__":
    main()
