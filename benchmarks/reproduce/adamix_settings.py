"""AdaMix, Figures 7 and 8: the quantile of its clip, and the noise of a step at the same epsilon.

BANKING77 with MiniLM embeddings; 2 public rows per class, all other training rows private, epsilon 3.
As in the paper, heads descend without momentum, steps follow from the noise, and the learning rate is the
best of a list on the *test* rows.

Run ``python -m benchmarks.reproduce.adamix_settings``.
"""

import argparse
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import pandas as pd
from tqdm.auto import tqdm

from skmixdp import MixedDPLogisticRegression
from skmixdp.algorithms import AdaMix, NoisyGD
from skmixdp.privacy import steps_for

from .adamix_ablation import DELTA, QUANTILE, QUANTILE_FLOOR, Split, data_folder, make_split, markdown

EPSILON, SHOTS = 3.0, 2
PAPERS_NOISE = 20.0


@dataclass(frozen=True)
class Size:
    """How much is run."""

    seeds: tuple[int, ...] = (0, 1, 2)
    quantiles: tuple[float, ...] = (0.5, 0.75, 0.9, 0.98)
    noises: tuple[float, ...] = (5.0, 10.0, 20.0)
    #: Learning rates times the number of steps.
    totals: tuple[float, ...] = (300.0, 1e3, 3e3, 1e4, 3e4, 1e5)
    n_private: int | None = None


FULL = Size()
QUICK = Size((0,), (0.5, 0.9), (5.0,), (100.0,), 1500)


def error(algorithm: AdaMix | NoisyGD, split: Split, noise: float, total: float, seed: int) -> float:
    """Test error of the fit whose learning rates add up to ``total``."""
    n_steps = steps_for(EPSILON, DELTA, noise_multiplier=noise)
    clf = MixedDPLogisticRegression(
        algorithm,
        epsilon=None,
        delta=DELTA,
        noise_multiplier=noise,
        n_steps=n_steps,
        learning_rate=total / n_steps,
        random_state=seed,
    )
    clf.fit(split.X_priv, split.y_priv, X_pub=split.X_pub, y_pub=split.y_pub)
    return 1 - float(clf.score(split.X_test, split.y_test))


def settings(size: Size) -> list[tuple[str, float, AdaMix | NoisyGD, float]]:
    """Figure, its abscissa, algorithm and noise of every point."""
    adamix = partial(AdaMix, clip_floor=QUANTILE_FLOOR, momentum=0.0)
    points: list[tuple[str, float, AdaMix | NoisyGD, float]] = [
        ("quantile", quantile, adamix(quantile), PAPERS_NOISE) for quantile in size.quantiles
    ]
    for noise in size.noises:
        points.append(("noise, AdaMix", noise, adamix(QUANTILE), noise))
        points.append(("noise, NGD", noise, NoisyGD(momentum=0.0), noise))
    return points


def run(size: Size) -> pd.DataFrame:
    """Test errors: one row for each fit."""
    found = []
    points = settings(size)
    with tqdm(total=len(size.seeds) * len(points) * len(size.totals), desc="adamix_settings") as bar:
        for seed in size.seeds:
            split = make_split(seed, SHOTS, size.n_private)
            for figure, value, algorithm, noise in points:
                for total in size.totals:
                    one = error(algorithm, split, noise, total, seed)
                    found.append(
                        {"figure": figure, "value": value, "total": total, "seed": seed, "error": one}
                    )
                    bar.update()
    return pd.DataFrame(found)


def best_table(found: pd.DataFrame) -> str:
    """Mean and range of the errors in percent, at the rate with the lowest mean."""
    lines: list[list[str]] = []
    for (figure, value), own in found.groupby(["figure", "value"]):
        errors = 100 * own.pivot(index="seed", columns="total", values="error")
        best = errors.mean().idxmin()
        cells = [f"{errors[best].mean():.1f}", f"{errors[best].min():.1f} to {errors[best].max():.1f}"]
        lines.append([str(figure), f"{value:g}", *cells, f"{best:g}"])
    return markdown(["varied", "value", "error", "range", "best total rate"], lines)


def main(argv: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description="AdaMix's Figures 7 and 8.")
    parser.add_argument("--out", type=Path, default=Path("results/reproduce"), help="folder to write to")
    parser.add_argument("--quick", action="store_true", help="one split, few settings")
    options = parser.parse_args(argv)
    if not (data_folder() / "banking77").is_dir():
        parser.error(f"no banking77 in {data_folder()}; set SKMIXDP_DATA to the folder that holds it.")
    found = run(QUICK if options.quick else FULL)
    options.out.mkdir(parents=True, exist_ok=True)
    found.to_csv(options.out / "adamix_settings.csv", index=False)
    print(f"\n{best_table(found)}\n")


if __name__ == "__main__":
    main()
