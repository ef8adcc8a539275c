"""A clip that bounds the coordinates of gradients as well."""

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from ..._linear.arrays import Array, namespace_of
from ...components.protocols import Clip, Clipper
from ...components.public import PublicView


@dataclass(frozen=True)
class L2LinfClip:
    """A clip that also bounds every coordinate, by the L2 bound divided by ``sqrt(split)``.

    It uses one weight for the whole gradient. With :class:`L2Clip` of threshold ``c``, the weight is
    ``min(1, c / |g|_2, (c / sqrt(s)) / |g|_inf)``, where ``|r x^T|_inf = |r|_inf |x|_inf``. This gives the
    two bounds of the element-wise rule at the cost of a norm.

    *Guarantee*: a weighted gradient has an L2 norm of at most ``sensitivity(dtype)``, the sensitivity of the
    L2 rule times ``1 + 4 eps``. No entry exceeds ``sensitivity(dtype) / sqrt(split)``. The factor
    ``1 + 4 eps`` covers the rounding of the weight and its product with the residuals to the dtype of
    precision ``eps``.

    Source: ModelMix, section 4.2 and Algorithm 2, with a single weight instead of its truncation.
    """

    clipper: Clipper
    split: int

    def at(self, view: PublicView) -> "L2LinfClipAt":
        return L2LinfClipAt(self.clipper.at(view), self.split)


@dataclass(frozen=True)
class L2LinfClipAt(Clip):
    """:class:`L2LinfClip` with its public values fixed for one step."""

    clip: Clip
    split: int

    @property
    def takes_tensors(self) -> bool:  # type: ignore[override]
        return self.clip.takes_tensors

    def weights(self, norms: Array, largest: Callable[[], Array]) -> Array:
        xp, entries = namespace_of(norms), largest()
        bound = float(self.clip.sensitivity(np.dtype(np.float64))) / math.sqrt(self.split)
        factors = self.clip.weights(norms, largest)
        # A row of zeros has no entry to bound; a row that is not finite gets weight 0.
        allowed = bound / xp.where(entries > 0, entries, math.inf)
        smaller = xp.where((entries > 0) & (allowed < factors), allowed, factors)
        return xp.where(entries < math.inf, smaller, 0.0)

    def sensitivity(self, dtype: np.dtype[Any]) -> float:
        return self.clip.sensitivity(dtype) * (1 + 4 * float(np.finfo(dtype).eps))
