"""The library's estimators: the default, and every algorithm by its name."""

from collections.abc import Sequence
from typing import Any

from skmixdp import (
    AdditiveDPClassifier,
    AdditiveDPRegressor,
    MixedDPLogisticRegression,
    MixedDPRidge,
    fit_many,
)
from skmixdp.algorithms import PAZO, DPZero

from ..problems import PUBLIC, Problem
from .contract import Score

#: Range of targets in units of their standard deviation, which nobody knows without public rows.
_RANGE = 4.0

#: Algorithms that use losses alone, by the names of the configuration.
ON_LOSSES = {"dpzero": DPZero(), "pazo-m": PAZO("m"), "pazo-p": PAZO("p"), "pazo-s": PAZO("s")}


def fit(
    problem: Problem, epsilons: Sequence[float], *, algorithm: str = "auto", **parameters: Any
) -> list[Score]:
    """One head for each budget, in shared passes over the rows.

    ``parameters`` are the estimator's; where there are none it is given nothing but its budget, a
    seed, and the start where that is not its default.
    """
    parameters |= {"algorithm": ON_LOSSES.get(algorithm, algorithm), "random_state": problem.seed}
    heads = [MixedDPLogisticRegression(epsilon=e, **start(problem), **parameters) for e in epsilons]
    fit_together(heads, problem)
    return [
        Score(epsilon, problem.measures(head), note=describe(head))
        for epsilon, head in zip(epsilons, heads, strict=True)
    ]


def fit_additive(problem: Problem, epsilons: Sequence[float]) -> list[Score]:
    """An additive model for each budget; the columns of categories are declared, as an encoder does.

    Without public rows the centre and the scale of targets are declared, as for the linear default.
    """
    categories = [column for columns in problem.texts for column in columns]
    known: dict[str, Any] = {"linear": categories or "auto", "random_state": problem.seed}
    if problem.bounds is None:
        kind, known["classes"] = AdditiveDPClassifier, problem.classes
    else:
        kind, known = AdditiveDPRegressor, known | declared_targets(problem)
    models = [kind(epsilon=epsilon, **known) for epsilon in epsilons]
    fit_together(models, problem)
    return [
        Score(epsilon, problem.measures(model), note=describe(model))
        for epsilon, model in zip(epsilons, models, strict=True)
    ]


def declared_targets(problem: Problem) -> dict[str, float]:
    """The middle of the declared bounds and a quarter of their range; nothing where public rows tell them."""
    if len(problem.X_pub):
        return {}
    low, high = problem.bounds or (0.0, 0.0)
    return {"target_center": (low + high) / 2, "target_scale": (high - low) / _RANGE}


def start(problem: Problem) -> dict[str, Any]:
    """The classifier's ``init``, where it is not the default; without public rows the classes."""
    if not len(problem.X_pub):
        return {"classes": problem.classes}
    return {} if isinstance(problem.init, str) and problem.init == PUBLIC else {"init": problem.init}


def fit_together(heads: Sequence[Any], problem: Problem) -> None:
    """Fit several heads to the private rows, and to the public ones if there are any."""
    public = {"X_pub": problem.X_pub, "y_pub": problem.y_pub} if len(problem.X_pub) else {}
    fit_many(heads, problem.X, problem.y, **public)


def describe(head: MixedDPLogisticRegression | MixedDPRidge) -> str:
    """Steps and noise of a fitted head."""
    sigma = head.privacy_.noise_multiplier
    return f"{head.n_iter_} steps" + ("" if sigma is None else f", noise multiplier {sigma:.3g}")
