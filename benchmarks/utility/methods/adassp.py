"""AdaSSP: ridge regression from noisy sums, whose ridge adapts to the noisy smallest eigenvalue.

Wang 2018, "Revisiting Differentially Private Linear Regression: Optimal and Adaptive Prediction & Estimation
in Unbounded Domain", Algorithm 2, with exact Gaussian accounting in place of three parts of (epsilon, delta).
"""

from collections.abc import Sequence
from itertools import product

import numpy as np

from ..problems import Array, Problem
from .contract import Score
from .releases import bounded, edge, multipliers, noise_of, noisy_class_sums, noisy_second_moment, shortened

#: Probability with which the ridge may be too small (the paper's rho).
_FAILURE = 0.05


def fit(
    problem: Problem,
    epsilons: Sequence[float],
    *,
    quantiles: Sequence[float],
    ridges: Sequence[float],
    intercepts: Sequence[float],
) -> list[Score]:
    """A head for each budget, bound of the rows' lengths, value of the intercept's column and ridge.

    ``ridges`` are factors of the paper's ridge. The bound is a quantile of the private rows' lengths, for
    which nothing is charged: that favours it. Rows beyond are shortened. Targets are shifted and scaled to
    [-1, 1] by their declared bounds. Public rows add to the sums without noise.

    Sensitivity: rows divided by their bound, with the intercept's column, are scaled to length 1 at most. The
    smallest eigenvalue and the second moment then change by 1 at most, and so does the sum of rows times
    targets. Each of the three releases has a third of the budget.
    """
    low, high = problem.bounds or (0.0, 0.0)
    middle, half = (high + low) / 2, (high - low) / 2
    lengths = np.linalg.norm(problem.X, axis=1)
    found = []
    for quantile, intercept in product(quantiles, intercepts):
        bound = float(np.quantile(lengths, quantile)) or 1.0  # rows of zeros have no length
        X, X_pub = (clipped(part, bound, intercept) for part in (problem.X, problem.X_pub))
        X_test = np.hstack([problem.X_test / bound, np.full((len(problem.X_test), 1), intercept)])
        X_test /= np.hypot(1, intercept)
        y, y_pub = (np.clip((part - middle) / half, -1, 1) for part in (problem.y, problem.y_pub))
        smallest = float(np.linalg.eigvalsh((X.T @ X).astype(np.float64))[0])
        for epsilon in epsilons:
            noise, sigmas = noise_of(problem, epsilon), multipliers(epsilon, [1 / 3] * 3)
            moment = noisy_second_moment(X, sigmas[0], noise) + X_pub.T @ X_pub
            products = noisy_class_sums(X * y[:, None], np.zeros(len(y), dtype=int), 1, sigmas[1], noise)[0]
            products += y_pub @ X_pub
            lowest = float(noise.add_noise(np.array(smallest), sigmas[2], None))
            ridge = wanted_ridge(lowest, X.shape[1], sigmas[0], sigmas[2])
            for factor in ridges:
                values, vectors = np.linalg.eigh(moment)
                damped = np.maximum(values, 0) + max(factor * ridge, 1e-3 * edge(sigmas[0], X.shape[1]))
                coef = vectors @ ((vectors.T @ products) / damped)
                measured = problem.measures_of(middle + half * (X_test @ coef))
                setting = f"bound at quantile {quantile:g}, ridge x {factor:g}, intercept {intercept:g}"
                found.append(Score(epsilon, measured, setting, f"noise multiplier {sigmas[0]:.3g}"))
    return found


def fit_boosted(
    problem: Problem,
    epsilons: Sequence[float],
    *,
    quantiles: Sequence[float],
    ridges: Sequence[float],
    intercepts: Sequence[float],
    rounds: Sequence[int],
    longest: Sequence[float],
) -> list[Score]:
    """AdaSSP again and again on what is left of the targets, whose lengths are cut each time.

    Tang, Aydore, Kearns, Rho, Roth, Wang, Wang and Wu 2023, "Improved Differentially Private Regression via
    Gradient Boosting". The second moment and its smallest eigenvalue are released once, with a third of the
    budget each. The sums of rows times residuals share the last third among the rounds.

    ``longest`` are lengths at which residuals are cut, as shares of half the targets' range. The sensitivity
    of a sum is that length. The rest is as in :func:`fit`.
    """
    low, high = problem.bounds or (0.0, 0.0)
    middle, half = (high + low) / 2, (high - low) / 2
    lengths = np.linalg.norm(problem.X, axis=1)
    found = []
    for quantile, intercept in product(quantiles, intercepts):
        bound = float(np.quantile(lengths, quantile)) or 1.0  # rows of zeros have no length
        X, X_pub, X_test = (
            clipped(part, bound, intercept) for part in (problem.X, problem.X_pub, problem.X_test)
        )
        y, y_pub = (np.clip((part - middle) / half, -1, 1) for part in (problem.y, problem.y_pub))
        smallest = float(np.linalg.eigvalsh((X.T @ X).astype(np.float64))[0])
        for epsilon in epsilons:
            sigmas = multipliers(epsilon, [1 / 3] * 3)
            noise = noise_of(problem, epsilon)
            moment = noisy_second_moment(X, sigmas[0], noise) + X_pub.T @ X_pub
            lowest = float(noise.add_noise(np.array(smallest), sigmas[2], None))
            ridge = wanted_ridge(lowest, X.shape[1], sigmas[0], sigmas[2])
            values, vectors = np.linalg.eigh(moment)
            # A column for each pair of a ridge and a length, all in the same passes over the rows.
            pairs = list(product(ridges, longest))
            least = 1e-3 * edge(sigmas[0], X.shape[1])
            damped = np.maximum(values, 0)[:, None] + [max(factor * ridge, least) for factor, _ in pairs]
            most = np.array([length for _, length in pairs], dtype=np.float32)
            for n_rounds in rounds:
                own = noise_of(problem, epsilon, stream=1)
                coefs = np.zeros((X.shape[1], len(pairs)))
                for _ in range(n_rounds):
                    residuals = cut_residuals(X, y, coefs, most) / most
                    sums = (bounded(X).T @ residuals).astype(np.float64)
                    noisy = own.add_noise(sums, sigmas[1] * np.sqrt(n_rounds), None)
                    noisy = most * noisy + X_pub.T @ cut_residuals(X_pub, y_pub, coefs, most)
                    coefs = coefs + vectors @ ((vectors.T @ noisy) / damped)
                predicted = middle + half * (X_test @ coefs)
                for (factor, length), values_of_test in zip(pairs, predicted.T, strict=True):
                    setting = (
                        f"bound at quantile {quantile:g}, ridge x {factor:g}, intercept {intercept:g}, "
                        f"{n_rounds} rounds, residuals up to {length:g}"
                    )
                    note = f"noise multiplier {sigmas[0]:.3g}"
                    found.append(Score(epsilon, problem.measures_of(values_of_test), setting, note))
    return found


def cut_residuals(X: Array, y: Array, coefs: Array, most: Array) -> Array:
    """What several heads leave of the targets, cut at a length for each; shape (n, n_heads), float32."""
    residuals = y.astype(np.float32)[:, None] - X @ coefs.astype(np.float32)
    return np.asarray(np.clip(residuals, -most, most))


def clipped(X: Array, bound: float, intercept: float) -> Array:
    """Rows divided by their bound, shortened to it, with a last column; length 1 at most."""
    return np.hstack([shortened(X, bound), np.full((len(X), 1), intercept)]) / np.hypot(1, intercept)


def wanted_ridge(lowest: float, n_features: int, moment_noise: float, eigenvalue_noise: float) -> float:
    """The paper's ridge, from the noisy smallest eigenvalue of the second moment.

    The eigenvalue is lowered to a bound that holds with probability ``1 - _FAILURE``. The ridge makes up for
    what it falls short of the noise in the second moment.
    """
    surely = max(lowest - eigenvalue_noise * np.sqrt(2 * np.log(1 / _FAILURE)), 0.0)
    needed = moment_noise * np.sqrt(n_features * np.log(2 * n_features**2 / _FAILURE))
    return float(max(needed - surely, 0.0))
