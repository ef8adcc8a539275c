"""Shares of classes: for the start and balanced weights, and for corrections after the training."""

import math
from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import partial

import numpy as np

from ..._engine import Procedure, bind_rows
from ..._utils.process import warn_later
from ..._utils.validation import shown
from ...components.protocols import FloatArray
from ..stage import RARE, Fit, Price, Stage
from ..statistics import Worth, counts_query, in_class, kept_part, share_for

#: Noise in a class count, as a fraction of the mean count, if private rows compare adjustments.
WORTH = Worth(0.1, 0.5, (0.005, 0.02))
#: Otherwise.
_WORTH_UNCOMPARED = WORTH._replace(most=0.3)
#: For the start: noise in a class share, which also hides shares of rare classes.
_WORTH_OF_START = Worth(0.001, 0.02, WORTH.limits)

#: Factor by which noise in the counts may exceed its expected squared length.
_NOISE_FACTOR = 2.0
#: Standard deviations of the noise in its count that a rare class needs.
_CLEAR = 4.0
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
    fraction = kept_part(_NOISE_FACTOR * (len(counts) - 1) * scale**2, away)
    # A class whose noisy count is not positive gets a small positive share.
    shrunk = np.maximum(mean + fraction * away, min(max(scale, 1.0), mean))
    return np.asarray(shrunk / shrunk.sum())


def starts_at_shares(fit: Fit, with_public_rows: bool = False) -> bool:
    """Whether a fit starts at the shares of its classes or labels, as by default without public rows."""
    settings = fit.settings
    by_default = isinstance(settings.init, str) and settings.init == "public" and settings.known_map is None
    labels_tell = len(fit.public.X) and not with_public_rows
    return by_default and settings.rows.fit_intercept and fit.divides and not labels_tell


@dataclass(frozen=True, eq=False)
class ClassCounts(Stage):
    """Balanced weights, or the start, by noisy sums of the sample weights of each class.

    The start has the logarithms of the class shares ``q_c``, times the class weights ``w_c``, as intercepts:
    ``log(w_c q_c)``, less their mean, or their difference for two classes. With balanced weights it is at 0.
    Additive models of two classes move the intercept of the head of public rows too.
    """

    with_public_rows: bool = False

    name = "class counts"
    limits = WORTH.limits

    def price(self, fit: Fit) -> Price | None:
        loss, n_classes = fit.data.loss, max(fit.data.loss.n_outputs, 2)
        if fit.weights.n_counted:
            return count_share(fit.mu, fit.n_rows, n_classes)
        if not (loss.has_classes and starts_at_shares(fit, self.with_public_rows and n_classes == 2)):
            return None
        if n_classes == 2:
            return share_for(fit.mu, fit.n_rows, 1.0, _WORTH_OF_START) or None
        return count_share(fit.mu, fit.n_rows, n_classes) or None

    def outcomes(self, fit: Fit, price: Price) -> Iterator[Fit]:
        if fit.weights.n_counted:
            yield from super().outcomes(fit, price)
            return
        n_classes = max(fit.data.loss.n_outputs, 2)
        for rare in 1 / n_classes, 1 / fit.n_rows:
            shares = np.array([1 - (n_classes - 1) * rare] + (n_classes - 1) * [rare])
            yield _started(fit.spent(self, price), shares).foreseen()

    def run(self, fit: Fit, price: Price) -> Procedure[Fit]:
        weights, multiplier, n_rows, data = fit.weights, fit.budget.multiplier(price), fit.n_rows, fit.data
        if weights.of_classes is not None:  # they would only hide some counts in noise
            data = weights.bare if weights.sample_weight is None else weights.applied(None)
        query = counts_query(np.zeros((0, 0)), partial(in_class, n_classes=max(data.loss.n_outputs, 2)))
        queries = replace(fit.learner, loss=data.loss).ask(multiplier, query)
        counts, noise = yield from bind_rows(data.private.mapped(None), queries)
        total = n_rows if weights.sample_weight is None else max(float(counts.sum()), noise, 1.0)
        shares = class_shares(counts, multiplier, total)
        fit = fit.spent(self, price)
        if not weights.n_counted:
            if len(counts) == 2 and weights.sample_weight is None:
                _warn_of_hidden(counts, noise, fit)
            return _started(fit, shares)
        # Mean of relative weights, with which each class has the total weight of the rarest one.
        mean = min(total / n_rows, 1.0) * len(shares) * float(shares.min())
        return fit.learned(weights=replace(weights, mean=mean), data=weights.applied(1 / shares))


def _warn_of_hidden(counts: FloatArray, noise: float, fit: Fit) -> None:
    """Warn if the ``noise`` in the counts (2,) of two classes hides the rarer one."""
    rarer, classes = int(counts.argmin()), fit.settings.classes
    if counts[rarer] < _CLEAR * noise and counts[rarer] < RARE * fit.n_rows and classes is not None:
        name, rows = shown(classes.tolist()[rarer]), max(counts[rarer], 0.0)
        warn_later(
            f"the class {name} has {rows:.0f} rows by a noisy count, whose noise has a standard deviation of "
            f"{noise:.0f}. A class of fewer than {_CLEAR * noise:.0f} rows is hidden by it, so probabilities "
            "may be no better than its share; pass a larger epsilon, more rows, or public rows."
        )


def _started(fit: Fit, shares: FloatArray) -> Fit:
    """The fit that starts at class shares (k,), as its weights of classes change them."""
    if fit.weights.of_classes is not None:
        shares = shares * fit.weights.of_classes
        shares = np.maximum(shares / shares.sum(), 1 / fit.n_rows)  # a weight may be zero
    logs = np.log(shares)
    logits = logs[1:] - logs[:1] if fit.data.loss.n_outputs == 1 else logs - logs.mean()
    return fit.learned(labels=replace(fit.labels, logits=logits, shares=shares))


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
