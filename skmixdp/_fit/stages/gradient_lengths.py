"""A length that few gradients of a regression exceed, at a first head."""

import math
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from ..._engine import Plan, Procedure, make_plan, training
from ..._linear import row_norms
from ..._rows import BinCounts, Block, Contribution
from ...components import BalancedSteps
from ...components.protocols import FloatArray, PrivateQuery, ReleasedArray
from ...privacy.accounting.budgets import Budget
from ..planning import planned
from ..stage import Fit, Price, Stage
from ..statistics import Learner, Learning

#: Share of mu squared for a first head.
_FIRST_SHARE = 0.08
#: Share of mu squared for the histogram of the lengths of its gradients.
_LENGTHS_SHARE = 0.02
#: Most steps of the first head.
_FIRST_STEPS = 15
#: Bins of lengths for each power of two.
_PARTS = 2
#: Exponent of the smallest length.
_LEAST = -10
#: Exponent of the largest length.
_LARGEST = 12
#: Number of bins of lengths.
BINS = _PARTS * (_LARGEST - _LEAST)
#: Expected number of rows beyond the clip, times mu and divided by the width of a row. Fewer rows mean more
#: noise, and more rows mean more bias. On five skewed and five usual targets, 2 and 6 were about as good.
_ROWS_BEYOND = 3.0
#: Standard deviations of noise above which a bin surely has rows.
_SURE_DEVIATIONS = 5.0
#: Standard deviations of noise above which a bin probably has rows.
_LIKELY_DEVIATIONS = 2.0
#: Beyond the last sure bin, this many bins count if they probably have rows: a length four times as large.
_FURTHER_BINS = 2 * _PARTS
#: Largest noise in the head, ``width / (mu n_rows)``, with which a longer clip helps. With more noise, the
#: bias of Huber's loss is smaller than the noise.
_MOST_NOISE = 0.01


def noisy_gradient_bound(plan: Plan, learner: Learner, budget: Budget) -> Learning[float]:
    """A length that few gradients of private rows exceed at a first head, for squared loss.

    The first head is trained like that of ``plan``, on a small part of the budget. The best threshold for a
    noisy sum is exceeded by about as many rows as the noise outweighs.

    *Guarantee*: the releases of the first head, and one of a histogram, to which a row adds 1.

    Source: Amin, Kulesza, Munoz Medina and Vassilvitskii 2019, "Bounding user contributions: a bias-variance
    trade-off in differential privacy".
    """
    info = replace(plan.info, mu=budget.mu * math.sqrt(_FIRST_SHARE))
    assert isinstance(plan.recipe.steps, BalancedSteps)
    recipe = replace(plan.recipe, comparison=None, steps=replace(plan.recipe.steps, maximum=_FIRST_STEPS))
    first = make_plan(budget, recipe, info, plan.dtype, _FIRST_SHARE)
    W = yield from training(first, learner.noise, learner.members)
    query = PrivateQuery(np.nan_to_num(W), _lengths, (ReleasedArray(1.0),))
    counts, noise = yield from learner.ask(budget.multiplier(_LENGTHS_SHARE), query)
    # Rows at and beyond each bin, and the standard deviation of their noise.
    beyond = np.cumsum(counts[::-1])[::-1]
    deviation = noise * np.sqrt(np.arange(BINS, 0, -1))
    outweighed = _ROWS_BEYOND * W.shape[1] / budget.mu
    surely, rule = (
        int(np.append(beyond <= np.maximum(outweighed, times * deviation), True).argmax())
        for times in (_SURE_DEVIATIONS, _LIKELY_DEVIATIONS)
    )
    return length_at(min(rule, surely + _FURTHER_BINS))


def length_at(place: int) -> float:
    """The shortest length in a bin; all lengths in the bins before are shorter."""
    return float(2.0 ** (_LEAST + place / _PARTS))


def places_of(lengths: FloatArray) -> NDArray[np.intp]:
    """Bins of lengths; the end bins have all other lengths."""
    places = _PARTS * (np.log2(np.maximum(lengths, 2.0**_LEAST)) - _LEAST)
    # Unlike np.clip, this replaces NaN.
    return np.asarray(np.fmin(places, BINS - 1).astype(np.intp))


def _lengths(Z: FloatArray, block: Block) -> Contribution:
    """Bins (rows, 1) of the lengths of gradients without weights."""
    residuals = Z.astype(np.float64) - np.asarray(block.y)[:, : Z.shape[1]]
    return None, BinCounts(places_of(row_norms(residuals) * block.norms)[:, np.newaxis], BINS)


class GradientLengths(Stage):
    """The clip of a regression with little noise."""

    name = "lengths of gradients"
    limits = (_FIRST_SHARE + _LENGTHS_SHARE,) * 2
    assumes = False  # the plan of the first head tells what is left

    def price(self, fit: Fit) -> Price | None:
        applies = fit.data.loss.quadratic and fit.settings.is_default and fit.divides
        if not applies or fit.data.n_features > _MOST_NOISE * fit.mu * fit.n_rows:
            return None
        return _FIRST_SHARE + _LENGTHS_SHARE

    def lines(self, fit: Fit, price: Price) -> tuple[tuple[str, Price], ...]:
        return (("first head", _FIRST_SHARE), (self.name, _LENGTHS_SHARE))

    def run(self, fit: Fit, price: Price) -> Procedure[Fit]:
        fit = planned(fit)
        assert fit.plan is not None and fit.mapping is not None
        bound = yield from fit.ask(noisy_gradient_bound(fit.plan, fit.counting, fit.budget), fit.row_map)
        return fit.spent(self, price).mapped(gradient_bound=bound)
