"""PAZO-M, PAZO-P and PAZO-S, and DPZero: zeroth-order descent with and without public gradients."""

from dataclasses import KW_ONLY, dataclass
from typing import Any, ClassVar

import numpy as np

from .._engine import Options, Recipe
from .._utils.validation import CLIP, COUNT, FLAG, POSITIVE
from ..algorithms._base import WEIGHTS, Algorithm, weighting_of
from ..components import BalancedSteps, ConstantWeight
from ..components.protocols import PublicInfo, Query, Weighting
from .loss_queries import CandidateQuery, Descent, PublicDirections, RandomDirections, TwoPointQuery

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


@dataclass(eq=False, repr=False)
class PAZO(Algorithm):
    """Zeroth-order descent that combines losses of private rows with gradients of public rows.

    Parameters
    ----------
    variant : {"m", "p", "s"}, default="m"
        ``"m"`` mixes the public gradient with a two-point estimate along random directions. ``"p"`` takes
        directions from the span of public gradients. ``"s"`` selects one of several public gradients by the
        losses of private rows.
    n_directions : int, default=1
        Number of directions in each step ("m" and "p").
    smoothing : float, default=1e-2
        Step to either side along a direction, in units of the direction ("m" and "p").
    loss_clip : float, default=1.0
        Bound on each row's difference of losses, on the scale of a row's gradient ("m" and
        "p"), or on each row's loss ("s").
    public_weight : {"sample", "coupling", "convex", "cosine"}, float or object, default=0.5
        Weight of the public mean gradient ("m").
    public_batch_size : int or None, default=None
        Number of public rows in a batch. None takes all public rows ("m"), or divides them among the batches
        ("p", "s").
    n_public_batches : int, default=3
        Number of public gradients that span the directions ("p").
    n_candidates : int, default=3
        Number of public gradients to select from ("s").
    candidate_noise : float or None, default=1e-3
        A further candidate is the best one plus noise of this standard deviation in each coordinate. None
        tries no further candidate ("s").
    orthonormal : bool, default=True
        Whether to orthonormalise public gradients, or only scale them to unit length ("p").
    directions : {"sphere", "gaussian"}, default="sphere"
        Distribution of the directions.

    Notes
    -----
    *Guarantee*: one Gaussian release per step, of one number per direction or candidate, for any number of
    parameters. Directions and candidates depend on public rows and released heads only.

    Parameters that a variant does not use have no effect.

    References
    ----------
    Gong and Li 2025, "Private Zeroth-Order Optimization with Public Data" (PAZO), Algorithms 1 to 3. The
    paper uses one clipping threshold for all variants. Here it is scaled by the length of the directions, so
    ``loss_clip`` is on the scale of a gradient. Unscaled, PAZO-M's noise would be ``p ** (1/4)`` times as
    large.
    """

    _allowed: ClassVar = {
        "variant": ("m", "p", "s"),
        "n_directions": (COUNT,),
        "smoothing": (POSITIVE,),
        "loss_clip": (CLIP,),
        "public_weight": WEIGHTS,
        "public_batch_size": (COUNT, None),
        "n_public_batches": (COUNT,),
        "n_candidates": (COUNT,),
        "candidate_noise": (POSITIVE, None),
        "orthonormal": (FLAG,),
        "directions": DIRECTIONS,
    }

    variant: str = "m"
    _: KW_ONLY
    n_directions: int = 1
    smoothing: float = 1e-2
    loss_clip: float = 1.0
    public_weight: Any = 0.5
    public_batch_size: int | None = None
    n_public_batches: int = 3
    n_candidates: int = 3
    candidate_noise: float | None = 1e-3
    orthonormal: bool = True
    directions: str = "sphere"

    def pieces(self, info: PublicInfo, options: Options) -> Recipe:
        if info.view.data.n_rows == 0:
            raise ValueError(
                f"PAZO(variant={self.variant!r}) needs public rows for its gradients, but there are none; "
                "pass X_pub and y_pub, or use DPZero(), which needs none."
            )
        query, weighting, spread = self._pieces_of_variant(info)
        return zeroth_order_descent(info, options, query, weighting, spread)

    def _pieces_of_variant(self, info: PublicInfo) -> tuple[Query, Weighting, float]:
        """The query of the variant, the rule for the public weight, and the spread of directions."""
        on_sphere = self.directions == "sphere"
        if self.variant == "s":
            n_candidates = self.n_candidates
            batch_size = self._batch_size(info, n_candidates, f"n_candidates={n_candidates}")
            candidates = CandidateQuery(n_candidates, batch_size, self.loss_clip, self.candidate_noise)
            return candidates, NO_PUBLIC_WEIGHT, 1.0
        scale = self.n_directions, self.smoothing, self.loss_clip
        if self.variant == "p":
            n_batches = self.n_public_batches
            batch_size = self._batch_size(info, n_batches, f"n_public_batches={n_batches}")
            directions = PublicDirections(n_batches, batch_size, self.orthonormal, on_sphere)
            return TwoPointQuery(directions, *scale), NO_PUBLIC_WEIGHT, 1 + n_batches / self.n_directions
        batch_size = self._batch_size(info, 1, f"public_batch_size={self.public_batch_size}")
        query = TwoPointQuery(RandomDirections(0.25, on_sphere), *scale, batch_size)
        # The estimate has the length of the gradient, in any dimension.
        return query, weighting_of(self.public_weight), 1.0

    def _batch_size(self, info: PublicInfo, n_batches: int, asking: str) -> int | None:
        """The size of public batches, refused if batches need more public rows than there are."""
        size = 1 if self.public_batch_size is None else self.public_batch_size
        if n_batches * size > (n_pub := info.view.data.n_rows):
            raise ValueError(
                f"{asking} of PAZO asks for {n_batches} disjoint public batches of "
                f"{size} row(s) and X_pub has {n_pub}; pass more public rows, or as algorithm a "
                f"PAZO({self.variant!r}) with fewer or smaller batches."
            )
        return None if self.public_batch_size is None else size
