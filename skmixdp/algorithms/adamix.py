"""AdaMix."""

from typing import Any, ClassVar

from .._engine import Options, Recipe
from .._params import COUNT, POSITIVE
from ..components import FullSpace, GradientQuery, PublicQuantileClip, PublicSubspace
from ..components.protocols import PublicInfo, Subspace
from ._base import MOMENTUM, OPEN_FRACTION, WEIGHTS, Algorithm, descent, weighting_of
from .noisy_gd import NoisyGD


class AdaMix(Algorithm):
    """Noisy gradient descent whose start, clip and subspace come from public rows.

    Parameters
    ----------
    quantile : float, default=0.9
        The clip is this quantile of the public rows' gradient norms at the current head.
    clip_floor : float, default=0.5
        Smallest clip, for rows of unit length; also the clip where there are no public rows.
    n_components : int or None, default=None
        Dimensions of the public subspace in which the private sum is released: the leading
        singular directions of the public gradient, then principal directions of the public
        rows, at most the rank that they reach. None does not project.
    momentum : float, default=0.9
        In [0, 1); the paper uses 0.
    center : {"zero", "public"}, default="zero"
        Centre of the L2 regulariser: the origin (the paper's experiments) or the start of
        the fit, which is the public solution (its Theorem 3).
    public_weight : {"sample", "coupling", "convex", "cosine"}, float or object, default="sample"
        Weight of the public mean gradient, the private one having the rest: a rule, a number in
        [0, 1], or a rule object from :mod:`skmixdp.components`. ``"sample"`` counts every row
        alike.

    Notes
    -----
    *Guarantee*: one full-batch Gaussian release per step, of sensitivity
    ``clip * |basis|`` with an orthonormal basis. Clip, basis and start depend on public rows
    and released heads only.

    To reproduce the paper's setting, pass ``momentum=0`` and ``n_components=2000`` (of 2048
    features), and ``noise_multiplier=20`` to the estimator.

    References
    ----------
    Golatkar et al. 2022, "Mixed Differential Privacy in Computer Vision" (AdaMix),
    section 3.2, Algorithms 2 and 3.
    """

    _allowed: ClassVar = {
        "quantile": (OPEN_FRACTION,),
        "clip_floor": (POSITIVE,),
        "n_components": (COUNT, None),
        "momentum": (MOMENTUM,),
        "center": ("zero", "public"),
        "public_weight": WEIGHTS,
    }

    def __init__(
        self,
        quantile: float = 0.9,
        *,
        clip_floor: float = 0.5,
        n_components: int | None = None,
        momentum: float = 0.9,
        center: str = "zero",
        public_weight: Any = "sample",
    ) -> None:
        self.quantile = quantile
        self.clip_floor = clip_floor
        self.n_components = n_components
        self.momentum = momentum
        self.center = center
        self.public_weight = public_weight

    def pieces(self, info: PublicInfo, options: Options) -> Recipe:
        clipper = PublicQuantileClip(quantile=self.quantile, floor=self.clip_floor)
        subspace: Subspace = FullSpace()
        if self.n_components is not None:
            subspace = PublicSubspace(self.n_components, options.exact_sums)
        query = GradientQuery(clipper, subspace, sum_to_zero=True)
        return descent(
            info,
            options,
            query,
            momentum=self.momentum,
            anchored=self.center == "public",
            weighting=weighting_of(self.public_weight),
        )


class TheoreticalAdaMix(Algorithm):
    """AdaMix as its Theorem 3 analyses it: a fixed clip, decaying steps and averaged heads in a ball.

    The clip is the Lipschitz constant of the loss, the step is ``2 / (l2 (t + 1))``, the regulariser is
    centred at the public solution, and heads are kept in a ball.

    Parameters
    ----------
    radius : float
        Radius of the ball.

    Notes
    -----
    *Guarantee*: that of :class:`NoisyGD`, whose settings these are.

    References
    ----------
    Golatkar et al. 2022, "Mixed Differential Privacy in Computer Vision" (AdaMix), Algorithm 3,
    Theorem 3.
    """

    _allowed: ClassVar = {"radius": (POSITIVE,)}

    def __init__(self, radius: float) -> None:
        self.radius = radius

    def pieces(self, info: PublicInfo, options: Options) -> Recipe:
        equivalent = NoisyGD(
            "lipschitz", radius=self.radius, center="public", schedule="decaying", average=True
        )
        return equivalent.recipe(info, options)
