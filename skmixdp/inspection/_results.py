"""Summaries of a results table: one row per method and budget."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from scipy import stats

Floats = NDArray[np.float64]

#: Kinds of error bars, and their names in the plot.
SPREADS = {"std": "mean ± standard deviation", "t95": "mean and its 95% interval"}


def summarise(table: object, score: str, spread: str) -> pd.DataFrame:
    """Table of ``method, epsilon, mean, low, high, n_fits``; epsilon is NaN for a method without budget."""
    if spread not in SPREADS:
        raise ValueError(f"spread={spread!r} must be one of {', '.join(map(repr, SPREADS))}.")
    methods, epsilons, scores = _read(table, score)
    frame = pd.DataFrame({"method": methods, "epsilon": epsilons, "score": scores})
    # Methods keep their order in the table; groupby would sort them.
    frame["method"] = pd.Categorical(frame["method"], list(dict.fromkeys(methods)))
    keys = frame.groupby(["method", "epsilon"], dropna=False, observed=True)["score"]
    statistics = keys.agg(["mean", "std", "size"]).reset_index()
    n = statistics["size"]
    times = 1.0 if spread == "std" else stats.t.ppf(0.975, n - 1) / np.sqrt(n)
    half = (times * statistics["std"]).fillna(0.0)  # NaN for a single fit
    ends = {"low": statistics["mean"] - half, "high": statistics["mean"] + half, "n_fits": n}
    return statistics[["method", "epsilon", "mean"]].astype({"method": object}).assign(**ends)


def _read(table: object, score: str) -> tuple[list[str], Floats, Floats]:
    """Methods, epsilons (NaN for methods without budget) and scores of a checked table."""
    frame = _as_frame(table)
    if len(frame) == 0:
        raise ValueError("table has no rows; pass one row per fit.")
    for name in ("method", "epsilon", score):
        if name not in frame.columns:
            raise ValueError(
                f"the table has no column {name!r} but {list(map(str, frame.columns))}; rename one of them, "
                "or name the scores by score=."
            )
    _refuse("method", frame, "method", frame["method"].isna().to_numpy(), "name it or drop the row")
    methods = [str(name) for name in frame["method"]]
    scores = _numbers(frame, score)
    _refuse("score", frame, score, ~np.isfinite(scores), "fix it to a finite number or drop the row")
    epsilons = _numbers(frame, "epsilon")
    readable = np.isfinite(epsilons) | np.isposinf(epsilons) | frame["epsilon"].isna().to_numpy()
    remedy = "fix it to a positive number, or leave it empty for a method that needs no budget"
    _refuse("epsilon", frame, "epsilon", ~readable | (epsilons <= 0), remedy)
    epsilons[np.isinf(epsilons)] = np.nan
    _check_budgets(methods, epsilons)
    return methods, epsilons, scores


def _as_frame(table: Any) -> pd.DataFrame:
    try:
        return pd.DataFrame(table)
    except (TypeError, ValueError) as error:
        raise TypeError(
            f"table of type {type(table).__name__} cannot be read as a table; pass a pandas DataFrame or "
            "a list of dicts, one per fit."
        ) from error


def _numbers(frame: pd.DataFrame, column: str) -> Floats:
    """A column as floats, NaN where it holds no number."""
    return np.array(pd.to_numeric(frame[column], errors="coerce").to_numpy(dtype=float, na_value=np.nan))


def _refuse(what: str, frame: pd.DataFrame, column: str, bad: NDArray[np.bool_], remedy: str) -> None:
    """Refuse a column with cells that are ``bad`` (n,), and show the first of them."""
    if bad.any():
        row = int(bad.argmax())
        value = frame[column].iloc[row]
        shown = (
            "missing" if what == "method" else repr(value.item() if isinstance(value, np.generic) else value)
        )
        raise ValueError(
            f"the {what} in column {column!r} is {shown} in row {row} (the first is row 0); {remedy}."
        )


def _check_budgets(methods: list[str], epsilons: Floats) -> None:
    """Refuse methods that have a budget in some rows only, and tables without any budget."""
    with_budget = {m for m, e in zip(methods, epsilons, strict=True) if not np.isnan(e)}
    without = {m for m, e in zip(methods, epsilons, strict=True) if np.isnan(e)}
    if both := sorted(with_budget & without):
        raise ValueError(
            f"method {both[0]!r} has rows with and rows without a finite epsilon; give the two kinds "
            "different names."
        )
    if not with_budget:
        raise ValueError(
            "table has no row with a finite epsilon, so there is no curve to draw; add private fits."
        )
