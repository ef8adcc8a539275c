"""Noisy gradient descent."""

import math
from dataclasses import replace
from typing import Any

from .._engine import Options, Recipe
from ..components import (
    BallProjection,
    DecayingSteps,
    FullSpace,
    GradientQuery,
    L2Clip,
    LipschitzClip,
    PolynomialAverage,
    project_on_ball,
)
from ..components.protocols import PublicInfo
from ._base import Algorithm, check_choice, check_real, check_weighting, descent, refuse_loss


class NoisyGD(Algorithm):
    """Gradient descent on clipped private gradients with Gaussian noise (NoisyGD, NGD).

    From the public warm start it is the *NGD* of the AdaMix paper; from ``init="zeros"`` and
    without public rows it is its *Fully-Private* baseline.

    Parameters
    ----------
    clip : float or "lipschitz", default=0.5
        L2 threshold on each row's gradient; rows have unit length unless the estimator's
        ``normalize`` is off. ``"lipschitz"`` uses the loss's own bound, which never clips.
    momentum : float, default=0.9
        In [0, 1).
    radius : float or None, default=None
        Heads are projected on the ball of this Frobenius norm after every step.
    center : {"zero", "public"}, default="zero"
        Centre of the L2 regulariser: the origin, or the start of the fit.
    schedule : {"balanced", "decaying"}, default="balanced"
        ``"balanced"`` is a constant learning rate from public quantities, or the estimator's
        ``learning_rate``. ``"decaying"`` is ``2 / (l2 (t + 1))``; its first step is
        ``1 / l2``, so it needs ``radius``, and it ignores ``momentum``.
    public_weight : {"sample", "coupling", "convex", "cosine"}, float or object, default="sample"
        Weight of the public mean gradient, the private one having the rest: a rule, a number in
        [0, 1], or a rule object from :mod:`skmixdp.components`. ``"sample"`` counts every row
        alike.
    average : bool, default=False
        Return ``sum_t 2 t / (T (T + 1)) W_t`` instead of the last head.

    Notes
    -----
    *Guarantee*: one full-batch Gaussian release per step, of sensitivity ``clip``.

    With the decaying schedule and ``l2="auto"``, the strength is the minimiser
    ``sqrt(2 p L^2 / (rho D^2)) / N`` of the bound in AdaMix, Theorem 3 (whose printed formula
    is inverted), with ``radius`` in place of the unknown distance ``D`` to the optimum.

    References
    ----------
    Golatkar et al. 2022, "Mixed Differential Privacy in Computer Vision" (AdaMix),
    Algorithms 1 and 3, Theorem 3.
    """

    def __init__(
        self,
        clip: float | str = 0.5,
        *,
        momentum: float = 0.9,
        radius: float | None = None,
        center: str = "zero",
        schedule: str = "balanced",
        public_weight: Any = "sample",
        average: bool = False,
    ) -> None:
        self.clip = clip
        self.momentum = momentum
        self.radius = radius
        self.center = center
        self.schedule = schedule
        self.public_weight = public_weight
        self.average = average

    def recipe(self, info: PublicInfo, options: Options) -> Recipe:
        decaying = check_choice(self, "schedule", ("balanced", "decaying")) == "decaying"
        anchored = check_choice(self, "center", ("zero", "public")) == "public"
        momentum = 0.0 if decaying else check_real(self, "momentum", 0, 1, closed=True)
        query = GradientQuery(self._clipper(info), FullSpace(), sum_to_zero=True)
        recipe = descent(
            info,
            options,
            query,
            momentum=momentum,
            anchored=anchored,
            weighting=check_weighting(self),
        )
        if decaying:
            recipe = self._with_decaying_steps(recipe, info, options)
        if self.radius is not None:
            radius = check_real(self, "radius", 0)
            recipe = replace(
                recipe,
                update=BallProjection(recipe.update, radius),
                anchor=project_on_ball(recipe.anchor, radius),
            )
        return replace(recipe, update=PolynomialAverage(recipe.update)) if self.average else recipe

    def _with_decaying_steps(self, recipe: Recipe, info: PublicInfo, options: Options) -> Recipe:
        if options.learning_rate != "auto":
            raise ValueError(
                f"learning_rate={options.learning_rate!r} has no place beside schedule='decaying', "
                "which sets its own; leave it at 'auto'."
            )
        if self.radius is None:
            raise ValueError("schedule='decaying' takes a first step of 1/l2; pass the radius of a ball.")
        if options.l2 == 0:
            raise ValueError(
                "l2=0 has no place beside schedule='decaying'; pass 'auto' or a positive number."
            )
        l2 = self._optimal_l2(info) if options.l2 == "auto" else options.l2
        return replace(recipe, steps=DecayingSteps(l2), l2=l2)

    def _optimal_l2(self, info: PublicInfo) -> float:
        """Minimiser of the bound of AdaMix, Theorem 3, on the mean scale."""
        lipschitz = self._clipper(info).at(info.view).threshold
        rho = info.mu**2 / 2
        total = math.sqrt(2 * info.view.W.size / rho) * lipschitz / check_real(self, "radius", 0)
        return total / (info.n_private + info.view.n_rows)

    def _clipper(self, info: PublicInfo) -> L2Clip | LipschitzClip:
        if not isinstance(self.clip, str):
            return L2Clip(check_real(self, "clip", 0))
        check_choice(self, "clip", ("lipschitz",))
        if not math.isfinite(info.loss.lipschitz):
            refuse_loss(self, info.loss, "clip='lipschitz' needs residuals of bounded length; pass a number")
        if not math.isfinite(info.row_norm_bound):
            raise ValueError("clip='lipschitz' needs rows of known length; pass normalize=True or a number.")
        return LipschitzClip(info.row_norm_bound)
