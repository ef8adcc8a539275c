"""What is asked of private rows in a step."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..linear import Loss, largest_entries, remove_mean_output, row_norm_bounds, scale_rows
from ..public import PublicView
from ..rows import Block, ContributeTensors, Contribution
from .contracts import Clip, Clipper, Part, Question, Rounds, StepContext, Subspace
from .tensors import clipped_tensor_residuals

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

    def for_mixing(self, bound_entries: Callable[[Clipper], Clipper]) -> "GradientQuery":
        """See :class:`~skmixdp.components.mixing.MixableQuery`."""
        if not self.subspace.is_full:
            raise ValueError(
                "ModelMix cannot wrap a release in a public subspace, whose noise leaves some coordinates "
                "without any; pass n_components=None to its base."
            )
        if self.second_clip is not None:
            raise ValueError(
                f"ModelMix cannot wrap second_clip={self.second_clip:g}, which changes the noisy sum; pass "
                "second_clip=None to its base."
            )
        return GradientQuery(bound_entries(self.clipper), self.subspace, sum_to_zero=False)

    def step(self, ctx: StepContext) -> Rounds:
        if ctx.public_weight == 1:
            return ctx.direction(np.zeros_like(ctx.W))
        # What goes to the rows holds neither the noise source nor the view.
        clip = self.clipper.at(ctx.view)
        space = self.subspace.at(ctx.view)
        (released,) = yield Question(
            points=ctx.W,
            contribute=ClippedResiduals(ctx.loss, clip),
            parts=(Part(clip.sensitivity(ctx.dtype) * space.gain),),
            assemble=lambda sums: (space.encode(_matrix(sums)),),
        )
        total = space.decode(released)
        if self.sum_to_zero and ctx.loss.sum_to_zero:
            total = remove_mean_output(total)
        mean = total / ctx.batch_size
        if self.second_clip is not None:
            mean *= self.second_clip / max(float(np.linalg.norm(mean)), self.second_clip)
        return ctx.direction(mean)


@dataclass(frozen=True)
class ClippedResiduals:
    """:func:`clipped_residuals` of one loss and clip, on the host or where a block's tensors lie."""

    loss: Loss
    clip: Clip

    def __call__(self, Z: FloatArray, block: Block) -> Contribution:
        return clipped_residuals(Z, block, self.loss, self.clip)

    @property
    def for_tensors(self) -> ContributeTensors | None:
        """See :class:`~skmixdp.rows.TensorContribution`."""
        return clipped_tensor_residuals(self.loss, self.clip)


def clipped_residuals(Z: FloatArray, block: Block, loss: Loss, clip: Clip) -> Contribution:
    """Residuals of a block, weighted so that each row's gradient obeys the clip."""
    C = loss.residuals(Z, block.y)
    factors = clip.weights(row_norm_bounds(C) * block.norms, lambda: largest_entries(C) * block.max_abs)
    scale_rows(C, factors)
    return C, None


def _matrix(sums: tuple[FloatArray | None, FloatArray | None]) -> FloatArray:
    matrix = sums[0]
    assert matrix is not None
    return matrix
