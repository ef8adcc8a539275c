"""PDA-DPMD, section 3: linear regression whose error should not grow with the dimension.

Run ``python -m benchmarks.reproduce.pda_regression``, with ``--quick``, ``--large`` or ``--spectra``.

Data as in the paper: the true model is drawn from N(0, I); in each row 40 of the first p/5 and
80 of the last 4p/5 features are 0.05 and the rest 0; targets have variance 0.01 about their
mean; 10,000 private rows, 1.5 p public ones, epsilon 1, delta 1e-5. Learning rate, clip and
number of steps come from a grid, by the lowest empirical loss, as in its Appendix E; here the
grid is searched on draws of the data of its own, and its choice is then run on 20 fresh ones.
No budget accounts for that selection, in the paper or here.

All configurations of a draw are trained side by side, in one pass over the rows per step.

``--large`` runs p = 4,000 and 6,000, with one draw for the search and three fresh ones. ``--spectra``
measures the eigenvalues of the public Hessian at every p, and trains nothing.
"""

import argparse
from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.figure import Figure
from numpy.typing import NDArray
from scipy.linalg import cho_factor, cho_solve
from scipy.sparse import csr_array
from scipy.sparse.linalg import LinearOperator, eigsh
from tqdm.auto import tqdm

from skmixdp._engine import OpenRows, Options, bind_rows, drive, make_plan, training
from skmixdp._linear.losses import SquaredLoss
from skmixdp._rows.blockwise import InMemoryRows
from skmixdp.algorithms import PDADPMD, Algorithm, NoisyGD
from skmixdp.components import FullBatch
from skmixdp.components.protocols import PublicInfo
from skmixdp.components.public import PublicData
from skmixdp.privacy import NoiseSource, mu_of_budget
from skmixdp.privacy.accounting.budgets import Budget

Array = NDArray[Any]

COLD, WARM, MIRROR = "DP-SGD, cold start", "DP-SGD, warm start", "PDA-DPMD"
METHODS = (COLD, WARM, MIRROR)
EPSILON, DELTA = 1.0, 1e-5
FLOAT = np.dtype("float32")

#: "A small constant times the identity" (Appendix E), on the scale of the sum of the losses.
PENALTY = 0.01

#: Rates, clips and steps. Rates are those of half the squared error, that of PDA-DPMD in its normalised
#: geometry (Appendix E). Coarser and wider searches led here.
GRIDS = {
    COLD: ((10.0, 20.0, 40.0), (0.1, 0.2), (200, 400)),
    WARM: ((20.0, 40.0, 80.0), (0.025, 0.05), (100, 200, 400)),
    MIRROR: ((8e3, 16e3, 32e3, 64e3), (0.025, 0.05), (6, 12, 25, 50)),
}
#: Above p = 2,000 fewer steps are best.
LARGE_GRIDS = {
    COLD: ((20.0, 40.0), (0.1, 0.2), (200, 400)),
    WARM: ((40.0, 80.0, 160.0), (0.025, 0.05), (25, 50, 100)),
    MIRROR: ((16e3, 32e3, 64e3, 128e3), (0.0125, 0.025, 0.05), (3, 6, 12)),
}
#: Okabe-Ito colours and different markers, the same in both panels.
STYLES = {
    COLD: {"color": "#009E73", "marker": "^", "linestyle": "-."},
    WARM: {"color": "#D55E00", "marker": "s", "linestyle": "--"},
    MIRROR: {"color": "#0072B2", "marker": "o", "linestyle": "-"},
}


@dataclass(frozen=True)
class Setting:
    """Sizes of the experiment."""

    dimensions: tuple[int, ...] = (500, 1000, 2000)
    n_private: int = 10_000
    n_pilots: int = 2
    n_runs: int = 20


LARGE = Setting(dimensions=(4000, 6000), n_pilots=1, n_runs=3)
QUICK = Setting(dimensions=(60, 120), n_private=1500, n_pilots=1, n_runs=2)


@dataclass(frozen=True)
class Choice:
    """One point of a grid."""

    method: str
    learning_rate: float
    clip: float
    n_steps: int

    def algorithm(self) -> Algorithm:
        """DP-SGD sees public rows at its start alone: public weight 0."""
        if self.method == MIRROR:
            return PDADPMD(clip=self.clip)
        return NoisyGD(clip=self.clip, momentum=0.0, public_weight=0.0)


@dataclass(frozen=True)
class Draw:
    """Private and public rows of one run."""

    X: Array
    y: Array
    public: PublicData

    @classmethod
    def make(cls, p: int, n_private: int, seed: int) -> "Draw":
        """Rows and targets drawn by ``default_rng([p, seed])``."""
        rng = np.random.default_rng([p, seed])
        truth = rng.normal(size=p)
        n_public = 3 * p // 2

        def rows(n: int) -> tuple[Array, Array]:
            X = np.zeros((n, p))
            # In each row the features with the smallest of uniform draws: chosen without repeats.
            for first, last, count in ((0, p // 5, 40), (p // 5, p, 80)):
                count = min(count, 2 * (last - first) // 5)
                order = rng.random((n, last - first), dtype=np.float32)
                chosen = np.argpartition(order, count, axis=1)[:, :count]
                np.put_along_axis(X[:, first:last], chosen, 0.05, axis=1)
            return X, (X @ truth + 0.1 * rng.normal(size=n))[:, np.newaxis]

        X_pub, y_pub = rows(n_public)
        X, y = rows(n_private)
        return cls(X, y, PublicData(X_pub, y_pub, SquaredLoss(1), PENALTY))

    def loss(self, W: Array) -> float:
        """Mean squared error on the private rows."""
        return float(np.mean((self.X @ W.T - self.y) ** 2))

    def optimum(self) -> float:
        """Least mean squared error on the private rows."""
        moment = second_moment(self.X) + 1e-9 * np.eye(self.X.shape[1])
        return self.loss(np.linalg.solve(moment, self.X.T @ self.y).T)

    def spectrum(self) -> dict[str, float]:
        """The least, second least and largest eigenvalue of the Hessian X'X of the public rows."""
        H = second_moment(self.public.X)
        factor = cho_factor(H + PENALTY * np.eye(len(H)))
        inverse = LinearOperator(H.shape, matvec=lambda v: cho_solve(factor, v), dtype=H.dtype)
        least, second = np.sort(1 / eigsh(inverse, 2, return_eigenvectors=False) - PENALTY)
        largest = eigsh(H, 1, which="LA", return_eigenvectors=False)[0]
        return {"least": least, "second": second, "largest": largest}

    def losses(self, choices: Sequence[Choice], seed: int) -> list[float]:
        """Loss of each choice's head, trained side by side."""
        data, n = self.public, len(self.X)
        mu = mu_of_budget(EPSILON, DELTA)
        cold, warm = (
            PublicInfo(data.view(W), mu, n, float(n), np.inf) for W in (0 * data.solution, data.solution)
        )
        runs = []
        for number, choice in enumerate(choices):
            info = cold if choice.method == COLD else warm
            recipe = choice.algorithm().recipe(info, Options(choice.learning_rate, 0.0, FullBatch(), False))
            budget = Budget(EPSILON, DELTA, choice.n_steps, None, "add_or_remove_one", "float")
            plan = make_plan(budget, recipe, info, FLOAT)
            noise = NoiseSource(1_000_003 * seed + number)
            runs.append(training(plan, noise))
        rows = OpenRows(InMemoryRows(self.X.astype(FLOAT), self.y.astype(FLOAT)))
        heads = drive([bind_rows(rows, run) for run in runs])
        return [self.loss(W) for W in heads]


def second_moment(X: Array) -> Array:
    """``X'X`` (p, p) of rows (n, p) with few entries."""
    rows = csr_array(X)
    return np.asarray((rows.T @ rows).todense())


def run(setting: Setting) -> tuple[pd.DataFrame, pd.DataFrame]:
    """One line per run and method; and the mean loss of every grid point on the pilot draws."""
    lines, searched = [], []
    total = len(setting.dimensions) * (setting.n_pilots + setting.n_runs)
    with tqdm(total=total, desc="pda_regression", unit="draw") as bar:
        for p in setting.dimensions:
            grids = LARGE_GRIDS if p > 2000 else GRIDS
            points = [Choice(method, *point) for method in METHODS for point in product(*grids[method])]
            pilots = []
            for pilot in range(setting.n_pilots):
                draw = Draw.make(p, setting.n_private, 10_000 + pilot)
                pilots.append(draw.losses(points, 10_000 + pilot))
                bar.update()
            for choice, value in zip(points, np.mean(pilots, axis=0), strict=True):
                searched.append({"p": p, **vars(choice), "loss": value})
            table = pd.DataFrame(searched)
            table = table[table["p"] == p]
            best = [points[table[table["method"] == m]["loss"].idxmin() - table.index[0]] for m in METHODS]
            for seed in range(setting.n_runs):
                draw = Draw.make(p, setting.n_private, seed)
                common = {
                    "p": p,
                    "run": seed,
                    "optimum": draw.optimum(),
                    "start": draw.loss(draw.public.solution),
                }
                for choice, loss in zip(best, draw.losses(best, seed), strict=True):
                    lines.append({**common, **vars(choice), "loss": loss})
                bar.update()
    return pd.DataFrame(lines), pd.DataFrame(searched)


def interval(values: pd.Series) -> tuple[float, float]:
    """Mean and half of its 95% confidence interval (normal, as error bars usually are)."""
    return float(values.mean()), 1.96 * float(values.std(ddof=1)) / np.sqrt(len(values))


def summary(table: pd.DataFrame) -> str:
    """Markdown: mean losses, and what the grid chose."""
    lines = [
        "| p | method | mean squared error | learning rate | clip | steps |",
        "| ---: | --- | --- | ---: | ---: | ---: |",
    ]
    for p, part in table.groupby("p"):
        once = part.drop_duplicates("run")
        lines.append(f"| {p} | optimum (least squares) | {interval(once['optimum'])[0]:.5f} | | | |")
        lines.append(f"| {p} | public rows alone (the warm start) | {interval(once['start'])[0]:.5f} | | | |")
        for method in METHODS:
            own = part[part["method"] == method]
            mean, half = interval(own["loss"])
            first = own.iloc[0]
            lines.append(
                f"| {p} | {method} | {mean:.5f} ± {half:.5f} | {first['learning_rate']:g} | "
                f"{first['clip']:g} | {first['n_steps']} |"
            )
    return "\n".join(lines)


def spectra(setting: Setting) -> pd.DataFrame:
    """One line per dimension and draw: eigenvalues of the Hessian of the public rows."""
    draws = [(p, seed) for p in setting.dimensions for seed in range(setting.n_runs)]
    lines = [
        {"p": p, "run": seed, **Draw.make(p, setting.n_private, seed).spectrum()}
        for p, seed in tqdm(draws, unit="draw")
    ]
    return pd.DataFrame(lines)


def spectra_summary(found: pd.DataFrame) -> str:
    """Markdown: means over the draws of the eigenvalues, and ranges of two ratios."""
    ratios = {
        "largest / second least": found["largest"] / found["second"],
        f"the same, {PENALTY:g} added to each": (found["largest"] + PENALTY) / (found["second"] + PENALTY),
    }
    lines = [
        f"| p | least | second least | largest | {' | '.join(ratios)} |",
        "| ---: " * (4 + len(ratios)) + "|",
    ]
    for p, own in found.groupby("p"):
        means = own[["least", "second", "largest"]].mean()
        cells = [f"{means['least']:.0e}", f"{means['second']:.4f}", f"{means['largest']:.2f}"]
        for values in ratios.values():
            part = values[own.index]
            cells.append(f"{part.mean():,.0f} ({part.min():,.0f} to {part.max():,.0f})")
        lines.append(f"| {p} | {' | '.join(cells)} |")
    return "\n".join(lines)


def picture(table: pd.DataFrame, path: Path) -> None:
    """The paper's Figure 1: cold against warm start, and warm start against PDA-DPMD."""
    figure = Figure(figsize=(10, 4), layout="constrained")
    for axes, pair in zip(figure.subplots(1, 2), ((COLD, WARM), (WARM, MIRROR)), strict=True):
        for method in pair:
            own = table[table["method"] == method].groupby("p")["loss"]
            means, halves = zip(*(interval(values) for _, values in own), strict=True)
            axes.errorbar([p for p, _ in own], means, halves, label=method, capsize=4, **STYLES[method])
        optimum = table.groupby("p")["optimum"].mean()
        axes.plot(optimum.index, optimum, "k--", label="least squares on the private rows")
        axes.set(xlabel="dimension p", ylabel="mean squared error, private rows")
        axes.set_title(f"{pair[0]} and {pair[1]}", loc="left", fontsize=11)
        axes.set_ylim(bottom=0)
        axes.legend()
    figure.savefig(path, dpi=150)


def main(argv: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description="Figure 1 of PDA-DPMD.")
    parser.add_argument("--out", type=Path, default=Path("results/reproduce"), help="folder to write to")
    parser.add_argument("--quick", action="store_true", help="small dimensions, two runs")
    parser.add_argument("--large", action="store_true", help="p = 4,000 and 6,000, three runs")
    parser.add_argument("--spectra", action="store_true", help="eigenvalues of the Hessian alone")
    options = parser.parse_args(argv)
    options.out.mkdir(parents=True, exist_ok=True)
    if options.spectra:
        every = replace(LARGE, dimensions=Setting().dimensions + LARGE.dimensions)
        found = spectra(QUICK if options.quick else every)
        found.to_csv(options.out / "pda_spectra.csv", index=False)
        print(spectra_summary(found))
        return
    name = "pda_regression_large" if options.large else "pda_regression"
    table, searched = run(QUICK if options.quick else LARGE if options.large else Setting())
    table.to_csv(options.out / f"{name}.csv", index=False)
    searched.to_csv(options.out / f"{name}_grid.csv", index=False)
    picture(table, options.out / f"{name}.png")
    print(summary(table))


if __name__ == "__main__":
    main()
