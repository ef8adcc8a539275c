"""A Markdown table and a picture of the results."""

from pathlib import Path

import pandas as pd
from matplotlib.figure import Figure

_HEADINGS = {
    "n": "n",
    "d_in": "d_in",
    "k": "k",
    "method": "method",
    "variant": "variant",
    "milliseconds": "CPU time, ms",
    "ratio": "ratio",
    "peak_mib": "peak memory, MiB",
    "repetitions": "calls",
    "note": "note",
}


def write_table(results: pd.DataFrame, path: Path) -> None:
    """One row for each case; sizes in the order in which they were measured."""
    shown = results.assign(
        milliseconds=(results["seconds"] * 1e3).map("{:.4g}".format),
        ratio=results["ratio"].map("{:.3g}".format),
        peak_mib=(results["peak_bytes"] / 2**20).map("{:.1f}".format),
        note=results["note"].fillna(""),
    )
    lines = [list(_HEADINGS.values()), ["---"] * len(_HEADINGS)]
    lines += shown[list(_HEADINGS)].astype(str).to_numpy().tolist()
    path.write_text("".join(f"| {' | '.join(line)} |\n" for line in lines))


def write_plot(results: pd.DataFrame, path: Path) -> None:
    """Ratio of each kind of step to the limit, one group of bars for each size."""
    # Cases of one method only are no kind of step for all sizes: the table has them.
    steps = results[(results["role"] == "step") & (results["method"] != "skmixdp_heads")].copy()
    steps["size"] = [f"d_in {d_in}, k {k}" for d_in, k in zip(steps["d_in"], steps["k"], strict=True)]
    # The number of dimensions depends on the size; the kind of step does not.
    steps["kind"] = steps["method"] + ": " + steps["variant"].str.replace(r"\d+ dim", "fewer dim", regex=True)
    ratios = steps.pivot_table(index="size", columns="kind", values="ratio", sort=False)
    figure = Figure(figsize=(8, 4.5), layout="constrained")
    axes = figure.add_subplot()
    width = 0.8 / len(ratios.columns)
    for index, kind in enumerate(ratios.columns):
        places = [group + (index - (len(ratios.columns) - 1) / 2) * width for group in range(len(ratios))]
        bars = axes.bar(places, ratios[kind], width, label=kind)
        axes.bar_label(bars, fmt="%.2f", fontsize=8)
    axes.axhline(1.0, color="black", linewidth=1, label="limit: the two products alone")
    axes.set_xticks(range(len(ratios)), ratios.index)
    axes.set_ylabel("CPU time of a step / limit")
    axes.set_ylim(0, 1.25 * ratios.to_numpy().max())
    axes.legend(fontsize=8, ncols=2, loc="upper center")
    figure.savefig(path, dpi=150)
