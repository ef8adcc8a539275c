"""The networks of Coupling, PDA-DPMD and ModelMix, in kind: a small convolutional net on 12,000 images.

The net is that of Coupling's appendix A.1, with 26,010 parameters. The images are of Fashion-MNIST. Parts:

- ``coupling``: Coupling's Table 3 for its "MNIST CNN", epsilon 2, a public share of 0.05, from random
  parameters: private rows alone, both kinds of rows with DPMD's cosine weight, and Coupling's own weight;
- ``pda``: PDA-DPMD's Table 1, epsilon 3.51 and 0.19, a public share of 0.04: DP-SGD from random parameters,
  DP-SGD from the public fit, and the cosine approximation of PDA-DPMD from the public fit;
- ``modelmix``: ModelMix's Table I, epsilon 0.4 and 1, without public rows: DP-SGD with and without mixing.

All train by :class:`~skmixdp.FirstOrderDPModuleClassifier`, without momentum, in Poisson batches. For each
method and budget, the rate is the best of a grid by the accuracy on 2,000 further images, on the first split
alone. It is then kept for the other splits. No budget accounts for that search.

Run ``python -m benchmarks.reproduce.small_networks --part coupling``. Runs that the table in ``--out`` has
are not repeated, so an interrupted run goes on where it ended.
"""

import argparse
import warnings
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import torch
from numpy.typing import NDArray
from torch import nn
from tqdm.auto import tqdm

from skmixdp import FirstOrderDPModuleClassifier, ZerothOrderDPModuleClassifier
from skmixdp.algorithms import Algorithm, Coupling, ModelMix, NoisyGD

from .adamix_ablation import data_folder, markdown, ranged

Array = NDArray[Any]

DELTA = 1e-5
N_ROWS, N_VALIDATION = 12_000, 2_000
CLIP = 1.0
RATES = (0.03, 0.1, 0.3, 1.0, 3.0, 10.0)

ALGORITHMS: dict[str, Algorithm] = {
    "DP-SGD": NoisyGD(CLIP, momentum=0.0, public_weight=0.0),
    "DPMD": NoisyGD(CLIP, momentum=0.0, public_weight="cosine"),
    "Coupling": Coupling(momentum=0.0),
    "ModelMix": ModelMix(NoisyGD(CLIP, momentum=0.0)),
}


@dataclass(frozen=True)
class Fit:
    """One fit: a line of the tables, with the rate and the split.

    ``share`` is the part of the rows that is public, ``warm`` whether they give the start. If not
    ``uses_public``, the public rows are left out of the steps.
    """

    part: str
    name: str
    algorithm: str
    epsilon: float
    share: float
    warm: bool = False
    uses_public: bool = True


PARTS: dict[str, tuple[Fit, ...]] = {
    "coupling": (
        Fit("coupling", "only private", "DP-SGD", 2.0, 0.05, uses_public=False),
        Fit("coupling", "DPMD", "DPMD", 2.0, 0.05),
        Fit("coupling", "Coupling", "Coupling", 2.0, 0.05),
    ),
    "pda": tuple(
        Fit("pda", name, algorithm, epsilon, 0.04, warm=warm, uses_public=warm)
        for epsilon in (3.51, 0.19)
        for name, algorithm, warm in (
            ("DP-SGD cold", "DP-SGD", False),
            ("DP-SGD warm", "DP-SGD", True),
            ("PDA-DPMD", "DPMD", True),
        )
    ),
    "modelmix": tuple(
        Fit("modelmix", name, name, epsilon, 0.0, uses_public=False)
        for epsilon in (1.0, 0.4)
        for name in ("DP-SGD", "ModelMix")
    ),
}


@dataclass(frozen=True)
class Size:
    """How much is run."""

    seeds: tuple[int, ...] = (0, 1, 2)
    n_rows: int = N_ROWS
    n_validation: int = N_VALIDATION
    batch_size: int = 256
    n_steps: int = 120
    rates: tuple[float, ...] = RATES


QUICK = Size((0,), 600, 100, 50, 3, RATES[:1])


@dataclass(frozen=True)
class Rows:
    """Images (n, 1, 28, 28) in [0, 1], and labels."""

    X: Array
    y: Array

    def __getitem__(self, index: Any) -> "Rows":
        return Rows(self.X[index], self.y[index])


def make_split(seed: int, size: Size) -> tuple[Rows, Rows, Rows]:
    """Rows in random order, others to choose rates by, and test rows."""
    with np.load(data_folder() / "fashion_mnist" / "fashion_mnist.npz") as file:
        train, test = (
            Rows(file[f"x_{part}"][:, None].astype(np.float32) / 255, file[f"y_{part}"].astype(np.int64))
            for part in ("train", "test")
        )
    order = np.random.default_rng(seed).permutation(len(train.y))
    return train[order[: size.n_rows]], train[order[size.n_rows :][: size.n_validation]], test


def network(seed: int) -> nn.Sequential:
    """The net of Coupling, appendix A.1."""
    torch.manual_seed(seed)
    return nn.Sequential(
        *(nn.Conv2d(1, 16, 8, 2, padding=3), nn.ReLU(), nn.MaxPool2d(2, 1)),
        *(nn.Conv2d(16, 32, 4, 2), nn.ReLU(), nn.MaxPool2d(2, 1), nn.Flatten()),
        *(nn.Linear(512, 32), nn.ReLU(), nn.Linear(32, 10)),
    )


def public_fit(rows: Rows, seed: int) -> nn.Module:
    """The net after the library's warm start on some rows: one step that moves it nowhere follows."""
    clf = ZerothOrderDPModuleClassifier(
        network(seed), "dpzero", n_steps=1, learning_rate=1e-12, random_state=seed, classes=range(10)
    )
    module: nn.Module = clf.fit(rows.X[:100], rows.y[:100], X_pub=rows.X, y_pub=rows.y).module_
    return module


def measured(module: nn.Module, rows: Rows) -> tuple[float, float]:
    """Accuracy in percent and mean cross-entropy."""
    with torch.no_grad():
        outputs = torch.cat([module(part) for part in torch.from_numpy(rows.X).split(500)])
        loss = nn.functional.cross_entropy(outputs, torch.from_numpy(rows.y))
    return 100 * float(np.mean(outputs.argmax(dim=1).numpy() == rows.y)), float(loss)


class Splits:
    """The rows of each split, and the public fits, each made once."""

    def __init__(self, size: Size) -> None:
        self._size = size
        self._rows: dict[int, tuple[Rows, Rows, Rows]] = {}
        self._fits: dict[tuple[int, int], nn.Module] = {}

    def rows(self, seed: int) -> tuple[Rows, Rows, Rows]:
        if seed not in self._rows:
            self._rows[seed] = make_split(seed, self._size)
        return self._rows[seed]

    def public_fit(self, seed: int, n_public: int) -> nn.Module:
        if (seed, n_public) not in self._fits:
            self._fits[seed, n_public] = public_fit(self.rows(seed)[0][:n_public], seed)
        return self._fits[seed, n_public]


def trained(fit: Fit, rate: float, seed: int, splits: Splits, size: Size) -> nn.Module:
    """The net that a fit ends with."""
    rows = splits.rows(seed)[0]
    n_public = round(fit.share * size.n_rows)
    private, public = rows[n_public:], rows[:n_public]
    start = splits.public_fit(seed, n_public) if fit.warm else network(seed)
    clf = FirstOrderDPModuleClassifier(
        start,
        ALGORITHMS[fit.algorithm],
        init="module",
        epsilon=fit.epsilon,
        delta=DELTA,
        n_steps=size.n_steps,
        batch_size=size.batch_size,
        learning_rate=rate,
        random_state=seed,
        classes=range(10),
    )
    shown = {"X_pub": public.X, "y_pub": public.y} if fit.uses_public else {}
    module: nn.Module = clf.fit(private.X, private.y, **shown).module_
    return module


class Table:
    """All runs so far, kept in a file."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self.lines = pd.read_csv(path) if path.exists() else pd.DataFrame()

    def of(self, fit: Fit) -> pd.DataFrame:
        """The runs of a fit."""
        lines = self.lines
        if not len(lines):
            return lines
        return lines[
            (lines["part"] == fit.part)
            & (lines["name"] == fit.name)
            & (lines["epsilon"] == fit.epsilon)
            & (lines["share"] == fit.share)
        ]

    def has(self, fit: Fit, rate: float, seed: int) -> bool:
        own = self.of(fit)
        return bool(len(own) and ((own["rate"] == rate) & (own["seed"] == seed)).any())

    def best_rate(self, fit: Fit, seed: int) -> float:
        """The rate with the highest accuracy on the rows to choose by, on one split."""
        own = self.of(fit)
        own = own[own["seed"] == seed]
        return float(own.loc[own["validation"].idxmax(), "rate"])

    def add(self, line: dict[str, Any]) -> None:
        self.lines = pd.concat([self.lines, pd.DataFrame([line])], ignore_index=True)
        self.lines.to_csv(self._path, index=False)


def run(fits: Sequence[Fit], size: Size, table: Table) -> None:
    """All rates on the first split, then the best of them on the others."""
    splits = Splits(size)
    first = size.seeds[0]

    def score(fit: Fit, rate: float, seed: int) -> None:
        if table.has(fit, rate, seed):
            return
        module = trained(fit, rate, seed, splits, size)
        _, validation, test = splits.rows(seed)
        accuracy, loss = measured(module, test)
        table.add(
            asdict(fit)
            | {"rate": rate, "seed": seed, "validation": measured(module, validation)[0]}
            | {"accuracy": accuracy, "loss": loss}
        )

    for fit in tqdm(fits, desc="rates"):
        for rate in size.rates:
            score(fit, rate, first)
    for seed in tqdm(size.seeds, desc="splits"):
        for fit in fits:
            score(fit, table.best_rate(fit, first), seed)
        for part, share in sorted({(fit.part, fit.share) for fit in fits if fit.share}):
            public = Fit(part, "only public", "public fit", np.inf, share)
            if not table.has(public, 0.0, seed):
                accuracy, loss = measured(
                    splits.public_fit(seed, round(share * size.n_rows)), splits.rows(seed)[2]
                )
                table.add(asdict(public) | {"rate": 0.0, "seed": seed, "accuracy": accuracy, "loss": loss})


def report(fits: Sequence[Fit], size: Size, table: Table) -> str:
    """Accuracy and loss on test rows: the mean of the splits, and the range of accuracies."""
    first, lines = size.seeds[0], []
    public = [
        Fit(part, "only public", "", np.inf, share)
        for part, share in sorted({(fit.part, fit.share) for fit in fits if fit.share})
    ]
    for fit in (*fits, *public):
        rate = table.best_rate(fit, first) if fit.algorithm else 0.0
        own = table.of(fit)
        own = own[own["rate"] == rate]
        lines.append(
            [
                fit.name,
                f"{fit.epsilon:g}",
                f"{fit.share:g}",
                f"{rate:g}" if rate else "",
                ranged(own["accuracy"]),
                f"{own['loss'].mean():.3f}",
            ]
        )
    return markdown(["method", "epsilon", "public share", "rate", "test accuracy", "test loss"], lines)


def main(argv: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description="A small convolutional net on 12,000 images.")
    parser.add_argument("--out", type=Path, default=Path("results/reproduce"), help="folder to write to")
    parser.add_argument("--part", choices=tuple(PARTS), required=True, help="which paper's table")
    parser.add_argument("--quick", action="store_true", help="one split, one rate, few rows and steps")
    options = parser.parse_args(argv)
    if not (data_folder() / "fashion_mnist").is_dir():
        parser.error(f"no fashion_mnist in {data_folder()}; set SKMIXDP_DATA to the folder that holds it.")
    torch.set_num_threads(1)
    warnings.simplefilter("ignore")  # of seeds
    size, fits = QUICK if options.quick else Size(), PARTS[options.part]
    options.out.mkdir(parents=True, exist_ok=True)
    table = Table(options.out / f"small_networks_{options.part}.csv")
    run(fits, size, table)
    print(f"\n{report(fits, size, table)}")


if __name__ == "__main__":
    main()
