"""AdaMix, Figures 5 and 6, on intent classification: what its two components bring.

BANKING77 with MiniLM embeddings; 2 or 5 public rows per class, all other training rows private.
The ablation takes noisy gradient descent from the public start (NGD) and adds the quantile clip, the
public subspace, and both. The second part asks how much of the private gradients lies in that
subspace, and in a random one of the same size. It looks at private rows without noise, as the
paper's figure does: an analysis, not a release.

Run ``python -m benchmarks.reproduce.adamix_ablation``.
"""

import argparse
import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.figure import Figure
from numpy.typing import NDArray
from tqdm.auto import tqdm

from skmixdp import MixedDPLogisticRegression
from skmixdp._engine import Options, Recipe
from skmixdp._linear.arrays import row_norms
from skmixdp._linear.losses import classification_loss
from skmixdp.algorithms import Algorithm
from skmixdp.algorithms._base import descent
from skmixdp.components import GradientQuery, L2Clip
from skmixdp.components.clipping import PublicQuantileClip
from skmixdp.components.protocols import PublicInfo
from skmixdp.components.public import PublicData, PublicView
from skmixdp.components.subspaces import PublicSubspace

Array = NDArray[Any]

DELTA = 1e-5
FIXED_CLIP = 0.5  # the library's default for rows of unit length
LOOSE_CLIP = 2.0  # longer than any gradient of such rows
QUANTILE, QUANTILE_FLOOR = 0.9, 0.05
N_COMPONENTS = 154  # the rank of 2 public rows per class


class Ablation(Algorithm):
    """NGD with either, both or neither of AdaMix's components; ``clip=None`` is the quantile."""

    def __init__(self, clip: float | None = FIXED_CLIP, n_components: int | None = None) -> None:
        self.clip = clip
        self.n_components = n_components

    def pieces(self, info: PublicInfo, options: Options) -> Recipe:
        adaptive = PublicQuantileClip(QUANTILE, QUANTILE_FLOOR)
        clipper = adaptive if self.clip is None else L2Clip(self.clip)
        subspace = None if self.n_components is None else PublicSubspace(self.n_components)
        query = GradientQuery(clipper, subspace, sum_to_zero=True)
        return descent(info, options, query, momentum=0.9, anchored=False)


METHODS = {
    "NGD": Ablation(),
    "projection": Ablation(n_components=N_COMPONENTS),
    "quantile clip": Ablation(clip=None),
    "both (AdaMix)": Ablation(clip=None, n_components=N_COMPONENTS),
    "NGD, loose clip": Ablation(LOOSE_CLIP),
}


@dataclass(frozen=True)
class Size:
    """How much is run."""

    seeds: tuple[int, ...] = (0, 1, 2)
    shots: tuple[int, ...] = (2, 5)
    epsilons: tuple[float, ...] = (1.0, 3.0)
    n_steps: int | None = None
    n_private: int | None = None
    dimensions: tuple[int, ...] = (4, 8, 16, 32, 64, 96, 128, 154, 192, 256, 320, 384)


FULL = Size()
QUICK = Size(seeds=(0,), shots=(2,), epsilons=(3.0,), n_steps=4, n_private=1500, dimensions=(16, 154))


@dataclass(frozen=True)
class Split:
    """Rows and labels of one split."""

    X_pub: Array
    y_pub: Array
    X_priv: Array
    y_priv: Array
    X_test: Array
    y_test: Array


def data_folder() -> Path:
    """Where the data lie: ``SKMIXDP_DATA``, or ``shared/data`` next to the checkout."""
    return Path(os.environ.get("SKMIXDP_DATA", Path(__file__).parents[3] / "shared" / "data"))


def make_split(seed: int, shots: int, n_private: int | None) -> Split:
    """The first ``shots`` rows of each class of a permutation are public, the rest private."""
    with np.load(data_folder() / "banking77" / "minilm.npz") as file:
        X, y, X_test, y_test = (file[key] for key in ("X_train", "y_train", "X_test", "y_test"))
    order = np.random.default_rng(seed).permutation(len(X))
    public = np.concatenate([order[y[order] == label][:shots] for label in np.unique(y)])
    private = order[~np.isin(order, public)][:n_private]
    X, X_test = X.astype(np.float32), X_test.astype(np.float32)
    return Split(X[public], y[public], X[private], y[private], X_test, y_test)


def fit(method: str, split: Split, epsilon: float, size: Size, seed: int) -> MixedDPLogisticRegression:
    """One private fit from the public start; every setting follows from public quantities."""
    clf = MixedDPLogisticRegression(
        METHODS[method], epsilon=epsilon, delta=DELTA, n_steps=size.n_steps, random_state=seed
    )
    return clf.fit(split.X_priv, split.y_priv, X_pub=split.X_pub, y_pub=split.y_pub)


# -- reconstruction ------------------------------------------------------------------------


def trained_head(clf: MixedDPLogisticRegression) -> Array:
    """The head (k, d_in) that was trained, intercept column and all."""
    return np.column_stack([clf.coef_, clf.intercept_ / clf._row_map.intercept_value])


def reconstruction(
    clf: MixedDPLogisticRegression, split: Split, dimensions: Sequence[int], rng: np.random.Generator
) -> list[dict[str, Any]]:
    """Relative errors of private gradients on public and random subspaces of each size.

    ``rows`` is the root mean square over private rows of ``|g - g U U^T| / |g|``, weighted by
    the rows' own ``|g|^2``; ``mean`` is that ratio for the private mean gradient.
    """
    data = PublicData(clf._row_map(split.X_pub, np.float64), split.y_pub, _loss_of(clf))
    X = clf._row_map(split.X_priv, np.float64)
    found = []
    for moment, W in (("start", data.solution), ("end", trained_head(clf))):
        view: PublicView = data.view(W)
        R = data.loss.residuals(X @ W.T, split.y_priv)
        gradient, energy = R.T @ X, row_norms(R) ** 2
        random = np.linalg.qr(rng.normal(size=(X.shape[1], max(dimensions))))[0]
        bases = {"public": view.basis(max(dimensions)), "random": random}
        for kind, basis in bases.items():
            for P in dimensions:
                if basis.shape[1] < P:
                    continue
                U = basis[:, :P]
                kept = row_norms(X @ U) ** 2
                left = np.sum(energy * (row_norms(X) ** 2 - kept)) / np.sum(energy * row_norms(X) ** 2)
                mean = 1 - np.sum((gradient @ U) ** 2) / np.sum(gradient**2)
                errors = {"rows": np.sqrt(max(left, 0)), "mean": np.sqrt(max(mean, 0))}
                found += [
                    {"moment": moment, "subspace": kind, "P": P, "gradient": what, "error": value}
                    for what, value in errors.items()
                ]
    return found


def _loss_of(clf: MixedDPLogisticRegression) -> Any:
    return classification_loss(len(clf.classes_))


# -- running and showing -------------------------------------------------------------------


def run(size: Size) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Fit everything: accuracies, and reconstruction errors of the last epsilon's AdaMix."""
    accuracies: list[dict[str, Any]] = []
    errors: list[dict[str, Any]] = []
    total = len(size.seeds) * len(size.shots) * len(size.epsilons) * len(METHODS)
    with tqdm(total=total, desc="adamix_ablation", unit="fit") as bar:
        for seed in size.seeds:
            for shots in size.shots:
                split = make_split(seed, shots, size.n_private)
                setting = {"shots": shots, "seed": seed}
                for epsilon in size.epsilons:
                    for method in METHODS:
                        clf = fit(method, split, epsilon, size, seed)
                        if method == "both (AdaMix)":
                            adamix = clf
                        accuracies.append(
                            {
                                **setting,
                                "epsilon": epsilon,
                                "method": method,
                                "n_steps": clf.n_iter_,
                                "noise_multiplier": clf.privacy_.noise_multiplier,
                                "accuracy": clf.score(split.X_test, split.y_test),
                            }
                        )
                        bar.update()
                rng = np.random.default_rng(seed)
                errors += [{**setting, **row} for row in reconstruction(adamix, split, size.dimensions, rng)]
                accuracies.append(
                    {**setting, "method": "Only-Public", "accuracy": public_accuracy(adamix, split)}
                )
    return pd.DataFrame(accuracies), pd.DataFrame(errors)


def public_accuracy(clf: MixedDPLogisticRegression, split: Split) -> float:
    """Accuracy of the public fit on the test rows of a split: that of the start of ``clf``."""
    data = PublicData(clf._row_map(split.X_pub, np.float64), split.y_pub, _loss_of(clf))
    outputs = clf._row_map(split.X_test, np.float64) @ data.solution.T
    return float(np.mean(clf.classes_[outputs.argmax(axis=1)] == split.y_test))


def with_error_decrease(accuracies: pd.DataFrame) -> pd.DataFrame:
    """Private fits with the decrease of test error relative to NGD's, in percent."""
    fits = accuracies.dropna(subset=["epsilon"]).copy()
    keys = ["shots", "seed", "epsilon"]
    ngd = fits[fits["method"] == "NGD"].set_index(keys)["accuracy"]
    base = 1 - ngd.loc[pd.MultiIndex.from_frame(fits[keys])].to_numpy()
    fits["decrease"] = 100 * (1 - (1 - fits["accuracy"]) / base)
    return fits


def markdown(header: Sequence[str], lines: Sequence[Sequence[str]]) -> str:
    """A Markdown table."""
    rule = ["---"] * len(header)
    return "\n".join("| " + " | ".join(line) + " |" for line in [header, rule, *lines])


def ranged(values: pd.Series) -> str:
    """The mean, and the range where there are several values."""
    mean = f"{values.mean():.1f}"
    return f"{mean} ({values.min():.1f} to {values.max():.1f})" if len(values) > 1 else mean


def accuracy_table(accuracies: pd.DataFrame) -> str:
    """Mean and standard deviation over the seeds, and relative decrease of test error."""
    fits = with_error_decrease(accuracies)
    lines = []
    for shots in sorted(accuracies["shots"].unique()):
        own = accuracies[(accuracies["shots"] == shots) & (accuracies["method"] == "Only-Public")]
        lines.append([str(shots), "any", "Only-Public", _spread(100 * own["accuracy"]), ""])
        for epsilon in sorted(fits["epsilon"].unique()):
            for method in METHODS:
                here = fits["shots"].eq(shots) & fits["epsilon"].eq(epsilon) & fits["method"].eq(method)
                cells = [_spread(100 * fits.loc[here, "accuracy"]), _spread(fits.loc[here, "decrease"])]
                lines.append([str(shots), f"{epsilon:g}", method, *cells])
    return markdown(
        ["public rows per class", "epsilon", "method", "test accuracy, %", "error below NGD's, %"], lines
    )


def _spread(values: pd.Series) -> str:
    return f"{values.mean():.1f} ± {values.std(ddof=1):.1f}" if len(values) > 1 else f"{values.mean():.1f}"


def error_table(errors: pd.DataFrame) -> str:
    """Reconstruction errors at the end of training, means over the seeds."""
    own = errors[errors["moment"] == "end"]
    means = own.pivot_table(index=["shots", "P"], columns=["gradient", "subspace"], values="error")
    lines = [
        [str(shots), str(P)]
        + [
            f"{row[what, kind]:.3f}" if (what, kind) in row and pd.notna(row[what, kind]) else "-"
            for what in ("rows", "mean")
            for kind in ("public", "random")
        ]
        for (shots, P), row in means.iterrows()
    ]
    header = ["public rows per class", "P", "rows, public", "rows, random", "mean, public", "mean, random"]
    return markdown(header, lines)


def picture(accuracies: pd.DataFrame, errors: pd.DataFrame, path: Path) -> None:
    """Figure 5 on the left, Figure 6 on the right."""
    figure = Figure(figsize=(11, 4.2), layout="constrained")
    left, *others = figure.subplots(1, 1 + errors["shots"].nunique())
    fits = with_error_decrease(accuracies)
    names = [name for name in METHODS if name != "NGD"]
    labels = [name.replace(" ", "\n") for name in names]
    left.boxplot([fits.loc[fits["method"] == name, "decrease"] for name in names], tick_labels=labels)
    left.axhline(0, color="0.6", linewidth=0.8)
    left.set_ylabel("decrease of test error relative to NGD, %")
    left.set_title("Ablation", loc="left", fontsize=10)
    colours = {"public": "#0072B2", "random": "#D55E00"}
    for axes, shots in zip(others, sorted(errors["shots"].unique()), strict=True):
        own = errors[(errors["shots"] == shots) & (errors["moment"] == "end")]
        for (kind, what), lines in own.groupby(["subspace", "gradient"]):
            means = lines.groupby("P")["error"].mean()
            label = f"{'private rows' if what == 'rows' else 'their mean'}, {kind} subspace"
            style = "-" if what == "mean" else "--"
            axes.plot(means.index, means, style, color=colours[kind], marker=".", label=label)
        axes.set(xlabel="dimensions P", ylabel="relative reconstruction error", ylim=(0, 1))
        axes.set_title(f"Private gradients, {shots} public rows per class", loc="left", fontsize=10)
    others[0].legend(fontsize=8)
    figure.savefig(path, dpi=150)


def main(argv: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description="AdaMix's ablation and its public subspace.")
    parser.add_argument("--out", type=Path, default=Path("results/reproduce"), help="folder to write to")
    parser.add_argument("--quick", action="store_true", help="one split, few rows, few steps")
    options = parser.parse_args(argv)
    if not (data_folder() / "banking77").is_dir():
        parser.error(f"no banking77 in {data_folder()}; set SKMIXDP_DATA to the folder that holds it.")
    accuracies, errors = run(QUICK if options.quick else FULL)
    options.out.mkdir(parents=True, exist_ok=True)
    accuracies.to_csv(options.out / "adamix_ablation.csv", index=False)
    errors.to_csv(options.out / "adamix_ablation_reconstruction.csv", index=False)
    picture(accuracies, errors, options.out / "adamix_ablation.png")
    print(f"\n{accuracy_table(accuracies)}\n\n{error_table(errors)}\n")


if __name__ == "__main__":
    main()
