"""Coupling, section 5.2 (Figures 2 and 3) in kind: the best public weight for a head trained from zero.

Digits, all of them split into public, private and 400 test rows. Automatic clipping, 60 steps, full or
Poisson batches, from zero, as in the paper's main experiments. The learning rate is the best of a grid on the
test rows, for each weight: so the paper does it, and no budget accounts for it.

Run ``python -m benchmarks.reproduce.coupling_weights``.
"""

import argparse
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split
from tqdm.auto import tqdm

from skmixdp import MixedDPLogisticRegression
from skmixdp.algorithms import Coupling

from .adamix_ablation import DELTA, markdown

N_TEST, N_STEPS = 400, 60
#: The paper's weights, and the two rules.
WEIGHTS: tuple[Any, ...] = (0.05, 0.2, 0.5, 0.8, 1.0, "sample", "coupling")
RATES = (2.0, 8.0, 32.0, 128.0)


@dataclass(frozen=True)
class Setting:
    """What the paper's figures vary."""

    epsilon: float = 2.0
    share: float = 0.2
    batch_size: int | None = None
    gamma: float = 1.0


SETTINGS = (
    Setting(epsilon=0.5),
    Setting(),
    Setting(epsilon=8.0),
    Setting(share=0.05),
    Setting(epsilon=0.5, share=0.05),
    Setting(batch_size=100),
    Setting(gamma=0.1),
)


def accuracy(setting: Setting, weight: Any, rate: Any, seed: int) -> float:
    """Test accuracy of one fit; ``rate`` may be ``"auto"``."""
    X, y = load_digits(return_X_y=True)
    X_train, X_test, y_train, y_test = train_test_split(X, y, test_size=N_TEST, random_state=seed, stratify=y)
    X_priv, X_pub, y_priv, y_pub = train_test_split(
        X_train, y_train, test_size=setting.share, random_state=seed, stratify=y_train
    )
    clf = MixedDPLogisticRegression(
        Coupling(setting.gamma, momentum=0.0, public_weight=weight),
        epsilon=setting.epsilon,
        delta=DELTA,
        n_steps=N_STEPS,
        batch_size=setting.batch_size,
        learning_rate=rate,
        init="zeros",
        random_state=seed,
    )
    return float(clf.fit(X_priv, y_priv, X_pub=X_pub, y_pub=y_pub).score(X_test, y_test))


def run(settings: Sequence[Setting], seeds: Sequence[int], rates: Sequence[Any]) -> pd.DataFrame:
    """One row for each setting, weight and rate: the mean accuracy over the seeds."""
    found: list[dict[str, Any]] = []
    with tqdm(total=len(settings) * len(WEIGHTS) * (len(rates) + 1), unit="point") as bar:
        for setting in settings:
            for weight in WEIGHTS:
                for rate in (*rates, "auto"):
                    scores = [accuracy(setting, weight, rate, seed) for seed in seeds]
                    point = {**vars(setting), "weight": str(weight), "rate": str(rate)}
                    found.append({**point, "accuracy": float(np.mean(scores))})
                    bar.update()
    return pd.DataFrame(found)


def table(found: pd.DataFrame) -> str:
    """Accuracy in percent at the best rate, by weight; rules also with the automatic rate."""
    lines = []
    keys = ["epsilon", "share", "batch_size", "gamma"]
    for key, own in found.groupby(keys, sort=False, dropna=False):
        tuned = own[own["rate"] != "auto"].groupby("weight")["accuracy"].max()
        auto = own[own["rate"] == "auto"].set_index("weight")["accuracy"]
        cells = [f"{100 * tuned[str(weight)]:.1f}" for weight in WEIGHTS]
        cells += [f"{100 * auto[rule]:.1f}" for rule in ("sample", "coupling")]
        batch = "all" if pd.isna(key[2]) else f"{key[2]:g}"
        lines.append([f"{key[0]:g}", f"{key[1]:g}", batch, f"{key[3]:g}", *cells])
    head = ["epsilon", "public share", "batch", "gamma", *(str(weight) for weight in WEIGHTS)]
    return markdown([*head, "sample, automatic rate", "coupling, automatic rate"], lines)


def main(argv: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description="Coupling's best public weight for heads.")
    parser.add_argument("--out", type=Path, default=Path("results/reproduce"), help="folder to write to")
    parser.add_argument("--quick", action="store_true", help="one setting, one seed, one rate")
    options = parser.parse_args(argv)
    found = run(SETTINGS[:1], (0,), RATES[:1]) if options.quick else run(SETTINGS, (0, 1, 2), RATES)
    options.out.mkdir(parents=True, exist_ok=True)
    found.to_csv(options.out / "coupling_weights.csv", index=False)
    print(f"\n{table(found)}\n")


if __name__ == "__main__":
    main()
