"""AdaMix: start, clip and subspace from public rows."""

from dataclasses import KW_ONLY, dataclass
from typing import Any, ClassVar

from .._engine import Options, Recipe
from .._utils.validation import CLIP, COUNT
from ..components import GradientQuery
from ..components.clipping import PublicQuantileClip
from ..components.protocols import PublicInfo, Subspace
from ..components.subspaces import PublicSubspace
from ._base import MOMENTUM, OPEN_FRACTION, WEIGHTS, Algorithm, descent, weighting_of


@dataclass(eq=False, repr=False)
class AdaMix(Algorithm):
    """Noisy gradient descent that takes start, clip and subspace from public rows.

    Parameters
    ----------
    quantile : float, default=0.9
        The clip is this quantile of the public rows' gradient norms at the current head.
    clip_floor : float, default=0.5
        Smallest clip, for rows of unit length. It is also the clip if there are no public rows.
    n_components : int or None, default=None
        Dimension of the public subspace in which the private sum is released. The leading singular
        directions of the public gradient come first, then the principal directions of the public rows. The
        dimension is at most the rank of both together. None does not project.
    momentum : float, default=0.9
        Momentum in [0, 1). The paper uses 0.
    center : {"zero", "public"}, default="zero"
        Centre of the L2 regulariser. ``"zero"`` is the origin, as in the paper's experiments. ``"public"`` is
        the start of the fit, the public solution in the paper's Theorem 3.
    public_weight : {"sample", "coupling", "convex", "cosine"}, float or object, default="sample"
        Weight of the public mean gradient; the private mean gradient gets the rest. Pass a rule's name, a
        number in [0, 1], or a rule from :mod:`skmixdp.components`. ``"sample"`` gives every row the same
        weight.

    Notes
    -----
    *Guarantee*: one full-batch Gaussian release per step, of sensitivity ``clip * |basis|`` with an
    orthonormal basis. Clip, basis and start depend on public rows and released heads only.

    To reproduce the paper's setting, pass ``momentum=0`` and ``n_components=2000`` (of 2048 features). Pass
    ``noise_multiplier=20`` to the estimator. The variant of the paper's Theorem 3 is ``NoisyGD("lipschitz",
    radius=..., center="public", schedule="decaying", average=True)``.

    References
    ----------
    Golatkar et al. 2022, "Mixed Differential Privacy in Computer Vision" (AdaMix),
    section 3.2, Algorithms 2 and 3.
    """

    _allowed: ClassVar = {
        "quantile": (OPEN_FRACTION,),
        "clip_floor": (CLIP,),
        "n_components": (COUNT, None),
        "momentum": (MOMENTUM,),
        "center": ("zero", "public"),
        "public_weight": WEIGHTS,
    }

    quantile: float = 0.9
    _: KW_ONLY
    clip_floor: float = 0.5
    n_components: int | None = None
    momentum: float = 0.9
    center: str = "zero"
    public_weight: Any = "sample"

    def pieces(self, info: PublicInfo, options: Options) -> Recipe:
        clipper = PublicQuantileClip(quantile=self.quantile, floor=self.clip_floor)
        subspace: Subspace | None = None
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
