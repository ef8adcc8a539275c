"""What the zeroth-order algorithms share."""

import numpy as np

from .._engine import Options, Recipe
from ..components import BalancedSteps, ConstantWeight, Descent
from ..components.protocols import PublicInfo, Query, Weighting

DIRECTIONS = ("sphere", "gaussian")

#: No public gradient in the direction.
NO_PUBLIC_WEIGHT = ConstantWeight(0.0)

#: Longest run that the rule asks for: an estimate along few of many directions learns slowly.
_LONGEST_RUN = 500


def zeroth_order_descent(
    info: PublicInfo, options: Options, query: Query, weighting: Weighting, spread: float
) -> Recipe:
    """Plain descent along estimates of the gradient.

    Parameters
    ----------
    info, options : PublicInfo, Options
        Public facts and the user's choices.
    query : Query
        What is asked of private rows.
    weighting : Weighting
        Rule for the public weight.
    spread : float
        Mean squared length of a direction over that of its mean, for a sphere of the gradient's
        dimension: how much smaller than for exact gradients steps must be to be stable.
    """
    l2 = 0.0 if options.l2 == "auto" else options.l2
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
        anchor=np.zeros(()),  # the origin, whatever the parameters' shape
    )
