"""Gradients in two parts: their coordinates on public gradients, and the rest."""

import math
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .._kernels import LONGEST_TERM
from .._linear import GradientEmbedding, Loss, remove_mean_output, row_norms, scale_rows
from .._rows import Block, Contribution
from ..public import PublicView
from .protocols import Clip, Clipper, PrivateQuery, ReleasedArray, Rounds, StepContext

FloatArray = NDArray[np.floating[Any]]


class GepQuery:
    """Coordinates on public gradient directions and the residual, clipped separately.

    ``z_i = V^T g_i`` and ``g_i - V z_i`` are released together. Each takes half of the step, so
    each part's noise is ``sqrt(2) noise_multiplier`` times its own sensitivity. Where there is
    no public gradient the residual is all there is, and takes the whole step.

    Parameters
    ----------
    n_components : int or None
        Largest number of directions; None takes the span of all public gradients.
    clipper, residual_clipper : Clipper
        Bound each row's coordinates and each row's residual.
    sum_to_zero : bool
        Remove the released sum's component outside the subspace in which softmax gradients
        lie.

    *Guarantee*: one row moves the coordinates' sum by at most the first clip's sensitivity
    and the residuals' sum by at most the second's, rounding included: coordinates are clipped
    as the numbers that they are, and the length of a residual is an upper bound of the true
    one (:meth:`GradientEmbedding.residual_bounds`). Sums are added in double precision, since
    the terms of a residual may be a thousand times longer than itself. The basis depends on public rows and
    released heads only.

    Source: GEP (Yu et al. 2021, "Do Not Let Privacy Overbill Utility: Gradient Embedding
    Perturbation for Private Learning"), Algorithm 1, for heads in closed form.
    """

    def __init__(
        self, n_components: int | None, clipper: Clipper, residual_clipper: Clipper, sum_to_zero: bool
    ) -> None:
        self.n_components = n_components
        self.clipper = clipper
        self.residual_clipper = residual_clipper
        self.sum_to_zero = sum_to_zero

    def sensitivity(self, view: PublicView, dtype: np.dtype[Any]) -> float:
        releases = self._parts(view, dtype)
        return max(part.sensitivity / math.sqrt(part.share) for part in releases)

    def step(self, ctx: StepContext) -> Rounds:
        embedding = ctx.view.embedding(self.n_components)
        inside, outside = self.clipper.at(ctx.view), self.residual_clipper.at(ctx.view)
        # What goes to the rows holds neither the noise source nor the view.
        q, loss = embedding.n_components, ctx.loss

        def assemble(sums: tuple[FloatArray | None, FloatArray | None]) -> tuple[FloatArray, ...]:
            matrix, weighted = sums
            assert matrix is not None and weighted is not None
            residual = matrix - embedding.gradient(weighted[q:], embedding.precision)
            return (weighted[:q], residual) if q else (residual,)

        *coordinates, total = yield PrivateQuery(
            points=np.concatenate([ctx.W, embedding.X]),
            contribute=lambda Z, block: clipped_parts(Z, block, loss, embedding, inside, outside),
            releases=self._parts(ctx.view, ctx.dtype),
            assemble=assemble,
            wide_sums=True,
        )
        for z in coordinates:
            total = total + embedding.gradient(z)
        if self.sum_to_zero and ctx.loss.sum_to_zero:
            total = remove_mean_output(total)
        return ctx.direction(total / ctx.batch_size)

    def _parts(self, view: PublicView, dtype: np.dtype[Any]) -> tuple[ReleasedArray, ...]:
        embedding = view.embedding(self.n_components)
        # Terms of the sums from which residuals are computed are longer by no more than this.
        sensitivity = self.residual_clipper.at(view).sensitivity(dtype)
        residual = ReleasedArray(
            sensitivity,
            longest_term=LONGEST_TERM * sensitivity,
            later_roundings=embedding.rounding,
        )
        if embedding.n_components == 0:
            return (residual,)
        # Coordinates are computed and weighted in float64, whatever the rows' precision.
        inside = self.clipper.at(view).sensitivity(np.dtype(np.float64))
        return ReleasedArray(inside, 0.5), replace(residual, share=0.5)


def clipped_parts(
    Z: FloatArray, block: Block, loss: Loss, embedding: GradientEmbedding, inside: Clip, outside: Clip
) -> Contribution:
    """Weighted residuals, and each row's coordinates with either part's weight.

    Parameters
    ----------
    Z : array of shape (rows, k + m)
        Products of the rows with the head and with the embedding's anchor rows.
    block : Block
        Labels and lengths of the rows.
    loss : Loss
        The loss of the head.
    embedding : GradientEmbedding
        The basis ``V`` of q directions.
    inside, outside : Clip
        Bounds on coordinates and on residuals, with factors ``a_i`` and ``c_i``.

    Returns
    -------
    C : array of shape (rows, k)
        ``c_i r_i``, in the dtype of ``Z``.
    S : array of shape (rows, 2 q)
        ``a_i z_i`` and ``c_i z_i``, float64; the sum of residuals is ``C^T X`` less the gradient
        of the second half's sum.
    """
    k = loss.n_outputs
    C = loss.residuals(Z[:, :k], block.y)
    R = C.astype(np.float64, copy=False)
    z = embedding.coordinates(R, Z[:, k:])
    bounds = embedding.residual_bounds(row_norms(R), block.norms, z, C.dtype, block.rounding_scale)
    z[~np.isfinite(bounds)] = 0  # such a row has no part in either sum
    # A length bounds every entry too; a rule for entries could only be more careful.
    factors = scale_rows(C, outside.weights(bounds, lambda: bounds))[:, np.newaxis]
    lengths = row_norms(z)
    S = np.concatenate([inside.weights(lengths, lambda: lengths)[:, np.newaxis] * z, factors * z], axis=1)
    return C, S
