"""What an algorithm is to the estimators."""

import copy
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from numbers import Real
from typing import Any, ClassVar, NoReturn

import numpy as np
from sklearn.base import BaseEstimator

from .._engine import Options, Recipe
from .._params import FRACTION, Allowed, Kind, check_params, number
from ..components import (
    SGD,
    BalancedSteps,
    ConstantWeight,
    ConvexWeight,
    CosineWeight,
    CouplingWeight,
    SampleWeight,
)
from ..components.protocols import Loss, PublicInfo, Query, Steps, Weighting

#: Names that ``public_weight`` accepts in place of an object.
_WEIGHTINGS: dict[str, Callable[[], Weighting]] = {
    "sample": SampleWeight,
    "coupling": CouplingWeight,
    "convex": ConvexWeight,
    "cosine": CosineWeight,
}

#: What ``public_weight`` may be.
WEIGHTS: tuple[Allowed, ...] = (
    FRACTION,
    *_WEIGHTINGS,
    Kind(
        "a rule from skmixdp.components",
        lambda value: callable(getattr(value, "bind", None)) and not isinstance(value, type),
    ),
)

MOMENTUM = number(0, 1, closed="left")
OPEN_FRACTION = number(0, 1)


class Algorithm(BaseEstimator, ABC):  # type: ignore[misc]
    """A holder of parameters that turns public facts into a recipe.

    Parameters behave as those of a scikit-learn estimator: nothing is checked before
    :meth:`recipe`, ``set_params`` and ``clone`` work, and in a grid they are addressed as
    ``algorithm__<name>``.
    """

    #: What each parameter may be.
    _allowed: ClassVar[Mapping[str, tuple[Allowed, ...]]] = {}

    def recipe(self, info: PublicInfo, options: Options) -> Recipe:
        """The pieces of this algorithm for one fit.

        Parameters
        ----------
        info : PublicInfo
            Public facts of the fit.
        options : Options
            What the estimator's user chose for any algorithm.

        Raises
        ------
        ValueError
            If a parameter is outside its range or cannot work with this loss or these rows.
        """
        plain = copy.copy(self)
        for name, value in check_params(self, self._allowed, named=True).items():
            setattr(plain, name, value)
        return plain.pieces(info, options)

    @abstractmethod
    def pieces(self, info: PublicInfo, options: Options) -> Recipe:
        """The pieces of this algorithm, from parameters that have been checked; what a subclass says."""


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
    info, options : PublicInfo, Options
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
            max_step_scale=step_scale_with_clipped(info.loss),
        ),
        update=SGD(momentum),
        l2=l2,
        anchor=start if anchored else np.zeros_like(start),
    )


def step_scale_with_clipped(loss: Loss) -> float:
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


def weighting_of(value: Any) -> Weighting:
    """The rule for the public weight that a name, a number or an object stands for."""
    if isinstance(value, str):
        return _WEIGHTINGS[value]()
    if isinstance(value, Real):
        return ConstantWeight(float(value))
    rule: Weighting = value
    return rule
