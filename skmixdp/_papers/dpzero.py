"""DPZero: zeroth-order descent without public rows."""

from dataclasses import KW_ONLY, dataclass
from typing import ClassVar

import numpy as np

from .._engine import Options, Recipe
from .._utils.validation import CLIP, COUNT, POSITIVE
from ..algorithms._base import Algorithm
from ..components import BalancedSteps, ConstantWeight
from ..components.protocols import PublicInfo, Query, Weighting
from .zeroth_order import Descent, RandomDirections, TwoPointQuery

DIRECTIONS = ("sphere", "gaussian")

#: The direction contains no public gradient.
NO_PUBLIC_WEIGHT = ConstantWeight(0.0)

#: Most steps of the rule. With few directions in a large space, the head changes slowly.
_LONGEST_RUN = 500


def zeroth_order_descent(
    info: PublicInfo, options: Options, query: Query, weighting: Weighting, spread: float
) -> Recipe:
    """The recipe of plain descent along estimates of the gradient.

    ``spread`` is the mean squared length of a direction divided by that of its mean, for a sphere of the
    gradient's dimension. Stable steps are smaller by this factor than with exact gradients.
    """
    l2 = options.l2 or 0.0
    return Recipe(
        sampling=options.sampling,
        query=query,
        weighting=weighting,
        steps=BalancedSteps(
            options.learning_rate,
            0.0,
            l2,
            curvature=spread * info.curvature if options.learning_rate == "auto" else None,
            maximum=_LONGEST_RUN,
        ),
        update=Descent(),
        l2=l2,
        anchor=np.zeros(()),  # the origin, broadcast to parameters of any shape
        draws=True,
    )


@dataclass(eq=False, repr=False)
class DPZero(Algorithm):
    """Zeroth-order descent along random directions, without public gradients.

    Parameters
    ----------
    n_directions : int, default=1
        Number of directions in each step.
    smoothing : float, default=1e-2
        Step to either side along a direction, in units of the direction, whose length is ``sqrt(p)``.
    loss_clip : float, default=1.0
        Bound on each row's difference of losses, on the scale of a row's gradient.
    directions : {"sphere", "gaussian"}, default="sphere"
        Distribution of the directions.

    Notes
    -----
    *Guarantee*: one Gaussian release per step, of one number per direction.

    The squared length of the estimate is ``p / n_directions`` times that of the gradient of ``p``
    coefficients. Steps are therefore small, and there are many of them. Public rows help only through the
    start.

    References
    ----------
    Zhang et al. 2024, "DPZero: Private Fine-Tuning of Language Models without Backpropagation",
    Algorithm 1, in the form of Gong and Li 2025 (PAZO), equation 2.
    """

    _allowed: ClassVar = {
        "n_directions": (COUNT,),
        "smoothing": (POSITIVE,),
        "loss_clip": (CLIP,),
        "directions": DIRECTIONS,
    }

    n_directions: int = 1
    _: KW_ONLY
    smoothing: float = 1e-2
    loss_clip: float = 1.0
    directions: str = "sphere"

    def pieces(self, info: PublicInfo, options: Options) -> Recipe:
        on_sphere = self.directions == "sphere"
        query = TwoPointQuery(
            RandomDirections(0.5, on_sphere), self.n_directions, self.smoothing, self.loss_clip
        )
        spread = 1 + info.view.n_parameters / query.n_directions
        return zeroth_order_descent(info, options, query, NO_PUBLIC_WEIGHT, spread)
