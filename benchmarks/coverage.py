"""Coverage and width of private confidence intervals on made-up data: ``python -m benchmarks.coverage``.

Each line changes one factor of n 20,000, 8 columns and epsilon 1, delta 1e-5. It prints the coverage of the
95% intervals of the slopes, pooled; the mean of their z-scores, which is 0 without bias; the median of their
standard errors as a multiple of those of a regression without privacy and without weights; and the part of
slopes that were not identified.
"""

import argparse
import sys
import time
import warnings
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
from scipy.special import expit
from sklearn.linear_model import LinearRegression, LogisticRegression

from skmixdp.inference import private_inference

#: The factors of a cell, and their usual values.
USUAL: dict[str, Any] = {
    "family": "logistic",
    "n": 20_000,
    "d": 8,
    "epsilon": 1.0,
    "correlation": 0.5,
    "column": "normal",
    "unit": 1.0,
    "offset": 0.0,
    "errors": "normal",
    "cov": "model",
    "rate": None,
    "rows_of_person": 1,
    "link": "right",
    "classes": 2,
}

#: Draws of a column of mean 0 and deviation 1.
COLUMNS: dict[str, Callable[[Any, int], Any]] = {
    "binary": lambda rng, n: ((rng.random(n) < 0.1) - 0.1) / 0.3,
    "lognormal": lambda rng, n: (np.exp(rng.normal(size=n)) - np.exp(0.5)) / np.sqrt(np.exp(2) - np.exp(1)),
    "t3": lambda rng, n: rng.standard_t(3, size=n) / np.sqrt(3),
}

#: Draws of errors of mean 0, from the second column.
ERRORS: dict[str, Callable[[Any, Any], Any]] = {
    "normal": lambda rng, x: rng.normal(size=len(x)),
    "t3": lambda rng, x: rng.standard_t(3, size=len(x)) / np.sqrt(3),
    "exponential": lambda rng, x: rng.exponential(size=len(x)) - 1,
    "heteroscedastic": lambda rng, x: rng.normal(size=len(x)) * np.exp(0.5 * x - 0.25),
    "skewed, heteroscedastic": lambda rng, x: (rng.exponential(size=len(x)) - 1) * np.exp(0.5 * x - 0.25),
}


def cells() -> Iterator[dict[str, Any]]:
    """The cells of both families, one factor at a time."""
    both: list[dict[str, Any]] = [
        {},
        *({"correlation": value} for value in (0.0, 0.8)),
        *({"column": name} for name in COLUMNS),
        *({"unit": value} for value in (1e-6, 1e6)),
        {"offset": 100.0},
        *({"n": value} for value in (5_000, 200_000)),
        *({"d": value} for value in (2, 15, 30)),
        *({"epsilon": value} for value in (0.5, 3.0, 8.0)),
        *({"rows_of_person": value, "epsilon": 3.0} for value in (2, 5, 20)),
    ]
    for factors in both:
        yield {**factors, "family": "logistic"}
    yield from ({"family": "logistic", "rate": rate} for rate in (0.05, 0.2))
    yield {"family": "logistic", "link": "probit", "cov": "robust"}
    yield {"family": "logistic", "cov": "robust"}
    yield {"family": "logistic", "classes": 3, "d": 4, "epsilon": 3.0}
    for factors in both:
        yield {**factors, "family": "gaussian"}
    for name in ERRORS:
        robust = "heteroscedastic" in name
        yield {"family": "gaussian", "errors": name, "cov": "robust" if robust else "model"}
    yield {"family": "gaussian", "link": "quadratic", "cov": "robust"}


def data_set(rng: Any, cell: dict[str, Any]) -> tuple[Any, Any, Any, Any]:
    """Rows, labels or targets, ids of persons or None, and the true slopes, (k, d) for several classes.

    For a wrong link the slopes are those of a regression of a million rows with the weights of the method.
    """
    n, d, m = cell["n"], cell["d"], cell["rows_of_person"]
    k = cell["classes"] - 1 if cell["family"] == "logistic" else 1
    slopes = rng.normal(size=(k, d)) / np.sqrt(d)  # first, so that they do not depend on n
    root = np.linalg.cholesky(cell["correlation"] ** np.abs(np.subtract.outer(range(d), range(d))))
    Z = rng.normal(size=(n, d)) @ root.T
    groups = None
    if m > 1:
        groups = np.arange(n) // m
        # Rows of a person share half of their variance.
        shared = rng.normal(size=(n // m + 1, d))[groups] @ root.T
        Z = (Z + shared) / np.sqrt(2)
    if cell["column"] in COLUMNS:
        Z[:, 0] = COLUMNS[cell["column"]](rng, n)
    eta = Z @ slopes.T
    if cell["link"] == "quadratic":
        eta = eta + 0.3 * (Z[:, :1] ** 2 - 1)
    if cell["family"] == "gaussian":
        y = 0.3 + eta[:, 0] + 0.7 * ERRORS[cell["errors"]](rng, Z[:, 1])
        if groups is not None:
            y = y + 0.7 * rng.normal(size=n // m + 1)[groups]
    elif cell["classes"] > 2:
        scores = np.column_stack([np.zeros(n), eta]) + rng.gumbel(size=(n, k + 1))
        y = scores.argmax(axis=1)
    else:
        eta = eta[:, 0]
        rate = cell["rate"]
        low, high = -30.0, 30.0
        while rate is not None and high - low > 1e-6:
            middle = (low + high) / 2
            low, high = (middle, high) if expit(eta + middle).mean() < rate else (low, middle)
        start = -0.5 if rate is None else (low + high) / 2
        noise = rng.normal(size=n) if cell["link"] == "probit" else rng.logistic(size=n)
        if groups is not None:
            # Rows of a person share their noise, which leaves each row's law as it is.
            noise = rng.logistic(size=n // m + 1)[groups]
        y = (start + eta + noise > 0).astype(int)
    X = Z * cell["unit"] + cell["offset"] * cell["unit"]
    return X, y, groups, slopes / cell["unit"]


def measured(cell: dict[str, Any], seeds: int) -> dict[str, float]:
    """Coverage, mean z-score, ratio of standard errors, and the part of slopes not identified."""
    cell = {**USUAL, **cell}
    inside, scores, ratios, lost = [], [], [], []
    wrong = cell["link"] != "right"
    classes = range(cell["classes"]) if cell["family"] == "logistic" else None
    for seed in range(seeds):
        rng = np.random.default_rng([seed, 53])
        X, y, groups, slopes = data_set(rng, cell)
        if wrong:
            slopes = limit(seed, cell)
        result = private_inference(
            X,
            y,
            family=cell["family"],
            epsilon=cell["epsilon"],
            classes=None if classes is None else list(classes),
            groups=groups,
            cov=cell["cov"],
        )
        shape = (len(slopes), -1)
        kept = result.identified.to_numpy().reshape(shape)[:, 1:].ravel()
        errors = result.bse.to_numpy().reshape(shape)[:, 1:].ravel()
        z = ((result.params.to_numpy().reshape(shape)[:, 1:] - slopes).ravel() / errors)[kept]
        inside.extend(np.abs(z) < 1.959964)
        scores.extend(z)
        ratios.extend((errors / usual_errors(X, y, groups, cell))[kept])
        lost.append(1 - kept.mean())
    return {
        "coverage": float(np.mean(inside)),
        "mean z": float(np.mean(scores)),
        "width": float(np.median(ratios)),
        "not identified": float(np.mean(lost)),
    }


def usual_errors(X: Any, y: Any, groups: Any, cell: dict[str, Any]) -> Any:
    """Standard errors (k d,) of the slopes without privacy and without weights, of the same kind."""
    k = cell["classes"] - 1 if cell["family"] == "logistic" else 1
    A = np.c_[np.ones(len(X)), (X - X.mean(axis=0)) / X.std(axis=0)]
    if cell["family"] == "gaussian":
        residuals = y - A @ np.linalg.lstsq(A, y, rcond=None)[0]
        bread, scores = np.linalg.inv(A.T @ A), residuals[:, np.newaxis] * A
        bread_of_model = bread * residuals.var()
    else:
        p = LogisticRegression(C=np.inf).fit(A[:, 1:], y).predict_proba(A[:, 1:])[:, 1:]
        curvature = np.einsum("ia,ab->iab", p, np.eye(k)) - p[:, :, np.newaxis] * p[:, np.newaxis, :]
        hessian = np.einsum("iab,ij,il->ajbl", curvature, A, A).reshape(k * A.shape[1], -1)
        residuals = (y[:, np.newaxis] == 1 + np.arange(k)) - p
        bread = bread_of_model = np.linalg.inv(hessian)
        scores = (residuals[:, :, np.newaxis] * A[:, np.newaxis, :]).reshape(len(A), -1)
    if groups is not None:
        m = cell["rows_of_person"]
        whole = len(scores) // m * m
        scores = scores[:whole].reshape(-1, m, scores.shape[1]).sum(axis=1)
    robust = groups is not None or cell["cov"] == "robust"
    covariance = bread @ (scores.T @ scores) @ bread if robust else bread_of_model
    errors = np.sqrt(np.diag(covariance)).reshape(k, -1)[:, 1:]
    return (errors / X.std(axis=0)).ravel()


def limit(seed: int, cell: dict[str, Any]) -> Any:
    """Slopes (1, d) that a wrong model estimates with the weights of the method: those of many rows."""
    X, y, _, _ = data_set(np.random.default_rng([seed, 53]), {**cell, "n": 400_000})
    center, spread = X.mean(axis=0), X.std(axis=0)
    weights = np.minimum(1, (X.shape[1] + 1) / (1 + (((X - center) / spread) ** 2).sum(axis=1)))
    model = LinearRegression() if cell["family"] == "gaussian" else LogisticRegression(C=np.inf)
    return np.atleast_2d(model.fit((X - center) / spread, y, sample_weight=weights).coef_) / spread


def main() -> int:
    """Print a line for each cell."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.coverage", description=__doc__)
    parser.add_argument("--seeds", type=int, default=200)
    parser.add_argument("--only", default="", help="cells whose description contains X", metavar="X")
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    sys.stdout.write("| cell | coverage | mean z | width | not identified | s |\n")
    sys.stdout.write("| --- " + "| ---: " * 5 + "|\n")
    for cell in cells():
        name = ", ".join(f"{key} {value}" for key, value in cell.items() if key != "family")
        name = f"{cell['family']}: {name or 'usual'}"
        if options.only not in name:
            continue
        start = time.perf_counter()
        try:
            found = measured(cell, options.seeds)
        except ValueError as error:
            sys.stdout.write(f"| {name} | refused: {error} |\n")
            continue
        numbers = f"{found['coverage']:.3f} | {found['mean z']:+.2f} | {found['width']:.2f}"
        seconds = time.perf_counter() - start
        sys.stdout.write(f"| {name} | {numbers} | {found['not identified']:.3f} | {seconds:.0f} |\n")
        sys.stdout.flush()
    return 0


if __name__ == "__main__":
    sys.exit(main())
