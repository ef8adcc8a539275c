"""DPZero."""

from typing import ClassVar

from .._engine import Options, Recipe
from .._params import COUNT, POSITIVE
from ..components import RandomDirections, TwoPointQuery
from ..components.protocols import PublicInfo
from ._base import Algorithm
from ._zeroth_order import DIRECTIONS, NO_PUBLIC_WEIGHT, zeroth_order_descent


class DPZero(Algorithm):
    """Zeroth-order descent along random directions; it needs no public rows.

    Parameters
    ----------
    n_directions : int, default=1
        Directions in each step.
    smoothing : float, default=1e-2
        Distance to either side, in units of the direction, whose length is ``sqrt(p)``.
    loss_clip : float, default=1.0
        Bound on each row's difference of losses, on the scale of a row's gradient.
    directions : {"sphere", "gaussian"}, default="sphere"
        How directions are drawn.

    Notes
    -----
    *Guarantee*: one Gaussian release per step, of as many numbers as there are directions.

    The estimate is ``p / n_directions`` times as long, squared, as the gradient of ``p``
    coefficients, so steps are small and many; public rows help through the start alone.

    References
    ----------
    Zhang et al. 2024, "DPZero: Private Fine-Tuning of Language Models without Backpropagation",
    Algorithm 1, in the form of Gong and Li 2025 (PAZO), equation 2.
    """

    _allowed: ClassVar = {
        "n_directions": (COUNT,),
        "smoothing": (POSITIVE,),
        "loss_clip": (POSITIVE,),
        "directions": DIRECTIONS,
    }

    def __init__(
        self,
        n_directions: int = 1,
        *,
        smoothing: float = 1e-2,
        loss_clip: float = 1.0,
        directions: str = "sphere",
    ) -> None:
        self.n_directions = n_directions
        self.smoothing = smoothing
        self.loss_clip = loss_clip
        self.directions = directions

    def pieces(self, info: PublicInfo, options: Options) -> Recipe:
        on_sphere = self.directions == "sphere"
        query = TwoPointQuery(
            RandomDirections(0.5, on_sphere),
            self.n_directions,
            self.smoothing,
            self.loss_clip,
        )
        spread = 1 + info.view.n_parameters / query.n_directions
        return zeroth_order_descent(info, options, query, NO_PUBLIC_WEIGHT, spread)
