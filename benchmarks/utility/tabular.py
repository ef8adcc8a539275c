"""The library's defaults on real tables: splits, and the page that compares them with peers.

A peer and its setting are chosen on half of the seeds and judged on the other half, both ways. That favours
no one, while the choice on all of them would favour the peers.
"""

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import yaml

from . import data
from .problems import Array, make_problem
from .tables import markdown

CONFIG = Path(__file__).with_name("config.yaml")

#: Names that methods of these kinds have in a configuration.
BASE_RATES, NO_PRIVACY = "base rates", "no privacy"

#: Points below the majority that count as worse than it.
_BELOW_MAJORITY = 2.0

_CELL = ["data", "shots", "epsilon"]


def split(table: str, shots: int, seed: int) -> tuple[Array, Array, Array, Array, Array, Array]:
    """Rows of one split as the benchmark makes it: ``X, y, X_pub, y_pub, X_test, y_test``.

    Parameters
    ----------
    table : str
        Name among the configuration's data.
    shots : int
        Public rows of each class, or public rows of a regression.
    seed : int
        Of the split.
    """
    config = yaml.safe_load(CONFIG.read_text(encoding="utf-8"))
    problem = make_problem(data.load(cache=Path(), **config["data"][table]), shots, seed)
    return problem.X, problem.y, problem.X_pub, problem.y_pub, problem.X_test, problem.y_test


def write_tabular(results: pd.DataFrame, folder: Path, report: Mapping[str, Any]) -> str:
    """Write ``tabular.md`` from results on tables and return what it says.

    ``report`` has the names of the tables by part ("parts"), and for classes and numbers the library's method
    ("ours"), peers ("peers") and peers whose columns are scaled by all private rows ("flattered").
    """
    sections = []
    for kind, measure in (("classes", "accuracy"), ("numbers", "r2")):
        ours, peers, flattered = (report[kind][name] for name in ("ours", "peers", "flattered"))
        for part, names in report["parts"].items():
            own = results[results["data"].isin(names) & results[measure].notna()]
            fits = fits_table(own, ours) if kind == "classes" else ""
            if fits:
                sections += [f"## {part.capitalize()} tables: all fits", fits]
            for title, rivals in (
                ("", peers),
                (", peers whose columns are scaled by all private rows", flattered),
            ):
                cells = compared(own, ours, rivals, measure)
                if cells:
                    sections += [
                        f"## {part.capitalize()} tables with {kind}{title}",
                        summary_table(cells, measure),
                        cell_table(cells, measure),
                    ]
    text = "\n\n".join(sections)
    (folder / "tabular.md").write_text(f"{_NOTE}\n\n{text}\n", encoding="utf-8")
    return text


_NOTE = """# Real tables

Accuracy and R² are in percent, differences in points, with one standard error over the seeds. The peer and
its setting are chosen on half of the seeds and judged on the other half, both ways. The choice is by accuracy
or R², and for the gap in log-loss (nats) by the log-loss. ECE is the expected calibration error.

A fit is worse than the base rates if its log-loss is above the entropy of the test rows' classes. It is below
the majority if its accuracy is more than 2 points below the share of their largest class. Summaries have one
standard error over the cells. "All fits" have 10 public rows of each class and epsilon 1 and above."""


@dataclass(frozen=True)
class Cell:
    """The default and the best peer on one table, at one number of public rows and one budget.

    Attributes
    ----------
    data : str
        The table.
    shots, epsilon : float
        Public rows of each class or in all, and the budget.
    ours : DataFrame
        The default's results, one row for each seed.
    peer : str
        The best peer on all seeds.
    peer_values : Series
        By seed, the measure of the peer that is best on the other half of the seeds.
    log_loss_gap : Series
        The default's log-loss less that of the peer with the best one, chosen in the same way.
    base : DataFrame
        What the base rates reach on the same test rows.
    no_privacy : float
        Mean of the measure without privacy.
    """

    data: str
    shots: float
    epsilon: float
    ours: pd.DataFrame
    peer: str
    peer_values: "pd.Series[float]"
    log_loss_gap: "pd.Series[float]"
    base: pd.DataFrame
    no_privacy: float

    def difference(self, measure: str) -> "pd.Series[float]":
        """In points, by seed."""
        return 100 * (self.ours[measure] - self.peer_values).dropna()

    @property
    def n_worse(self) -> int:
        """Fits whose log-loss is above that of the base rates."""
        return int((self.ours["log_loss"] > self.base["log_loss"].reindex(self.ours.index)).sum())

    @property
    def n_below(self) -> int:
        """Fits whose accuracy is clearly below the majority."""
        majority = self.base["accuracy"].reindex(self.ours.index)
        return int((100 * (majority - self.ours["accuracy"]) > _BELOW_MAJORITY).sum())


def compared(results: pd.DataFrame, ours: str, peers: Sequence[str], measure: str) -> list[Cell]:
    """All cells in which both the default and a peer have results."""
    rivals = results[results["method"].isin(peers)]
    own = results[results["method"] == ours]
    cells = []
    for (name, shots, epsilon), fits in own.groupby(_CELL, sort=False):
        there = rivals["data"].eq(name) & rivals["shots"].eq(shots) & rivals["epsilon"].eq(epsilon)
        if not there.any():
            continue
        table = by_setting(rivals[there], measure)
        by_seed = fits[fits["seed"].isin(table.columns)].set_index("seed").sort_index()
        losses = by_setting(rivals[there], "log_loss")
        gap = by_seed["log_loss"] + crossed(-losses) if len(losses) else by_seed["log_loss"]
        of_data = results[results["data"] == name].drop_duplicates(["method", "seed"]).set_index("seed")
        cells.append(
            Cell(
                str(name),
                float(shots),
                float(epsilon),
                by_seed,
                str(table.mean(axis=1).idxmax()[0]),
                crossed(table),
                gap,
                of_data[of_data["method"] == BASE_RATES],
                float(of_data.loc[of_data["method"] == NO_PRIVACY, measure].mean()),
            )
        )
    return cells


def by_setting(results: pd.DataFrame, measure: str) -> pd.DataFrame:
    """A measure with a row for each method and setting and a column for each seed; complete rows only."""
    table = results.pivot_table(index=["method", "setting"], columns="seed", values=measure, sort=False)
    return table.dropna()


def crossed(table: pd.DataFrame) -> "pd.Series[float]":
    """By seed, the value of the row that is best on the mean of the other half of the seeds.

    A single seed has no other half: its best value is taken.
    """
    seeds = sorted(table.columns)
    halves = [seeds[::2], seeds[1::2]] if len(seeds) > 1 else [seeds, seeds]
    parts = [
        table.loc[table[other].mean(axis=1).idxmax(), own]
        for own, other in (halves, halves[::-1])[: len(seeds)]
    ]
    return pd.concat(parts).sort_index()


def fits_table(results: pd.DataFrame, ours: str) -> str:
    """All fits of the default with most public rows and epsilon 1 at least: a line for each table."""
    own = results[results["method"].eq(ours)]
    own = own[own["shots"].eq(own["shots"].max()) & own["epsilon"].ge(1)]
    base = results[results["method"].eq(BASE_RATES)]
    both = own.merge(base, on=["data", "seed"], suffixes=("", "_base"))
    both["worse"] = both["log_loss"] > both["log_loss_base"]
    both["below"] = 100 * (both["accuracy_base"] - both["accuracy"]) > _BELOW_MAJORITY
    lines = []
    for name, fits in both.groupby("data", sort=False):
        at_one = fits.loc[fits["epsilon"].eq(1), "calibration_error"].mean()
        counts = [str(len(fits)), str(fits["worse"].sum()), str(fits["below"].sum())]
        lines.append([str(name), *counts, f"{at_one:.3f}"])
    header = ["table", "fits", "worse than base rates", "below the majority", "ECE at epsilon 1"]
    return markdown(header, lines)


def summary_table(cells: Iterable[Cell], measure: str) -> str:
    """All tables together: a line for each number of public rows and budget, and one for all cells."""
    cells = list(cells)
    places = sorted({(cell.shots, cell.epsilon) for cell in cells})
    groups = [
        (f"{shots:.0f}", f"{epsilon:g}", [c for c in cells if (c.shots, c.epsilon) == (shots, epsilon)])
        for shots, epsilon in places
    ]
    groups.append(("all", "all", cells))
    probable = measure == "accuracy"
    lines = []
    for shots, epsilon, own in groups:
        differences = [cell.difference(measure) for cell in own]
        means = [float(difference.mean()) for difference in differences]
        worst = int(np.argmin(means))
        line = [
            shots,
            epsilon,
            str(len(own)),
            _with_error(means),
            f"{_with_error(differences[worst])}, {own[worst].data}",
        ]
        if probable:
            n = sum(len(cell.ours) for cell in own)
            line += [
                _with_error([float(cell.log_loss_gap.mean()) for cell in own], ".3f"),
                _number([float(cell.ours["calibration_error"].mean()) for cell in own], max),
                f"{sum(cell.n_worse for cell in own)} of {n}",
                f"{sum(cell.n_below for cell in own)} of {n}",
            ]
        lines.append(line)
    header = ["shots", "epsilon", "cells", "mean difference", "worst cell"]
    if probable:
        header += ["mean log-loss gap", "largest ECE", "worse than base rates", "below the majority"]
    return markdown(header, lines)


def cell_table(cells: Iterable[Cell], measure: str) -> str:
    """A line for each cell."""
    probable = measure == "accuracy"
    lines = []
    for cell in cells:
        line = [
            cell.data,
            f"{cell.shots:.0f}",
            f"{cell.epsilon:g}",
            str(len(cell.ours)),
            f"{100 * cell.no_privacy:.1f}",
            *([f"{100 * cell.base['accuracy'].mean():.1f}"] if probable else []),
            f"{100 * cell.ours[measure].mean():.1f}",
            cell.peer,
            f"{100 * cell.peer_values.mean():.1f}",
            _with_error(cell.difference(measure)),
        ]
        if probable:
            line += [
                f"{cell.ours['log_loss'].mean():.3f}",
                _with_error(cell.log_loss_gap, ".3f"),
                f"{cell.ours['calibration_error'].mean():.3f}",
                str(cell.n_worse),
                str(cell.n_below),
            ]
        lines.append(line)
    header = ["table", "shots", "epsilon", "seeds", "no privacy", *(["majority"] if probable else [])]
    header += ["default", "best peer", "its value", "difference"]
    if probable:
        header += ["log-loss", "gap", "ECE", "worse than base rates", "below the majority"]
    return markdown(header, lines)


def _with_error(values: "Sequence[float] | pd.Series[float]", spec: str = ".1f") -> str:
    """A mean with its sign and one standard error, which a single value lacks."""
    found = np.asarray(values, dtype=float)
    found = found[~np.isnan(found)]
    if not len(found):
        return "-"
    error = found.std(ddof=1) / math.sqrt(len(found)) if len(found) > 1 else math.nan
    return f"{found.mean():+{spec}}" + ("" if math.isnan(error) else f" ± {error:{spec}}")


def _number(values: Sequence[float], of: Any) -> str:
    return f"{of(values):.3f}"
