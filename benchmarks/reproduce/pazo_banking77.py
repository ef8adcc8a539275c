"""PAZO on a linear head: the comparison of its Figures 2 and 3 on intent classification.

BANKING77 with MiniLM embeddings; 5 public rows per class, all other training rows private. The
three PAZO variants and DPZero compared with NoisyGD, PDA-DPMD and DOPE-SGD at four budgets, all from the
public start.

Every method's hyper-parameters come from a grid that holds the paper's values (Table 12, first
column) and learning rates about where each method is stable on rows of unit length. They are
chosen for each split and budget on public rows alone: of each class two public rows play the
private ones, with as much noise in their mean as the private run will have, two stay public and one
is scored by its cross-entropy. The test rows are looked at once, by the fit that is reported.

Each reported fit is repeated with permuted private labels: a method that is then as accurate learns nothing
from the private labels, and its advantage is that of public gradients.

Run ``python -m benchmarks.reproduce.pazo_banking77``.
"""

import argparse
import itertools
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.figure import Figure
from numpy.typing import NDArray
from sklearn.metrics import log_loss
from tqdm.auto import tqdm

from skmixdp import MixedDPLogisticRegression
from skmixdp.algorithms import DOPE, PAZO, PDADPMD, Algorithm, DPZero, NoisyGD
from skmixdp.inspection._style import curve_style, reference_style
from skmixdp.privacy import noise_multiplier_for

from .adamix_ablation import Split, data_folder, make_split, markdown, ranged

Array = NDArray[Any]
Setting = dict[str, Any]

DELTA = 1e-5
SHOTS = 5
N_STEPS = 100  # epochs, as in the paper

#: Learning rates by method, about where each is stable on rows of unit length: the squared length of
#: DPZero's estimate is that of the gradient times the number of coefficients, some 30,000.
RATES = {
    "DPZero": (1e-4, 1e-3, 1e-2),
    "zeroth order": (1.0, 4.0, 16.0),
    "first order": (1.0, 4.0, 16.0, 64.0),
}

#: What varies besides the learning rate, by method; the paper's values.
GRIDS: dict[str, tuple[type[Algorithm], Setting, dict[str, tuple[Any, ...]]]] = {
    "PAZO-M": (PAZO, {"variant": "m"}, {"public_weight": (0.25, 0.5, 0.75)}),
    "PAZO-P": (PAZO, {"variant": "p"}, {"n_public_batches": (3, 6, 10)}),
    "PAZO-S": (PAZO, {"variant": "s"}, {"loss_clip": (1.0, 4.0), "candidate_noise": (1e-3, 1e-2)}),
    "DPZero": (DPZero, {}, {"n_directions": (1,)}),
    "NoisyGD": (NoisyGD, {"public_weight": 0.0}, {"clip": (0.5, 1.0)}),
    "PDA-DPMD": (PDADPMD, {}, {}),
    "DOPE-SGD": (DOPE, {}, {}),
}
ZEROTH_ORDER = ("PAZO-M", "PAZO-P", "PAZO-S", "DPZero")


@dataclass(frozen=True)
class Size:
    """How much is run."""

    seeds: tuple[int, ...] = (0, 1)
    epsilons: tuple[float, ...] = (0.1, 0.5, 1.0, 3.0)
    n_steps: int = N_STEPS
    n_rates: int = 4
    n_private: int | None = None
    folds: int = 2


FULL = Size()
QUICK = Size(seeds=(0,), epsilons=(1.0,), n_steps=5, n_rates=2, n_private=1500, folds=1)


def settings(method: str, n_rates: int) -> list[Setting]:
    """All points of a method's grid: parameters of the algorithm, and the learning rate."""
    _, _, grid = GRIDS[method]
    order = "zeroth order" if method in ZEROTH_ORDER else "first order"
    rates = RATES.get(method, RATES[order])[:n_rates]
    points = [dict(zip(grid, values, strict=True)) for values in itertools.product(*grid.values())]
    return [{**point, "learning_rate": rate} for point in points for rate in rates]


def estimator(method: str, setting: Setting, n_steps: int, sigma: float, seed: int) -> Any:
    """A method at a point of its grid with given noise."""
    kind, fixed, _ = GRIDS[method]
    parameters = {name: value for name, value in setting.items() if name != "learning_rate"}
    return MixedDPLogisticRegression(
        kind(**fixed, **parameters),
        epsilon=None,
        delta=DELTA,
        n_steps=n_steps,
        noise_multiplier=sigma,
        learning_rate=setting["learning_rate"],
        random_state=seed,
    )


def rehearsals(split: Split, folds: int) -> list[tuple[Array, Array, Array]]:
    """Public rows as (public, private, scored) rows, two, two and one of each class."""
    n_classes = len(np.unique(split.y_pub))
    order = np.arange(len(split.y_pub)).reshape(n_classes, SHOTS)  # class by class
    shares = [np.roll(order, -2 * fold, axis=1) for fold in range(folds)]
    return [(rows[:, :2].ravel(), rows[:, 2:4].ravel(), rows[:, 4].ravel()) for rows in shares]


def choose(method: str, split: Split, sigma: float, size: Size, seed: int) -> Setting:
    """The point of the grid with the smallest cross-entropy on public rows.

    Accuracies of so few rows would be equal for most points.
    """
    X, y = split.X_pub, split.y_pub
    grid = settings(method, size.n_rates)
    losses = np.zeros(len(grid))
    for public, private, scored in rehearsals(split, size.folds):
        # The noise of a mean over n rows is sigma / n: as much here as in the private run.
        rehearsed = max(sigma * len(private) / len(split.y_priv), 1e-9)
        for index, setting in enumerate(grid):
            clf = estimator(method, setting, size.n_steps, rehearsed, seed)
            clf.fit(X[private], y[private], X_pub=X[public], y_pub=y[public])
            losses[index] += log_loss(y[scored], clf.predict_proba(X[scored]), labels=clf.classes_)
    return grid[int(np.argmin(losses))]


def run(size: Size) -> pd.DataFrame:
    """Choose, fit and score everything."""
    found: list[dict[str, Any]] = []
    with tqdm(total=len(size.seeds) * len(size.epsilons) * len(GRIDS), unit="fit") as bar:
        for seed in size.seeds:
            split = make_split(seed, SHOTS, size.n_private)
            permuted = np.random.default_rng(1000 + seed).permutation(split.y_priv)
            start = MixedDPLogisticRegression(NoisyGD(public_weight=1.0), n_steps=1, learning_rate=1e-9)
            start.fit(split.X_priv, split.y_priv, X_pub=split.X_pub, y_pub=split.y_pub)
            public = start.score(split.X_test, split.y_test)
            found.append({"seed": seed, "method": "only public", "accuracy": public})
            for epsilon in size.epsilons:
                sigma = noise_multiplier_for(epsilon, DELTA, n_steps=size.n_steps)
                for method in GRIDS:
                    setting = choose(method, split, sigma, size, seed)
                    scores = []
                    for labels in (split.y_priv, permuted):
                        clf = estimator(method, setting, size.n_steps, sigma, seed)
                        clf.fit(split.X_priv, labels, X_pub=split.X_pub, y_pub=split.y_pub)
                        scores.append(clf.score(split.X_test, split.y_test))
                    found.append(
                        {
                            "seed": seed,
                            "epsilon": epsilon,
                            "method": method,
                            "accuracy": scores[0],
                            "control": scores[1],
                            "setting": ", ".join(f"{name} {value:g}" for name, value in setting.items()),
                        }
                    )
                    bar.update()
    return pd.DataFrame(found)


def means(results: pd.DataFrame, column: str = "accuracy") -> pd.DataFrame:
    """Mean accuracy in percent, methods by budgets."""
    fits = results.dropna(subset=["epsilon"])
    table = 100 * fits.pivot_table(index="method", columns="epsilon", values=column)
    return table.loc[list(GRIDS)]


def accuracy_table(results: pd.DataFrame, column: str = "accuracy") -> str:
    """Mean over the splits, and the range where there are several; ``"control"`` has permuted labels."""
    fits = results.dropna(subset=["epsilon"])
    lines = []
    for method in GRIDS:
        own = fits[fits["method"] == method]
        cells = [ranged(100 * own.loc[own["epsilon"] == e, column]) for e in sorted(own["epsilon"].unique())]
        lines.append([method, *cells])
    own = results[results["method"] == "only public"]
    lines.append(["only public", *[ranged(100 * own["accuracy"])] * (len(lines[0]) - 1)])
    return markdown(["method", *(f"epsilon {e:g}" for e in sorted(fits["epsilon"].unique()))], lines)


def claims(results: pd.DataFrame) -> list[tuple[str, str]]:
    """The paper's claims, and how they come out here."""
    table = means(results)
    low, high = table.columns[0], table.columns[-1]
    pazo, first = table.loc[list(ZEROTH_ORDER[:3])], table.drop(index=list(ZEROTH_ORDER))
    learned = table - means(results, "control")
    public = 100 * results.loc[results["method"] == "only public", "accuracy"].mean()
    ahead = int(((pazo - table.loc["DPZero"]) > 0).to_numpy().sum())
    drops = table[high] - table[low]
    return [
        ("all PAZO variants above DPZero", f"in {ahead} of {pazo.size} cells"),
        (
            "first order more sensitive to a small epsilon",
            f"from epsilon {high:g} to {low:g} first order loses {drops[first.index].min():.1f} to "
            f"{drops[first.index].max():.1f} points, PAZO {drops[pazo.index].min():.1f} to "
            f"{drops[pazo.index].max():.1f}",
        ),
        (
            f"PAZO ahead of first order at epsilon {low:g}",
            f"best PAZO {pazo[low].max():.1f}, best first order {first[low].max():.1f}",
        ),
        (
            "(control) true labels more accurate than permuted ones, and than public rows alone",
            f"PAZO {_used(learned, table - public, pazo.index)}, DPZero "
            f"{_used(learned, table - public, ['DPZero'])}, first order "
            f"{_used(learned, table - public, first.index)}",
        ),
    ]


def _used(learned: pd.DataFrame, gained: pd.DataFrame, methods: Sequence[str]) -> str:
    """In how many cells private labels are worth half a point or more."""
    used = ((learned >= 0.5) & (gained >= 0.5)).loc[list(methods)].to_numpy()
    return f"in {used.sum()} of {used.size} cells"


def picture(results: pd.DataFrame, path: Path) -> None:
    """Accuracy against epsilon."""
    figure = Figure(figsize=(7.5, 4.6), layout="constrained")
    axes = figure.subplots()
    table = means(results)
    for index, (method, row) in enumerate(table.iterrows()):
        axes.plot(row.index, row, label=method, **curve_style(index))
        if method in ZEROTH_ORDER:
            hidden = {**curve_style(index), "linestyle": ":", "markerfacecolor": "none"}
            axes.plot(row.index, means(results, "control").loc[method], **hidden)
    public = 100 * results.loc[results["method"] == "only public", "accuracy"].mean()
    axes.axhline(public, label="only public", **reference_style(0))
    axes.set_xscale("log")
    axes.set_xticks(table.columns, [f"{e:g}" for e in table.columns])
    axes.minorticks_off()
    axes.set(xlabel="epsilon", ylabel="test accuracy, %")
    title = "BANKING77 embeddings, 5 public rows per class (dotted: private labels permuted)"
    axes.set_title(title, loc="left", fontsize=10)
    axes.grid(color="0.9")
    figure.legend(loc="outside right center", fontsize=9, handlelength=3.5)
    figure.savefig(path, dpi=150)


def main(argv: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description="PAZO's comparison on a linear head.")
    parser.add_argument("--out", type=Path, default=Path("results/reproduce"), help="folder to write to")
    parser.add_argument("--quick", action="store_true", help="one split, one budget, few rows and steps")
    options = parser.parse_args(argv)
    if not (data_folder() / "banking77").is_dir():
        parser.error(f"no banking77 in {data_folder()}; set SKMIXDP_DATA to the folder that holds it.")
    results = run(QUICK if options.quick else FULL)
    options.out.mkdir(parents=True, exist_ok=True)
    results.to_csv(options.out / "pazo_banking77.csv", index=False)
    picture(results, options.out / "pazo_banking77.png")
    print(
        f"\n{accuracy_table(results)}\n\nPrivate labels permuted:\n\n{accuracy_table(results, 'control')}\n"
    )
    print(markdown(["the paper's claim", "here"], claims(results)))


if __name__ == "__main__":
    main()
