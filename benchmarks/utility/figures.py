"""Figures of the results, in the shape of AdaMix's Figures 1, 2 and 4."""

import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from skmixdp.inspection import PrivacyUtilityDisplay
from skmixdp.inspection._style import curve_style, reference_style

from .measures import (
    NON_PRIVATE,
    ONLY_PUBLIC,
    Interval,
    accuracies,
    at_best_setting,
    label,
    performance_boost,
    select,
)
from .problems import BOTH, DELTA, NAMES, PUBLIC, ZEROS


def write_figures(results: pd.DataFrame, folder: Path, report: Mapping[str, Any]) -> None:
    """Draw what there are results for."""
    best = at_best_setting(results)
    for panel in report["figure_1"]["panels"]:
        budgets(best, report["figure_1"]["methods"], panel, folder)
    for data in report["figure_2"]["data"]:
        rows(best, data, report["figure_2"], folder)
    for data in report["figure_4"]["data"]:
        starts(best, data, report["figure_4"], folder)


def budgets(best: pd.DataFrame, methods: Sequence[str], panel: Mapping[str, Any], folder: Path) -> None:
    """Accuracy against epsilon on one data set, between no privacy and no private rows (Figure 1)."""
    names = [*methods, NON_PRIVATE, ONLY_PUBLIC]
    found = select(best, **panel)
    found = found[found["method"].isin(names)]
    found = found.sort_values("method", key=lambda column: column.map(names.index), kind="stable")
    if found["epsilon"].nunique() < 2:
        return
    table = found.assign(method=[label(best, name) for name in found["method"]])
    display = PrivacyUtilityDisplay.from_results(table, spread="t95", delta=DELTA, ax=_axes())
    shots, text = panel["shots"], "" if panel["start"] == PUBLIC else ", with class names"
    _keep_percent(display.ax_)
    display.ax_.set_title(f"{panel['data']}, {shots} public rows per class{text}", loc="left", fontsize=11)
    name = _file_name(f"epsilon {panel['data']} {panel['start']} {shots}")
    display.figure_.savefig(folder / name, dpi=150)


def _file_name(text: str) -> str:
    return re.sub(r"\W+", "_", text.lower()) + ".png"


def _axes() -> Axes:
    return Figure(figsize=(8, 4.5), layout="constrained").add_subplot()


def rows(best: pd.DataFrame, data_name: str, wanted: Mapping[str, Any], folder: Path) -> None:
    """What rows are worth, public or private, and the performance boost (Figure 2)."""
    data, few = {"data": data_name, "start": PUBLIC}, wanted["few_private"]
    shots = sorted(select(best, **data, method=ONLY_PUBLIC)["shots"].dropna().unique())
    if len(shots) < 2:
        return
    figure = Figure(figsize=(11, 4.4), layout="constrained")
    left, right = figure.subplots(1, 2)
    _curve(left, 0, "public", {n: accuracies(best, **data, method=ONLY_PUBLIC, shots=n) for n in shots})
    for place, epsilon in enumerate(wanted["epsilons"], start=1):
        found = {n: accuracies(best, **data, method=few, shots=n, epsilon=epsilon) for n in shots}
        _curve(left, place, f"private, epsilon {epsilon:g}", found)
    limit = accuracies(best, **data, method=NON_PRIVATE)
    left.axhline(limit.mean(), label="all rows, no privacy", **reference_style(0))
    _keep_percent(left)
    left.set(ylabel="test accuracy, %", xlabel="rows per class, and no others")
    left.set_title(f"{data['data']}: a row's worth", loc="left", fontsize=11)
    epsilon = wanted["epsilons"][-1]
    for place, method in enumerate(wanted["methods"]):
        boosts = {}
        for n in shots:
            ours = accuracies(best, **data, method=method, shots=n, epsilon=epsilon)
            base = accuracies(best, **data, method=ONLY_PUBLIC, shots=n)
            seeds = ours.index.intersection(base.index)
            # Of the means: that of one seed may be infinite.
            boost = performance_boost(ours[seeds].mean(), limit.mean(), base[seeds].mean())
            boosts[n] = pd.Series([boost] if np.isfinite(boost) else [], dtype=float)
        _curve(right, place, label(best, method), boosts)
    right.axhline(1, label="public rows alone", **reference_style(1))
    right.set(ylabel="performance boost", xlabel="public rows per class, all others private")
    right.set_title(f"Boost by the private rows at epsilon {epsilon:g}", loc="left", fontsize=11)
    for axes in (left, right):
        axes.set_xscale("log")
        axes.set_xticks(shots, [f"{n:.0f}" for n in shots])
        axes.minorticks_off()
        axes.grid(color="0.9")
        axes.legend(fontsize=9, handlelength=3.5)
    figure.savefig(folder / _file_name(f"rows {data_name}"), dpi=150)


def starts(best: pd.DataFrame, data_name: str, wanted: Mapping[str, Any], folder: Path) -> None:
    """Accuracy by where private training starts, and the starts themselves (Figure 4, left)."""
    data = {"data": data_name, "shots": wanted["shots"]}
    lines = {
        f"{label(best, method)}, epsilon {epsilon:g}": {"method": method, "epsilon": epsilon}
        for method in wanted["methods"]
        for epsilon in wanted["epsilons"]
    }
    lines["the start itself"] = {"method": ONLY_PUBLIC}
    shown = (ZEROS, NAMES, PUBLIC, BOTH)
    found = {
        name: {
            place: accuracies(best, **data, start=start, **keys)
            for place, start in enumerate(shown)
            if (start, keys) != (ZEROS, lines["the start itself"])  # which knows nothing
        }
        for name, keys in lines.items()
    }
    present = {name: cells for name, cells in found.items() if any(len(cell) for cell in cells.values())}
    if not present:
        return
    figure = Figure(figsize=(8, 4.5), layout="constrained")
    axes = figure.add_subplot()
    for number, (name, cells) in enumerate(present.items()):
        _curve(axes, number, name, cells, dodge=0.08 * (number - (len(present) - 1) / 2), joined=False)
    axes.set_xticks(range(len(shown)), shown)
    axes.set_xlim(-0.5, len(shown) - 0.5)
    _keep_percent(axes)
    axes.set(ylabel="test accuracy, %", xlabel="start of private training")
    axes.set_title(f"{data['data']}, {data['shots']} public rows per class", loc="left", fontsize=11)
    axes.grid(axis="y", color="0.9")
    figure.legend(loc="outside right center", fontsize=9)
    figure.savefig(folder / _file_name(f"starts {data_name}"), dpi=150)


def _curve(
    axes: Axes,
    number: int,
    name: str,
    cells: Mapping[Any, "pd.Series[float]"],
    *,
    dodge: float = 0.0,
    joined: bool = True,
) -> None:
    """Means with their intervals; what has no value is left out."""
    found = {x: Interval.of(values.to_numpy()) for x, values in cells.items() if len(values)}
    if not found:
        return
    look = curve_style(number) if joined else {**curve_style(number), "linestyle": "none"}
    axes.errorbar(
        [x + dodge for x in found],
        [value.mean for value in found.values()],
        np.nan_to_num([value.half for value in found.values()]),
        label=name,
        capsize=3,
        elinewidth=1.2,
        **look,
    )


def _keep_percent(axes: Axes) -> None:
    """Intervals of few seeds may reach beyond what an accuracy can be."""
    low, high = axes.get_ylim()
    axes.set_ylim(max(low, 0.0), min(high, 100.5))
