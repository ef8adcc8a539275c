"""Clipping rules, which bound the contribution of one row's gradient, and the query for a clipped sum.

A *clipper* is a rule. Once per step, ``at(view)`` fixes it from public values as a *clip*, which weights each
gradient by its norm and states the sensitivity that it guarantees for products in a dtype.
:func:`clip_rows` applies it.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from operator import attrgetter
from typing import Any

import numpy as np

from .._linear.arrays import (
    FARTHEST,
    Array,
    FloatArray,
    astype,
    drop_subnormal,
    dtype_of,
    in_library_of,
    largest_entries,
    namespace_of,
    remove_mean_output,
    row_norm_bounds,
    row_norms,
    scale_rows,
    shorten_rows,
)
from .._linear.losses import LogisticLoss, Loss, SoftmaxLoss, WeightedLoss
from .._linear.sums import dot_error
from .._rows.blockwise import LONGEST_ROW
from .._rows.source import LESS_CUT, BinCounts, Block, Contribution, MeanClip, OuterStatistics
from .protocols import (
    Clip,
    Clipper,
    Lengths,
    PrivateQuery,
    ReleasedArray,
    Rounds,
    StepContext,
    Subspace,
    term_lengths,
)
from .public import PublicView

# -- rules -----------------------------------------------------------------------------------


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
    once, to the dtype of precision ``eps`` or to a higher precision. Norms are upper bounds: in float64,
    where the relative error of a sum of up to a million squares is less than ``2**-33``; or in the dtype of
    the residuals, where :func:`~skmixdp._linear.arrays.shorten_rows` takes their rounding off the threshold.

    Source: AdaMix, Algorithm 1; Abadi et al. 2016.
    """

    threshold: float
    takes_tensors = True

    @property
    def l2_threshold(self) -> float | None:
        # A subclass may use other weights.
        return float(self.threshold) if type(self) is L2Clip else None

    def at(self, view: PublicView) -> "L2Clip":
        return self

    def weights(self, norms: Array, largest: Callable[[], Array]) -> Array:
        threshold = float(self.threshold)
        factors = threshold / norms.clip(
            threshold, math.inf
        )  # with a single bound it takes three times as long
        # NaN and infinite norms get factor 0. The maximum only decides whether any row needs this.
        finite = len(norms) == 0 or bool(norms.max() < math.inf)
        return factors if finite else namespace_of(norms).where(norms < math.inf, factors, 0.0)

    def sensitivity(self, dtype: np.dtype[Any]) -> float:
        return self.threshold * (1 + 4 * float(np.finfo(dtype).eps) + 2**-33)


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
    """L2 clipping at a quantile of the public rows' gradient norms at the current head, at least a ``floor``.

    A start that fits the public rows drives their gradients to zero. ``measure`` gives the lengths (n_pub,).

    *Guarantee*: as for :class:`L2Clip`. The threshold depends on public rows and released heads only.

    Source: AdaMix, section 3.2, "Adaptive threshold".
    """

    quantile: float
    floor: float
    measure: Callable[[PublicView], FloatArray] = attrgetter("gradient_norms")

    def at(self, view: PublicView) -> L2Clip:
        if view.data.n_rows == 0:
            return L2Clip(self.floor)
        return L2Clip(max(self.floor, float(np.quantile(self.measure(view), self.quantile))))


@dataclass(frozen=True)
class LipschitzClip:
    """L2 clipping at the loss's bound on gradients; never active for rows within ``row_norm_bound``.

    *Guarantee*: as for :class:`L2Clip`, and it holds even for a row that is longer.

    Source: AdaMix, Algorithm 3 (no clipping: the loss is L-Lipschitz).
    """

    row_norm_bound: float

    def at(self, view: PublicView) -> L2Clip:
        return L2Clip(view.data.loss.lipschitz * self.row_norm_bound)


# -- the query -------------------------------------------------------------------------------


@dataclass(frozen=True)
class GradientQuery:
    """The sum of clipped gradients, released in a subspace and mapped back.

    Parameters
    ----------
    clipper : Clipper
        Bounds each row's gradient.
    subspace : Subspace or None
        The subspace in which the sum is released. Gradients are clipped first and projected second. None is
        the whole space.
    sum_to_zero : bool
        Whether to remove the released sum's component outside the subspace of softmax gradients. This
        component is only noise (1/k of its energy).
    second_clip : float or None
        Bound on the norm of the private mean after the release (PDA-DPMD, Appendix F.2). Its noise alone may
        be longer than any mean of clipped gradients. None does not bound it.

    If the private mean has weight 0, there is no query and no release.

    *Guarantee*: one row moves the released array by at most the clip's sensitivity times the gain of the
    subspace.
    """

    clipper: Clipper
    subspace: Subspace | None
    sum_to_zero: bool
    second_clip: float | None = None

    def sensitivity(self, view: PublicView, dtype: np.dtype[Any]) -> float:
        return self.clipper.at(view).sensitivity(dtype)

    def step(self, ctx: StepContext) -> Rounds:
        if ctx.public_weight == 1:
            return ctx.direction(np.zeros_like(ctx.view.W))
        # The query may be sent to Dask workers, so it must hold neither the noise source nor the view.
        clip, loss = self.clipper.at(ctx.view), ctx.view.data.loss
        space = None if self.subspace is None else self.subspace.at(ctx.view)
        stated, lengths = ReleasedArray(clip.sensitivity(ctx.dtype)), Lengths(term_lengths)
        if space is not None:
            gained = stated.sensitivity * space.gain
            stated = replace(stated, sensitivity=gained, later_roundings=space.roundings)
            if (directions := space.directions) is not None:
                measure = partial(coordinate_lengths, width=directions.shape[1], gain=space.gain)
                lengths = Lengths(measure, directions)
        # The row source may compute plain L2 clips of plain losses in compiled loops (_linear/loops.py).
        threshold = clip.l2_threshold if type(loss) in (SoftmaxLoss, LogisticLoss) else None
        least = _least_threshold(loss.n_outputs, np.dtype(np.float32))
        (released,) = yield PrivateQuery(
            points=ctx.view.W,
            contribute=partial(clipped_residuals, loss=loss, clip=clip),
            releases=(stated,),
            assemble=tuple if space is None else lambda sums: tuple(map(space.encode, sums)),
            takes_tensors=clip.takes_tensors,
            clip_threshold=threshold if threshold is not None and least <= threshold <= FARTHEST else None,
            mean_clip=MeanClip(partial(unclipped_residuals, loss=loss), clip),
            lengths=lengths,
        )
        total = released if space is None else space.decode(released)
        if self.sum_to_zero and loss.sum_to_zero:
            total = remove_mean_output(total)
        mean = total / ctx.batch_size
        if self.second_clip is not None:
            mean *= self.second_clip / max(float(np.linalg.norm(mean)), self.second_clip)
        return ctx.direction(mean)


def clipped_residuals(Z: Array, block: Block, loss: Loss, clip: Clip) -> Contribution:
    """Clipped residuals (rows, k) of a block, from outputs ``Z`` that are overwritten; no statistics."""
    R = loss.residuals(Z, block.y)
    clip_rows(R, block, clip)
    return R, None


def unclipped_residuals(Z: FloatArray, block: Block, loss: Loss) -> Contribution:
    """Residuals (rows, k) of a block without a clip; no statistics. ``Z`` is overwritten."""
    return loss.residuals(Z, block.y), None


def weighted_query(query: PrivateQuery, loss: Loss, *, of_gradients: bool = False) -> PrivateQuery:
    """A query whose sums are weighted by the weights ``w`` of labels; without weights, the query itself.

    Gradients are clipped before. A threshold ``T`` for rows of weight 1 is ``min(T / w, 3 T)`` for others,
    which are cut less, and contribute no more than ``T``. So is a person's mean gradient, by the mean of the
    weights.

    *Guarantee*: weights and factors are in [0, 1], and rounding a product with them makes it no longer than
    the clipped gradient or the statistic was. What bounds the contribution of a row or a person still does.
    """
    if not isinstance(loss, WeightedLoss):
        return query
    mean_clip = query.mean_clip
    if mean_clip is not None:
        # Residuals are multiplied by the whole weight, since the mean of a person is clipped afterwards.
        contribute = partial(_weighted, contribute=mean_clip.contribute, loss=loss, of_gradients=False)
        mean_clip = replace(mean_clip, contribute=contribute, row_weights=partial(_row_weights, loss=loss))
    contribute = partial(_weighted, contribute=query.contribute, loss=loss, of_gradients=of_gradients)
    return replace(query, contribute=contribute, mean_clip=mean_clip, clip_threshold=None)


def _weighted(
    Z: Array,
    block: Block,
    contribute: Callable[[Array, Block], Contribution],
    loss: WeightedLoss,
    of_gradients: bool,
) -> Contribution:
    """The contribution of a query for a block of rows, times the weights of the rows."""
    labels, weights = loss.split(block.y)
    if weights is None:
        return contribute(Z, block)
    if of_gradients:
        # The loss applies the other part of the weight before residuals are clipped.
        before = weights.clip(1 / LESS_CUT, 1.0)
        labels, weights = loss.joined(block.y, before), (weights * LESS_CUT).clip(0.0, 1.0)
    C, S = contribute(Z, replace(block, y=labels))
    if C is not None:
        C = C * astype(in_library_of(C, weights), dtype_of(C))[:, None]
    if S is not None:
        S = np.asarray(S) if isinstance(S, OuterStatistics | BinCounts) else S
        S = S * astype(in_library_of(S, weights), dtype_of(S))[:, None]
    return C, S


def _row_weights(y: Any, loss: WeightedLoss) -> FloatArray:
    weights = loss.split(y)[1]
    return np.ones(len(y)) if weights is None else np.asarray(weights, np.float64)


def clip_rows(R: Array, block: Block, clip: Clip) -> None:
    """Scale each row of ``R`` (rows, k), in place, so that ``r_i x_i^T`` is within a clip."""
    threshold = clip.l2_threshold
    if threshold is None or not 1 / FARTHEST <= threshold <= FARTHEST or not isinstance(R, np.ndarray):
        _weigh_rows(R, block, clip)
    else:
        # These passes take half the time in the dtype of the residuals.
        lengths = block.norms if R.dtype == np.float64 else block.single_norms
        far = shorten_rows(R, lengths, threshold)
        if len(far):
            # All rows are computed this way, so that a row's result does not depend on the other rows.
            every = R.copy(order="K")
            _weigh_rows(every, block, clip)
            R[far] = every[far]
    # A subnormal entry is rounded by at most half of the smallest one. In a gradient, this is multiplied by
    # the length of the row.
    if threshold is None or threshold < _least_threshold(R.shape[1], dtype_of(R)):
        drop_subnormal(R)


def _least_threshold(k: int, dtype: np.dtype[Any]) -> float:
    """Smallest threshold at which the rounding of subnormal entries is negligible, for rows of any length."""
    smallest, eps = float(np.finfo(dtype).smallest_subnormal), float(np.finfo(dtype).eps)
    return math.sqrt(k) * smallest * LONGEST_ROW / eps


def _weigh_rows(R: Array, block: Block, clip: Clip) -> None:
    """Multiply each row of ``R`` (rows, k), in place, by the weight that a clip gives to its gradient."""
    norms = row_norm_bounds(R)
    norms *= block.norms
    scale_rows(R, clip.weights(norms, lambda: largest_entries(R) * block.max_abs))


def coordinate_lengths(
    C: FloatArray, S: None, products: FloatArray, block: Block, width: int, gain: float
) -> list[FloatArray]:
    """Upper bounds on the lengths of ``c_i (U^T x_i)^T``, by products (rows, P) of rows with U."""
    error = math.sqrt(products.shape[1]) * dot_error(width + 1, products.dtype)
    projected = row_norms(products) + error * block.rounding_scale
    return [row_norms(C) * np.minimum(projected, gain * block.norms)]


def clipped(values: FloatArray, bound: float, missing: float = 0.0) -> FloatArray:
    """Values (rows, m) clipped to ``[-bound, bound]``, in float64; NaN becomes ``missing``."""
    values = np.nan_to_num(values.astype(np.float64), nan=missing, posinf=bound, neginf=-bound)
    return np.clip(values, -bound, bound, out=values)


def scalars(bound: float, count: int, share: float) -> ReleasedArray:
    """The released array of ``count`` sums, with terms of at most ``bound`` in absolute value."""
    return ReleasedArray(math.nextafter(bound * math.sqrt(count), math.inf), share)
