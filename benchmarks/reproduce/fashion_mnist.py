"""Fashion-MNIST from images: a frozen network and wavelets, each with four ways to train the head.

10,000 of the training images, 5 public rows per class, the others private; all test images. The
network is a MobileNetV2 trained on ImageNet, at 96 x 96 pixels; the wavelets are two layers of
scattering, which nobody trained.

Run ``python -m benchmarks.reproduce.fashion_mnist``. Features are kept in the cache folder, and the
fits of each seed in the output folder; a second run goes on from there.
"""

import argparse
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from sklearn.linear_model import LogisticRegression
from tqdm.auto import tqdm

from benchmarks.reproduce.adamix_ablation import Split, data_folder, markdown, public_accuracy
from skmixdp import MixedDPLogisticRegression
from skmixdp.features import FrozenFeatures, ScatteringFeatures, TimmFeatures

Array = NDArray[Any]

DELTA = 1e-5
CLASSES = range(10)
N_PUBLIC_PER_CLASS = 5
STRENGTHS = (1.0, 10.0, 100.0)
ADAMIX, FULLY_PRIVATE = "AdaMix", "fully private"
ONLY_PUBLIC, NON_PRIVATE = "only public", "non-private"


@dataclass(frozen=True)
class Size:
    """How much is run."""

    n_train: int = 10_000
    n_test: int = 10_000
    seeds: tuple[int, ...] = (0, 1, 2)
    epsilons: tuple[float, ...] = (1.0, 3.0)
    n_steps: int | None = None
    features: tuple[str, ...] = ("mobilenetv2", "scattering")


FULL = Size()
QUICK = Size(600, 300, seeds=(0,), epsilons=(3.0,), n_steps=5, features=("scattering",))


def transformer(name: str, cache: Path) -> FrozenFeatures:
    """The features by name."""
    if name == "scattering":
        return ScatteringFeatures(image_size=28, cache=cache, dtype="float16")
    return TimmFeatures(
        "mobilenetv2_100",
        pretrained=data_folder() / "mobilenetv2_100" / "mobilenetv2_100_imagenet_fp16.safetensors",
        image_size=96,
        model_args={"pad_type": "same"},
        preprocessing={"mean": [0.5] * 3, "std": [0.5] * 3, "crop_pct": 1.0, "interpolation": "bilinear"},
        cache=cache,
        dtype="float16",
    )


@dataclass(frozen=True)
class Rows:
    """Features and labels of all images that take part."""

    X: Array
    y: Array
    X_test: Array
    y_test: Array


def load(name: str, size: Size, cache: Path) -> Rows:
    """The images through a network, or out of the cache."""
    with np.load(data_folder() / "fashion_mnist" / "fashion_mnist.npz") as file:
        images, y, test, y_test = (file[key] for key in ("x_train", "y_train", "x_test", "y_test"))
    chosen = np.sort(np.random.default_rng(0).permutation(len(images))[: size.n_train])
    tested = np.sort(np.random.default_rng(0).permutation(len(test))[: size.n_test])
    features = transformer(name, cache)
    return Rows(
        features.transform(images[chosen]), y[chosen], features.transform(test[tested]), y_test[tested]
    )


def fits(rows: Rows, seed: int, size: Size) -> Iterator[dict[str, Any]]:
    """One row for each fit of a seed."""
    order = np.random.default_rng(seed).permutation(len(rows.X))
    public = np.concatenate([order[rows.y[order] == label][:N_PUBLIC_PER_CLASS] for label in CLASSES])
    private = np.setdiff1d(order, public)
    shown, hidden = (rows.X[public], rows.y[public]), (rows.X[private], rows.y[private])
    split = Split(*shown, *hidden, rows.X_test, rows.y_test)
    yield {"method": NON_PRIVATE, "accuracy": _non_private(rows, split.X_pub.mean(axis=0))}
    for epsilon in size.epsilons:
        clf = MixedDPLogisticRegression(
            epsilon=epsilon, delta=DELTA, classes=CLASSES, n_steps=size.n_steps, random_state=seed
        )
        clf.fit(split.X_priv, split.y_priv, X_pub=split.X_pub, y_pub=split.y_pub)
        if epsilon == size.epsilons[0]:
            yield {"method": ONLY_PUBLIC, "accuracy": public_accuracy(clf, split)}
        yield {"method": ADAMIX, "epsilon": epsilon, "n_steps": clf.n_iter_, "accuracy": _score(clf, rows)}
        clf.set_params(algorithm="noisy-gd", init="zeros").fit(rows.X, rows.y)
        yield {
            "method": FULLY_PRIVATE,
            "epsilon": epsilon,
            "n_steps": clf.n_iter_,
            "accuracy": _score(clf, rows),
        }


def _score(clf: MixedDPLogisticRegression, rows: Rows) -> float:
    return float(clf.score(rows.X_test, rows.y_test))


def _non_private(rows: Rows, mean: Array) -> float:
    """Logistic regression on all rows, by scikit-learn; its strength chosen on a fifth of them."""

    def unit(X: Array) -> Array:
        centred = X - mean
        return np.asarray(centred / np.linalg.norm(centred, axis=1, keepdims=True))

    X, cut = unit(rows.X), len(rows.X) // 5
    order = np.random.default_rng(0).permutation(len(X))
    held, kept = order[:cut], order[cut:]

    def fit(C: float, chosen: Array) -> LogisticRegression:
        return LogisticRegression(C=C, tol=1e-3, max_iter=500).fit(X[chosen], rows.y[chosen])

    best = max(STRENGTHS, key=lambda C: fit(C, kept).score(X[held], rows.y[held]))
    return float(fit(best, order).score(unit(rows.X_test), rows.y_test))


def run(size: Size, folder: Path, cache: Path) -> pd.DataFrame:
    """All fits; those of a seed that are in the folder already are read."""
    tables = []
    for name in size.features:
        rows: Rows | None = None
        for seed in size.seeds:
            path = folder / f"fashion_mnist_{name}_{seed}.csv"
            if not path.exists():
                rows = rows or load(name, size, cache)
                total = 2 + 2 * len(size.epsilons)
                found = list(
                    tqdm(fits(rows, seed, size), total=total, desc=f"{name}, seed {seed}", unit="fit")
                )
                pd.DataFrame(found).assign(features=name, seed=seed).to_csv(path, index=False)
            tables.append(pd.read_csv(path))
    return pd.concat(tables, ignore_index=True)


def accuracy_table(table: pd.DataFrame) -> str:
    """Mean and standard deviation over the seeds, in percent."""
    names = list(table["features"].unique())
    lines = []
    for method in (NON_PRIVATE, ONLY_PUBLIC, FULLY_PRIVATE, ADAMIX):
        own = table[table["method"] == method]
        for epsilon, part in own.groupby("epsilon", dropna=False):
            cells = [_spread(100 * part.loc[part["features"] == name, "accuracy"]) for name in names]
            lines.append([method, "-" if pd.isna(epsilon) else f"{epsilon:g}", *cells])
    return markdown(["method", "epsilon", *names], lines)


def _spread(values: "pd.Series[float]") -> str:
    deviation = values.std(ddof=1) if len(values) > 1 else 0.0
    return f"{values.mean():.1f} ± {deviation:.1f}"


def main(argv: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description="Fashion-MNIST, from images to private heads.")
    parser.add_argument("--out", type=Path, default=Path("results/reproduce"), help="folder to write to")
    parser.add_argument("--cache", type=Path, default=Path("results/features"), help="folder of features")
    parser.add_argument("--quick", action="store_true", help="few images, few steps, scattering only")
    options = parser.parse_args(argv)
    if not (data_folder() / "fashion_mnist").is_dir():
        parser.error(f"no fashion_mnist in {data_folder()}; set SKMIXDP_DATA to the folder that holds it.")
    options.out.mkdir(parents=True, exist_ok=True)
    table = run(QUICK if options.quick else FULL, options.out, options.cache)
    table.to_csv(options.out / "fashion_mnist.csv", index=False)
    print(f"\n{accuracy_table(table)}\n")


if __name__ == "__main__":
    main()
