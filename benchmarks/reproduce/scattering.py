"""Tramèr and Boneh 2021: a private linear head on scattering features of Fashion-MNIST.

All 60,000 training images are private and there are no public rows. Group normalisation needs no
statistics. What all channels of a position have in common is damped by a fixed filter, and the
rows are centred by noisy means, which are charged to the same budget (``NoisyScaler``); the
rest of it goes to noisy gradient descent from zero.

Run ``python -m benchmarks.reproduce.scattering``. ``--choose`` compares settings on 10,000 held-out
training images instead, and does not look at the test images. A second run goes on from what the
output folder has.
"""

import argparse
import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from tqdm.auto import tqdm

from benchmarks.reproduce.adamix_ablation import data_folder, markdown
from skmixdp import MixedDPLogisticRegression
from skmixdp.algorithms import NoisyGD
from skmixdp.features import ScatteringFeatures
from skmixdp.preprocessing import NoisyScaler
from skmixdp.privacy import epsilon_of, noise_multiplier_for

Array = NDArray[Any]

EPSILON, DELTA = 3.0, 1e-5
CLASSES = range(10)
#: Entries have variance 1 within each group; beyond this they are clipped, for the means alone.
BOUND = 3.0
N_HELD_OUT = 10_000


@dataclass(frozen=True)
class Setting:
    """How a head is trained.

    ``reach`` is the total step in units of ``mu n``, the noise multiplier being ``sqrt(n_steps) / mu``:
    the undamped noise in a logit of a row of unit length has standard deviation ``reach * clip``.
    None leaves the step size to the library. ``damping`` is what is left of the channels' common
    part, 1 all of it.
    """

    name: str
    damping: float = 0.3
    centre_epsilon: float = 0.3
    clip: float = 0.25
    reach: float | None = 6.0
    n_steps: int | None = 150


DEFAULT = Setting("library defaults", 1.0, 0.0, 0.5, None, None)
CHOSEN = Setting("clip 0.25, total step 6 mu n, noisy means, damped")
GRID = (
    DEFAULT,
    Setting("clip 0.5, total step 3 mu n", 1.0, 0.0, 0.5, 3.0),
    Setting("clip 0.25, total step 6 mu n", 1.0, 0.0),
    Setting("clip 0.25, total step 6 mu n, noisy means", 1.0),
    CHOSEN,
)


@dataclass(frozen=True)
class Rows:
    """Training rows with labels, and those on which a head is judged."""

    X: Array
    y: Array
    X_judged: Array
    y_judged: Array


def load(cache: Path, choose: bool, n_train: int | None, n_judged: int | None) -> Rows:
    """Group-normalised scattering of all images, or of the training images split in two."""
    with np.load(data_folder() / "fashion_mnist" / "fashion_mnist.npz") as file:
        images, y = file["x_train"], file["y_train"]
        judged, y_judged = file["x_test"], file["y_test"]
    order = np.random.default_rng(0).permutation(len(images))
    if choose:
        judged, y_judged = images[order[:N_HELD_OUT]], y[order[:N_HELD_OUT]]
        order = order[N_HELD_OUT:]
    # The files are in the order of the classes.
    some = np.random.default_rng(1).permutation(len(judged))[:n_judged]
    order = order[:n_train]
    features = ScatteringFeatures(image_size=28, cache=cache, dtype="float16")
    return Rows(features.transform(images[order]), y[order], features.transform(judged[some]), y_judged[some])


def damped(X: Array, share: float) -> Array:
    """Rows in which ``share`` is left of what the channels of each position have in common.

    In common are the mean of all wavelet channels, which says how much there is to see at the
    position, and the pattern ``cos, sin (2 angle)`` over orientations, which says whether it runs
    upright or level. They carry most of the rows' energy, and noise grows with energy. The
    filter is fixed, knows nothing of the images and acts on each row by itself.
    """
    angles = 2 * np.pi * np.arange(8) / 8
    # One channel of order 0, two octaves of 8 orientations, and 8 x 8 pairs of them.
    waves = (np.r_[0, w, w, (w[:, None] + w).ravel()] for w in (np.cos(angles), np.sin(angles)))
    patterns = [np.r_[0, np.ones(80)], *waves]
    common = np.linalg.qr(np.array(patterns).T)[0]
    keep = (np.eye(81) - (1 - share) * common @ common.T).astype(np.float32)
    return np.asarray(np.matmul(keep, X.reshape(len(X), 81, -1)).reshape(X.shape))


def mu_of(epsilon: float) -> float:
    """The Gaussian-DP parameter of a budget at full batch."""
    return 1 / noise_multiplier_for(epsilon, DELTA, n_steps=1)


def fit(rows: Rows, setting: Setting, seed: int) -> dict[str, Any]:
    """Spend the whole budget on one head: a row of the table."""
    total, n_private = mu_of(EPSILON), len(rows.X)
    X, X_judged = (damped(part, setting.damping) for part in (rows.X, rows.X_judged))
    left = EPSILON
    if setting.centre_epsilon:
        scaler = NoisyScaler(
            setting.centre_epsilon, DELTA, bounds=(-BOUND, BOUND), with_std=False, random_state=seed
        ).fit(X)
        X, X_judged = scaler.transform(X), scaler.transform(X_judged)
        # At full batch what is spent adds up as squares of mu.
        left = epsilon_of(1 / math.sqrt(total**2 - scaler.privacy_.mu**2), 1, delta=DELTA)
    rate: Any = "auto"
    if setting.reach is not None and setting.n_steps is not None:
        rate = setting.reach * mu_of(left) * n_private / setting.n_steps
    clf = MixedDPLogisticRegression(
        NoisyGD(setting.clip),
        epsilon=left,
        delta=DELTA,
        n_steps=setting.n_steps,
        learning_rate=rate,
        classes=CLASSES,
        init="zeros",
        random_state=seed,
    ).fit(X, rows.y)
    spent = clf.privacy_.mu**2 + (scaler.privacy_.mu**2 if setting.centre_epsilon else 0.0)
    return {
        "setting": setting.name,
        "seed": seed,
        "epsilon": epsilon_of(1 / math.sqrt(spent), 1, delta=DELTA),
        "n_steps": clf.n_iter_,
        "noise_multiplier": clf.privacy_.noise_multiplier,
        "accuracy": clf.score(X_judged, rows.y_judged),
    }


def accuracy_table(table: pd.DataFrame) -> str:
    """Accuracies in percent, with the epsilon that both releases spend together."""
    lines = []
    for setting, own in table.groupby("setting", sort=False):
        accuracies = ", ".join(f"{100 * value:.2f}" for value in own["accuracy"])
        lines.append([str(setting), f"{own['epsilon'].max():.3f}", str(own["n_steps"].iloc[0]), accuracies])
    return markdown(["setting", "epsilon", "steps", "accuracy of each seed, %"], lines)


def main(argv: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description="A private linear head on scattering features.")
    parser.add_argument("--out", type=Path, default=Path("results/reproduce"), help="folder to write to")
    parser.add_argument("--cache", type=Path, default=Path("results/features"), help="folder of features")
    parser.add_argument("--choose", action="store_true", help="compare settings on held-out training images")
    parser.add_argument("--quick", action="store_true", help="few images, few steps")
    parser.add_argument("--seeds", type=int, nargs="+", default=[0], help="seeds of the noise")
    options = parser.parse_args(argv)
    if not (data_folder() / "fashion_mnist").is_dir():
        parser.error(f"no fashion_mnist in {data_folder()}; set SKMIXDP_DATA to the folder that holds it.")
    options.out.mkdir(parents=True, exist_ok=True)
    path = options.out / f"scattering{'_choice' if options.choose else ''}.csv"
    table = pd.read_csv(path) if path.exists() else pd.DataFrame(columns=["setting", "seed"])
    known = set(zip(table["setting"], table["seed"], strict=True))
    rows = load(options.cache, options.choose, *((800, 200) if options.quick else (None, None)))
    settings = GRID if options.choose else (DEFAULT, CHOSEN)
    for setting, seed in tqdm(list(product(settings, options.seeds)), desc="scattering", unit="fit"):
        if (setting.name, seed) in known:
            continue
        found = fit(rows, replace(setting, n_steps=5) if options.quick else setting, seed)
        table = (
            pd.concat([table, pd.DataFrame([found])], ignore_index=True)
            if len(table)
            else pd.DataFrame([found])
        )
        table.to_csv(path, index=False)
    print(f"\n{accuracy_table(table)}\n")


if __name__ == "__main__":
    main()
