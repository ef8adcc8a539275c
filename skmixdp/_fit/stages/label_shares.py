"""Shares of several labels: the logits at which a fit without public rows starts."""

import math
from dataclasses import replace

import numpy as np
from scipy.special import logit

from ..._engine import Procedure
from ..._rows import Block, Contribution
from ...components.protocols import FloatArray, PrivateQuery, ReleasedArray
from ..stage import Fit, Price, Stage
from ..statistics import Learner, Learning, Worth, kept_part, sensitivity_of, share_for
from .class_shares import starts_at_shares

#: Noise in the fraction of rows with a label.
_WORTH = Worth(0.003, 0.25, (0.002, 0.03))


def label_share(mu: float, n_rows: int, n_labels: int) -> float:
    """Share of mu squared for :func:`noisy_logits`, from public facts; 0 if noise would hide them."""
    return share_for(mu, n_rows, sensitivity_of(n_labels) / 2, _WORTH)


def noisy_logits(learner: Learner, n_labels: int, multiplier: float) -> Learning[FloatArray]:
    """Logits (k,) of the fraction of rows that have each label, from noisy sums of labels.

    Shares are shrunk towards their mean as by James and Stein. The remaining standard deviation of their
    noise is the least distance that they keep from 0 and 1.

    *Guarantee*: one Gaussian release of this multiplier. A row adds ``y_i - 1/2`` to the sums, whose length
    is ``sqrt(k) / 2`` for any labels.
    """

    def contribute(Z: FloatArray, block: Block) -> Contribution:
        return None, np.asarray(block.y)[:, :n_labels] - 0.5

    stated = ReleasedArray(sensitivity_of(n_labels) / 2)
    query = PrivateQuery(np.zeros((0, 0)), contribute, (stated,))  # without products
    sums, scale = yield from learner.ask(multiplier, query)
    shares, error = 0.5 + sums / learner.n_rows, scale / learner.n_rows
    away = shares - shares.mean()
    fraction = kept_part((n_labels - 1) * error**2, away)
    least = max(error * math.sqrt(fraction + (1 - fraction) / n_labels), 1 / learner.n_rows)
    least = min(least, 0.5)
    return np.asarray(logit(np.clip(shares.mean() + fraction * away, least, 1 - least)))


class LabelShares(Stage):
    """The default start of several labels without public rows."""

    name = "label shares"
    limits = _WORTH.limits

    def price(self, fit: Fit) -> Price | None:
        loss = fit.data.loss
        if loss.has_classes or loss.quadratic or not starts_at_shares(fit):
            return None
        return label_share(fit.mu, fit.n_rows, loss.n_outputs) or None

    def run(self, fit: Fit, price: Price) -> Procedure[Fit]:
        queries = noisy_logits(fit.counting, fit.data.loss.n_outputs, fit.budget.multiplier(price))
        logits = yield from fit.ask(queries)
        return fit.spent(self, price).learned(labels=replace(fit.labels, logits=logits))
