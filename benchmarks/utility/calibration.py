"""``python -m benchmarks.utility.calibration``: probabilities with and without the private temperature.

Tables of the profile ``tables``, without public rows and with 10 of each class. Each default fit is made
twice, once without the temperature, whose share then goes to training. The script prints the log-loss and the
calibration error, and draws ``calibration.png``: reliability diagrams of two classes over all seeds.
"""

import argparse
import warnings
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any
from unittest import mock

import numpy as np
from matplotlib.figure import Figure
from numpy.typing import NDArray
from sklearn.metrics import log_loss

from benchmarks.utility.problems import calibration_error
from benchmarks.utility.tabular import split
from skmixdp import MixedDPLogisticRegression
from skmixdp._fit.stages.calibration import Temperature

Array = NDArray[Any]

#: Tables, with the public rows of each class.
CASES = (
    *(("spam7", shots) for shots in (0, 10)),
    *(("churn", shots) for shots in (0, 10)),
    *(("Default", shots) for shots in (0, 10)),
    *(("diamonds, cut", shots) for shots in (0, 10)),
)

#: Those of the picture, which have two classes.
DRAWN = (("spam7", 10), ("churn", 10))

#: Bins of equally many test rows in the picture.
_BINS = 10


#: The price of the temperature in each kind of fit.
KINDS: dict[str, Callable[..., Any]] = {"without": lambda stage, fit: None, "with": Temperature.price}


def probabilities(table: str, shots: int, epsilon: float, seed: int) -> tuple[Array, dict[str, Array]]:
    """Classes of test rows (n_test,), and the probabilities (n_test, n_classes) by each kind of fit."""
    X, y, X_pub, y_pub, X_test, y_test = split(table, shots, seed)
    public = {"X_pub": X_pub, "y_pub": y_pub} if shots else {}
    classes = np.unique(np.concatenate([y, y_pub, y_test]))
    found = {}
    for name, price in KINDS.items():
        clf = MixedDPLogisticRegression(epsilon=epsilon, classes=classes, random_state=seed)
        with mock.patch.object(Temperature, "price", price):
            clf.fit(X, y, **public)
        found[name] = clf.predict_proba(X_test)
    return np.searchsorted(classes, y_test), found


def measures(y: Array, found: dict[str, Array]) -> list[float]:
    """Log-loss without, with, and of the classes' shares; calibration error without and with."""
    labels = np.arange(found["with"].shape[1])
    shares = np.broadcast_to(np.bincount(y, minlength=len(labels)) / len(y), found["with"].shape)
    losses = [float(log_loss(y, P, labels=labels)) for P in (*found.values(), shares)]
    return losses + [calibration_error(P.max(axis=1), P.argmax(axis=1) == y) for P in found.values()]


def draw(ax: Any, title: str, y: Array, found: dict[str, Array]) -> None:
    """A reliability diagram of class 1: its share of the test rows against its probability."""
    ax.plot([0, 1], [0, 1], color="#999999", linewidth=1)
    looks = {"without": ("#d55e00", "o", "--"), "with": ("#0072b2", "s", "-")}
    for name, P in found.items():
        order = np.array_split(np.argsort(P[:, 1]), _BINS)
        color, marker, style = looks[name]
        said, seen = ([float(np.mean(values[rows])) for rows in order] for values in (P[:, 1], y))
        ax.plot(said, seen, style, color=color, marker=marker, label=f"{name} the temperature")
    ax.set(xlabel="probability", ylabel="share of test rows", xlim=(0, 1), ylim=(0, 1), aspect="equal")
    ax.set_title(title, loc="left", fontsize=10)


def main(argv: Sequence[str] | None = None) -> None:
    """Print the table and draw the picture."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--epsilon", type=float, default=1.0)
    parser.add_argument("--seeds", type=int, default=20)
    parser.add_argument("--out", type=Path, default=Path("results/utility"), help="folder of the picture")
    args = parser.parse_args(argv)
    warnings.simplefilter("ignore")  # of seeds
    args.out.mkdir(parents=True, exist_ok=True)
    figure = Figure(figsize=(4 * len(DRAWN), 4.2), layout="constrained")
    panels = dict(zip(DRAWN, figure.subplots(1, len(DRAWN), squeeze=False)[0], strict=True))
    print("| table | public rows per class | log-loss without | with | base rates | error without | with |")
    print("| --- | --- | --- | --- | --- | --- | --- |")
    for table, shots in CASES:
        runs = [probabilities(table, shots, args.epsilon, seed) for seed in range(args.seeds)]
        values = np.mean([measures(y, found) for y, found in runs], axis=0)
        print(f"| {table} | {shots} | {' | '.join(f'{value:.3f}' for value in values)} |", flush=True)
        if (table, shots) in panels:
            pooled = {name: np.concatenate([found[name] for _, found in runs]) for name in KINDS}
            title = f"{table}, {shots} public rows per class"
            draw(panels[table, shots], title, np.concatenate([y for y, _ in runs]), pooled)
    panels[DRAWN[0]].legend(fontsize=9, loc="upper left")
    figure.savefig(args.out / "calibration.png", dpi=120)


if __name__ == "__main__":
    main()
