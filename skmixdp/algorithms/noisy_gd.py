"""Noisy gradient descent."""

import math
from dataclasses import KW_ONLY, dataclass, replace
from typing import Any, ClassVar

from .._engine import Options, Recipe
from .._utils.validation import CLIP, FLAG, POSITIVE
from ..components import GradientQuery, L2Clip
from ..components.clipping import LipschitzClip
from ..components.protocols import PublicInfo
from ..components.steps import DecayingSteps
from ..components.updates import BallProjection, PolynomialAverage, project_on_ball
from ._base import MOMENTUM, WEIGHTS, Algorithm, descent, refuse_loss, weighting_of


@dataclass(eq=False, repr=False)
class NoisyGD(Algorithm):
    """Gradient descent on clipped private gradients with Gaussian noise (NoisyGD, NGD).

    With the public warm start, this is *NGD* in the AdaMix paper. With ``init="zeros"`` and without public
    rows, it is the paper's *Fully-Private* baseline.

    Parameters
    ----------
    clip : float or "lipschitz", default=0.5
        L2 threshold on each row's gradient. Rows have unit length unless the estimator has
        ``RowMapping(norm=None)``. ``"lipschitz"`` uses the bound of the loss, which never clips.
    momentum : float, default=0.9
        Momentum in [0, 1).
    radius : float or None, default=None
        After every step, project the head on the ball of this Frobenius norm. None does not project.
    center : {"zero", "public"}, default="zero"
        Centre of the L2 regulariser: the origin, or the start of the fit.
    schedule : {"balanced", "decaying"}, default="balanced"
        ``"balanced"`` is a constant learning rate from public quantities, or the estimator's
        ``learning_rate``. ``"decaying"`` is ``2 / (l2 (t + 1))``. Its first step is ``1 / l2``, so it needs
        ``radius``. It ignores ``momentum``.
    public_weight : {"sample", "coupling", "convex", "cosine"}, float or object, default="sample"
        Weight of the public mean gradient; the private mean gradient gets the rest. Pass a rule's name, a
        number in [0, 1], or a rule from :mod:`skmixdp.components`. ``"sample"`` gives every row the same
        weight.
    average : bool, default=False
        Return ``sum_t 2 t / (T (T + 1)) W_t`` instead of the last head.
    second_clip : float or None, default=None
        Bound on the norm of the noisy private mean, after its release. None does not bound it.

    Notes
    -----
    *Guarantee*: one full-batch Gaussian release per step, of sensitivity ``clip``.

    ``NoisyGD("lipschitz", radius=..., center="public", schedule="decaying", average=True)`` is AdaMix as its
    Theorem 3 analyses it. ``NoisyGD(momentum=0, public_weight="cosine")`` is the approximation of PDA-DPMD
    (its equation 1 and Appendix F), whose images use ``second_clip=clip``.

    With the decaying schedule and ``l2="auto"``, the strength is ``sqrt(2 p L^2 / (rho D^2)) / N``. This is
    the minimiser of the bound in AdaMix, Theorem 3, whose printed formula is inverted. ``radius`` replaces
    the unknown distance ``D`` to the optimum.

    References
    ----------
    Golatkar et al. 2022, "Mixed Differential Privacy in Computer Vision" (AdaMix),
    Algorithms 1 and 3, Theorem 3; "Public Data-Assisted Mirror Descent for Private Model Training"
    (PDA-DPMD), equation 1, Appendix F.
    """

    _allowed: ClassVar = {
        "clip": (CLIP, "lipschitz"),
        "momentum": (MOMENTUM,),
        "radius": (POSITIVE, None),
        "center": ("zero", "public"),
        "schedule": ("balanced", "decaying"),
        "public_weight": WEIGHTS,
        "average": (FLAG,),
        "second_clip": (CLIP, None),
    }

    clip: float | str = 0.5
    _: KW_ONLY
    momentum: float = 0.9
    radius: float | None = None
    center: str = "zero"
    schedule: str = "balanced"
    public_weight: Any = "sample"
    average: bool = False
    second_clip: float | None = None

    def pieces(self, info: PublicInfo, options: Options) -> Recipe:
        decaying = self.schedule == "decaying"
        query = GradientQuery(self._clipper(info), None, sum_to_zero=True, second_clip=self.second_clip)
        recipe = descent(
            info,
            options,
            query,
            momentum=0.0 if decaying else self.momentum,
            anchored=self.center == "public",
            weighting=weighting_of(self.public_weight),
        )
        if decaying:
            recipe = self._with_decaying_steps(recipe, info, options)
        if self.radius is not None:
            recipe = replace(
                recipe,
                update=BallProjection(recipe.update, self.radius),
                anchor=project_on_ball(recipe.anchor, self.radius),
            )
        return replace(recipe, update=PolynomialAverage(recipe.update)) if self.average else recipe

    def _with_decaying_steps(self, recipe: Recipe, info: PublicInfo, options: Options) -> Recipe:
        if options.learning_rate != "auto":
            raise ValueError(
                f"learning_rate={options.learning_rate!r} cannot be combined with "
                "schedule='decaying', which sets its own step sizes; leave it at 'auto'."
            )
        if self.radius is None:
            raise ValueError("schedule='decaying' takes a first step of 1/l2; pass the radius of a ball.")
        if options.l2 == 0:
            raise ValueError(
                "l2=0 cannot be combined with schedule='decaying'; pass 'auto' or a positive number."
            )
        l2 = options.l2
        if l2 is None:  # that which minimises the bound of AdaMix, Theorem 3, for the mean loss
            lipschitz, rho = self._clipper(info).at(info.view).threshold, info.mu**2 / 2
            total = math.sqrt(2 * info.view.W.size / rho) * lipschitz / self.radius
            l2 = total / (info.n_effective + info.view.data.n_rows)
        return replace(recipe, steps=DecayingSteps(l2), l2=l2)

    def _clipper(self, info: PublicInfo) -> L2Clip | LipschitzClip:
        if not isinstance(self.clip, str):
            return L2Clip(self.clip)
        loss = info.view.data.loss
        if not math.isfinite(loss.lipschitz):
            refuse_loss(self, loss, "clip='lipschitz' needs residuals of bounded length; pass a number")
        if not math.isfinite(info.row_norm_bound):
            raise ValueError(
                "clip='lipschitz' needs rows of known length; pass rows=RowMapping(norm='unit') or a number."
            )
        return LipschitzClip(info.row_norm_bound)
