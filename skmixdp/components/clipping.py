"""Clipping: factors that bound what one row's gradient can contribute.

A rule is fixed once per step from public values, then weighs the gradients by their norms.
Each states the sensitivity that it guarantees in the dtype in which the products run.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .._linear import Array, namespace_of
from ..public import PublicView
from .protocols import Clip, Clipper

FloatArray = NDArray[np.floating[Any]]


@dataclass(frozen=True)
class L2Clip(Clip):
    """Scale gradients longer than ``threshold`` down to it. Also its own clipper.

    A row whose norm is not finite gets factor 0.

    *Guarantee*: a weighted gradient ``c_i r_i x_i^T`` has norm at most ``threshold`` times
    ``1 + 4 eps + 2**-33``: the factor and its product with the residuals are each rounded
    once to the dtype of precision ``eps``; norms are accumulated in float64, where a sum of
    up to a million squares is off by less than ``2**-33`` of itself.

    Source: AdaMix, Algorithm 1; Abadi et al. 2016.
    """

    threshold: float
    takes_tensors = True

    def at(self, view: PublicView) -> "L2Clip":
        return self

    def weights(self, norms: Array, largest: Callable[[], Array]) -> Array:
        threshold = float(self.threshold)
        return namespace_of(norms).where(norms < math.inf, threshold / norms.clip(min=threshold), 0.0)

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
    """Divide each gradient by its norm plus ``gamma``: no threshold to choose. Also its own clipper.

    Short gradients keep their order of size, long ones tend to length 1. A row whose norm is
    not finite gets factor 0.

    *Guarantee*: a weighted gradient has norm below ``|g| / (|g| + gamma) < 1``, times the
    rounding allowed for in :class:`L2Clip`; ``gamma`` must be positive.

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

    ``floor`` keeps the threshold away from zero, to which a start that fits the public rows
    drives their gradients; it is the threshold where there are no public rows. ``measure``
    gives other lengths of the public rows (n_pub,), for queries that clip something else.

    *Guarantee*: that of :class:`L2Clip`; the threshold depends on public rows and released
    heads only.

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
    """L2 clipping at the loss's own bound on gradients of rows of known length: never active.

    *Guarantee*: that of :class:`L2Clip`, which still holds should a row be longer.

    Source: AdaMix, Algorithm 3 (no clipping: the loss is L-Lipschitz).
    """

    row_norm_bound: float

    def at(self, view: PublicView) -> L2Clip:
        return L2Clip(view.data.loss.lipschitz * self.row_norm_bound)


class L2LinfClip:
    """A clip that also keeps every coordinate below its L2 bound over ``sqrt(split)``.

    One weight for the whole gradient: with :class:`L2Clip` of threshold ``c`` it is
    ``min(1, c / |g|_2, (c / sqrt(s)) / |g|_inf)``, where ``|r x^T|_inf = |r|_inf |x|_inf``. That
    gives the two bounds of the element-wise rule at the cost of a norm.

    Parameters
    ----------
    clipper : Clipper
        The L2 rule.
    split : int
        ``s`` of at least 1: a row that reaches the bound moves at least ``s`` coordinates.

    *Guarantee*: a weighted gradient has an L2 norm of at most ``sensitivity(dtype)``, that of
    the L2 rule times ``1 + 4 eps``, and no entry above ``largest_entry(dtype)``, which is
    ``sensitivity(dtype) / sqrt(split)``. The factor ``1 + 4 eps`` allows for rounding the weight and
    its product with the residuals to the dtype of precision ``eps``.

    Source: ModelMix, section 4.2 and Algorithm 2; a single weight in place of its truncation.
    """

    def __init__(self, clipper: Clipper, split: int) -> None:
        self.clipper = clipper
        self.split = split

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
        # A row of zeros has no entry to bound; one that is not finite gets no weight.
        allowed = bound / xp.where(entries > 0, entries, math.inf)
        smaller = xp.where((entries > 0) & (allowed < factors), allowed, factors)
        return xp.where(entries < math.inf, smaller, 0.0)

    def sensitivity(self, dtype: np.dtype[Any]) -> float:
        return self.clip.sensitivity(dtype) * (1 + 4 * float(np.finfo(dtype).eps))

    def largest_entry(self, dtype: np.dtype[Any]) -> float:
        """Guaranteed bound on the entries of a weighted gradient computed in ``dtype``."""
        return self.sensitivity(dtype) / math.sqrt(self.split)
