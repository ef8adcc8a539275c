"""Tables of the results, as Markdown."""

import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pandas as pd

from .measures import (
    FULLY_PRIVATE,
    NON_PRIVATE,
    ONLY_PRIVATE,
    ONLY_PUBLIC,
    Interval,
    accuracies,
    at_best_setting,
    best_of,
    excess_error,
    label,
    performance_boost,
    select,
)
from .problems import BOTH, PUBLIC

_ABSENT = "-"

#: Measures and their names in titles.
_TITLES = {"accuracy": "accuracy, %", "balanced_accuracy": "balanced accuracy, %", "r2": "R², %"}

Setting = dict[str, Any]


def write_tables(results: pd.DataFrame, folder: Path, report: Mapping[str, Any]) -> str:
    """Write ``tables.md`` and return what it says."""
    best, budgets = at_best_setting(results), report["epsilons"]
    parts = [
        ("Test error, %; AdaMix, Table 1", error_table(best, report["table_1"], budgets)),
        *(
            (
                f"Test accuracy, % at epsilon {epsilon:g}, and (performance boost); Coupling, Table 3",
                accuracy_table(best, report["table_3"], epsilon),
            )
            for epsilon in budgets
        ),
        *(
            (
                f"{method} compared with others, difference in points, paired by seeds",
                difference_table(best, method, rivals),
            )
            for method, rivals in report["compared_with"].items()
        ),
        *(
            (f"{method} compared with the best of several step sizes", hindsight_table(best, method, rival))
            for method, rival in report["hindsight"].items()
        ),
        (
            "Test error above that of no privacy, % of the latter",
            excess_table(
                best, [FULLY_PRIVATE, *dict.fromkeys([*report["table_1"], *report["table_3"]])], budgets
            ),
        ),
    ]
    for measure, title in _TITLES.items():
        own = best if measure == "accuracy" else at_best_setting(results, measure)
        for group in report["peers"]:
            against = peer_table(own, **group, measure=measure)
            parts.append((f"{group['ours']} compared with the best peer: test {title}", against))
        parts.append((f"All methods: test {title}", full_table(own, measure)))
    parts.append(("CPU seconds of a fit", seconds_table(results)))
    text = "\n\n".join(f"## {title}\n\n{table}" for title, table in parts if table)
    note = "Means over the seeds and their 95% t-intervals."
    (folder / "tables.md").write_text(f"{note}\n\n{text}\n", encoding="utf-8")
    return text


def settings(best: pd.DataFrame, methods: Sequence[str]) -> list[Setting]:
    """Data, start and shots for which any of some methods has results from the usual starts."""
    own = best[best["method"].isin(methods) & best["shots"].notna() & best["start"].isin((PUBLIC, BOTH))]
    found = own[["data", "start", "shots"]].drop_duplicates()
    return [{str(key): value for key, value in row.items()} for row in found.to_dict("records")]


def error_table(best: pd.DataFrame, methods: Sequence[str], budgets: Sequence[float]) -> str:
    """One line for each data set, start and number of shots."""
    header = ["data", "start", "shots", NON_PRIVATE, ONLY_PUBLIC]
    header += [f"{label(best, name)}, epsilon {e:g}" for e in budgets for name in (FULLY_PRIVATE, *methods)]
    lines = []
    for setting in settings(best, methods):
        cells = [_mean(100 - accuracies(best, **setting, method=name)) for name in (NON_PRIVATE, ONLY_PUBLIC)]
        cells += [
            _mean(100 - accuracies(best, **setting, method=name, epsilon=epsilon))
            for epsilon in budgets
            for name in (FULLY_PRIVATE, *methods)
        ]
        lines.append([*_names(setting), *cells])
    return markdown(header, lines)


def accuracy_table(best: pd.DataFrame, methods: Sequence[str], epsilon: float) -> str:
    """Accuracies, and in brackets the performance boost of methods that use both kinds of rows."""
    singles = (FULLY_PRIVATE, NON_PRIVATE, ONLY_PUBLIC, ONLY_PRIVATE)
    lines = []
    for setting in settings(best, methods):
        found = {
            name: accuracies(best, **setting, method=name, epsilon=epsilon) for name in (*singles, *methods)
        }
        cells = [_mean(found[name]) for name in singles]
        base = [found[name].mean() for name in (ONLY_PUBLIC, FULLY_PRIVATE) if len(found[name])]
        for name in methods:
            cell = _mean(found[name])
            if len(found[name]) and len(found[NON_PRIVATE]) and len(base) == 2:
                boost = performance_boost(found[name].mean(), found[NON_PRIVATE].mean(), max(base))
                cell += f" ({_number(boost, 2)})"
            cells.append(cell)
        lines.append([*_names(setting), *cells])
    header = ["data", "start", "shots", *singles, *(label(best, name) for name in methods)]
    return markdown(header, lines)


def difference_table(best: pd.DataFrame, method: str, rivals: Sequence[str]) -> str:
    """By how much a method is more accurate than others, on the seeds that both have."""
    lines = []
    for setting, epsilon in _places(best, method):
        ours = accuracies(best, **setting, method=method, epsilon=epsilon)
        gains = [
            (ours - accuracies(best, **setting, method=rival, epsilon=epsilon)).dropna() for rival in rivals
        ]
        lines.append([*_names(setting), f"{epsilon:g}", _mean(ours), *map(_signed, gains)])
    return markdown(
        ["data", "start", "shots", "epsilon", method, *(label(best, name) for name in rivals)], lines
    )


def hindsight_table(best: pd.DataFrame, method: str, rival: str) -> str:
    """A method that chooses nothing on test rows, compared with one whose step was chosen there."""
    lines = []
    for setting, epsilon in _places(best, rival):
        keys = {**setting, "epsilon": epsilon}
        ours, theirs = (accuracies(best, **keys, method=name) for name in (method, rival))
        seeds = ours.index.intersection(theirs.index)
        if len(seeds):
            chosen = select(best, **keys, method=rival)["setting"].iloc[0]
            cells = [_mean(ours[seeds]), _mean(theirs[seeds]), chosen, _signed(ours[seeds] - theirs[seeds])]
            lines.append([*_names(setting), f"{epsilon:g}", str(len(seeds)), *cells])
    header = ["data", "start", "shots", "epsilon", "seeds", method, rival, "best step", "difference, points"]
    return markdown(header, lines)


def _places(best: pd.DataFrame, method: str) -> list[tuple[Setting, float]]:
    """Settings and budgets for which a method has results."""
    return [
        (setting, epsilon)
        for setting in settings(best, [method])
        for epsilon in sorted(select(best, **setting, method=method)["epsilon"].dropna().unique())
    ]


def peer_table(best: pd.DataFrame, ours: str, methods: Sequence[str], measure: str) -> str:
    """The best of several peers at each budget, and by how much a method differs from it.

    Both the peer and its setting are chosen on the test rows, which favours it. The difference is paired by
    seeds.
    """
    own = best[best["method"].isin(methods) & best["epsilon"].notna()]
    own = own[own["start"].isin(("", PUBLIC))]
    lines = []
    for keys in own[["data", "shots", "epsilon"]].drop_duplicates().to_dict("records"):
        place = {str(key): value for key, value in keys.items()} | {"start": PUBLIC}
        name, theirs = best_of(best, methods, measure, **place)
        values = accuracies(best, measure=measure, **place, method=ours)
        setting = select(best, **place, method=name)["setting"].iloc[0]
        lines.append(
            [
                *(_names(place)[column] for column in (0, 2)),
                f"{place['epsilon']:g}",
                str(len(theirs)),
                name,
                setting or _ABSENT,
                _mean(theirs),
                _mean(values),
                _signed((values - theirs).dropna()),
            ]
        )
    header = [
        "data",
        "shots",
        "epsilon",
        "seeds",
        "best peer",
        "its setting",
        "best peer's",
        ours,
        "difference",
    ]
    return markdown(header, lines)


def excess_table(best: pd.DataFrame, methods: Sequence[str], budgets: Sequence[float]) -> str:
    """Relative excess error, a line for each data set, start and number of shots."""
    lines = []
    for setting in settings(best, methods):
        limit = accuracies(best, **setting, method=NON_PRIVATE)
        found = []
        for epsilon in budgets:
            for method in methods:
                ours = accuracies(best, **setting, method=method, epsilon=epsilon)
                complete = len(ours) and len(limit)
                found.append(
                    100 * excess_error(ours.mean() / 100, limit.mean() / 100) if complete else math.nan
                )
        if not all(map(math.isnan, found)):
            lines.append([*_names(setting), *map(_number, found)])
    header = [
        "data",
        "start",
        "shots",
        *(f"{label(best, m)}, epsilon {e:g}" for e in budgets for m in methods),
    ]
    return markdown(header, lines)


def full_table(best: pd.DataFrame, measure: str = "accuracy") -> str:
    """One line for each method on each data set, start and number of shots; a column for each budget."""
    budgets = sorted(best["epsilon"].dropna().unique())
    lines = []
    for (data, start, shots, method), own in best.groupby(
        ["data", "start", "shots", "method"], dropna=False, sort=False
    ):
        # A method without a budget is as good at each of them.
        cells = [
            _mean(100 * own.loc[own["epsilon"].eq(epsilon) | own["epsilon"].isna(), measure])
            for epsilon in budgets
        ]
        place = _names({"data": data, "start": start or "any", "shots": shots})
        lines.append([*place, label(best, method), str(own["seed"].nunique() or 1), *cells])
    return markdown(
        ["data", "start", "shots", "method", "seeds", *(f"epsilon {e:g}" for e in budgets)], lines
    )


def seconds_table(results: pd.DataFrame) -> str:
    """Median CPU time of a fit, methods by data sets."""
    median = results.pivot_table(
        index="method", columns="data", values="seconds", aggfunc="median", sort=False
    )
    lines = [[str(method), *(_number(value, 2) for value in row)] for method, row in median.iterrows()]
    return markdown(["method", *map(str, median.columns)], lines)


def markdown(header: Sequence[str], lines: Sequence[Sequence[str]]) -> str:
    """A Markdown table; nothing where there are no lines."""
    rule = ["---"] * len(header)
    return "\n".join(f"| {' | '.join(line)} |" for line in [header, rule, *lines]) if lines else ""


def _names(setting: Setting) -> list[str]:
    shots = setting["shots"]
    return [str(setting["data"]), str(setting["start"]), "any" if pd.isna(shots) else f"{shots:.0f}"]


def _mean(values: "pd.Series[float]", spec: str = "") -> str:
    return f"{Interval.of(values.to_numpy()):{spec}}" if len(values) else _ABSENT


def _signed(differences: "pd.Series[float]") -> str:
    return _mean(differences, "+.1f")


def _number(value: float, digits: int = 1) -> str:
    return _ABSENT if math.isnan(value) else "∞" if math.isinf(value) else f"{value:.{digits}f}"
