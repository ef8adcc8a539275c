"""Comparisons of heads on private rows: by accuracy, and by clipped losses."""

from collections.abc import Sequence
from functools import partial

import numpy as np

from .._rows import Block, Contribution
from .._utils.process import warn_later
from ..components.protocols import FloatArray, Loss, PrivateQuery, PublicInfo, ReleasedArray
from ..components.scalars import clipped, scalars
from .statistics import Worth, likely_part, sensitivity_of

#: Differences of losses are clipped at this quantile of the differences on public rows.
_QUANTILE = 0.9

#: Noise in a mean difference of losses, in units of the clip.
OF_LOSSES = Worth(0.03, 0.1, (0.002, 0.02))

#: A difference is clear if it exceeds this number of its standard deviations.
CLEARLY = 2.0

#: Fewest public rows from which to compute a clip and the spread of held-out gains.
FEWEST = 10


def comparison_query(first: FloatArray, others: Sequence[FloatArray], share: float = 1.0) -> PrivateQuery:
    """The query for how many more private rows each other head classifies correctly than the first.

    All heads are (k, d_in). *Guarantee*: one row changes each of the m differences by at most 1, so the
    sensitivity is ``sqrt(m)``.
    """
    gains = partial(_more_correct, n_heads=1 + len(others))
    stated = ReleasedArray(sensitivity_of(len(others)), share)
    return PrivateQuery(np.concatenate([first, *others]), gains, (stated,))


def _more_correct(Z: FloatArray, block: Block, n_heads: int) -> Contribution:
    """For each row and each other head: whether it is correct, minus whether the first head is."""
    outputs = np.split(np.asarray(Z), n_heads, axis=1)
    first, *others = (block.is_correct(each).astype(np.float64) for each in outputs)
    return None, np.concatenate([each - first for each in others], axis=1)


def expected_losses(losses: FloatArray, error: float, expected: FloatArray, spread: FloatArray) -> FloatArray:
    """Posterior means (m,) of losses of accuracy, from noisy ones and a prior for each.

    ``error`` is the standard deviation of the noise; ``expected`` and ``spread`` are those of the priors.
    """
    weight = likely_part(spread, error)
    return np.asarray(weight * losses + (1 - weight) * expected)


def gains_query(first: FloatArray, others: Sequence[FloatArray], limit: float, loss: Loss) -> PrivateQuery:
    """The query for the gains of other heads over the first: how much smaller their losses are.

    All heads are (k, d_in). The m sums are those of :func:`gains` in units of ``limit``, each clipped to
    [-1, 1].

    *Guarantee*: one row changes each sum by at most 1, so the sensitivity is ``sqrt(m)``.
    """
    return PrivateQuery(
        points=np.concatenate([first, *others]),
        contribute=partial(_gains, loss=loss, limit=limit),
        releases=(scalars(1.0, len(others), 1.0),),
    )


def _gains(Z: FloatArray, block: Block, loss: Loss, limit: float) -> Contribution:
    """Clipped gains (rows, m) from outputs (rows, (m + 1) k) of all heads."""
    return None, clipped(gains(np.asarray(Z), np.asarray(block.y), loss) / limit, 1.0)


def gains(Z: FloatArray, y: FloatArray, loss: Loss) -> FloatArray:
    """Losses of the first head minus those of each other head, (rows, m); squared errors are not halved.

    ``Z`` (rows, (m + 1) k) holds the outputs of all heads. ``y`` may have weights after the labels or
    targets, which are ignored.
    """
    targets = y[:, : loss.n_outputs].astype(np.float64)
    first, *others = np.split(Z.astype(np.float64), Z.shape[1] // loss.n_outputs, axis=1)
    if not loss.quadratic:
        return np.stack([loss.values(first, targets) - loss.values(Z, targets) for Z in others], axis=1)
    # Written as a product, since a difference of large squares loses precision.
    return np.stack([np.sum((first - Z) * (first + Z - 2 * targets), axis=1) for Z in others], axis=1)


def usual_gain(values: FloatArray) -> float:
    """A quantile of the absolute gains. Gains that are not finite count as 0."""
    finite = np.nan_to_num(values, nan=0.0, posinf=0.0, neginf=0.0)
    return float(np.quantile(np.abs(finite), _QUANTILE))


def held_out_gains(info: PublicInfo, W: FloatArray) -> FloatArray:
    """Losses of a head minus losses of the starts, on held-out public rows."""
    outputs = [np.hstack([judge.X @ W.T, judge.X @ start.T]) for start, judge in info.held_out]
    halves = [gains(Z, judge.y, judge.loss) for Z, (_, judge) in zip(outputs, info.held_out, strict=True)]
    return np.concatenate(halves)


def warn_of_sufficient_public_rows(n_public: int) -> None:
    """Warn that a fit returns its start, which predicts better than the trained head."""
    warn_later(
        f"the {n_public} public rows suffice: the start of the fit does better than the trained head under "
        "this budget, so the start is returned; pass more private rows or a larger epsilon, or do without "
        "the private rows."
    )
