"""What is asked of private rows in a step."""

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from .._linear import Loss, largest_entries, remove_mean_output, row_norm_bounds, scale_rows
from .._rows import Block, ContributeTensors, Contribution
from ..public import PublicView
from .protocols import (
    Clip,
    Clipper,
    PrivateQuery,
    ReleasedArray,
    Rounds,
    StepContext,
    Subspace,
    joint_weights,
)
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

    def step(self, ctx: StepContext) -> Rounds:
        if ctx.public_weight == 1:
            return ctx.direction(np.zeros_like(ctx.W))
        # What goes to the rows holds neither the noise source nor the view.
        clip = self.clipper.at(ctx.view)
        space = self.subspace.at(ctx.view)
        (released,) = yield PrivateQuery(
            points=ctx.W,
            contribute=ClippedResiduals(ctx.loss, (clip,)),
            releases=(
                ReleasedArray(clip.sensitivity(ctx.dtype) * space.gain, later_roundings=space.roundings),
            ),
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
    """What a gradient query asks of each row, for one head or for several side by side.

    Attributes
    ----------
    loss : Loss
        The loss of each head.
    clips : tuple of Clip
        One for each head.
    """

    #: See :class:`~skmixdp._rows.source.Request`.
    bounds_itself: ClassVar[bool] = True

    loss: Loss
    clips: tuple[Clip, ...]

    def __call__(self, Z: FloatArray, block: Block) -> Contribution:
        return clipped_residuals(Z, block, self.loss, *self.clips)

    def beside(self, other: object) -> "ClippedResiduals | None":
        """One query for this one's heads and the other's; None where their losses differ."""
        if not isinstance(other, ClippedResiduals) or self.loss != other.loss:
            return None
        return ClippedResiduals(self.loss, self.clips + other.clips)

    @property
    def for_tensors(self) -> ContributeTensors | None:
        """See :class:`~skmixdp._rows.TensorContribution`; one head at a time, as devices are asked."""
        return clipped_tensor_residuals(self.loss, self.clips[0]) if len(self.clips) == 1 else None


def clipped_residuals(Z: FloatArray, block: Block, loss: Loss, *clips: Clip) -> Contribution:
    """Residuals of a block, weighted so that each row's gradient obeys the clip of its head.

    Parameters
    ----------
    Z : array of shape (rows, m k)
        Outputs of m heads side by side; overwritten.
    block : Block
        Labels and lengths of the rows.
    loss : Loss
        The loss of each head.
    *clips : Clip
        m of them.

    Returns
    -------
    C : array of shape (rows, m k)
        Weighted residuals.
    S : None
    """
    heads = Z.reshape(len(Z), len(clips), Z.shape[1] // len(clips)).swapaxes(0, 1)
    # All of this is one pass each over the outputs of all heads; residuals are scaled once.
    E, scale = loss.scaled_residuals(heads, block.y)
    norms = row_norm_bounds(E)
    norms *= scale
    norms *= block.norms
    factors = joint_weights(clips, norms, lambda: largest_entries(E) * scale * block.max_abs)
    factors *= scale
    scale_rows(E, factors)
    return E.swapaxes(0, 1).reshape(Z.shape), None


def _matrix(sums: tuple[FloatArray | None, FloatArray | None]) -> FloatArray:
    matrix = sums[0]
    assert matrix is not None
    return matrix
