"""PDA-DPMD."""

import math
from dataclasses import replace

from .._engine import Options, Recipe
from ..components import (
    BalancedSteps,
    ConstantWeight,
    CosineWeight,
    FullSpace,
    GradientQuery,
    L2Clip,
    MirrorDescent,
    UniformAverage,
)
from ..components.protocols import PublicInfo
from ._base import Algorithm, check_choice, check_real, descent


class PDADPMD(Algorithm):
    """Mirror descent on private gradients, with the public loss as mirror map.

    Parameters
    ----------
    mirror : {"exact", "cosine"}, default="exact"
        ``"exact"`` solves ``grad Psi(W_{t+1}) = grad Psi(W_t) - eta g_t``, where Psi is the
        public mean loss with the penalty of the warm start (the estimator's ``public_l2``), and
        returns the mean of the heads. Noise is damped where public rows know the head well.
        ``"cosine"`` is the paper's approximation by gradient descent, in which the public
        gradient takes over: private weight ``max(0, cos(pi t / (2 K)))``.
    clip : float, default=0.5
        L2 threshold on each row's gradient, for rows of unit length.
    cosine_steps : float or None, default=None
        ``K`` of the cosine approximation; None is twice the number of steps.
    second_clip : float or None, default=None
        Of the cosine approximation: bound on the norm of the noisy private mean (the paper uses
        ``clip`` for images); None does not bound it.

    Notes
    -----
    *Guarantee*: one Gaussian release per step, of sensitivity ``clip``. The mirror step uses
    public rows and released sums only.

    ``learning_rate`` refers to Psi normalised so that the inverse of its Hessian has no
    eigenvalue above 1. The rule behind ``"auto"`` asks for the same noise in the outputs as that
    of gradient descent, measured in this geometry on public rows, each held out in turn.

    References
    ----------
    "Public Data-Assisted Mirror Descent for Private Model Training" (PDA-DPMD), Algorithm 1,
    equation 1, Appendices E and F.
    """

    def __init__(
        self,
        mirror: str = "exact",
        *,
        clip: float = 0.5,
        cosine_steps: float | None = None,
        second_clip: float | None = None,
    ) -> None:
        self.mirror = mirror
        self.clip = clip
        self.cosine_steps = cosine_steps
        self.second_clip = second_clip

    def recipe(self, info: PublicInfo, options: Options) -> Recipe:
        exact = check_choice(self, "mirror", ("exact", "cosine")) == "exact"
        for name in ("cosine_steps", "second_clip"):
            if getattr(self, name) is None:
                continue
            value = check_real(self, name, 0)
            if exact:
                raise ValueError(
                    f"{name}={value:g} of PDADPMD has no place beside mirror='exact'; "
                    "pass mirror='cosine' or leave it at None."
                )
        clip = L2Clip(check_real(self, "clip", 0))
        query = GradientQuery(clip, FullSpace(), sum_to_zero=True, second_clip=self.second_clip)
        if not exact:
            weighting = CosineWeight(self.cosine_steps)
            return descent(info, options, query, momentum=0.0, anchored=False, weighting=weighting)
        psi, start = info.view.data.mean_objective, info.view.W
        # The mean of the heads has a third of the variance of the last one. Three quarters of what that
        # allows, as for all but plain steps, was best or near it on images, texts and a table.
        steps = BalancedSteps(
            options.learning_rate,
            0.0,
            0.0 if options.l2 == "auto" else options.l2,
            noise_factor=0.75 * math.sqrt(3) / psi.noise_gain(start),
            curvature=min(info.curvature, psi.relative_curvature(start)),
        )
        recipe = descent(
            info, options, query, momentum=0.0, anchored=False, weighting=ConstantWeight(0.0), steps=steps
        )
        return replace(recipe, update=UniformAverage(MirrorDescent(psi)))
