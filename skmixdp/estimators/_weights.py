"""Weights of the rows of a fit: releases that learn them, and weights of public rows."""

from dataclasses import replace
from functools import partial

import numpy as np
from numpy.typing import NDArray

from .._engine import GaussianMechanism, Procedure
from .._learning.noisy_statistics import Learner, class_shares, count_share, counts_query, in_class
from .._learning.weights import mean_share, noisy_mean_weight, noisy_scale, scale_share
from ._problem import FitInputs, MappedRows

#: Names of the releases that learn weights.
OF_WEIGHTS = _SCALE_OF_WEIGHTS, _COUNTS, _MEAN_WEIGHT = ("scale of weights", "class counts", "mean weight")


def weight_shares(inputs: FitInputs) -> dict[str, float]:
    """Shares of the squared budget for learning the weights, from public facts."""
    mu, n_rows = inputs.budget.mu, inputs.n_rows
    shares = {}
    if inputs.sample_weight is not None and inputs.largest_weight is None:
        if not inputs.divides:
            raise ValueError(
                "max_sample_weight='auto' learns the scale of sample_weight from noisy counts, which needs "
                "a budget that can be divided; declare the largest weight, such as "
                "max_sample_weight=1.0, or leave out n_steps, noise_multiplier and batch_size."
            )
        shares[_SCALE_OF_WEIGHTS] = scale_share(mu, n_rows)
    if inputs.n_counted:
        shares[_COUNTS] = count_share(mu, n_rows, inputs.n_counted)
    elif inputs.divides and (share := mean_share(mu, n_rows)):
        shares[_MEAN_WEIGHT] = share
    return shares


def public_weights(inputs: FitInputs) -> NDArray[np.float64] | None:
    """Weights (n_pub,) of public rows by class, of mean 1; balanced weights follow from public counts."""
    by_class = inputs.class_weight
    if inputs.n_counted:
        by_class = 1 / np.maximum(np.bincount(inputs.y_pub, minlength=inputs.n_counted), 1)
    if by_class is None or not len(inputs.y_pub):
        return None
    weights = by_class[inputs.y_pub]
    return np.asarray(weights / (float(weights.mean()) if weights.any() else 1.0))


def counting(learner: Learner, inputs: FitInputs) -> Learner:
    """The learner with rows that count by their weights."""
    return replace(learner, loss=inputs.loss, n_rows=max(round(inputs.mean_weight * learner.n_rows), 1))


def learned_weights(inputs: FitInputs, learner: Learner, spent: dict[str, float]) -> Procedure[FitInputs]:
    """The inputs with weights of private rows, which noisy counts determine if they are not known."""
    multipliers = {name: inputs.budget.multiplier(spent[name]) for name in OF_WEIGHTS if name in spent}
    largest, by_class = inputs.largest_weight or 1.0, inputs.class_weight
    if inputs.sample_weight is not None and _SCALE_OF_WEIGHTS in multipliers:
        rows = MappedRows(replace(inputs.private, y=inputs.sample_weight), None)
        largest = yield from inputs.stage(rows, noisy_scale(learner, multipliers[_SCALE_OF_WEIGHTS]))
    weighted = inputs.weighted(largest, by_class)
    rows = MappedRows(weighted.private, None)
    if _COUNTS in multipliers:
        multiplier = multipliers[_COUNTS]
        # Counts of classes are sums of sample weights.
        query = counts_query(np.zeros((0, 0)), partial(in_class, n_classes=inputs.n_counted))
        mechanism = GaussianMechanism(multiplier, 1, learner.noise)
        asked = counting(learner, weighted).ask(mechanism, query)
        counts, noise = yield from weighted.stage(rows, asked)
        total = learner.n_rows if inputs.sample_weight is None else max(float(counts.sum()), noise, 1.0)
        shares = class_shares(counts, multiplier, total)
        by_class = 1 / shares
        # Mean of relative weights, with which each class has the total weight of the rarest one.
        mean = min(total / learner.n_rows, 1.0) * len(shares) * float(shares.min())
        weighted = inputs.weighted(largest, by_class)
    elif _MEAN_WEIGHT in multipliers:
        told = noisy_mean_weight(counting(learner, weighted), multipliers[_MEAN_WEIGHT])
        mean = yield from weighted.stage(rows, told)
    else:
        return weighted
    return replace(weighted, mean_weight=mean)
