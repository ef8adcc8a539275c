"""AdaMix, Table 1: its two claims, for few and for many private rows of each class.

BANKING77 with MiniLM embeddings; 2 public rows per class, and 6 to 120 private ones, or all if a class
has fewer. Compared are the public rows alone, AdaMix, the default, and fully private training, which takes
public rows as private ones and starts from zero. Every setting follows from public quantities.

Run ``python -m benchmarks.reproduce.adamix_few_rows``.
"""

import argparse
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from tqdm.auto import tqdm

from skmixdp import MixedDPLogisticRegression
from skmixdp.algorithms import AdaMix, NoisyGD

from .adamix_ablation import DELTA, Split, data_folder, make_split, markdown

SHOTS = 2
METHODS: dict[str, Any] = {"fully private": NoisyGD(), "AdaMix": AdaMix(), "default": "auto"}


@dataclass(frozen=True)
class Size:
    """How much is run."""

    seeds: tuple[int, ...] = (0, 1, 2)
    rows: tuple[int, ...] = (6, 15, 30, 60, 120)
    epsilons: tuple[float, ...] = (1.0, 3.0)


FULL = Size()
QUICK = Size(seeds=(0,), rows=(6,), epsilons=(1.0,))


def with_rows(split: Split, rows: int, seed: int) -> Split:
    """The split with the first so many private rows of each class, in random order."""
    kept = [np.flatnonzero(split.y_priv == label)[:rows] for label in np.unique(split.y_pub)]
    index = np.random.default_rng(seed).permutation(np.concatenate(kept))
    return replace(split, X_priv=split.X_priv[index], y_priv=split.y_priv[index])


def public_error(split: Split) -> float:
    """Test error of the public rows alone."""
    clf = MixedDPLogisticRegression(NoisyGD(public_weight=1.0), n_steps=1, learning_rate=1e-9)
    clf.fit(split.X_priv, split.y_priv, X_pub=split.X_pub, y_pub=split.y_pub)
    return 1 - float(clf.score(split.X_test, split.y_test))


def private_error(method: str, split: Split, epsilon: float, seed: int) -> float:
    """Test error of a private fit."""
    clf = MixedDPLogisticRegression(METHODS[method], epsilon=epsilon, delta=DELTA, random_state=seed)
    if method == "fully private":
        clf.set_params(init="zeros", classes=np.unique(split.y_pub))
        clf.fit(np.vstack([split.X_priv, split.X_pub]), np.append(split.y_priv, split.y_pub))
    else:
        clf.fit(split.X_priv, split.y_priv, X_pub=split.X_pub, y_pub=split.y_pub)
    return 1 - float(clf.score(split.X_test, split.y_test))


def run(size: Size) -> pd.DataFrame:
    """Test errors: one row for each fit. Public rows alone have no epsilon and no private rows."""
    found: list[dict[str, Any]] = []
    total = len(size.seeds) * len(size.rows) * len(size.epsilons) * len(METHODS)
    with tqdm(total=total, desc="adamix_few_rows", unit="fit") as bar:
        for seed in size.seeds:
            split = make_split(seed, SHOTS, None)
            found.append({"seed": seed, "method": "only public", "error": public_error(split)})
            for rows in size.rows:
                part = with_rows(split, rows, seed)
                for epsilon in size.epsilons:
                    for method in METHODS:
                        error = private_error(method, part, epsilon, seed)
                        setting = {"rows": rows, "epsilon": epsilon, "method": method}
                        found.append({"seed": seed, "n_priv": len(part.y_priv), **setting, "error": error})
                        bar.update()
    return pd.DataFrame(found)


def error_table(found: pd.DataFrame) -> str:
    """Mean errors in percent, and how far the default and AdaMix are below the public rows, by seed."""
    public = found[found["method"] == "only public"].set_index("seed")["error"]
    lines = []
    for (epsilon, rows), own in found.dropna().groupby(["epsilon", "rows"]):
        errors = own.pivot(index="seed", columns="method", values="error")
        cells = [f"{100 * public.mean():.1f}", *(f"{100 * errors[name].mean():.1f}" for name in METHODS)]
        for name in ("AdaMix", "default"):
            gains = 100 * (public - errors[name])
            cells.append(f"{gains.min():+.1f} to {gains.max():+.1f}")
        lines.append([f"{epsilon:g}", f"{rows:g}", *cells])
    head = ["epsilon", "private rows per class", "only public", *METHODS, "AdaMix gains", "default gains"]
    return markdown(head, lines)


def main(argv: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description="AdaMix's Table 1 by private rows per class.")
    parser.add_argument("--out", type=Path, default=Path("results/reproduce"), help="folder to write to")
    parser.add_argument("--quick", action="store_true", help="one split, one budget, few rows")
    options = parser.parse_args(argv)
    if not (data_folder() / "banking77").is_dir():
        parser.error(f"no banking77 in {data_folder()}; set SKMIXDP_DATA to the folder that holds it.")
    found = run(QUICK if options.quick else FULL)
    options.out.mkdir(parents=True, exist_ok=True)
    found.to_csv(options.out / "adamix_few_rows.csv", index=False)
    print(f"\n{error_table(found)}\n")


if __name__ == "__main__":
    main()
