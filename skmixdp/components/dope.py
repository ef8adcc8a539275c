"""Gradients clipped about a public centre."""

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .._kernels import LONGEST_TERM, SHORTEST_DIFFERENCE, UNDERFLOW_PAD, dot_error
from .._linear import (
    Loss,
    largest_entries,
    remove_mean_output,
    row_norms,
    scale_rows,
    scale_tensor_rows,
    tensor_dtype,
    tensor_largest_entries,
    tensor_residuals,
    tensor_row_norms,
    where,
)
from .._rows import Block, ContributeTensors, Contribution
from ..public import PublicView
from .protocols import Clip, Clipper, PrivateQuery, ReleasedArray, Rounds, StepContext

FloatArray = NDArray[np.floating[Any]]


class DopeQuery:
    """The sum of clipped differences between each row's gradient and the public mean gradient.

    With ``M`` the public mean gradient at the current head and ``b`` the expected batch, the
    private mean is ``M + (1/b) (sum_i clip(g_i - M) + noise)``: the centre comes back on the
    mean scale and is never multiplied by the number of rows that took part, which is private.

    Parameters
    ----------
    clipper : Clipper
        Bounds each row's difference.
    sum_to_zero : bool
        Remove the released sum's component outside the subspace in which softmax gradients
        lie.

    *Guarantee*: one row's contribution ``c_i (g_i - M)`` is no longer than the clip's sensitivity, rounding
    included: the length that is clipped is an upper bound of the true one (see :func:`deviation_bounds`).
    Sums are added in double precision, since their terms may be a thousand times longer than their
    differences; see :func:`difference_part`. A row that takes no part contributes zero, to the sum of
    gradients and to the sum of weights alike, so that removing it takes away its own difference and nothing
    else. Replacing a row exchanges one difference for another and moves the sum by up to twice the
    sensitivity, for which the accountant doubles mu.

    Source: DOPE-SGD (Nasr et al. 2023, "Effectively Using Public Data in Privacy Preserving
    Machine Learning"), restated for means and an expected batch.
    """

    def __init__(self, clipper: Clipper, sum_to_zero: bool) -> None:
        self.clipper = clipper
        self.sum_to_zero = sum_to_zero

    def sensitivity(self, view: PublicView, dtype: np.dtype[Any]) -> float:
        return self.clipper.at(view).sensitivity(dtype)

    def step(self, ctx: StepContext) -> Rounds:
        # What goes to the rows holds neither the noise source nor the view.
        clip, centre = self.clipper.at(ctx.view), ctx.view.gradient
        (total,) = yield PrivateQuery(
            points=np.concatenate([ctx.W, centre]),
            contribute=ClippedDeviations(ctx.loss, clip, centre),
            releases=(difference_part(clip.sensitivity(ctx.dtype)),),
            assemble=lambda sums: (_minus_centres(sums, centre),),
            wide_sums=True,
        )
        if self.sum_to_zero and ctx.loss.sum_to_zero:
            total = remove_mean_output(total)
        return ctx.direction(centre + total / ctx.batch_size)


def difference_part(sensitivity: float) -> ReleasedArray:
    """The part of a sum of clipped differences ``c_i (g_i - M)``, from sums of ``c_i g_i`` and of ``c_i``.

    The length that is clipped is at least :data:`SHORTEST_DIFFERENCE` times ``|g_i| + |M|``, so ``c_i g_i``
    and ``c_i M`` are longer than the sensitivity by no more than the inverse. Two sums, a product and a
    subtraction are rounded.
    """
    terms = LONGEST_TERM * sensitivity
    return ReleasedArray(sensitivity, longest_term=terms, later_roundings=4 * float(np.finfo(np.float64).eps))


@dataclass(frozen=True)
class ClippedDeviations:
    """:func:`clipped_deviations` of one loss, clip and centre, on the host or where a block's tensors lie."""

    loss: Loss
    clip: Clip
    centre: FloatArray

    def __call__(self, Z: FloatArray, block: Block) -> Contribution:
        return clipped_deviations(Z, block, self.loss, self.clip, self.centre)

    @property
    def for_tensors(self) -> ContributeTensors | None:
        """See :class:`~skmixdp._rows.TensorContribution`; the guarantee is that of the host's arithmetic.

        Lengths are accumulated in float64 there too, products are those of IEEE arithmetic in the
        rows' precision, and the same slack is added.
        """
        residuals = tensor_residuals(self.loss)
        if residuals is None or not getattr(self.clip, "takes_tensors", False):
            return None
        clip, centre, k = self.clip, self.centre, self.loss.n_outputs
        largest = float(np.abs(centre).max(initial=0.0))

        def contribute(Z: Any, block: Any) -> tuple[Any, Any]:
            C = residuals(Z[:, :k], block.y)
            eps, norms = float(np.finfo(tensor_dtype(C)).eps), tensor_row_norms(C, like=block.norms)
            aligned = (C.to(norms.dtype) * Z[:, k:].to(norms.dtype)).sum(dim=1)
            bounds: Any = _bounds(norms, aligned, block.norms, block.norms, centre, tensor_dtype(C))
            factors: Any = clip.weights(
                bounds,
                lambda: (tensor_largest_entries(C, like=norms) * block.max_abs + largest) * (1 + 4 * eps),
            )
            C, used = scale_tensor_rows(C, factors, norms)
            return C, used[:, None]

        return contribute


def clipped_deviations(
    Z: FloatArray, block: Block, loss: Loss, clip: Clip, centre: FloatArray
) -> Contribution:
    """Residuals weighted so that ``c_i (r_i x_i^T - centre)`` obeys the clip, and the weights.

    Parameters
    ----------
    Z : array of shape (rows, 2 k)
        Products of the rows with the head and with the centre.
    block : Block
        Labels and lengths of the rows.
    loss : Loss
        The loss of the head.
    clip : Clip
        Bounds the differences.
    centre : array of shape (k, d_in)
        What is subtracted from each gradient.

    Returns
    -------
    C : array of shape (rows, k)
        Weighted residuals, in the dtype of ``Z``.
    weights : array of shape (rows, 1)
        The factors; their sum says how often the centre must be subtracted.
    """
    k = loss.n_outputs
    C = loss.residuals(Z[:, :k], block.y)
    bounds = deviation_bounds(C, Z[:, k:], block.norms, centre, block.rounding_scale)
    factors = clip.weights(bounds, lambda: largest_deviations(C, block, centre))
    return C, scale_rows(C, factors)[:, np.newaxis]


def deviation_bounds(
    R: FloatArray,
    products: FloatArray,
    norms: FloatArray,
    centre: FloatArray,
    rounding_scale: FloatArray | None = None,
) -> FloatArray:
    """Upper bounds (n,) on ``|r_i x_i^T - M|``, rounding included.

    Parameters
    ----------
    R : array of shape (n, k)
        Loss residuals, in the dtype of the products.
    products : array of shape (n, k)
        The rows' products ``M x_i`` with the centre, which was rounded to their dtype.
    norms : array of shape (n,)
        Lengths of the rows, float64.
    centre : array of shape (k, d_in)
        The centre ``M``, float64.
    reach : array of shape (n,) or None
        Lengths in proportion to which the products may be off, where those are not the rows'.

    Notes
    -----
    The square is ``|r|^2 |x|^2 - 2 r^T M x + |M|^2``. Where it cancels, what is left can be
    nothing but rounding, and a factor computed from it would let the row through unclipped.
    So the largest error of the three terms is added: 16 eps, and what sums of ``d_in`` and of
    ``k`` terms can lose in any order, of ``(|r| |x| + |M|)^2``. The bound also covers that the
    residuals are weighted in their own precision, two roundings of their full length: with
    ``|g - M|`` small compared with ``|g|``, that is no small part of the difference. No bound is
    below :data:`SHORTEST_DIFFERENCE` times ``|g| + |M|``. A row of which nothing finite is known has
    an infinite bound.
    """
    wide = R.astype(np.float64, copy=False)
    aligned = np.einsum("ij,ij->i", wide, products.astype(np.float64, copy=False))
    scale = norms if rounding_scale is None else rounding_scale
    return np.asarray(_bounds(row_norms(wide), aligned, norms, scale, centre, R.dtype))


def _bounds(
    residual_norms: Any,
    aligned: Any,
    norms: Any,
    rounding_scale: Any,
    centre: FloatArray,
    dtype: np.dtype[Any],
) -> Any:
    """:func:`deviation_bounds` from ``|r|`` and ``r^T M x``, (n,) float64 each, in arrays or tensors."""
    (k, d_in), eps = centre.shape, float(np.finfo(dtype).eps)
    centre_square = float(np.sum(np.ravel(centre) ** 2))  # summed pairwise
    square = (residual_norms * norms) ** 2 - 2 * aligned + centre_square
    lengths = residual_norms * (norms + UNDERFLOW_PAD)
    size = residual_norms * (rounding_scale + UNDERFLOW_PAD)
    size = size + math.sqrt(centre_square) + math.sqrt(k) * UNDERFLOW_PAD
    slack = (16 * eps + dot_error(d_in + k + 1, dtype)) * size**2
    bounds = (square.clip(min=0) + slack) ** 0.5 + 2 * eps * lengths
    shortest = SHORTEST_DIFFERENCE * size
    bounds = where(bounds > shortest, bounds, shortest)
    # Not finite first: the maximum would turn a product of minus infinity into 0.
    return where(abs(square) < math.inf, bounds, math.inf)


def largest_deviations(R: FloatArray, block: Block, centre: FloatArray) -> FloatArray:
    """Upper bounds (n,) on the entries of ``r_i x_i^T - M``, float64, rounding included."""
    eps = float(np.finfo(R.dtype).eps)
    rounding_scale = largest_entries(R) * block.max_abs
    return np.asarray((rounding_scale + np.abs(centre).max(initial=0.0)) * (1 + 4 * eps))


def _minus_centres(sums: tuple[FloatArray | None, FloatArray | None], centre: FloatArray) -> FloatArray:
    matrix, weights = sums
    assert matrix is not None and weights is not None
    return np.asarray(matrix - weights[0] * centre)
