"""Gradients in two parts: coordinates on public gradient directions, and residuals."""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np

from .._linear.arrays import FloatArray, remove_mean_output, row_norms, scale_rows
from .._linear.losses import Loss
from .._linear.sums import SHORTEST_DIFFERENCE, panel_rows_for
from .._rows.source import Block, Contribution, OuterStatistics
from ..components.protocols import Clip, Clipper, Lengths, PrivateQuery, ReleasedArray, Rounds, StepContext
from ..components.public import PublicView
from .embedding import GradientEmbedding, embedding_of

#: Bound on the length of a gradient plus its part on the directions, in units of the longest gradient.
_TOGETHER = 2.25

#: Margin for the rounding of a row's weight.
_MARGIN = 1.01

#: Tolerated increase of the sensitivity of a sum by the rounding of projections, as a fraction.
_ADDED = 0.01
#: Number of rows in a sum for which the tolerance is computed.
_MANY_ROWS = 10**6


@dataclass(frozen=True)
class GepQuery:
    """The sums of coordinates on public gradient directions and of residuals, clipped separately.

    ``z_i = V^T g_i`` and ``g_i - V z_i`` are released together. Each uses half of the step, so the noise of
    each part is ``sqrt(2) noise_multiplier`` times its own sensitivity. Without public gradients, there is
    only the residual, which uses the whole step.

    Gradients are expected not to exceed ``longest_gradient``. The guarantee does not rely on it. If it is
    finite, less rounding has to be added to the sensitivity, and a step takes less time.

    *Guarantee*: one row moves the sum of coordinates by at most the sensitivity of the first clip. It moves
    the sum of residuals by at most the sensitivity of the second clip. Both include rounding: coordinates
    are clipped as computed, and the length of a residual is an upper bound of the true length
    (:meth:`GradientEmbedding.residual_bounds`). Sums are added in double precision, or in single precision
    for a few rows at a time, since the terms of a residual may be much longer than the residual. How much
    longer is enforced: a residual counts as no shorter than a fixed part of its two terms. The basis depends
    on public rows and released heads only.

    Source: GEP (Yu et al. 2021, "Do Not Let Privacy Overbill Utility: Gradient Embedding
    Perturbation for Private Learning"), Algorithm 1, for heads in closed form.
    """

    n_components: int | None
    clipper: Clipper
    residual_clipper: Clipper
    sum_to_zero: bool
    longest_gradient: float = math.inf

    def sensitivity(self, view: PublicView, dtype: np.dtype[Any]) -> float:
        releases = self._parts(view, dtype)
        return max(part.sensitivity / math.sqrt(part.share) for part in releases)

    def step(self, ctx: StepContext) -> Rounds:
        embedding = embedding_of(ctx.view, self.n_components)
        inside, outside = self.clipper.at(ctx.view), self.residual_clipper.at(ctx.view)
        # The query may be sent to Dask workers, so it must hold neither the noise source nor the view.
        q, loss = embedding.n_components, ctx.view.data.loss
        shortest = self._shortest(outside.sensitivity(ctx.dtype))
        tolerance = _tolerance(shortest)

        def assemble(sums: Sequence[FloatArray]) -> tuple[FloatArray, ...]:
            matrix, weighted = sums
            residual = matrix - embedding.gradient(weighted[q:], tolerance=tolerance)
            return (weighted[:q], residual) if q else (residual,)

        *coordinates, total = yield PrivateQuery(
            points=np.concatenate([ctx.view.W, embedding.X]),
            contribute=lambda Z, block: clipped_parts(Z, block, loss, embedding, inside, outside, shortest),
            releases=self._parts(ctx.view, ctx.dtype),
            assemble=assemble,
            panel_rows=panel_rows_for(_MARGIN / shortest),
            n_fixed=len(embedding.X),
            lengths=Lengths(partial(part_lengths, embedding=embedding)),
        )
        for z in coordinates:
            total = total + embedding.gradient(z)
        if self.sum_to_zero and loss.sum_to_zero:
            total = remove_mean_output(total)
        return ctx.direction(total / ctx.batch_size)

    def _parts(self, view: PublicView, dtype: np.dtype[Any]) -> tuple[ReleasedArray, ...]:
        embedding = embedding_of(view, self.n_components)
        sensitivity = self.residual_clipper.at(view).sensitivity(dtype)
        shortest = self._shortest(sensitivity)
        residual = ReleasedArray(
            sensitivity,
            # Residuals are differences of two sums, whose terms may be longer than the residuals.
            longest_term=_MARGIN / shortest * sensitivity,
            later_roundings=embedding.rounding(_tolerance(shortest)),
        )
        if embedding.n_components == 0:
            return (residual,)
        # Coordinates are weighted in float64, whatever the precision of the rows.
        inside = self.clipper.at(view).sensitivity(np.dtype(np.float64))
        return ReleasedArray(inside, 0.5), replace(residual, share=0.5)

    def _shortest(self, sensitivity: float) -> float:
        """Minimum length assumed for a residual, divided by the summed lengths of gradient and coordinates.

        If a gradient is no longer than expected, a residual this short is not clipped, so nothing changes.
        """
        return max(SHORTEST_DIFFERENCE, min(sensitivity / (_TOGETHER * self.longest_gradient), 1.0))


def _tolerance(shortest: float) -> float:
    """Tolerated rounding error of a projection, relative to the length of a gradient."""
    return _ADDED * shortest / (4 * _MANY_ROWS)


def clipped_parts(
    Z: FloatArray,
    block: Block,
    loss: Loss,
    embedding: GradientEmbedding,
    inside: Clip,
    outside: Clip,
    shortest: float = SHORTEST_DIFFERENCE,
) -> Contribution:
    """Weighted residuals ``c_i r_i`` (rows, k), and coordinates (rows, 2 q) as ``a_i z_i`` and ``c_i z_i``.

    ``Z`` (rows, k + m) holds products of the rows with the head and with the embedding's anchor rows. ``a_i``
    are the factors of the clip ``inside`` for coordinates, and ``c_i`` those of ``outside`` for residuals. A
    residual counts as no shorter than ``shortest`` times its gradient and coordinates together. The sum of
    residuals is ``C^T X`` minus the gradient of the sum of ``c_i z_i``.
    """
    k = loss.n_outputs
    C = loss.residuals(Z[:, :k], block.y)
    z = embedding.coordinates(C, Z[:, k:])
    lengths = row_norms(z)
    bounds = embedding.residual_bounds(
        row_norms(C), block.norms, z, lengths, C.dtype, block.rounding_scale, shortest=shortest
    )
    z[~np.isfinite(bounds)] = 0  # a row without a finite bound contributes to neither sum
    # A length also bounds each entry, so it serves rules that bound entries.
    factors = scale_rows(C, outside.weights(bounds, lambda: bounds))
    weights = inside.weights(lengths, lambda: lengths)
    return C, OuterStatistics(np.stack([weights, factors], axis=1), z)


def part_lengths(
    C: FloatArray, S: Any, products: Any, block: Block, embedding: GradientEmbedding
) -> list[FloatArray]:
    """Lengths of ``a_i z_i``, and upper bounds on those of ``c_i (g_i - V z_i)``.

    ``C`` and ``S`` are what :func:`clipped_parts` returned. A bound for the scaled row is the scaled bound.
    """
    formed, q = np.asarray(S), embedding.n_components
    scaled = formed[:, q:]
    residuals = embedding.residual_bounds(
        row_norms(C), block.norms, scaled, row_norms(scaled), C.dtype, block.rounding_scale
    )
    return [row_norms(formed[:, :q]), residuals] if q else [residuals]
