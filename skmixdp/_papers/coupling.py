"""Coupling: automatic clipping with mixed public and private gradients."""

from dataclasses import KW_ONLY, dataclass
from typing import Any, ClassVar

from .._engine import Options, Recipe
from .._utils.validation import POSITIVE
from ..algorithms._base import MOMENTUM, WEIGHTS, Algorithm, descent, weighting_of
from ..components import AutomaticClip, BalancedSteps, GradientQuery
from ..components.protocols import PublicInfo


@dataclass(eq=False, repr=False)
class Coupling(Algorithm):
    """Noisy gradient descent with automatic clipping and a rule for the public weight.

    Parameters
    ----------
    gamma : float, default=1.0
        Each row's gradient is divided by its norm plus ``gamma``. A small ``gamma`` gives all gradients
        nearly the same length; a large one keeps their proportions. The default is the paper's, for networks.
        Gradients of unit rows are shorter than 1, so the noise is large compared with them, and 0.1 is often
        better (digits, epsilon 1: 92% against 89%).
    public_weight : {"coupling", "convex", "sample", "cosine"}, float or object, default="coupling"
        Weight of the public mean gradient; the private mean gradient gets the rest. Pass a rule's name, a
        number in [0, 1], or a rule from :mod:`skmixdp.components`. ``"coupling"`` is the paper's equation 5;
        ``"convex"`` is the minimiser of its Theorem 3.1. Their constants are measured on public rows.
    momentum : float, default=0.9
        Momentum in [0, 1).
    center : {"zero", "public"}, default="zero"
        Centre of the L2 regulariser: the origin, or the start of the fit.

    Notes
    -----
    *Guarantee*: one Gaussian release per step, of sensitivity 1. If the public weight is 1, nothing is
    released, but the step is charged all the same.

    The fit starts at the public rows by default. For the paper's main setting, pass ``init="zeros"``.

    References
    ----------
    Liu et al., "Coupling public and private gradient provably helps optimization", section
    2.2, Theorem 3.1, equation 5.
    """

    _allowed: ClassVar = {
        "gamma": (POSITIVE,),
        "momentum": (MOMENTUM,),
        "center": ("zero", "public"),
        "public_weight": WEIGHTS,
    }

    gamma: float = 1.0
    _: KW_ONLY
    public_weight: Any = "coupling"
    momentum: float = 0.9
    center: str = "zero"

    def pieces(self, info: PublicInfo, options: Options) -> Recipe:
        # Short gradients are multiplied by up to 1 / gamma, and so is the curvature.
        curvature = info.curvature * max(1.0, 1 / self.gamma)
        return descent(
            info,
            options,
            GradientQuery(AutomaticClip(self.gamma), None, sum_to_zero=True),
            momentum=self.momentum,
            anchored=self.center == "public",
            weighting=weighting_of(self.public_weight),
            steps=BalancedSteps(
                options.learning_rate,
                self.momentum,
                options.l2 or 0.0,
                noise_factor=0.75,
                curvature=curvature,
            ),
        )
