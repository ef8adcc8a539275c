"""What choosing an algorithm costs: an honest search, an ordinary one, and none at all.

BANKING77 with MiniLM embeddings; 5 public rows per class, all other training rows private. The
query is which of four algorithms to use, at epsilon 3. ``PrivateSearchCV`` spends epsilon 3 on
everything; ``GridSearchCV`` gives each fit epsilon 3 and says nothing of the rest; the default is
fitted once.

Run ``python -m benchmarks.reproduce.private_search``.
"""

import argparse
import math
import time
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pandas as pd
from sklearn.model_selection import GridSearchCV, KFold
from tqdm.auto import tqdm

from benchmarks.reproduce.adamix_ablation import Split, data_folder, make_split, markdown
from skmixdp import MixedDPLogisticRegression
from skmixdp.exceptions import PrivacyLeakWarning
from skmixdp.model_selection import PrivateSearchCV, public_params
from skmixdp.privacy import epsilon_of

EPSILON, DELTA, SHOTS, FOLDS = 3.0, 1e-5, 5, 3
ALGORITHMS = ("adamix", "noisy-gd", "coupling", "pda-dpmd")


@dataclass(frozen=True)
class Size:
    """How much is run."""

    seeds: tuple[int, ...] = (0, 1, 2)
    n_steps: int | None = None
    n_private: int | None = None


FULL = Size()
QUICK = Size(seeds=(0,), n_steps=3, n_private=1500)


def head(size: Size) -> MixedDPLogisticRegression:
    """The estimator at its defaults, one fit of which has epsilon 3."""
    return MixedDPLogisticRegression(epsilon=EPSILON, delta=DELTA, n_steps=size.n_steps)


def no_search(split: Split, size: Size) -> dict[str, Any]:
    """The default, fitted once."""
    clf = head(size).fit(split.X_priv, split.y_priv, **public_params(split.X_pub, split.y_pub))
    return {
        "model": clf,
        "naive": clf.privacy_.epsilon,
        "true": clf.privacy_.epsilon,
        "chosen": clf.algorithm,
    }


def private_search(split: Split, size: Size, **options: Any) -> dict[str, Any]:
    """Everything within epsilon 3."""
    grid = {"algorithm": list(ALGORITHMS)}
    search = PrivateSearchCV(head(size), grid, epsilon=EPSILON, delta=DELTA, **options)
    search.fit(split.X_priv, split.y_priv, **public_params(split.X_pub, split.y_pub))
    report = search.privacy_
    return {
        "model": search,
        "naive": report.fit_epsilon,
        "true": report.epsilon,
        "chosen": search.best_params_["algorithm"],
    }


def ordinary_search(split: Split, size: Size) -> dict[str, Any]:
    """GridSearchCV: each private row is in all folds' fits but one, and in the last fit."""
    search = GridSearchCV(
        head(size),
        {"algorithm": list(ALGORITHMS)},
        cv=KFold(FOLDS, shuffle=True, random_state=0),
        error_score="raise",
    )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", PrivacyLeakWarning)  # its leak is what is compared
        search.fit(split.X_priv, split.y_priv, **public_params(split.X_pub, split.y_pub))
    report = search.best_estimator_.privacy_
    mu = math.sqrt(len(ALGORITHMS) * (FOLDS - 1) + 1) * report.mu
    return {
        "model": search,
        "naive": report.epsilon,
        "true": epsilon_of(1 / mu, 1, delta=DELTA),
        "chosen": search.best_params_["algorithm"],
    }


def _searching(**options: Any) -> Callable[[Split, Size], dict[str, Any]]:
    return lambda split, size: private_search(split, size, **options)


METHODS: dict[str, Callable[[Split, Size], dict[str, Any]]] = {
    "no search, default": no_search,
    "PrivateSearchCV, every candidate, private scores": _searching(strategy="grid"),
    "PrivateSearchCV, every candidate, public scores": _searching(strategy="grid", scoring="public"),
    "PrivateSearchCV, random number, private scores": _searching(strategy="random"),
    "GridSearchCV, 3 folds": ordinary_search,
}


def run(size: Size) -> pd.DataFrame:
    """One row for each method and seed."""
    rows = []
    with tqdm(total=len(size.seeds) * len(METHODS), desc="private_search") as bar:
        for seed in size.seeds:
            split = make_split(seed, SHOTS, size.n_private)
            for name, method in METHODS.items():
                start = time.perf_counter()
                found = method(split, size)
                seconds = time.perf_counter() - start
                accuracy = found.pop("model").score(split.X_test, split.y_test)
                row = {"method": name, "seed": seed, "accuracy": accuracy, "seconds": seconds}
                rows.append({**row, **found})
                bar.update()
    return pd.DataFrame(rows)


def table(found: pd.DataFrame) -> str:
    """Means and standard deviations over the seeds."""
    lines = []
    for name in METHODS:
        own = found[found["method"] == name]
        spread = f" ± {100 * own['accuracy'].std(ddof=1):.1f}" if len(own) > 1 else ""
        uncharged = ", and scores not accounted for" if name.startswith("GridSearchCV") else ""
        lines.append(
            [
                name,
                f"{100 * own['accuracy'].mean():.1f}{spread}",
                f"{own['naive'].mean():.2f}",
                f"{own['true'].mean():.2f}{uncharged}",
                ", ".join(own["chosen"]),
            ]
        )
    header = ["method", "test accuracy, %", "epsilon of one fit", "true epsilon", "chosen"]
    return markdown(header, lines)


def main(argv: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description="The price of choosing an algorithm.")
    parser.add_argument("--out", type=Path, default=Path("results/reproduce"), help="folder to write to")
    parser.add_argument("--quick", action="store_true", help="one split, few rows, few steps")
    options = parser.parse_args(argv)
    if not (data_folder() / "banking77").is_dir():
        parser.error(f"no banking77 in {data_folder()}; set SKMIXDP_DATA to the folder that holds it.")
    found = run(QUICK if options.quick else FULL)
    options.out.mkdir(parents=True, exist_ok=True)
    found.to_csv(options.out / "private_search.csv", index=False)
    print(f"\n{table(found)}\n")


if __name__ == "__main__":
    main()
