"""Gradients clipped around the public mean gradient."""

import math
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from .._linear.arrays import (
    Array,
    FloatArray,
    astype,
    dtype_of,
    largest_entries,
    namespace_of,
    remove_mean_output,
    row_dots,
    row_norms,
    scale_rows,
)
from .._linear.losses import Loss
from .._linear.sums import LONGEST_TERM, SHORTEST_DIFFERENCE, UNDERFLOW_PAD, dot_error
from .._rows.source import Block, Contribution
from ..components.protocols import Clip, Clipper, Lengths, PrivateQuery, ReleasedArray, Rounds, StepContext
from ..components.public import PublicView


@dataclass(frozen=True)
class DopeQuery:
    """The sum of clipped differences between each row's gradient and the public mean gradient.

    Let ``M`` be the public mean gradient at the current head and ``b`` the expected batch size. The private
    mean is ``M + (1/b) (sum_i clip(g_i - M) + noise)``. The centre is added back on the mean scale. It is
    never multiplied by the number of rows in the batch, which is private.

    *Guarantee*: one row's contribution ``c_i (g_i - M)`` is at most the clip's sensitivity, rounding
    included. The length that is clipped is an upper bound of the true length (see :func:`deviation_bounds`).
    Sums are added in double precision, since their terms may be a thousand times longer than their
    differences (see :func:`difference_part`). A row outside the batch contributes zero to the sum of
    gradients and to the sum of weights. Removing it therefore removes only its own difference. Replacing a
    row replaces one difference by another. This moves the sum by up to twice the sensitivity, and the
    accountant doubles mu.

    Source: DOPE-SGD (Nasr et al. 2023, "Effectively Using Public Data in Privacy Preserving
    Machine Learning"), restated for means and an expected batch.
    """

    clipper: Clipper
    sum_to_zero: bool

    def sensitivity(self, view: PublicView, dtype: np.dtype[Any]) -> float:
        return self.clipper.at(view).sensitivity(dtype)

    def step(self, ctx: StepContext) -> Rounds:
        # The query may be sent to Dask workers, so it must hold neither the noise source nor the view.
        clip, centre, loss = self.clipper.at(ctx.view), ctx.view.gradient, ctx.view.data.loss
        (total,) = yield PrivateQuery(
            points=np.concatenate([ctx.view.W, centre]),
            contribute=partial(clipped_deviations, loss=loss, clip=clip, centre=centre),
            releases=(difference_part(clip.sensitivity(ctx.dtype)),),
            assemble=lambda sums: (sums[0] - sums[1][0] * centre,),
            panel_rows=0,
            takes_tensors=clip.takes_tensors,
            lengths=Lengths(partial(deviation_lengths, centre=centre), centre),
        )
        if self.sum_to_zero and loss.sum_to_zero:
            total = remove_mean_output(total)
        return ctx.direction(centre + total / ctx.batch_size)


def deviation_norms(view: PublicView) -> FloatArray:
    """Lengths (n_pub,) of the public rows' gradients minus their mean."""
    aligned = np.einsum("ij,ij->i", view.residuals, view.data.X @ view.gradient.T)
    squares = view.gradient_norms**2 - 2 * aligned + np.sum(view.gradient**2)
    return np.asarray(np.sqrt(np.maximum(squares, 0)))


def difference_part(sensitivity: float) -> ReleasedArray:
    """The released sum of clipped differences ``c_i (g_i - M)``, from sums of ``c_i g_i`` and of ``c_i``.

    The length that is clipped is at least :data:`SHORTEST_DIFFERENCE` times ``|g_i| + |M|``. So ``c_i g_i``
    and ``c_i M`` exceed the sensitivity by at most the inverse of that factor. Two sums, a product and a
    subtraction are rounded.
    """
    terms = LONGEST_TERM * sensitivity
    return ReleasedArray(sensitivity, longest_term=terms, later_roundings=4 * float(np.finfo(np.float64).eps))


def clipped_deviations(Z: Array, block: Block, loss: Loss, clip: Clip, centre: FloatArray) -> Contribution:
    """Weighted residuals (rows, k), with ``c_i (r_i x_i^T - centre)`` within the clip, and weights (rows, 1).

    ``Z`` (rows, 2 k) holds products of the rows with the head and with the centre (k, d_in), and is
    overwritten. It may be a tensor if the clip accepts tensors. The centre is later subtracted as many times
    as the weights add up to.
    """
    k = loss.n_outputs
    C = loss.residuals(Z[:, :k], block.y)
    bounds = deviation_bounds(C, Z[:, k:], block.norms, centre, block.rounding_scale)
    factors = clip.weights(bounds, lambda: largest_deviations(C, block, centre))
    return C, scale_rows(C, factors)[:, None]


def deviation_lengths(
    C: FloatArray, S: FloatArray, products: FloatArray, block: Block, centre: FloatArray
) -> list[FloatArray]:
    """Upper bounds on the lengths of ``c_i (g_i - M)``, from the results of :func:`clipped_deviations`.

    ``products`` (rows, k) are those of the rows with the centre.
    """
    factors = S[:, 0]
    used = factors > 0
    R = C / np.where(used, factors, 1.0).astype(C.dtype)[:, np.newaxis]
    bounds = deviation_bounds(R, products, block.norms, centre, block.rounding_scale)
    return [np.multiply(factors, bounds, out=np.zeros_like(bounds), where=used)]


def deviation_bounds(
    R: Array, products: Array, norms: Array, centre: FloatArray, rounding_scale: Array | None = None
) -> Array:
    """Upper bounds (n,) on ``|r_i x_i^T - M|``, rounding included; infinite where values are not finite.

    ``R`` (n, k) are residuals, and ``products`` (n, k) those of the rows with the centre ``M`` (k, d_in).
    ``norms`` (n,) are lengths of the rows. The errors of products are in proportion to ``rounding_scale``
    (n,), by default the lengths.

    The square is ``|r|^2 |x|^2 - 2 r^T M x + |M|^2``. If its terms cancel, the result may be pure rounding
    error, and a factor computed from it could leave the row unclipped. So the largest error of the three
    terms is added: ``(|r| |x| + |M|)^2`` times 16 eps plus the error of sums of ``d_in`` and ``k`` terms in
    any order. The bound also covers the weighting of residuals in their own precision, which rounds their
    full length twice. No bound is below :data:`SHORTEST_DIFFERENCE` times ``|g| + |M|``.
    """
    xp, dtype = namespace_of(R), dtype_of(R)
    (k, d_in), eps = centre.shape, float(np.finfo(dtype).eps)
    wide = astype(R, np.float64)
    residual_norms = row_norms(wide)
    centre_square = float(np.sum(np.ravel(centre) ** 2))  # summed pairwise
    aligned = row_dots(wide, astype(products, np.float64), np.float64)
    square = (residual_norms * norms) ** 2 - 2 * aligned + centre_square
    lengths = residual_norms * (norms + UNDERFLOW_PAD)
    size = residual_norms * ((norms if rounding_scale is None else rounding_scale) + UNDERFLOW_PAD)
    size = size + math.sqrt(centre_square) + math.sqrt(k) * UNDERFLOW_PAD
    slack = (16 * eps + dot_error(d_in + k + 1, dtype)) * size**2
    bounds = (square.clip(min=0) + slack) ** 0.5 + 2 * eps * lengths
    bounds = xp.maximum(bounds, SHORTEST_DIFFERENCE * size)
    # A product of minus infinity would seem to have a finite bound.
    return xp.where(abs(square) < math.inf, bounds, math.inf)


def largest_deviations(R: Array, block: Block, centre: FloatArray) -> Array:
    """Upper bounds (n,) on the entries of ``r_i x_i^T - M``, float64, rounding included."""
    eps = float(np.finfo(dtype_of(R)).eps)
    entries = largest_entries(R) * block.max_abs
    return (entries + float(np.abs(centre).max(initial=0.0))) * (1 + 4 * eps)
