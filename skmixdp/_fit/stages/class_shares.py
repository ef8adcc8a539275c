"""Shares of classes: for balanced weights before the training, and for corrections after it."""

import math
from dataclasses import replace
from functools import partial

import numpy as np

from ..._engine import Procedure
from ...components.protocols import FloatArray
from ..stage import Fit, Price, Stage
from ..statistics import Worth, counts_query, in_class, kept_part, share_for

#: Noise in a class count, as a fraction of the mean count, if private rows compare adjustments.
WORTH = Worth(0.1, 0.5, (0.005, 0.02))
#: Otherwise.
_WORTH_UNCOMPARED = WORTH._replace(most=0.3)

#: Factor by which noise in the counts may exceed its expected squared length.
_NOISE_FACTOR = 2.0
#: Multiples of the default adjustment that private rows compare, from weak to strong.
MULTIPLES = np.array([0.5, 1.0, 1.5])


def count_share(mu: float, n_rows: int, n_classes: int) -> float:
    """Share of mu squared for class counts, from public facts; 0 if noise would hide the class shares."""
    compared = share_for(mu, n_rows, math.sqrt(len(MULTIPLES)))
    return share_for(mu, n_rows, n_classes, WORTH if compared else _WORTH_UNCOMPARED)


def class_shares(counts: FloatArray, scale: float, n_rows: float) -> FloatArray:
    """Estimated class shares (k,), all positive, from noisy counts (k,) of ``n_rows`` rows.

    ``scale`` is the standard deviation of the noise. Counts are shrunk towards equal ones by a factor as
    James and Stein's, so shares that differ by no more than noise come out equal. No count is taken to be
    below the standard deviation of its noise.
    """
    mean = n_rows / len(counts)
    away = counts - mean
    kept = kept_part(_NOISE_FACTOR * (len(counts) - 1) * scale**2, away)
    # A class whose noisy count is not positive gets a small positive share.
    shrunk = np.maximum(mean + kept * away, min(max(scale, 1.0), mean))
    return np.asarray(shrunk / shrunk.sum())


class ClassCounts(Stage):
    """Balanced weights, by noisy sums of the sample weights of each class."""

    name = "class counts"
    limits = WORTH.limits

    def price(self, fit: Fit) -> Price | None:
        n_counted = fit.weights.n_counted
        return count_share(fit.mu, fit.n_rows, n_counted) if n_counted else None

    def run(self, fit: Fit, price: Price) -> Procedure[Fit]:
        weights, multiplier, n_rows = fit.weights, fit.budget.multiplier(price), fit.n_rows
        query = counts_query(np.zeros((0, 0)), partial(in_class, n_classes=weights.n_counted))
        counts, noise = yield from fit.ask(fit.counting.ask(multiplier, query))
        total = n_rows if weights.sample_weight is None else max(float(counts.sum()), noise, 1.0)
        shares = class_shares(counts, multiplier, total)
        # Mean of relative weights, with which each class has the total weight of the rarest one.
        mean = min(total / n_rows, 1.0) * len(shares) * float(shares.min())
        data = weights.applied(1 / shares)
        return fit.spent(self, price).learned(weights=replace(weights, mean=mean), data=data)


def refuse_without_counts(name: str, value: object, fit: Fit) -> None:
    """Refuse a parameter that needs noisy class counts if the budget has no share for them."""
    obstacle = obstacle_to_counts(fit)
    if name == "logit_adjustment" and not fit.settings.rows.fit_intercept:
        obstacle = "fit_intercept=False leaves no intercepts to adjust"
    if obstacle is not None:
        raise ValueError(
            f"{name}={value!r} needs noisy class counts, but {obstacle}; pass "
            f"{'a dict of weights or None' if name == 'class_weight' else 0}."
        )


def obstacle_to_counts(fit: Fit) -> str | None:
    """Why no share of the budget can be spent on class counts; None if one can."""
    n_classes = max(fit.data.loss.n_outputs, 2)
    if not fit.budget.is_divisible:
        return "n_steps or noise_multiplier leaves no budget that could be divided"
    if fit.settings.batch_size is not None:
        return f"batch_size={fit.settings.batch_size} excludes releases over all rows"
    if not count_share(fit.mu, fit.n_rows, n_classes):
        return f"{fit.n_rows} rows of {n_classes} classes are too few for this budget"
    return None
