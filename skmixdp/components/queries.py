"""What is asked of private rows in a step."""

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..linear import Loss, remove_mean_output, row_norms
from ..public import PublicView
from ..rows import Block, Contribution
from .contracts import Clip, Clipper, Part, Question, Rounds, StepContext, Subspace

FloatArray = NDArray[np.floating[Any]]


class GradientQuery:
    """The clipped gradient sum, released in a subspace and brought back.

    Parameters
    ----------
    clipper : Clipper
        Bounds each row's gradient.
    subspace : Subspace
        Where the sum is released. Clipped first, projected second.
    sum_to_zero : bool
        Remove the released sum's component outside the subspace in which softmax gradients
        lie; it holds nothing but noise (1/k of its energy).

    *Guarantee*: one row moves the released array by at most the clip's sensitivity times
    the subspace's gain.
    """

    def __init__(self, clipper: Clipper, subspace: Subspace, sum_to_zero: bool) -> None:
        self.clipper = clipper
        self.subspace = subspace
        self.sum_to_zero = sum_to_zero

    def sensitivity(self, view: PublicView, dtype: np.dtype[Any]) -> float:
        return self.clipper.at(view).sensitivity(dtype)

    def for_mixing(self, bound_entries: Callable[[Clipper], Clipper]) -> "GradientQuery":
        """See :class:`~skmixdp.components.mixing.MixableQuery`."""
        if not self.subspace.is_full:
            raise ValueError(
                "ModelMix cannot wrap a release in a public subspace, whose noise leaves some coordinates "
                "without any; pass n_components=None to its base."
            )
        return GradientQuery(bound_entries(self.clipper), self.subspace, sum_to_zero=False)

    def step(self, ctx: StepContext) -> Rounds:
        clip = self.clipper.at(ctx.view)
        space = self.subspace.at(ctx.view)
        (released,) = yield Question(
            points=ctx.W,
            contribute=lambda Z, block: clipped_residuals(Z, block, ctx.loss, clip),
            parts=(Part(clip.sensitivity(ctx.dtype) * space.gain),),
            assemble=lambda sums: (space.encode(_matrix(sums)),),
        )
        total = space.decode(released)
        if self.sum_to_zero and ctx.loss.sum_to_zero:
            total = remove_mean_output(total)
        return ctx.direction(total / ctx.batch_size)


def clipped_residuals(Z: FloatArray, block: Block, loss: Loss, clip: Clip) -> Contribution:
    """Residuals of a block, weighted so that each row's gradient obeys the clip."""
    C = loss.residuals(Z, block.y)
    # One conversion of the block: the sum of squares would convert piece by piece, at twice the time.
    norms = row_norms(_in_float64(C))
    factors = clip.weights(norms * block.norms, lambda: _largest(C) * _in_float64(block.max_abs))
    # Below the smallest normal number of the residuals' dtype a factor is rounded by more than
    # the clip states; only residuals without bound are that long.
    factors[factors < np.finfo(C.dtype).tiny] = 0
    C *= factors[:, np.newaxis].astype(C.dtype)
    C[factors == 0] = 0  # a factor of 0 does not remove a NaN by multiplication
    return C, None


def _largest(C: FloatArray) -> FloatArray:
    """Largest absolute entry of each row, (n,), float64: no product of two may overflow."""
    return _in_float64(np.abs(C).max(axis=1))


def _in_float64(values: FloatArray) -> FloatArray:
    return values.astype(np.float64, copy=False)


def _matrix(sums: tuple[FloatArray | None, FloatArray | None]) -> FloatArray:
    matrix = sums[0]
    assert matrix is not None
    return matrix
