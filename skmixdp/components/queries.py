"""The query for a sum of clipped gradients."""

import math
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from .._linear import (
    FARTHEST,
    Array,
    FloatArray,
    LogisticLoss,
    Loss,
    SoftmaxLoss,
    dot_error,
    drop_subnormal,
    dtype_of,
    largest_entries,
    remove_mean_output,
    row_norm_bounds,
    row_norms,
    scale_rows,
    shorten_rows,
)
from .._rows import LONGEST_ROW, Block, Contribution, MeanClip
from .protocols import (
    Clip,
    Clipper,
    Lengths,
    PrivateQuery,
    ReleasedArray,
    Rounds,
    StepContext,
    Subspace,
    present_sums,
    term_lengths,
)
from .public import PublicView


@dataclass(frozen=True)
class GradientQuery:
    """The sum of clipped gradients, released in a subspace and mapped back.

    Parameters
    ----------
    clipper : Clipper
        Bounds each row's gradient.
    subspace : Subspace
        The subspace in which the sum is released. Gradients are clipped first and projected second.
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
    subspace: Subspace
    sum_to_zero: bool
    second_clip: float | None = None

    def sensitivity(self, view: PublicView, dtype: np.dtype[Any]) -> float:
        return self.clipper.at(view).sensitivity(dtype)

    def step(self, ctx: StepContext) -> Rounds:
        if ctx.public_weight == 1:
            return ctx.direction(np.zeros_like(ctx.W))
        # The query must hold neither the noise source nor the view: it may be sent to Dask workers.
        clip = self.clipper.at(ctx.view)
        space = self.subspace.at(ctx.view)
        lengths = Lengths(term_lengths)
        if (directions := space.directions) is not None:
            measure = partial(coordinate_lengths, width=directions.shape[1], gain=space.gain)
            lengths = Lengths(measure, directions)
        # The row source may do plain L2 clipping of plain losses in compiled loops (_linear/loops.py).
        threshold = clip.l2_threshold if type(ctx.loss) in (SoftmaxLoss, LogisticLoss) else None
        least = _least_threshold(ctx.loss.n_outputs, np.dtype(np.float32))
        (released,) = yield PrivateQuery(
            points=ctx.W,
            contribute=partial(clipped_residuals, loss=ctx.loss, clip=clip),
            releases=(
                ReleasedArray(clip.sensitivity(ctx.dtype) * space.gain, later_roundings=space.roundings),
            ),
            assemble=lambda sums: tuple(map(space.encode, present_sums(sums))),
            takes_tensors=clip.takes_tensors,
            clip_threshold=threshold if threshold is not None and least <= threshold <= FARTHEST else None,
            mean_clip=MeanClip(partial(unclipped_residuals, loss=ctx.loss), clip),
            lengths=lengths,
        )
        total = space.decode(released)
        if self.sum_to_zero and ctx.loss.sum_to_zero:
            total = remove_mean_output(total)
        mean = total / ctx.batch_size
        if self.second_clip is not None:
            mean *= self.second_clip / max(float(np.linalg.norm(mean)), self.second_clip)
        return ctx.direction(mean)


def clipped_residuals(Z: Array, block: Block, loss: Loss, clip: Clip) -> Contribution:
    """Residuals (rows, k) of a block, weighted such that each row's gradient obeys a clip; no statistics.

    ``Z`` (rows, k) holds outputs of the head, and is overwritten. It may be a tensor if the clip accepts
    tensors.
    """
    R = loss.residuals(Z, block.y)
    clip_rows(R, block, clip)
    return R, None


def unclipped_residuals(Z: FloatArray, block: Block, loss: Loss) -> Contribution:
    """Residuals (rows, k) of a block, of any length; no statistics. ``Z`` is overwritten."""
    return loss.residuals(Z, block.y), None


def clip_rows(R: Array, block: Block, clip: Clip) -> None:
    """Scale each row of ``R`` (rows, k), in place, such that ``r_i x_i^T`` obeys a clip."""
    threshold = clip.l2_threshold
    if threshold is None or not 1 / FARTHEST <= threshold <= FARTHEST or not isinstance(R, np.ndarray):
        _weigh_rows(R, block, clip)
    else:
        # In the dtype of the residuals, this takes half of the passes over them.
        lengths = block.norms if R.dtype == np.float64 else block.single_norms
        far = shorten_rows(R, lengths, threshold)
        if len(far):
            # All rows, so that the result of a row does not depend on how many others are far.
            every = R.copy(order="K")
            _weigh_rows(every, block, clip)
            R[far] = every[far]
    # The rounding of a subnormal entry is no fixed fraction of it. It is at most half of the smallest one,
    # times the length of the row.
    if threshold is None or threshold < _least_threshold(R.shape[1], dtype_of(R)):
        drop_subnormal(R)


def _least_threshold(k: int, dtype: np.dtype[Any]) -> float:
    """Threshold from which the rounding of subnormal entries does not matter, for rows of any length."""
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
    """Upper bounds on the lengths of ``c_i (U^T x_i)^T``.

    ``products`` (rows, P) of rows of this ``width`` with orthonormal directions are each off by at most
    ``dot_error`` of the row's length.
    """
    error = math.sqrt(products.shape[1]) * dot_error(width + 1, products.dtype)
    projected = row_norms(products) + error * block.rounding_scale
    return [row_norms(C) * np.minimum(projected, gain * block.norms)]
