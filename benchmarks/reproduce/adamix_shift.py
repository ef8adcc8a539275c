"""AdaMix, Figures 2 (right) and 3 (right): public rows from another domain, and how many are worth having.

Fashion-MNIST through two layers of scattering. Private and test images are as they come. Public images
either are too, or are turned into outlines: the length of the image's gradient. That stands for the paper's
pictures and paintings. The second part varies the number of public images of the same domain.

Run ``python -m benchmarks.reproduce.adamix_shift``. Features are kept in the cache folder.
"""

import argparse
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.figure import Figure
from numpy.typing import NDArray
from scipy.ndimage import sobel
from sklearn.linear_model import LogisticRegression
from tqdm.auto import tqdm

from benchmarks.reproduce.adamix_ablation import data_folder, markdown
from skmixdp import MixedDPLogisticRegression
from skmixdp.features import ScatteringFeatures

Array = NDArray[Any]

DELTA = 1e-5
CLASSES = range(10)
SAME, OTHER = "same domain", "outlines"
METHODS = {"AdaMix": "adamix", "default": "auto"}
#: Strengths of scikit-learn's fits without privacy, of which the best on the test images is shown: a bound.
STRENGTHS = (1.0, 10.0)


@dataclass(frozen=True)
class Size:
    """How much is run."""

    n_private: int = 3_000
    n_test: int = 2_000
    seeds: tuple[int, ...] = (0, 1)
    epsilons: tuple[float, ...] = (1.0, 3.0, 10.0)
    shots: tuple[int, ...] = (2, 10, 50)
    shift_shots: int = 10
    boost_epsilon: float = 3.0
    n_steps: int | None = None


FULL = Size()
QUICK = Size(500, 300, seeds=(0,), epsilons=(3.0,), shots=(5, 20), n_steps=5)


def outlines(images: Array) -> Array:
    """Images (n, 28, 28) of the lengths of the images' gradients, as large as they can be."""
    wide = images.astype(np.float64)
    length = np.hypot(sobel(wide, axis=1), sobel(wide, axis=2))
    largest = length.max(axis=(1, 2), keepdims=True)
    return (255 * length / np.maximum(largest, 1)).astype(np.uint8)


@dataclass(frozen=True)
class Rows:
    """Features and labels. Public rows come in both domains, ``n`` of each class in the order of classes."""

    X: Array
    y: Array
    X_test: Array
    y_test: Array
    public: dict[str, Array]
    y_pub: Array

    def public_rows(self, domain: str, shots: int) -> tuple[Array, Array]:
        """The first images of each class."""
        chosen = np.concatenate([np.flatnonzero(self.y_pub == label)[:shots] for label in CLASSES])
        return self.public[domain][chosen], self.y_pub[chosen]


def load(seed: int, size: Size, cache: Path) -> Rows:
    """The images of a seed through the scattering, or out of the cache."""
    with np.load(data_folder() / "fashion_mnist" / "fashion_mnist.npz") as file:
        images, y, test, y_test = (file[key] for key in ("x_train", "y_train", "x_test", "y_test"))
    order = np.random.default_rng(seed).permutation(len(images))
    most = max(*size.shots, size.shift_shots)
    public = np.concatenate([order[y[order] == label][:most] for label in CLASSES])
    private = order[~np.isin(order, public)][: size.n_private]
    tested = np.random.default_rng(seed).permutation(len(test))[: size.n_test]
    features = ScatteringFeatures(image_size=28, cache=cache, dtype="float16")
    domains: dict[str, Callable[[Array], Array]] = {SAME: lambda part: part, OTHER: outlines}
    return Rows(
        features.transform(images[private]),
        y[private],
        features.transform(test[tested]),
        y_test[tested],
        {name: features.transform(render(images[public])) for name, render in domains.items()},
        y[public],
    )


def fit(method: str, rows: Rows, domain: str, shots: int, epsilon: float, size: Size, seed: int) -> float:
    """Test accuracy of a private fit."""
    X_pub, y_pub = rows.public_rows(domain, shots)
    clf = MixedDPLogisticRegression(
        METHODS[method], epsilon=epsilon, delta=DELTA, n_steps=size.n_steps, random_state=seed
    )
    clf.fit(rows.X, rows.y, X_pub=X_pub, y_pub=y_pub)
    return float(clf.score(rows.X_test, rows.y_test))


def plain(X: Array, y: Array, rows: Rows) -> float:
    """Test accuracy without privacy, with the best of several strengths: nothing private can know it."""

    def unit(features: Array) -> Array:
        centred = features - X.mean(axis=0)
        return np.asarray(centred / np.linalg.norm(centred, axis=1, keepdims=True))

    return max(
        float(
            LogisticRegression(C=C, tol=1e-3, max_iter=300)
            .fit(unit(X), y)
            .score(unit(rows.X_test), rows.y_test)
        )
        for C in STRENGTHS
    )


def run(size: Size, cache: Path) -> pd.DataFrame:
    """One row for each fit; ``part`` says for which figure."""
    table: list[dict[str, Any]] = []
    shift = len(METHODS) * 2 * len(size.epsilons)
    total = len(size.seeds) * (1 + 2 + shift + (1 + len(METHODS)) * len(size.shots))
    with tqdm(total=total, desc="adamix_shift", unit="fit") as bar:
        for seed in size.seeds:
            rows = load(seed, size, cache)

            def add(accuracy: float, part: str, seed: int = seed, **setting: Any) -> None:
                table.append({"part": part, "seed": seed, **setting, "accuracy": accuracy})
                bar.update()

            add(plain(rows.X, rows.y, rows), "shift", method="non-private")
            for domain in (SAME, OTHER):
                add(
                    plain(*rows.public_rows(domain, size.shift_shots), rows),
                    "shift",
                    method="only public",
                    domain=domain,
                )
                for method in METHODS:
                    for epsilon in size.epsilons:
                        found = fit(method, rows, domain, size.shift_shots, epsilon, size, seed)
                        add(found, "shift", method=method, domain=domain, epsilon=epsilon)
            for shots in size.shots:
                add(plain(*rows.public_rows(SAME, shots), rows), "boost", method="only public", shots=shots)
                for method in METHODS:
                    found = fit(method, rows, SAME, shots, size.boost_epsilon, size, seed)
                    add(found, "boost", method=method, shots=shots)
    return pd.DataFrame(table)


def with_boosts(table: pd.DataFrame) -> pd.DataFrame:
    """Private fits of the second part with the performance boost of the paper.

    ``(err_public - err_paragon) / (err_private - err_paragon)``; the paragon is the fit to all private rows
    without privacy.
    """
    part = table[table["part"] == "boost"]
    best = table[table["method"] == "non-private"].set_index("seed")["accuracy"]
    public = part[part["method"] == "only public"].set_index(["seed", "shots"])["accuracy"]
    fits = part[part["method"] != "only public"].copy()
    paragon = best.loc[fits["seed"]].to_numpy()
    start = public.loc[pd.MultiIndex.from_frame(fits[["seed", "shots"]])].to_numpy()
    fits["boost"] = (paragon - start) / (paragon - fits["accuracy"].to_numpy())
    return fits


def shift_table(table: pd.DataFrame) -> str:
    """Accuracies with public rows of either domain, means and standard deviations over the seeds."""
    part = table[table["part"] == "shift"]
    lines = []
    for (method, epsilon), own in part.groupby(["method", "epsilon"], sort=False, dropna=False):
        if method == "non-private":
            cells = [_spread(100 * own["accuracy"], 1)] * 2
        else:
            cells = [_spread(100 * own.loc[own["domain"] == name, "accuracy"], 1) for name in (SAME, OTHER)]
        lines.append([str(method), "-" if pd.isna(epsilon) else f"{epsilon:g}", *cells])
    return markdown(["method", "epsilon", f"public rows: {SAME}", f"public rows: {OTHER}"], lines)


def boost_table(table: pd.DataFrame) -> str:
    """Accuracies and boosts by the number of public rows."""
    fits = with_boosts(table)
    public = table[(table["part"] == "boost") & (table["method"] == "only public")]
    lines = []
    for shots, own in fits.groupby("shots"):
        cells = [_spread(100 * public.loc[public["shots"] == shots, "accuracy"], 1)]
        for method in METHODS:
            here = own[own["method"] == method]
            cells += [_spread(100 * here["accuracy"], 1), f"{here['boost'].mean():.1f}"]
        lines.append([f"{shots:g}", *cells])
    heads = [name for method in METHODS for name in (method, f"boost of {method}")]
    return markdown(["public rows per class", "only public", *heads], lines)


def _spread(values: "pd.Series[float]", digits: int) -> str:
    deviation = f" ± {values.std(ddof=1):.{digits}f}" if len(values) > 1 else ""
    return f"{values.mean():.{digits}f}{deviation}"


def picture(table: pd.DataFrame, path: Path) -> None:
    """Figure 3 (right) on the left, Figure 2 (right) on the right."""
    figure = Figure(figsize=(11.5, 4.4), layout="constrained")
    left, right = figure.subplots(1, 2)
    part = table[table["part"] == "shift"]
    means = part.groupby(["method", "domain", "epsilon"])["accuracy"].mean()
    looks = {SAME: {"color": "#0072B2", "marker": "o"}, OTHER: {"color": "#D55E00", "marker": "s"}}
    strokes = dict(zip(METHODS, ("-", "--"), strict=True))
    for (method, domain), own in means.groupby(level=[0, 1]):
        epsilons = own.index.get_level_values("epsilon")
        left.plot(epsilons, 100 * own, strokes[method], label=f"{method}, {domain}", **looks[domain])
    for (method, domain), stroke in (
        (("only public", SAME), ":"),
        (("only public", OTHER), "-."),
        (("non-private", None), (0, (9, 4))),
    ):
        chosen = part[part["method"] == method]
        chosen = chosen if domain is None else chosen[chosen["domain"] == domain]
        name = method if domain is None else f"{method}, {domain}"
        height = 100 * chosen["accuracy"].mean()
        left.axhline(height, linestyle=stroke, color="black", label=name, linewidth=1)
    left.set(xscale="log", xlabel=f"epsilon at delta = {DELTA:g}", ylabel="test accuracy (%)")
    boosts = with_boosts(table).groupby(["method", "shots"])["boost"].mean()
    for method, marker in zip(METHODS, ("o", "s"), strict=True):
        own = boosts.loc[method]
        right.plot(own.index, own, strokes[method], marker=marker, color="#0072B2", label=method)
    right.axhline(1, color="0.6", linewidth=0.8)
    right.set(xscale="log", xlabel="public rows per class", ylabel="performance boost")
    for axes, ticks in ((left, part["epsilon"]), (right, table["shots"])):
        shown = sorted(ticks.dropna().unique())
        axes.set_xticks(shown, [f"{tick:g}" for tick in shown])
        axes.set_xticks([], minor=True)
        axes.legend(loc="lower left", bbox_to_anchor=(0, 1), frameon=False, ncols=2, fontsize=8)
    figure.savefig(path, dpi=150)


def main(argv: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description="Public rows of another domain, and their number.")
    parser.add_argument("--out", type=Path, default=Path("results/reproduce"), help="folder to write to")
    parser.add_argument("--cache", type=Path, default=Path("results/features"), help="folder of features")
    parser.add_argument("--quick", action="store_true", help="few images, few steps")
    options = parser.parse_args(argv)
    if not (data_folder() / "fashion_mnist").is_dir():
        parser.error(f"no fashion_mnist in {data_folder()}; set SKMIXDP_DATA to the folder that holds it.")
    table = run(QUICK if options.quick else FULL, options.cache)
    options.out.mkdir(parents=True, exist_ok=True)
    table.to_csv(options.out / "adamix_shift.csv", index=False)
    picture(table, options.out / "adamix_shift.png")
    print(f"\n{shift_table(table)}\n\n{boost_table(table)}\n")


if __name__ == "__main__":
    main()
