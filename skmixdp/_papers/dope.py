"""DOPE-SGD: clipping of differences from the public gradient."""

from dataclasses import KW_ONLY, dataclass
from typing import ClassVar

from .._engine import Options, Recipe
from .._utils.validation import CLIP_OF_DIFFERENCES
from ..algorithms._base import MOMENTUM, OPEN_FRACTION, Algorithm, descent
from ..components.protocols import PublicInfo
from .differences import clipper_of, refuse_exact_sums
from .dope_query import DopeQuery, deviation_norms


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
        query = DopeQuery(clipper, sum_to_zero=True)
        return descent(info, options, query, momentum=self.momentum, anchored=self.center == "public")
