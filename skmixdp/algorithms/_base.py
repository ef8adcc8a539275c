"""The base class of algorithms, and helpers that several algorithms share."""

import copy
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from numbers import Real
from typing import Any, ClassVar, NoReturn

import numpy as np
from sklearn.base import BaseEstimator

from .._engine import Options, Recipe
from .._utils.validation import FRACTION, Allowed, Kind, check_params, number
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

#: Rules for the public weight, by name.
_WEIGHTINGS: dict[str, Callable[[], Weighting]] = {
    "sample": SampleWeight,
    "coupling": CouplingWeight,
    "convex": ConvexWeight,
    "cosine": CosineWeight,
}

#: The allowed values of ``public_weight``.
WEIGHTS: tuple[Allowed, ...] = (
    FRACTION,
    *_WEIGHTINGS,
    Kind(
        "a rule from skmixdp.components",
        lambda value: isinstance(value, Weighting) and not isinstance(value, type),
    ),
)

#: Assumed factor from the curvature along clipped gradients to its bound. The Hessian of the cross-entropies
#: is mostly far below the bound, and otherwise clipped residuals damp oscillations. Squared loss has a
#: constant Hessian, so its factor is 1.
CLIPPED_STEP_SCALE = 10.0

MOMENTUM = number(0, 1, closed="left")
OPEN_FRACTION = number(0, 1)


class Algorithm(BaseEstimator, ABC):  # type: ignore[misc]
    """Base class of algorithms: holds parameters and builds the recipe of a fit.

    Parameters behave as those of a scikit-learn estimator. ``set_params`` and ``clone`` work, and nothing is
    checked before :meth:`recipe`. In a parameter grid, use the name ``algorithm__<name>``. A subclass is a
    dataclass with ``eq=False`` and ``repr=False``, whose fields are its parameters.
    """

    #: The allowed values of each parameter.
    _allowed: ClassVar[Mapping[str, tuple[Allowed, ...]]] = {}

    #: Whether some of a given ``n_steps`` may be releases before the training.
    admits_releases: ClassVar[bool] = True

    def recipe(self, info: PublicInfo, options: Options) -> Recipe:
        """The recipe of this algorithm for one fit, after checking the parameters.

        Parameters
        ----------
        info : PublicInfo
            Public facts of the fit.
        options : Options
            The estimator's settings that every algorithm respects.

        Raises
        ------
        ValueError
            If a parameter is outside its range, or does not work with this loss or these rows.
        """
        plain = copy.copy(self)
        for name, value in check_params(self, self._allowed, named=True).items():
            setattr(plain, name, value)
        return plain.pieces(info, options)

    @abstractmethod
    def pieces(self, info: PublicInfo, options: Options) -> Recipe:
        """The recipe, built by a subclass from parameters that have been checked."""


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
    """The recipe of gradient descent with balanced steps, from which most algorithms start.

    The regulariser is centred at the start if ``anchored``, else at zero. ``noise_factor`` is for default
    steps.
    """
    l2 = options.l2 or 0.0
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
            max_step_scale=1.0 if info.view.data.loss.quadratic else CLIPPED_STEP_SCALE,
        ),
        update=SGD(momentum),
        l2=l2,
        anchor=start if anchored else np.zeros_like(start),
    )


def refuse_loss(owner: object, loss: Loss, fix: str) -> NoReturn:
    """Refuse a loss that an algorithm cannot train; ``fix`` says why, and what to do instead."""
    raise ValueError(f"{type(owner).__name__} cannot train {loss.name}: {fix}.")


def weighting_of(value: Any) -> Weighting:
    """The rule for the public weight, from a name, a number or an object."""
    if isinstance(value, str):
        return _WEIGHTINGS[value]()
    if isinstance(value, Real):
        return ConstantWeight(float(value))
    rule: Weighting = value
    return rule
