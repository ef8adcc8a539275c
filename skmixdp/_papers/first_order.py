"""Algorithms of first order with public gradients: Coupling, DOPE-SGD, GEP and PDA-DPMD."""

import math
from collections.abc import Callable
from dataclasses import KW_ONLY, dataclass, replace
from functools import partial
from typing import Any, ClassVar

from .._engine import Options, Recipe
from .._linear.arrays import FloatArray
from .._utils.validation import CLIP, CLIP_OF_DIFFERENCES, COUNT, POSITIVE
from ..algorithms._base import MOMENTUM, OPEN_FRACTION, WEIGHTS, Algorithm, descent, weighting_of
from ..components import AutomaticClip, BalancedSteps, ConstantWeight, GradientQuery, L2Clip
from ..components.clipping import PublicQuantileClip
from ..components.protocols import Clipper, PublicInfo
from ..components.public import PublicView
from ..components.updates import UniformAverage
from .mirror import MirrorDescent, PenalizedLoss
from .split_query import SplitQuery
from .splits import centre_of, deviation_norms, embedding_of

#: Factor of GEP's step size: best or nearly best of seven on images, texts and a table.
_NOISE_FACTOR = 0.75


def refuse_exact_sums(owner: object, options: Options) -> None:
    """Refuse discrete noise for an algorithm that changes sums before noise is added."""
    if options.exact_sums:
        raise ValueError(
            f"noise='discrete' needs sums on a grid, and {type(owner).__name__} computes sums off the grid; "
            "pass noise='float' or another algorithm."
        )


def clipper_of(
    clip: float | str, quantile: float, floor: float, measure: Callable[[PublicView], FloatArray]
) -> Clipper:
    """The rule for ``clip``: a threshold, or "quantile" for a quantile of public lengths (n_pub,)."""
    return PublicQuantileClip(quantile, floor, measure) if isinstance(clip, str) else L2Clip(clip)


@dataclass(eq=False, repr=False)
class DOPE(Algorithm):
    """Noisy gradient descent that clips each row's difference from the public gradient.

    Private gradients that are close to the public mean gradient have short differences from it. A smaller
    clip, with less noise, then distorts no more.

    Parameters
    ----------
    clip : float or "quantile", default="quantile"
        L2 threshold on each row's gradient minus the public mean gradient. ``"quantile"`` is a quantile of
        the public rows' own differences at the current head.
    quantile : float, default=0.9
        The quantile for ``clip="quantile"``.
    clip_floor : float, default=0.5
        Smallest clip of the quantile rule, for rows of unit length. It is also the clip if there are no
        public rows.
    momentum : float, default=0.9
        Momentum in [0, 1).
    center : {"zero", "public"}, default="zero"
        Centre of the L2 regulariser: the origin, or the start of the fit.

    Notes
    -----
    *Guarantee*: one Gaussian release per step, of sensitivity ``clip``. The public gradient is added back to
    the mean, after the release. It is never multiplied by the number of private rows in the batch. The
    public gradient is subtracted before the noise is added, so sums are not on the grid that discrete noise
    needs. ``noise="discrete"`` is therefore refused.

    Without public rows, there is no centre, and this is :class:`NoisyGD`.

    References
    ----------
    Nasr et al. 2023, "Effectively Using Public Data in Privacy Preserving Machine Learning"
    (DOPE-SGD); a baseline of Gong et al., "Private Zeroth-Order Optimization with Public Data"
    (PAZO), section 5.
    """

    _allowed: ClassVar = {
        "clip": (CLIP_OF_DIFFERENCES, "quantile"),
        "quantile": (OPEN_FRACTION,),
        "clip_floor": (CLIP_OF_DIFFERENCES,),
        "momentum": (MOMENTUM,),
        "center": ("zero", "public"),
    }

    clip: float | str = "quantile"
    _: KW_ONLY
    quantile: float = 0.9
    clip_floor: float = 0.5
    momentum: float = 0.9
    center: str = "zero"

    def pieces(self, info: PublicInfo, options: Options) -> Recipe:
        refuse_exact_sums(self, options)
        clipper = clipper_of(self.clip, self.quantile, self.clip_floor, deviation_norms)
        query = SplitQuery(centre_of, clipper, None, sum_to_zero=True)
        return descent(info, options, query, momentum=self.momentum, anchored=self.center == "public")


@dataclass(eq=False, repr=False)
class GEP(Algorithm):
    """Noisy gradient descent with two releases: gradients on public gradient directions, and the rest.

    Parameters
    ----------
    n_components : int or None, default=None
        Number of public gradient directions, the strongest first; at most the number of public rows. None
        takes all directions.
    clip : float or "quantile", default="quantile"
        L2 threshold on each row's coordinates on the public directions.
    residual_clip : float or "quantile", default="quantile"
        L2 threshold on each row's residual: its gradient minus the part on the public directions.
    quantile : float, default=0.9
        ``"quantile"`` clips at this quantile of the public rows' own lengths at the current head. Each public
        row is measured on the directions of the others, since it lies in the span of all of them and a
        private row does not.
    clip_floor : float, default=0.35
        Smallest clip of both parts under the quantile rule, for rows of unit length. It is also the clip if
        there are no public rows. Each part has ``sqrt(2)`` times the noise, so 0.35 here gives the noise of
        a clip of 0.5 in an algorithm with one part.
    momentum : float, default=0.9
        Momentum in [0, 1).
    center : {"zero", "public"}, default="zero"
        Centre of the L2 regulariser: the origin, or the start of the fit.

    Notes
    -----
    *Guarantee*: one Gaussian release per step. Coordinates and residuals use half of it each. Their noise is
    ``sqrt(2)`` times the noise multiplier times their own clip. The projection is subtracted before the noise
    is added, so sums are not on the grid that discrete noise needs. ``noise="discrete"`` is therefore
    refused.

    Directions come from the Gram matrix of the public rows' gradients, and coordinates from products of
    rows. Memory and time therefore do not grow with the number of parameters times the number of rows. With
    float32 rows, weak directions make the guaranteed bound on a residual's length slightly larger than the
    length. Such directions occur with many public rows and ``n_components=None``.

    References
    ----------
    Yu et al. 2021, "Do Not Let Privacy Overbill Utility: Gradient Embedding Perturbation for
    Private Learning" (GEP), Algorithm 1; a baseline of Gong et al., "Private Zeroth-Order
    Optimization with Public Data" (PAZO), section 5.
    """

    _allowed: ClassVar = {
        "n_components": (COUNT, None),
        "clip": (CLIP_OF_DIFFERENCES, "quantile"),
        "residual_clip": (CLIP_OF_DIFFERENCES, "quantile"),
        "quantile": (OPEN_FRACTION,),
        "clip_floor": (CLIP_OF_DIFFERENCES,),
        "momentum": (MOMENTUM,),
        "center": ("zero", "public"),
    }

    n_components: int | None = None
    _: KW_ONLY
    clip: float | str = "quantile"
    residual_clip: float | str = "quantile"
    quantile: float = 0.9
    clip_floor: float = 0.35
    momentum: float = 0.9
    center: str = "zero"

    def pieces(self, info: PublicInfo, options: Options) -> Recipe:
        refuse_exact_sums(self, options)
        split = partial(embedding_of, n_components=self.n_components)
        rule = partial(clipper_of, quantile=self.quantile, floor=self.clip_floor)
        query = SplitQuery(
            split,
            rule(self.residual_clip, measure=lambda view: split(view).held_out_residuals),
            rule(self.clip, measure=lambda view: split(view).held_out_coordinates),
            sum_to_zero=True,
            longest_gradient=info.view.data.loss.lipschitz * info.row_norm_bound,
        )
        anchored = self.center == "public"
        return descent(
            info, options, query, momentum=self.momentum, anchored=anchored, noise_factor=_NOISE_FACTOR
        )


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


@dataclass(eq=False, repr=False)
class PDADPMD(Algorithm):
    """Mirror descent on private gradients, with the public loss as mirror map.

    Each step solves ``grad Psi(W_{t+1}) = grad Psi(W_t) - eta g_t``. Psi is the public mean loss plus the
    penalty of the warm start (the estimator's ``public_l2``). The result is the mean of the heads. Noise is
    damped in directions in which public rows determine the head well.

    Parameters
    ----------
    clip : float, default=0.5
        L2 threshold on each row's gradient, for rows of unit length.

    Notes
    -----
    *Guarantee*: one Gaussian release per step, of sensitivity ``clip``. The mirror step uses
    public rows and released sums only.

    The paper's constraint set is the whole space here. Its approximation for networks is
    ``NoisyGD(momentum=0, public_weight="cosine")``, and its second clip is ``second_clip``.

    ``learning_rate`` refers to a normalised Psi: the inverse of its Hessian has no eigenvalue above 1. The
    rule behind ``"auto"`` aims for the same noise in the outputs as in gradient descent. The noise is
    measured in this geometry on public rows, each held out in turn.

    References
    ----------
    "Public Data-Assisted Mirror Descent for Private Model Training" (PDA-DPMD), Algorithm 1,
    Appendix E.
    """

    _allowed: ClassVar = {"clip": (CLIP,)}

    clip: float = 0.5

    def pieces(self, info: PublicInfo, options: Options) -> Recipe:
        query = GradientQuery(L2Clip(self.clip), None, sum_to_zero=True)
        psi, start = PenalizedLoss.of(info.view.data), info.view.W
        # The mean of the heads has a third of the variance of the last head, which would allow longer steps.
        # Three quarters of these were best or nearly best on images, texts and a table, as for Coupling and
        # GEP.
        steps = BalancedSteps(
            options.learning_rate,
            0.0,
            options.l2 or 0.0,
            noise_factor=0.75 * math.sqrt(3) / psi.noise_gain(start),
            curvature=min(info.curvature, psi.relative_curvature(start)),
        )
        recipe = descent(
            info, options, query, momentum=0.0, anchored=False, weighting=ConstantWeight(0.0), steps=steps
        )
        return replace(recipe, update=UniformAverage(MirrorDescent(psi)))
