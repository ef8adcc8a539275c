"""Peers on tables: columns are scaled first, then any of the peers is fitted."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from skmixdp.privacy import epsilon_of, mu_of_budget

from ..problems import DELTA, Array, Problem
from . import (
    adassp,
    feature_covariance,
    least_squares,
    objective_perturbation,
    prototypes,
    scales,
    scaling_rule,
)
from .contract import Score
from .releases import seed_of

_PEERS: Mapping[str, Callable[..., list[Score]]] = {
    "adassp": adassp.fit,
    "boosted_adassp": adassp.fit_boosted,
    "feature_covariance": feature_covariance.fit,
    "least_squares": least_squares.fit,
    "objective_perturbation": objective_perturbation.fit,
    "private_prototypes": prototypes.fit_mean,
    "scaling_rule": scaling_rule.fit,
}

#: Part of the squared budget mu**2 that a private scale takes.
SHARE = 0.06

#: Longest rows, in units of the square root of the number of columns, which is a typical row's length.
_LENGTHS = {"cut": 1.0, "long": 3.0}

#: Standard deviations of the public targets within which those of a regression are cut.
_TARGET_SPREADS = 3.0


def fit(
    problem: Problem,
    epsilons: Sequence[float],
    *,
    of: str,
    scale: str,
    rows: Mapping[str, float | None],
    **options: Any,
) -> list[Score]:
    """A peer's scores on scaled columns.

    Parameters
    ----------
    problem : Problem
        The split.
    epsilons : sequence of float
        Budgets.
    of : str
        Adapter of the peer, which takes the other options.
    scale : str
        "public" scales by the public rows, and "private" by a :class:`NoisyScaler` within the budget. "all
        rows" scales by the mean and the standard deviation of all private rows, for which nothing is charged.
        "none" leaves columns as they are, less the mean of the public rows where there are any.
    rows : mapping from str to float or None
        What becomes of scaled rows, each with the value of the peer's intercept column. "unit" scales them to
        unit length. "cut" shortens those longer than the square root of the number of columns, and "long"
        those longer than three times that. None is for peers that choose by themselves.

    Raises
    ------
    ValueError
        If ``scale`` is "public" and there are no public rows.
    """
    peer = _PEERS[of]
    if scale == "private":
        mus = {epsilon: mu_of_budget(epsilon, DELTA) for epsilon in epsilons}
        parts = []
        for epsilon, mu in mus.items():
            seed = seed_of(problem, epsilon, stream=2)
            center, spread = scales.private(problem.X, float(mu * np.sqrt(SHARE)), seed)
            left = epsilon_of(float(1 / (mu * np.sqrt(1 - SHARE))), 1, delta=DELTA)
            parts.append(({left: epsilon}, center, spread))
    elif scale == "all rows":
        deviation = problem.X.std(axis=0)
        parts = [({e: e for e in epsilons}, problem.X.mean(axis=0), np.where(deviation > 0, deviation, 1.0))]
    elif scale == "none":
        centre = problem.X_pub.mean(axis=0) if len(problem.X_pub) else np.zeros(problem.X.shape[1])
        parts = [({e: e for e in epsilons}, centre, np.ones_like(centre))]
    elif len(problem.X_pub):
        parts = [({e: e for e in epsilons}, *scales.of_rows(problem.X_pub))]
    else:
        raise ValueError(f"scale={scale!r} needs public rows; name 'private', 'all rows' or 'none'.")
    found = []
    for budgets, center, spread in parts:
        whole = rescaled(problem, center, spread, np.inf if scale == "none" else scales.CUT)
        for kind, intercept in rows.items():
            factor = _LENGTHS.get(kind)
            longest = None if factor is None else float(factor * np.sqrt(whole.X.shape[1]))
            prepared = replace(whole, longest=longest)
            more = {} if intercept is None else {"intercept": intercept}
            found += [
                replace(one, epsilon=budgets[one.epsilon], setting=f"{kind} rows, {one.setting}")
                for one in peer(prepared, list(budgets), **more, **options)
                if one.epsilon is not None
            ]
    return found


def rescaled(problem: Problem, center: Array, spread: Array, cut: float) -> Problem:
    """The problem with scaled columns, float32, and with bounds of the targets from public ones."""
    X, X_pub, X_test = (
        scales.scaled(part, center, spread, cut).astype(np.float32)
        for part in (problem.X, problem.X_pub.reshape(-1, problem.X.shape[1]), problem.X_test)
    )
    return replace(problem, X=X, X_pub=X_pub, X_test=X_test, bounds=_target_bounds(problem))


def _target_bounds(problem: Problem) -> tuple[float, float] | None:
    if problem.bounds is None or len(problem.y_pub) < 2:
        return problem.bounds
    middle, reach = problem.y_pub.mean(), _TARGET_SPREADS * problem.y_pub.std()
    return max(problem.bounds[0], float(middle - reach)), min(problem.bounds[1], float(middle + reach))
