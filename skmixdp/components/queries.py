"""What is asked of private rows in a step."""

from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .._linear import Array, Loss, largest_entries, remove_mean_output, row_norm_bounds, scale_rows
from .._rows import Block, Contribution
from ..public import PublicView
from .protocols import (
    Clip,
    Clipper,
    PrivateQuery,
    ReleasedArray,
    Rounds,
    StepContext,
    Subspace,
)

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
    second_clip : float or None
        Bound on the norm of the private mean after the release (PDA-DPMD, Appendix F.2), whose
        noise alone may be longer than any mean of clipped gradients; None does not bound it.

    Where the private mean has no weight, nothing is asked and nothing is released.

    *Guarantee*: one row moves the released array by at most the clip's sensitivity times
    the subspace's gain.
    """

    def __init__(
        self, clipper: Clipper, subspace: Subspace, sum_to_zero: bool, second_clip: float | None = None
    ) -> None:
        self.clipper = clipper
        self.subspace = subspace
        self.sum_to_zero = sum_to_zero
        self.second_clip = second_clip

    def sensitivity(self, view: PublicView, dtype: np.dtype[Any]) -> float:
        return self.clipper.at(view).sensitivity(dtype)

    def step(self, ctx: StepContext) -> Rounds:
        if ctx.public_weight == 1:
            return ctx.direction(np.zeros_like(ctx.W))
        # What goes to the rows holds neither the noise source nor the view.
        clip = self.clipper.at(ctx.view)
        space = self.subspace.at(ctx.view)
        (released,) = yield PrivateQuery(
            points=ctx.W,
            contribute=partial(clipped_residuals, loss=ctx.loss, clip=clip),
            releases=(
                ReleasedArray(clip.sensitivity(ctx.dtype) * space.gain, later_roundings=space.roundings),
            ),
            assemble=lambda sums: (space.encode(_matrix(sums)),),
            bounds_itself=True,
            takes_tensors=clip.takes_tensors,
        )
        total = space.decode(released)
        if self.sum_to_zero and ctx.loss.sum_to_zero:
            total = remove_mean_output(total)
        mean = total / ctx.batch_size
        if self.second_clip is not None:
            mean *= self.second_clip / max(float(np.linalg.norm(mean)), self.second_clip)
        return ctx.direction(mean)


def clipped_residuals(Z: Array, block: Block, loss: Loss, clip: Clip) -> Contribution:
    """Residuals of a block, weighted so that each row's gradient obeys a clip.

    Parameters
    ----------
    Z : array of shape (rows, k)
        Outputs of the head; overwritten. A tensor if the clip takes tensors.
    block : Block
        Labels and lengths of the rows.
    loss : Loss
        The loss of the head.
    clip : Clip
        Bounds the gradients.

    Returns
    -------
    C : array of shape (rows, k)
        Weighted residuals, in the dtype of ``Z``.
    S : None
    """
    R = loss.residuals(Z, block.y)
    norms = row_norm_bounds(R)
    norms *= block.norms
    scale_rows(R, clip.weights(norms, lambda: largest_entries(R) * block.max_abs))
    return R, None


def _matrix(sums: tuple[FloatArray | None, FloatArray | None]) -> FloatArray:
    matrix = sums[0]
    assert matrix is not None
    return matrix
