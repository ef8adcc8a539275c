"""GEP."""

from collections.abc import Callable
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from .._engine import Options, Recipe
from .._params import COUNT, POSITIVE
from ..components import GepQuery, L2Clip, PublicQuantileClip
from ..components.protocols import Clipper, PublicInfo, PublicView
from ._base import MOMENTUM, OPEN_FRACTION, Algorithm, descent, refuse_exact_sums

FloatArray = NDArray[np.floating[Any]]

#: Best or near it on images, texts and a table, among seven step sizes.
_NOISE_FACTOR = 0.75


class GEP(Algorithm):
    """Noisy gradient descent in two parts: on public gradient directions, and the rest.

    Parameters
    ----------
    n_components : int or None, default=None
        Number of public gradient directions, the strongest first, at most as many as there
        are public rows; None takes all.
    clip : float or "quantile", default="quantile"
        L2 threshold on each row's coordinates.
    residual_clip : float or "quantile", default="quantile"
        L2 threshold on what the coordinates leave of each row's gradient.
    quantile : float, default=0.9
        ``"quantile"`` clips at this quantile of the public rows' own lengths at the current
        head, each measured on the directions of the other public rows: a public row lies in
        the span of all of them, where a private row does not.
    clip_floor : float, default=0.35
        Smallest clip of either part under the quantile rule, for rows of unit length; also the
        clip where there are no public rows. With ``sqrt(2)`` times the noise, a part's 0.35 costs
        what a clip of 0.5 costs where there is one part.
    momentum : float, default=0.9
        In [0, 1).
    center : {"zero", "public"}, default="zero"
        Centre of the L2 regulariser: the origin, or the start of the fit.

    Notes
    -----
    *Guarantee*: one Gaussian release per step. Coordinates and residuals take half of it each,
    with noise ``sqrt(2)`` times the multiplier times their own clip. The projection is subtracted
    before the noise, which leaves the grid that discrete noise needs, so ``noise="discrete"`` is
    refused.

    Directions come from the Gram matrix of the public rows' gradients and coordinates from
    products of rows, so neither memory nor time grows with the number of parameters times
    that of rows. With float32 rows, weak directions (many public rows, ``n_components=None``)
    make the guaranteed bound on a residual's length a little larger than the length.

    References
    ----------
    Yu et al. 2021, "Do Not Let Privacy Overbill Utility: Gradient Embedding Perturbation for
    Private Learning" (GEP), Algorithm 1; a baseline of Gong et al., "Private Zeroth-Order
    Optimization with Public Data" (PAZO), section 5.
    """

    _allowed: ClassVar = {
        "n_components": (COUNT, None),
        "clip": (POSITIVE, "quantile"),
        "residual_clip": (POSITIVE, "quantile"),
        "quantile": (OPEN_FRACTION,),
        "clip_floor": (POSITIVE,),
        "momentum": (MOMENTUM,),
        "center": ("zero", "public"),
    }

    def __init__(
        self,
        n_components: int | None = None,
        *,
        clip: float | str = "quantile",
        residual_clip: float | str = "quantile",
        quantile: float = 0.9,
        clip_floor: float = 0.35,
        momentum: float = 0.9,
        center: str = "zero",
    ) -> None:
        self.n_components = n_components
        self.clip = clip
        self.residual_clip = residual_clip
        self.quantile = quantile
        self.clip_floor = clip_floor
        self.momentum = momentum
        self.center = center

    def pieces(self, info: PublicInfo, options: Options) -> Recipe:
        refuse_exact_sums(self, options)
        query = GepQuery(
            self.n_components,
            self._clipper(self.clip, lambda view: view.embedding(self.n_components).held_out_coordinates),
            self._clipper(
                self.residual_clip, lambda view: view.embedding(self.n_components).held_out_residuals
            ),
            sum_to_zero=True,
        )
        anchored = self.center == "public"
        return descent(
            info, options, query, momentum=self.momentum, anchored=anchored, noise_factor=_NOISE_FACTOR
        )

    def _clipper(self, clip: float | str, measure: Callable[[PublicView], FloatArray]) -> Clipper:
        if isinstance(clip, str):
            return PublicQuantileClip(self.quantile, self.clip_floor, measure)
        return L2Clip(clip)
