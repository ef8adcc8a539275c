"""Means, intervals, and the two measures of the papers."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from scipy import stats

#: Names that methods of these kinds have in a configuration.
NON_PRIVATE, ONLY_PUBLIC, FULLY_PRIVATE, ONLY_PRIVATE = (
    "non-private",
    "only public",
    "fully private",
    "only private",
)

#: Columns by which fits of different seeds belong together.
_CELL = ["data", "start", "shots", "method", "epsilon"]


@dataclass(frozen=True)
class Interval:
    """A mean and half of its 95% t-interval, which is NaN for a single value."""

    mean: float
    half: float

    @classmethod
    def of(cls, values: Sequence[float]) -> "Interval":
        n = len(values)
        if n < 2:
            return cls(float(np.mean(values)), math.nan)
        return cls(
            float(np.mean(values)), float(stats.t.ppf(0.975, n - 1) * np.std(values, ddof=1) / math.sqrt(n))
        )

    def __format__(self, spec: str) -> str:
        """``spec`` is that of the mean, one decimal where there is none."""
        return f"{self.mean:{spec or '.1f'}}" + ("" if math.isnan(self.half) else f" ± {self.half:.1f}")


def performance_boost(accuracy: float, non_private: float, baseline: float) -> float:
    """``(non-private - baseline) / (non-private - method)``: above 1, mixing was worth it.

    Parameters
    ----------
    accuracy : float
        Of the method that trains on both kinds of rows.
    non_private : float
        Of training on all rows as if they were public.
    baseline : float
        The better of public rows alone and of full privacy (Coupling, section 5.1: Delta), or
        public rows alone (AdaMix, section 4.1: PB).

    Returns
    -------
    float
        Infinite for a method that is no worse than no privacy.
    """
    missing = non_private - accuracy
    return (non_private - baseline) / missing if missing > 0 else math.inf


def excess_error(accuracy: float, non_private: float) -> float:
    """How much larger a test error is than without privacy, as a share of the latter."""
    return (non_private - accuracy) / (1 - non_private) if non_private < 1 else math.nan


def select(results: pd.DataFrame, **keys: Any) -> pd.DataFrame:
    """Fits with these keys, and those of methods to which a key makes no difference."""
    chosen = pd.Series(True, index=results.index)
    for name, value in keys.items():
        column = results[name]
        chosen &= column.eq(value) | (column.eq("") if name == "start" else column.isna())
    return results[chosen]


def accuracies(results: pd.DataFrame, *, measure: str = "accuracy", **keys: Any) -> "pd.Series[float]":
    """A measure by seed, in percent; empty where nothing was fitted."""
    found = select(results, **keys)
    return 100 * found.set_index("seed")[measure]


def at_best_setting(results: pd.DataFrame, measure: str = "accuracy") -> pd.DataFrame:
    """Of methods that try several settings, the one with the best mean of a measure over the seeds.

    It is chosen on the test rows. The column ``n_settings`` says among how many. Fits without the measure
    are left out.
    """
    kept = []
    for _, own in results[results[measure].notna()].groupby(_CELL, dropna=False, sort=False):
        settings = own.groupby("setting", sort=False)[measure].mean()
        best = own[own["setting"] == settings.idxmax()]
        kept.append(best.assign(n_settings=len(settings)))
    return pd.concat(kept) if kept else results.iloc[:0].assign(n_settings=0)


def best_of(
    best: pd.DataFrame, methods: Sequence[str], measure: str = "accuracy", **keys: Any
) -> tuple[str, "pd.Series[float]"]:
    """The method with the best mean of a measure, and its values by seed in percent.

    The name is empty where none of the methods has results.
    """
    found = {name: accuracies(best, measure=measure, **keys, method=name) for name in methods}
    present = {name: values for name, values in found.items() if len(values)}
    if not present:
        return "", pd.Series(dtype=float)
    name = max(present, key=lambda one: float(present[one].mean()))
    return name, present[name]


def label(results: pd.DataFrame, method: str) -> str:
    """A method's name, with what was chosen on test rows."""
    most = results.loc[results["method"] == method, "n_settings"].max()
    return f"{method} (best of {most} on the test rows)" if most > 1 else method
