"""``python -m benchmarks.utility.additive results.csv``: the tables of additive.md.

The results are those of the profiles ``tables, additive`` and ``tables, kept, additive`` of
:mod:`benchmarks.utility.run`. The setting of a private explainable boosting machine is the best on the test
rows, for each table, budget and measure. It has fewer seeds, so differences from it are over its seeds. An R²
below 0 counts as 0, which a constant has.
"""

import argparse
import math
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pandas as pd
import yaml

from .run import CONFIG, read_results
from .tables import markdown

PEER, DEFAULTS = "DP-EBM", "defaults"

#: Measures of classes and of numbers, with whether less is better, and how they are printed.
CLASSES = {"accuracy": False, "auc": False, "log_loss": True, "calibration_error": True}
NUMBERS = {"r2": False}
NAMES = {"accuracy": "accuracy", "auc": "AUC", "log_loss": "log-loss", "calibration_error": "ECE", "r2": "R²"}

#: Differences from the linear default that are too large, in the direction of a loss.
LIMITS = {"auc": 0.01, "r2": 0.02}

#: The library's linear default and its additive model, and models without privacy.
LINES, CURVES = ("default", "default ridge"), ("additive",)
NO_PRIVACY = ("no privacy", "splines", "boosting")

_PLACE = ["data", "shots", "epsilon"]


@dataclass(frozen=True)
class Fits:
    """Means over seeds of one measure by table, public rows and budget, and differences by seed."""

    measure: str
    results: pd.DataFrame

    def of(self, methods: Sequence[str]) -> "pd.Series[float]":
        """By table, shots, epsilon and seed."""
        own = self.results[self.results["method"].isin(methods)]
        return self._values(own.set_index([*_PLACE, "seed"]))

    def _values(self, own: pd.DataFrame) -> "pd.Series[float]":
        found = own[self.measure].dropna()
        return found.clip(lower=0) if self.measure in NUMBERS else found

    def peer(self, setting: str | None = None) -> "pd.Series[float]":
        """Of the peer by table, epsilon and seed, with one setting or with the best mean of the seeds."""
        own = self.results[self.results["method"].eq(PEER)].dropna(subset=self.measure)
        own = own.assign(**{self.measure: self._values(own)})
        if setting is None:
            sign = -1 if (CLASSES | NUMBERS)[self.measure] else 1
            mean = sign * own.groupby(["data", "epsilon", "setting"])[self.measure].mean()
            best = mean.groupby(level=["data", "epsilon"]).idxmax()
            own = own[pd.MultiIndex.from_frame(own[["data", "epsilon", "setting"]]).isin(best)]
        else:
            own = own[own["setting"].eq(setting)]
        return own.set_index(["data", "epsilon", "seed"])[self.measure]

    def without(self, method: str) -> "pd.Series[float]":
        """Mean of a model without privacy, by table."""
        own = self.results[self.results["method"].eq(method)]
        return own.groupby("data", sort=False)[self.measure].mean()


def against_peer(ours: "pd.Series[float]", peer: "pd.Series[float]") -> "pd.Series[float]":
    """Differences by table, shots, epsilon and seed, where both have results."""
    both = ours.rename("ours").reset_index().merge(peer.rename("peer").reset_index())
    return (both["ours"] - both["peer"]).set_axis(pd.MultiIndex.from_frame(both[[*_PLACE, "seed"]]))


def means(fits: Fits) -> str:
    """Means over the tables: a line for each number of public rows and budget."""
    line, curve, best, plain = fits.of(LINES), fits.of(CURVES), fits.peer(), fits.peer(DEFAULTS)
    tables = best.index.unique("data")
    line, curve = (one[one.index.isin(tables, level="data")] for one in (line, curve))
    gain, ahead = curve - line, against_peer(curve, best)
    lines = []
    for shots, epsilon in curve.index.droplevel(["data", "seed"]).unique().sort_values():
        own = [one.xs((shots, epsilon), level=("shots", "epsilon")) for one in (line, curve, gain, ahead)]
        peers = [one.xs(epsilon, level="epsilon") for one in (plain, best)]
        by_table = [one.groupby(level="data").mean() for one in (*own[:2], *peers, *own[2:])]
        lines.append(
            [
                f"{shots:.0f}",
                f"{epsilon:g}",
                str(len(by_table[1])),
                *(_number(one.mean()) for one in by_table[:4]),
                *(_signed(one) for one in by_table[4:]),
                *(_number(fits.without(name).reindex(tables).mean()) for name in NO_PRIVACY),
            ]
        )
    header = ["public rows", "epsilon", "tables", "linear", "additive", "DP-EBM, defaults", "DP-EBM, best"]
    header += [
        "additive less linear",
        "additive less best DP-EBM",
        "line, not private",
        "splines",
        "boosting",
    ]
    return markdown(header, lines)


def worse(results: pd.DataFrame) -> str:
    """The cells that are worse than the linear default by more than a limit and one standard error."""
    lines = []
    for measure, limit in LIMITS.items():
        fits = Fits(measure, results)
        by_cell = (fits.of(CURVES) - fits.of(LINES)).groupby(level=_PLACE, sort=False)
        for place, gain in by_cell:
            if gain.mean() + gain.sem() < -limit:
                data, shots, epsilon = place
                lines.append([str(data), f"{shots:.0f}", f"{epsilon:g}", NAMES[measure], _signed(gain)])
    return markdown(["table", "public rows", "epsilon", "measure", "additive less linear"], lines)


def cells(results: pd.DataFrame, measures: Sequence[str]) -> str:
    """All cells: a line for each table, number of public rows and budget."""
    parts = [Fits(measure, results) for measure in measures]
    found = [[fits.of(LINES), fits.of(CURVES)] for fits in parts]
    by_cell = [[one.groupby(level=_PLACE, sort=False).mean().to_dict() for one in pair] for pair in found]
    peers = [fits.peer().groupby(level=["data", "epsilon"]).mean().to_dict() for fits in parts]
    gains = [dict(list((curve - line).groupby(level=_PLACE))) for line, curve in found]
    lines = []
    for place in by_cell[0][1]:
        data, shots, epsilon = place
        row = [str(data), f"{shots:.0f}", f"{epsilon:g}"]
        for (line, curve), peer, gain in zip(by_cell, peers, gains, strict=True):
            values = (line.get(place), curve.get(place), peer.get((data, epsilon)))
            row += [" / ".join(map(_number, values)), _signed(gain[place]) if place in gain else "-"]
        lines.append(row)
    header = ["table", "public rows", "epsilon"]
    for measure in measures:
        header += [f"{NAMES[measure]}: linear / additive / best DP-EBM", "additive less linear"]
    return markdown(header, lines)


def without_privacy(results: pd.DataFrame, measures: Sequence[str]) -> str:
    """A line for each table: a linear model, splines and boosting without privacy."""
    parts = [[Fits(measure, results).without(name) for name in NO_PRIVACY] for measure in measures]
    lines = [
        [str(data), *(" / ".join(_number(one.get(data)) for one in models) for models in parts)]
        for data in parts[0][0].dropna().index
    ]
    return markdown(["table", *(f"{NAMES[one]}: line / splines / boosting" for one in measures)], lines)


def _number(value: float | None) -> str:
    return "-" if value is None or math.isnan(value) else f"{value:.3f}"


def _signed(values: "pd.Series[float]") -> str:
    """A mean with one standard error."""
    found = values.dropna().to_numpy()
    if not len(found):
        return "-"
    error = found.std(ddof=1) / math.sqrt(len(found)) if len(found) > 1 else math.nan
    return f"{found.mean():+.3f}" + ("" if np.isnan(error) else f" ± {error:.3f}")


def page(results: pd.DataFrame, parts: dict[str, list[str]]) -> str:
    """The tables of both halves."""
    text = []
    for part, names in parts.items():
        own = results[results["data"].isin(names)]
        for measure in (*CLASSES, *NUMBERS):
            found = means(Fits(measure, own))
            if found:
                text += [f"## {part.capitalize()} tables: mean {NAMES[measure]}", found]
    for part, names in parts.items():
        found = worse(results[results["data"].isin(names)])
        if found:
            text += [f"## {part.capitalize()} tables: cells that are worse than the linear default", found]
    for part, names in parts.items():
        own = results[results["data"].isin(names)]
        for measures in (["accuracy", "auc"], ["log_loss", "calibration_error"], ["r2"]):
            title = f"{part.capitalize()} tables, %s: {' and '.join(NAMES[one] for one in measures)}"
            for what, found in (
                ("without privacy", without_privacy(own, measures)),
                ("all cells", cells(own, measures)),
            ):
                if found:
                    text += [f"## {title % what}", found]
    return "\n\n".join(text)


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.utility.additive", description=__doc__)
    parser.add_argument("results", type=Path, nargs="+", help="results.csv, of one run or of several")
    report = yaml.safe_load(CONFIG.read_text(encoding="utf-8"))["report"]["tabular"]
    results = pd.concat([read_results(path) for path in parser.parse_args().results])
    print(page(results, report["parts"]))


if __name__ == "__main__":
    main()
