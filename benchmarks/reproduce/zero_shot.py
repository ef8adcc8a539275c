"""AdaMix, Figure 4 (left), on intent classification: what the start of private training is worth.

BANKING77 with MiniLM embeddings and embeddings of its 77 class names; 2 or 5 public rows per class, all
other training rows private. The same private training starts at zero, at the class names'
head, at the fit of the public rows, and at that fit anchored at the class names, by AdaMix (as in the
paper) and by noisy gradient descent with a fixed clip. A second part has no public rows at all:
text is the only public source.

Run ``python -m benchmarks.reproduce.zero_shot``. The fits of each seed are kept in the output
folder, and a second run goes on from there.
"""

import argparse
import json
import lzma
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.figure import Figure
from numpy.typing import NDArray
from tqdm.auto import tqdm

from benchmarks.reproduce.adamix_ablation import DELTA, Split, data_folder, make_split, markdown
from skmixdp import MixedDPLogisticRegression
from skmixdp.features import ZeroShotHead

Array = NDArray[Any]

ZERO, NAMES, FEW, BOTH = "zero start", "zero-shot start", "few-shot start", "zero-shot and few-shot"
TEXT_ALONE = "class names alone, beta = {:g}"
STARTS = (ZERO, NAMES, FEW, BOTH)
BETAS = (5.0, 100.0)


@dataclass(frozen=True)
class Size:
    """How much is run."""

    seeds: tuple[int, ...] = (0, 1, 2)
    shots: tuple[int, ...] = (2, 5)
    epsilons: tuple[float, ...] = (1.0, 3.0)
    algorithms: tuple[str, ...] = ("adamix", "noisy-gd")
    n_steps: int | None = None
    n_private: int | None = None


FULL = Size()
QUICK = Size(seeds=(0,), shots=(2,), epsilons=(3.0,), algorithms=("adamix",), n_steps=10, n_private=3000)


def class_names() -> tuple[list[str], Array]:
    """Names of the classes in the order of their labels, and their embeddings."""
    folder = data_folder() / "banking77"
    with lzma.open(folder / "train.jsonl.xz", "rt", encoding="utf-8") as lines:
        names = sorted({json.loads(line)[0] for line in lines})
    with np.load(folder / "minilm.npz") as file:
        return names, file["class_name_embeddings"]


def fits(algorithm: str, seed: int, size: Size) -> Iterator[dict[str, Any]]:
    """One row for each fit of an algorithm and a seed."""
    names, embeddings = class_names()

    def head(**parameters: Any) -> ZeroShotHead:
        return ZeroShotHead(names, embeddings=embeddings, **parameters)

    starts = {ZERO: "zeros", NAMES: head(beta="auto", few_shot=False), FEW: "public", BOTH: head(beta="auto")}
    for shots in size.shots:
        split = make_split(seed, shots, size.n_private)
        for epsilon in size.epsilons:
            for method, init in starts.items():
                clf = _classifier(algorithm, epsilon, init, size, seed)
                clf.fit(split.X_priv, split.y_priv, X_pub=split.X_pub, y_pub=split.y_pub)
                yield {"shots": shots, "epsilon": epsilon, "method": method, **_outcome(clf, split)}
    split = make_split(seed, 0, size.n_private)
    for epsilon in size.epsilons:
        alone = {ZERO: "zeros", **{TEXT_ALONE.format(beta): head(beta=beta) for beta in BETAS}}
        for method, init in alone.items():
            clf = _classifier(algorithm, epsilon, init, size, seed).set_params(classes=np.arange(len(names)))
            clf.fit(split.X_priv, split.y_priv)
            yield {"shots": 0, "epsilon": epsilon, "method": method, **_outcome(clf, split)}


def _classifier(
    algorithm: str, epsilon: float, init: Any, size: Size, seed: int
) -> MixedDPLogisticRegression:
    return MixedDPLogisticRegression(
        algorithm, epsilon=epsilon, delta=DELTA, init=init, n_steps=size.n_steps, random_state=seed
    )


def _outcome(clf: MixedDPLogisticRegression, split: Split) -> dict[str, Any]:
    return {"n_steps": clf.n_iter_, "accuracy": clf.score(split.X_test, split.y_test)}


def run(size: Size, folder: Path) -> pd.DataFrame:
    """All fits; those of a seed that are in the folder already are read."""
    tables = []
    n_fits = len(size.epsilons) * (len(size.shots) * len(STARTS) + 1 + len(BETAS))
    for algorithm, seed in product(size.algorithms, size.seeds):
        path = folder / f"zero_shot_{algorithm}_{seed}.csv"
        if not path.exists():
            bar = tqdm(
                fits(algorithm, seed, size), total=n_fits, desc=f"{algorithm}, seed {seed}", unit="fit"
            )
            pd.DataFrame(list(bar)).assign(algorithm=algorithm, seed=seed).to_csv(path, index=False)
        tables.append(pd.read_csv(path))
    return pd.concat(tables, ignore_index=True)


def accuracy_table(table: pd.DataFrame) -> str:
    """Mean and standard deviation over the seeds, in percent."""
    columns = list(product(table["algorithm"].unique(), sorted(table["epsilon"].unique())))
    lines = []
    for (shots, method), own in table.groupby(["shots", "method"], sort=False):
        cells = [
            _spread(100 * own.loc[own["algorithm"].eq(algorithm) & own["epsilon"].eq(epsilon), "accuracy"])
            for algorithm, epsilon in columns
        ]
        lines.append([str(shots), str(method), *cells])
    header = [f"{algorithm}, epsilon = {epsilon:g}" for algorithm, epsilon in columns]
    return markdown(["public rows per class", "start", *header], lines)


def _spread(values: "pd.Series[float]") -> str:
    deviation = values.std(ddof=1) if len(values) > 1 else 0.0
    return f"{values.mean():.1f} ± {deviation:.1f}"


def picture(table: pd.DataFrame, path: Path) -> None:
    """AdaMix's accuracy against epsilon, one panel for each number of public rows."""
    table = table[table["algorithm"] == "adamix"]
    shots = sorted(table["shots"].unique())
    figure = Figure(figsize=(4 * len(shots), 4), layout="constrained")
    panels = figure.subplots(1, len(shots), sharey=True, squeeze=False)[0]
    looks = {
        ZERO: ("#0072B2", "o"),
        NAMES: ("#E69F00", "s"),
        FEW: ("#009E73", "^"),
        BOTH: ("#D55E00", "D"),
        TEXT_ALONE.format(BETAS[0]): ("#E69F00", "s"),
        TEXT_ALONE.format(BETAS[1]): ("#CC79A7", "v"),
    }
    for axes, n_shots in zip(panels, shots, strict=True):
        for method, lines in table[table["shots"] == n_shots].groupby("method", sort=False):
            found = 100 * lines.groupby("epsilon")["accuracy"].agg(["mean", "std"]).fillna(0)
            colour, marker = looks[str(method)]
            axes.errorbar(
                found.index, found["mean"], found["std"], color=colour, marker=marker, capsize=3, label=method
            )
        axes.set_title(f"{n_shots or 'no'} public rows per class", loc="left", fontsize=10)
        axes.set(xlabel="epsilon", xticks=sorted(table["epsilon"].unique()))
        axes.legend(fontsize=8, loc="center", bbox_to_anchor=(0.5, 0.27))
    panels[0].set_ylabel("test accuracy, %")
    figure.savefig(path, dpi=150)


def main(argv: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description="Starts of private training, compared.")
    parser.add_argument("--out", type=Path, default=Path("results/reproduce"), help="folder to write to")
    parser.add_argument("--quick", action="store_true", help="one split, few rows, few steps")
    options = parser.parse_args(argv)
    if not (data_folder() / "banking77").is_dir():
        parser.error(f"no banking77 in {data_folder()}; set SKMIXDP_DATA to the folder that holds it.")
    options.out.mkdir(parents=True, exist_ok=True)
    table = run(QUICK if options.quick else FULL, options.out)
    table.to_csv(options.out / "zero_shot.csv", index=False)
    picture(table, options.out / "zero_shot.png")
    print(f"\n{accuracy_table(table)}\n")


if __name__ == "__main__":
    main()
