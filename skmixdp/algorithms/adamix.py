"""AdaMix."""

from typing import Any

from .._engine import Options, Recipe
from ..components import FullSpace, GradientQuery, PublicQuantileClip, PublicSubspace
from ..components.protocols import PublicInfo, Subspace
from ._base import Algorithm, check_choice, check_real, check_weighting, check_whole, descent
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
    variant : {"practical", "theoretical"}, default="practical"
        ``"theoretical"`` is the paper's Algorithm 3, for which its Theorem 3 holds: no
        adaptive clip and no projection, step ``2 / (l2 (t + 1))``, the regulariser centred at
        the public solution, heads kept in the ball of ``radius``, averaged iterate. The
        parameters above have no effect on it.
    radius : float or None, default=None
        The theoretical variant's ball.

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

    def __init__(
        self,
        quantile: float = 0.9,
        *,
        clip_floor: float = 0.5,
        n_components: int | None = None,
        momentum: float = 0.9,
        center: str = "zero",
        public_weight: Any = "sample",
        variant: str = "practical",
        radius: float | None = None,
    ) -> None:
        self.quantile = quantile
        self.clip_floor = clip_floor
        self.n_components = n_components
        self.momentum = momentum
        self.center = center
        self.public_weight = public_weight
        self.variant = variant
        self.radius = radius

    def recipe(self, info: PublicInfo, options: Options) -> Recipe:
        if check_choice(self, "variant", ("practical", "theoretical")) == "theoretical":
            return self._theoretical().recipe(info, options)
        momentum = check_real(self, "momentum", 0, 1, closed=True)
        anchored = check_choice(self, "center", ("zero", "public")) == "public"
        clipper = PublicQuantileClip(
            quantile=check_real(self, "quantile", 0, 1), floor=check_real(self, "clip_floor", 0)
        )
        subspace: Subspace = FullSpace()
        if self.n_components is not None:
            subspace = PublicSubspace(check_whole(self, "n_components", 1), options.exact_sums)
        query = GradientQuery(clipper, subspace, sum_to_zero=True)
        return descent(
            info,
            options,
            query,
            momentum=momentum,
            anchored=anchored,
            weighting=check_weighting(self),
        )

    def _theoretical(self) -> NoisyGD:
        if self.radius is None:
            raise ValueError("AdaMix(variant='theoretical') keeps heads in a ball; pass its radius.")
        return NoisyGD(
            clip="lipschitz",
            radius=check_real(self, "radius", 0),
            center="public",
            schedule="decaying",
            average=True,
        )
