"""What an algorithm is to the estimators."""

import math
from abc import ABC, abstractmethod
from collections.abc import Callable
from numbers import Integral, Real
from typing import NoReturn

import numpy as np
from sklearn.base import BaseEstimator

from .._engine import Options, Recipe
from .._linear import Loss
from ..components import (
    SGD,
    BalancedSteps,
    ConstantWeight,
    ConvexWeight,
    CosineWeight,
    CouplingWeight,
    SampleWeight,
)
from ..components.protocols import PublicInfo, Query, Steps, Weighting

#: Names that ``public_weight`` accepts in place of an object.
WEIGHTINGS: dict[str, Callable[[], Weighting]] = {
    "sample": SampleWeight,
    "coupling": CouplingWeight,
    "convex": ConvexWeight,
    "cosine": CosineWeight,
}


class Algorithm(BaseEstimator, ABC):  # type: ignore[misc]
    """A holder of parameters that turns public facts into a recipe.

    Parameters behave as those of a scikit-learn estimator: nothing is checked before
    :meth:`recipe`, ``set_params`` and ``clone`` work, and in a grid they are addressed as
    ``algorithm__<name>``.
    """

    @abstractmethod
    def recipe(self, info: PublicInfo, options: Options) -> Recipe:
        """The pieces of this algorithm for one fit.

        Raises
        ------
        ValueError
            If a parameter is outside its range or cannot work with this loss or these rows.
        """


def descent(
    info: PublicInfo,
    options: Options,
    query: Query,
    *,
    momentum: float,
    anchored: bool,
    weighting: Weighting | None = None,
    steps: Steps | None = None,
    noise_factor: float = 1.0,
) -> Recipe:
    """Gradient descent with balanced steps: what most algorithms vary in one piece or two.

    Parameters
    ----------
    scene, options : PublicInfo, Options
        Public facts and the user's choices.
    query : Query
        What is asked of private rows.
    momentum : float
        Momentum of the update.
    anchored : bool
        Whether the regulariser is centred at the start rather than at zero.
    weighting : Weighting or None
        Rule for the public weight; None is that of the samples.
    steps : Steps or None
        How many steps, and how large; None balances them.
    noise_factor : float
        For balanced steps: see :class:`~skmixdp.components.BalancedSteps`.
    """
    l2 = 0.0 if options.l2 == "auto" else options.l2
    start = info.view.W
    return Recipe(
        sampling=options.sampling,
        query=query,
        weighting=weighting or SampleWeight(),
        steps=steps
        or BalancedSteps(
            options.learning_rate,
            momentum,
            l2,
            noise_factor=noise_factor,
            max_step_scale=boldness_with_clipped(info.loss),
        ),
        update=SGD(momentum),
        l2=l2,
        anchor=start if anchored else np.zeros_like(start),
    )


def boldness_with_clipped(loss: Loss) -> float:
    """By how much the curvature that steps along clipped gradients meet is below its bound.

    The Hessian of the cross-entropies is mostly far below the bound, and clipped residuals keep swings
    small where it is not. Squared loss has the same Hessian everywhere.
    """
    return 1.0 if loss.quadratic else 10.0


def refuse_loss(owner: object, loss: Loss, fix: str) -> NoReturn:
    """Refuse to train a loss for which an algorithm is not defined, or not with its parameters.

    Parameters
    ----------
    owner : object
        The algorithm.
    loss : Loss
        The loss.
    fix : str
        Why, and what to do instead; the end of a sentence.
    """
    raise ValueError(f"{type(owner).__name__} cannot train {loss.name}: {fix}.")


def refuse_exact_sums(owner: object, options: Options) -> None:
    """Refuse discrete noise for an algorithm that subtracts something before the noise."""
    if options.exact_sums:
        raise ValueError(
            f"noise='discrete' needs sums on a grid, which {type(owner).__name__} leaves before the noise; "
            "pass noise='float' or another algorithm."
        )


def check_real(
    owner: object, name: str, low: float, high: float = math.inf, *, closed: bool = False
) -> float:
    """A real parameter of ``owner`` within ``(low, high)``; ``closed`` admits ``low``."""
    value = getattr(owner, name)
    fits = isinstance(value, Real) and not isinstance(value, bool)
    if not fits or not (low < value < high or (closed and value == low)):
        where = f"{'at least' if closed else 'above'} {low:g}" + (
            "" if high == math.inf else f" and below {high:g}"
        )
        raise ValueError(f"{name}={value!r} of {type(owner).__name__} must be a number {where}.")
    return float(value)


def check_whole(owner: object, name: str, low: int) -> int:
    """A whole-number parameter of ``owner`` of at least ``low``."""
    value = getattr(owner, name)
    if not isinstance(value, Integral) or isinstance(value, bool) or value < low:
        raise ValueError(
            f"{name}={value!r} of {type(owner).__name__} must be a whole number of at least {low}."
        )
    return int(value)


def check_weighting(owner: object, name: str = "public_weight") -> Weighting:
    """A rule for the public weight: a name, a number in [0, 1] or an object with ``bind``."""
    value = getattr(owner, name)
    if isinstance(value, str) and value in WEIGHTINGS:
        return WEIGHTINGS[value]()
    if isinstance(value, Real) and not isinstance(value, bool) and 0 <= float(value) <= 1:
        return ConstantWeight(float(value))
    if callable(getattr(value, "bind", None)) and not isinstance(value, type):
        rule: Weighting = value
        return rule
    raise ValueError(
        f"{name}={value!r} of {type(owner).__name__} must be a number in [0, 1], one of "
        f"{', '.join(map(repr, WEIGHTINGS))}, or a rule from skmixdp.components."
    )


def check_choice(owner: object, name: str, choices: tuple[str, ...]) -> str:
    """A parameter of ``owner`` that is one of ``choices``."""
    value = getattr(owner, name)
    if value not in choices:
        raise ValueError(
            f"{name}={value!r} of {type(owner).__name__} must be one of {', '.join(map(repr, choices))}."
        )
    return str(value)


def check_flag(owner: object, name: str) -> bool:
    """A parameter of ``owner`` that is True or False."""
    value = getattr(owner, name)
    if not isinstance(value, (bool, np.bool_)):
        raise ValueError(f"{name}={value!r} of {type(owner).__name__} must be True or False.")
    return bool(value)
