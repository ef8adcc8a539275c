"""The library's estimators: the default, and every algorithm by its name."""

from collections.abc import Sequence
from typing import Any

import skmixdp
from skmixdp import MixedDPLogisticRegression, MixedDPRidge, fit_many

from ..problems import PUBLIC, ZEROS, Problem
from .contract import Score


def fit(
    problem: Problem,
    epsilons: Sequence[float],
    *,
    estimator: str = "MixedDPLogisticRegression",
    **parameters: Any,
) -> list[Score]:
    """One head for each budget, in shared passes over the rows.

    ``parameters`` are the estimator's; where there are none it is given nothing but its budget, a
    seed, and the start where that is not its default.
    """
    kind = getattr(skmixdp, estimator)
    heads = [kind(epsilon=e, random_state=problem.seed, **start(problem), **parameters) for e in epsilons]
    fit_together(heads, problem)
    return [
        Score(epsilon, problem.measures(head), note=describe(head))
        for epsilon, head in zip(epsilons, heads, strict=True)
    ]


def start(problem: Problem) -> dict[str, Any]:
    """The classifier's ``init``, where it is not the default; without public rows zero, and the classes."""
    if not len(problem.X_pub):
        return {"init": ZEROS, "classes": problem.classes}
    return {} if isinstance(problem.init, str) and problem.init == PUBLIC else {"init": problem.init}


def fit_together(heads: Sequence[Any], problem: Problem) -> None:
    """Fit several heads to the private rows, and to the public ones if there are any."""
    public = {"X_pub": problem.X_pub, "y_pub": problem.y_pub} if len(problem.X_pub) else {}
    fit_many(heads, problem.X, problem.y, **public)


def describe(head: MixedDPLogisticRegression | MixedDPRidge) -> str:
    """Steps and noise of a fitted head."""
    sigma = head.privacy_.noise_multiplier
    return f"{head.n_iter_} steps" + ("" if sigma is None else f", noise multiplier {sigma:.3g}")
