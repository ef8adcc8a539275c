"""Objective perturbation: the exact minimiser of a logistic loss with a random linear term. Two classes.

Chaudhuri, Monteleoni and Sarwate 2011; Kifer, Smith and Thakurta 2012; with the tight analysis for
generalised linear models of Redberg, Koskela and Wang 2023, "Improving the Privacy and Practicality of
Objective Perturbation for Differentially Private Linear Learners" (Theorem 3.1).
"""

import math
from collections.abc import Callable, Sequence

import numpy as np
from scipy.optimize import brentq, minimize
from scipy.special import expit, log_ndtr, ndtr

from ..problems import DELTA, Array, Problem
from .contract import Score, UnavailableError
from .releases import bounded, codes, noise_of, unit_rows

#: Bounds of the first and the second derivative of the logistic loss, for rows of unit length.
_SLOPE, _CURVATURE = 1.0, 0.25

#: The longest gradient at what counts as the minimiser, on the scale of a sum over rows.
_TOLERANCE = 1e-3

#: Rows with up to this number of features have Newton's steps, of which there are only so many.
_NARROW, _MOST_STEPS = 200, 100


def fit(
    problem: Problem, epsilons: Sequence[float], *, shares: Sequence[float], intercept: float
) -> list[Score]:
    """A head for each budget and each share of epsilon that goes to the penalty.

    The share q sets the penalty: ``log(1 + curvature / l2) = q * epsilon``. The noise takes the rest. A small
    share means a strong penalty. Public rows add their own losses without noise.

    Sensitivity: the gradient of a unit row has length 1 at most, along the row. The guarantee is that of the
    exact minimiser; the solver stops where the gradient of the sum is shorter than 1e-3.

    Raises
    ------
    UnavailableError
        If there are not two classes.
    """
    if len(problem.classes) != 2:
        raise UnavailableError("it knows two classes only.")
    X, X_pub, X_test = unit_rows(problem, intercept)
    signs = 2.0 * codes(problem, np.concatenate([problem.y, problem.y_pub])) - 1
    rows = bounded(np.vstack([X, X_pub]).astype(np.float64))
    found = []
    for epsilon in epsilons:
        draws = noise_of(problem, epsilon).normal((X.shape[1],))
        for share in shares:
            penalty = _CURVATURE / math.expm1(share * epsilon)
            sigma = noise_scale(epsilon, DELTA, penalty)
            w = minimiser(rows, signs, penalty, sigma * draws)
            logits = np.outer(X_test @ w, [0.0, 1.0])
            note = f"penalty {penalty:.3g}, noise {sigma:.3g}"
            found.append(Score(epsilon, problem.measures_of_logits(logits), f"share {share:g}", note))
    return found


def minimiser(X: Array, signs: Array, penalty: float, linear: Array) -> Array:
    """Of the sum of logistic losses, ``penalty / 2 |w|^2`` and ``linear . w``.

    Raises
    ------
    RuntimeError
        If the solver stops too early.
    """

    def objective(w: Array) -> tuple[float, Array]:
        margins = signs * (X @ w)
        value = np.logaddexp(0, -margins).sum() + penalty / 2 * (w @ w) + linear @ w
        return float(value), X.T @ (-signs * expit(-margins)) + penalty * w + linear

    w = np.zeros(X.shape[1])
    if X.shape[1] <= _NARROW:
        w = _newton(objective, lambda w: _hessian(X, X @ w, penalty), w)
    options = {"maxiter": 20_000, "maxfun": 40_000, "gtol": _TOLERANCE / 100, "ftol": 0.0, "maxcor": 30}
    found = minimize(objective, w, jac=True, method="L-BFGS-B", options=options)
    left = float(np.linalg.norm(found.jac))
    if left > _TOLERANCE:
        raise RuntimeError(f"the solver left a gradient of length {left:g}.")
    return np.asarray(found.x)


def _newton(
    objective: Callable[[Array], tuple[float, Array]], hessian: Callable[[Array], Array], w: Array
) -> Array:
    """Newton's steps, halved until the value falls, up to the tolerance."""
    value, gradient = objective(w)
    for _ in range(_MOST_STEPS):
        if np.linalg.norm(gradient) <= _TOLERANCE / 100:
            break
        step, factor = np.linalg.solve(hessian(w), gradient), 1.0
        following = objective(w - step)
        while following[0] > value and factor > 1e-6:
            factor /= 2
            following = objective(w - factor * step)
        w, (value, gradient) = w - factor * step, following
    return w


def _hessian(X: Array, margins: Array, penalty: float) -> Array:
    weights = expit(margins) * expit(-margins)
    return np.asarray((X * weights[:, None]).T @ X + penalty * np.eye(X.shape[1]))


def delta_of(epsilon: float, penalty: float, sigma: float) -> float:
    """Delta of the minimiser under noise of deviation ``sigma``, for a row added or removed.

    The privacy loss is at most ``log(1 + curvature / penalty) + s**2 / 2 + s |u|``, where ``s`` is
    ``slope / sigma`` and u is standard normal. The first term bounds the determinant of the Jacobians, and
    the rest the noise along the row. Delta is the mean of ``max(0, 1 - exp(epsilon - loss))``.
    """
    s = _SLOPE / sigma
    rest = epsilon - math.log1p(_CURVATURE / penalty) - s**2 / 2
    start = max(rest / s, 0.0)  # the smallest |u| whose loss is above epsilon
    return float(2 * (ndtr(-start) - math.exp(rest + s**2 / 2 + log_ndtr(-start - s))))


def noise_scale(epsilon: float, delta: float, penalty: float) -> float:
    """The smallest noise for which the minimiser is (epsilon, delta)-private, from above.

    Raises
    ------
    ValueError
        If the penalty alone is too weak for this epsilon.
    """
    if math.log1p(_CURVATURE / penalty) >= epsilon:
        raise ValueError(f"penalty={penalty:g} is too weak for epsilon={epsilon:g}; raise it.")

    def excess(log_sigma: float) -> float:
        return delta_of(epsilon, penalty, math.exp(log_sigma)) - delta

    return math.exp(brentq(excess, -10.0, 20.0, xtol=1e-9)) * (1 + 1e-6)
