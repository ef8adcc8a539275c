"""Clipping rules: factors that bound the contribution of one row's gradient.

A *clipper* is a rule. Once per step, ``at(view)`` fixes it from public values as a *clip*, which weights each
gradient by its norm and states the sensitivity that it guarantees for products in a dtype.
:func:`~skmixdp.components.queries.clip_rows` applies it.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from .._linear import Array, FloatArray, namespace_of
from .protocols import Clip, Clipper
from .public import PublicView


@dataclass(frozen=True)
class L2Clip(Clip):
    """L2 clipping: scales gradients longer than ``threshold`` down to it. It is its own clipper.

    A row whose norm is not finite gets the factor 0.

    Parameters
    ----------
    threshold : float
        The largest norm, above 0.

    *Guarantee*: a weighted gradient ``c_i r_i x_i^T`` has norm at most ``threshold`` times
    ``1 + 4 eps + 2**-33``. The threshold, the factor and its product with the residuals are each rounded
    once, to the dtype of precision ``eps`` or to a higher precision. Norms are upper bounds, made of lengths
    of rows in float64. There the relative error of a sum of up to a million squares is less than ``2**-33``.

    Source: AdaMix, Algorithm 1; Abadi et al. 2016.
    """

    threshold: float
    takes_tensors = True

    @property
    def l2_threshold(self) -> float | None:
        # A class that is derived from this one may have other weights.
        return float(self.threshold) if type(self) is L2Clip else None

    def at(self, view: PublicView) -> "L2Clip":
        return self

    def weights(self, norms: Array, largest: Callable[[], Array]) -> Array:
        threshold = float(self.threshold)
        factors = threshold / norms.clip(
            threshold, math.inf
        )  # with only one bound it takes three times as long
        # NaN and infinite norms get factor 0. The maximum only decides whether any row needs it.
        finite = len(norms) == 0 or bool(norms.max() < math.inf)
        return factors if finite else namespace_of(norms).where(norms < math.inf, factors, 0.0)

    def sensitivity(self, dtype: np.dtype[Any]) -> float:
        return self.threshold * (1 + 4 * float(np.finfo(dtype).eps) + 2**-33)


def gradient_norms(view: PublicView) -> FloatArray:
    """Lengths (n_pub,) of the public rows' gradients."""
    return view.gradient_norms


def deviation_norms(view: PublicView) -> FloatArray:
    """Lengths (n_pub,) of the public rows' gradients minus their mean."""
    return view.deviation_norms


@dataclass(frozen=True)
class AutomaticClip(Clip):
    """Automatic clipping: divides each gradient by its norm plus ``gamma``. It is its own clipper.

    There is no threshold to choose. Short gradients keep their order of size, and the length of long
    gradients tends to 1. A row whose norm is not finite gets the factor 0.

    Parameters
    ----------
    gamma : float
        The number that is added to the norm, above 0.

    *Guarantee*: a weighted gradient has norm at most ``|g| / (|g| + gamma) < 1``, times the rounding
    allowed for in :class:`L2Clip`. ``gamma`` must be positive.

    Source: Coupling, section 2.2; Bu et al. 2023, "Automatic clipping".
    """

    gamma: float
    takes_tensors = True

    def at(self, view: PublicView) -> "AutomaticClip":
        return self

    def weights(self, norms: Array, largest: Callable[[], Array]) -> Array:
        return namespace_of(norms).where(norms < math.inf, 1 / (norms + float(self.gamma)), 0.0)

    def sensitivity(self, dtype: np.dtype[Any]) -> float:
        return 1 + 4 * float(np.finfo(dtype).eps) + 2**-33


@dataclass(frozen=True)
class PublicQuantileClip:
    """L2 clipping at a quantile of the public rows' gradient norms at the current head.

    Parameters
    ----------
    quantile : float
        Which quantile of the norms is the threshold, between 0 and 1.
    floor : float
        The smallest threshold, also used without public rows. It is needed because a start that fits the
        public rows drives their gradients to zero.
    measure : callable
        ``view -> lengths`` of shape (n_pub,), for queries that clip something other than gradients.

    *Guarantee*: as for :class:`L2Clip`. The threshold depends on public rows and released heads only.

    Source: AdaMix, section 3.2, "Adaptive threshold".
    """

    quantile: float
    floor: float
    measure: Callable[[PublicView], FloatArray] = gradient_norms

    def at(self, view: PublicView) -> L2Clip:
        if view.n_rows == 0:
            return L2Clip(self.floor)
        return L2Clip(max(self.floor, float(np.quantile(self.measure(view), self.quantile))))


@dataclass(frozen=True)
class LipschitzClip:
    """L2 clipping at the loss's bound on gradients; never active for rows within ``row_norm_bound``.

    Parameters
    ----------
    row_norm_bound : float
        A length that no mapped row exceeds.

    *Guarantee*: as for :class:`L2Clip`, and it holds even for a row that is longer.

    Source: AdaMix, Algorithm 3 (no clipping: the loss is L-Lipschitz).
    """

    row_norm_bound: float

    def at(self, view: PublicView) -> L2Clip:
        return L2Clip(view.data.loss.lipschitz * self.row_norm_bound)


@dataclass(frozen=True)
class L2LinfClip:
    """A clip that also bounds every coordinate, by the L2 bound divided by ``sqrt(split)``.

    It uses one weight for the whole gradient. With :class:`L2Clip` of threshold ``c``, the weight is
    ``min(1, c / |g|_2, (c / sqrt(s)) / |g|_inf)``, where ``|r x^T|_inf = |r|_inf |x|_inf``. This gives the
    two bounds of the element-wise rule at the cost of a norm.

    Parameters
    ----------
    clipper : Clipper
        The L2 rule.
    split : int
        ``s`` of at least 1: a row that reaches the bound moves at least ``s`` coordinates.

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
