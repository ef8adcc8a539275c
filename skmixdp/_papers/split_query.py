"""Gradients in two parts: a part along public directions, and the residual."""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np

from .._linear.arrays import Array, FloatArray, remove_mean_output, row_norms, scale_rows
from .._linear.losses import Loss
from .._linear.sums import SHORTEST_DIFFERENCE, panel_rows_for
from .._rows.source import Block, Contribution, OuterStatistics
from ..components.protocols import Clip, Clipper, PrivateQuery, ReleasedArray, Rounds, StepContext
from ..components.public import PublicView
from .splits import Centre, GradientEmbedding

Split = Centre | GradientEmbedding

#: Bound on the length of a gradient plus its part on the directions, in units of the longest gradient.
_TOGETHER = 2.25

#: Tolerated increase of the sensitivity of a sum by the rounding of projections, as a fraction.
_ADDED = 0.01
#: Number of rows in a sum for which the tolerance is computed.
_MANY_ROWS = 10**6


@dataclass(frozen=True)
class SplitQuery:
    """The sum of clipped residuals ``g_i - V z_i``, and of the part along public directions ``V``.

    ``split`` gives the directions and the coordinates ``z_i`` at a head. Two algorithms are settings of it:

    - GEP: a :class:`GradientEmbedding`. The coordinates are clipped by ``inside`` and released too. Each part
      uses half of the step, so its noise is ``sqrt(2) noise_multiplier`` times its own sensitivity. Without
      public gradients, there is only the residual, which uses the whole step.
    - DOPE: a :class:`Centre`, the public mean gradient ``M`` with coordinate 1 in every row, and no
      ``inside``. The private mean is ``M + (1/b) (sum_i clip(g_i - M) + noise)`` with the expected batch size
      ``b``: the centre is added back on the mean scale. It is never multiplied by the number of rows in the
      batch, which is private.

    Gradients are expected not to exceed ``longest_gradient``. The guarantee does not rely on it. If it is
    finite, less rounding has to be added to the sensitivity, and a step takes less time.

    *Guarantee*: one row moves the sum of residuals by at most the sensitivity of ``clipper``, and that of
    coordinates by at most that of ``inside``; replacing a row moves them by up to twice that, and the
    accountant doubles mu. Both include rounding: coordinates are clipped as computed, and the length of a
    residual is an upper bound of the true length (``residual_bounds``). Sums are added in double precision,
    or in single precision for a few rows at a time, since the terms of a residual may be much longer. How
    much longer is enforced: a residual counts as no shorter than a fixed part of its two terms. ``V`` depends
    on public rows and released heads only.

    Source: GEP (Yu et al. 2021, "Do Not Let Privacy Overbill Utility: Gradient Embedding Perturbation for
    Private Learning"), Algorithm 1, for heads in closed form; DOPE-SGD (Nasr et al. 2023, "Effectively Using
    Public Data in Privacy Preserving Machine Learning"), restated for means and an expected batch.
    """

    split: Callable[[PublicView], Split]
    clipper: Clipper
    inside: Clipper | None
    sum_to_zero: bool
    longest_gradient: float = math.inf

    def sensitivity(self, view: PublicView, dtype: np.dtype[Any]) -> float:
        return max(part.sensitivity / math.sqrt(part.share) for part in self._releases(view, dtype))

    def step(self, ctx: StepContext) -> Rounds:
        split, outside = self.split(ctx.view), self.clipper.at(ctx.view)
        # The query may be sent to Dask workers, so it must hold neither the noise source nor the view.
        q, loss = split.n_components, ctx.view.data.loss
        shortest = self._shortest(outside.sensitivity(ctx.dtype))
        tolerance = _tolerance(shortest)

        def assemble(sums: Sequence[FloatArray]) -> tuple[FloatArray, ...]:
            matrix, weighted = sums
            residual = matrix - split.gradient(weighted[q:], tolerance=tolerance)
            return (weighted[:q], residual) if q else (residual,)

        *coordinates, total = yield PrivateQuery(
            points=np.concatenate([ctx.view.W, split.points]),
            contribute=partial(
                clipped_parts,
                loss=loss,
                split=split,
                outside=outside,
                inside=None if self.inside is None else self.inside.at(ctx.view),
                shortest=shortest,
            ),
            releases=self._releases(ctx.view, ctx.dtype),
            assemble=assemble,
            panel_rows=panel_rows_for(split.margin / shortest),
            n_fixed=split.n_fixed,
            takes_tensors=split.takes_tensors and outside.takes_tensors,
            lengths=split.lengths,
        )
        for z in coordinates:
            total = total + split.gradient(z)
        if self.sum_to_zero and loss.sum_to_zero:
            total = remove_mean_output(total)
        return ctx.direction(split.offset + total / ctx.batch_size)

    def _releases(self, view: PublicView, dtype: np.dtype[Any]) -> tuple[ReleasedArray, ...]:
        split, sensitivity = self.split(view), self.clipper.at(view).sensitivity(dtype)
        shortest = self._shortest(sensitivity)
        residual = ReleasedArray(
            sensitivity,
            # Residuals are differences of two sums, whose terms may be longer than the residuals.
            longest_term=split.margin / shortest * sensitivity,
            later_roundings=split.rounding(_tolerance(shortest)),
        )
        if self.inside is None or split.n_components == 0:
            return (residual,)
        # Coordinates are weighted in float64, whatever the precision of the rows.
        inside = self.inside.at(view).sensitivity(np.dtype(np.float64))
        return ReleasedArray(inside, 0.5), replace(residual, share=0.5)

    def _shortest(self, sensitivity: float) -> float:
        """Minimum length assumed for a residual, divided by the summed lengths of its two terms.

        If a gradient is no longer than expected, a residual this short is not clipped, so nothing changes.
        """
        return max(SHORTEST_DIFFERENCE, min(sensitivity / (_TOGETHER * self.longest_gradient), 1.0))


def _tolerance(shortest: float) -> float:
    """Tolerated rounding error of a projection, relative to the length of a gradient."""
    return _ADDED * shortest / (4 * _MANY_ROWS)


def clipped_parts(
    Z: Array,
    block: Block,
    loss: Loss,
    split: Split,
    outside: Clip,
    inside: Clip | None = None,
    shortest: float = SHORTEST_DIFFERENCE,
) -> Contribution:
    """Weighted residuals ``c_i r_i`` (rows, k) of the loss, and ``a_i z_i`` and ``c_i z_i`` (rows, 2 q).

    ``Z`` (rows, k + m) holds products of the rows with the head and with the split's points, and is
    overwritten. ``c_i`` are the factors of the clip ``outside`` for ``g_i - V z_i``, which counts as no
    shorter than ``shortest`` times its two terms together, and ``a_i`` those of ``inside`` for ``z_i``; with
    None, the statistics are ``c_i`` (rows, 1).
    """
    k = loss.n_outputs
    C = loss.residuals(Z[:, :k], block.y)
    z = split.coordinates(C, Z[:, k:])
    lengths: Array = None if inside is None else row_norms(z)
    bounds = split.residual_bounds(C, z, lengths, block.norms, block.rounding_scale, shortest)
    factors = scale_rows(C, outside.weights(bounds, lambda: split.largest_entries(C, block, bounds)))
    if inside is None:
        return C, factors[:, None]
    z[~np.isfinite(bounds)] = 0  # a row without a finite bound contributes to neither sum
    weights = inside.weights(lengths, lambda: lengths)  # a length bounds each entry too
    return C, OuterStatistics(np.stack([weights, factors], axis=1), z)
