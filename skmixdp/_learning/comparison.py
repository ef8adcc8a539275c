"""Noisy counts of private rows, and noisy comparisons of heads by the rows that they classify correctly."""

import math
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .._linear import class_indices, predicted_classes
from .._rows import Block, Contribution
from ..components.protocols import FloatArray, PrivateQuery, ReleasedArray

#: Target for the noise in a difference of accuracies, and the largest noise that is still useful.
_ERROR, _MOST_ERROR = 0.006, 0.03

#: Smallest and largest share of mu squared for a comparison.
_LEAST_SHARE, _MOST_SHARE = 0.002, 0.02

#: Relative distance of a head from a span that counts as rounding; and the largest sum of factors, by which
#: the rounding of products grows.
_ON_SPAN, _LARGEST_FACTORS = 1e-12, 8.0


def comparison_share(
    mu: float, n_rows: int, n_heads: int, wanted: float = _ERROR, most: float = _MOST_ERROR
) -> float:
    """Share of mu squared to compare ``n_heads`` heads with a first one; 0 if noise would hide it.

    It depends on public facts. ``wanted`` is the target for the noise in an accuracy, and ``most`` the
    largest noise that is still useful.
    """
    error = math.sqrt(n_heads) / (mu * n_rows)
    share = share_for(error, wanted, _LEAST_SHARE, _MOST_SHARE)
    return share if error <= most * math.sqrt(share) else 0.0


def share_for(error: float, wanted: float, least: float, most: float) -> float:
    """Share of mu squared, within limits, for noise ``wanted`` if the whole budget gives ``error``."""
    return min(max(min(error / wanted, 1.0) ** 2, least), most)


def comparison_query(first: FloatArray, others: Sequence[FloatArray], share: float = 1.0) -> PrivateQuery:
    """The query for how many more private rows each other head classifies correctly than the first.

    All heads are (k, d_in). *Guarantee*: one row changes each of the m differences by at most 1, so the
    sensitivity is ``sqrt(m)``.
    """
    multiplied, factors = spanning_heads([first, *others])
    return PrivateQuery(
        points=np.concatenate(multiplied),
        contribute=partial(_gains, factors=factors),
        releases=(ReleasedArray(sensitivity_of(len(others)), share),),
    )


def counts_query(
    points: FloatArray, flags: Callable[[FloatArray, Block], NDArray[Any]], share: float = 1.0
) -> PrivateQuery:
    """The query for the numbers (n_counts,) of private rows that meet conditions, or for sums of scores.

    ``flags(Z, block)`` (rows, n_counts) says which count each row is added to, at most one, from products
    with ``points`` (m, d_in). Scores in [0, 1] may take the place of flags.

    *Guarantee*: one row changes one count by at most 1.
    """
    return PrivateQuery(
        points=points,
        contribute=lambda Z, block: (None, flags(Z, block).astype(np.float64)),
        releases=(ReleasedArray(1.0, share),),
    )


def spanning_heads(heads: Sequence[FloatArray]) -> tuple[list[FloatArray], FloatArray]:
    """Heads (k, d_in) that span all ``heads``, and the factors (m, r) that combine them to each.

    Heads on a line need two products with each row, for any number of heads. A head is left out only if it
    is a combination up to rounding, with factors too small to multiply the rounding of products.
    """
    columns = np.stack([head.ravel() for head in heads], axis=1)
    factors = np.eye(len(heads))
    if not np.isfinite(columns).all():
        return list(heads), factors
    kept: list[int] = []
    for index, column in enumerate(columns.T):
        if kept:
            spanned = columns[:, kept]
            weights = np.linalg.lstsq(spanned, column)[0]
            distance = np.linalg.norm(spanned @ weights - column)
            on_span = distance <= _ON_SPAN * np.linalg.norm(column)
            if on_span and 0 < np.abs(weights).sum() <= _LARGEST_FACTORS:
                factors[index, index], factors[index, kept] = 0.0, weights
                continue
        kept.append(index)
    return [heads[index] for index in kept], factors[:, kept]


def sensitivity_of(n_sums: int) -> float:
    """Sensitivity of ``n_sums`` sums if a row adds at most 1 to each."""
    # The root is rounded up.
    return 1.0 if n_sums == 1 else math.sqrt(n_sums) * (1 + 1e-9)


def _gains(Z: FloatArray, block: Block, factors: FloatArray) -> Contribution:
    """For each row and each other head: whether it is correct, minus whether the first head is.

    ``Z`` holds outputs of the r spanning heads, which ``factors`` (m, r) combine to all heads.
    """
    products = np.split(np.asarray(Z), factors.shape[1], axis=1)
    right = []
    for weights in factors.tolist():
        outputs = sum(weight * Z for weight, Z in zip(weights, products, strict=True) if weight)
        right.append(is_correct(outputs, block).astype(np.float64))
    first, *others = right
    return None, np.concatenate([each - first for each in others], axis=1)


def is_correct(Z: FloatArray, block: Block) -> NDArray[np.bool_]:
    """Flags (rows, 1) of the rows whose outputs are largest for their own class."""
    right = predicted_classes(np.asarray(Z)) == np.asarray(class_indices(block.y))
    return np.asarray(right)[:, np.newaxis]


def all_right(Z: FloatArray, block: Block) -> NDArray[np.bool_]:
    """Flags (rows, 1) of the rows (rows, k) whose labels all have outputs of the right sign."""
    return np.asarray(((np.asarray(Z) > 0) == (np.asarray(block.y) == 1)).all(axis=1, keepdims=True))


def expected_losses(losses: FloatArray, error: float, expected: FloatArray, spread: FloatArray) -> FloatArray:
    """Posterior means (m,) of losses of accuracy, from noisy ones and a prior for each.

    ``error`` is the standard deviation of the noise; ``expected`` and ``spread`` are those of the priors.
    """
    weight = spread**2 / (spread**2 + error**2)
    return np.asarray(weight * losses + (1 - weight) * expected)
