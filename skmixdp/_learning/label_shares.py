"""Noisy shares of the rows that have each label, as the start of a fit without public rows."""

import math

import numpy as np
from scipy.special import logit

from .._rows import Block, Contribution
from ..components.protocols import FloatArray, PrivateQuery, ReleasedArray
from .comparison import share_for
from .geometry import Learner, Learning

#: Target for the noise in a share, and the largest noise that is still useful.
_ERROR, _MOST_ERROR = 0.003, 0.25

#: Smallest and largest share of mu squared.
_LEAST_SHARE, _MOST_SHARE = 0.002, 0.03


def label_share(mu: float, n_rows: int, n_labels: int) -> float:
    """Share of mu squared for :func:`noisy_logits`, from public facts; 0 if noise would hide them."""
    error = _sensitivity(n_labels) / (mu * n_rows)
    share = share_for(error, _ERROR, _LEAST_SHARE, _MOST_SHARE)
    return share if error <= _MOST_ERROR * math.sqrt(share) else 0.0


def _sensitivity(n_labels: int) -> float:
    # The root is rounded up.
    return math.sqrt(n_labels) / 2 * (1 + 1e-9)


def noisy_logits(learner: Learner, n_labels: int, multiplier: float) -> Learning[FloatArray]:
    """Logits (k,) of the shares of rows that have each label, from noisy sums of rows without features.

    Shares are shrunk towards their mean as by James and Stein. The remaining standard deviation of their
    noise is the least distance that they keep from 0 and 1.

    *Guarantee*: one Gaussian release of this multiplier. A row adds ``y_i - 1/2`` to the sums, whose length
    is ``sqrt(k) / 2`` for any labels.
    """

    def contribute(Z: FloatArray, block: Block) -> Contribution:
        return None, np.asarray(block.y)[:, :n_labels] - 0.5

    query = PrivateQuery(
        points=np.zeros((0, 0)),  # labels need no products
        contribute=contribute,
        releases=(ReleasedArray(_sensitivity(n_labels)),),
    )
    sums, scale = yield from learner.ask(learner.mechanism(multiplier), query)
    shares, error = 0.5 + sums / learner.n_rows, scale / learner.n_rows
    away = shares - shares.mean()
    energy = float(away @ away)
    kept = max(0.0, 1 - (n_labels - 1) * error**2 / energy) if energy > 0 else 0.0
    least = max(error * math.sqrt(kept + (1 - kept) / n_labels), 1 / learner.n_rows)
    least = min(least, 0.5)
    return np.asarray(logit(np.clip(shares.mean() + kept * away, least, 1 - least)))
