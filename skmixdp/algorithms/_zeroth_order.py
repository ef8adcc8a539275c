"""The recipe that the zeroth-order algorithms share."""

import numpy as np

from .._engine import Options, Recipe
from ..components import BalancedSteps, ConstantWeight, Descent
from ..components.protocols import PublicInfo, Query, Weighting

DIRECTIONS = ("sphere", "gaussian")

#: The direction contains no public gradient.
NO_PUBLIC_WEIGHT = ConstantWeight(0.0)

#: Largest number of steps that the rule chooses. Few directions in a large space learn slowly.
_LONGEST_RUN = 500


def zeroth_order_descent(
    info: PublicInfo, options: Options, query: Query, weighting: Weighting, spread: float
) -> Recipe:
    """The recipe of plain descent along estimates of the gradient.

    Parameters
    ----------
    info, options : PublicInfo, Options
        Public facts and the user's settings.
    query : Query
        The query to private rows.
    weighting : Weighting
        Rule for the public weight.
    spread : float
        Mean squared length of a direction divided by that of its mean, for a sphere of the gradient's
        dimension. Stable steps are smaller by this factor than with exact gradients.
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
        anchor=np.zeros(()),  # the origin, for parameters of any shape
    )
