"""Noisy statistics of private targets: centre and scale, lengths of gradients, comparisons of heads."""

import math
from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
from scipy.special import ndtri

from .._engine import GaussianMechanism, Plan, PostTrainingRelease, make_plan, training
from .._linear import row_norms
from .._rows import BinCounts, Block, Contribution
from .._utils.process import warn_later
from ..components import BalancedSteps
from ..components.protocols import FloatArray, Loss, PrivateQuery, PublicInfo, ReleasedArray, Rounds, Update
from ..components.scalars import clipped, scalars
from ..privacy.accounting.budgets import Budget
from .columns import certain_count, certain_of_magnitudes, thinned, windows_of
from .noisy_statistics import Learner, Learning, sensitivity_of, share_for, warn_of_sufficient_public_rows

#: Differences of losses are clipped at this quantile of the differences on public rows.
_QUANTILE = 0.9

#: Target for the noise in a mean difference, in units of the clip.
_ERROR = 0.03
#: A mean difference with more noise than this, in units of the clip, is not released.
_MOST_ERROR = 0.1

#: A difference of losses is clear if it exceeds this number of its standard deviations.
_CLEARLY = 2.0

#: Messages for useless public rows: what the fit does, and what to check.
_OF_TARGETS = "the fit left them out; check that y and y_pub are in the same units and were transformed alike"
_OF_LABELS = "the fit left them out; check that y and y_pub have the same labels in the same columns"

#: Fewest public rows from which to compute a clip and the spread of held-out gains.
FEWEST = 10

# -- centre and scale ------------------------------------------------------------------------

#: Number of releases for the centre and the scale of targets.
TARGET_RELEASES = 3

#: Target for the noise in a count of targets, as a fraction of the rows.
_TARGET_ERROR = 0.003
#: Counts of targets with more noise than this, as a fraction of the rows, are not released.
_MOST_TARGET_ERROR = 0.03
#: Smallest and largest share of mu squared for counts of targets.
_TARGET_LIMITS = 0.002, 0.05

#: Ends of the bins of signed magnitudes: half powers of two, up to 60 on both sides of 1.
_MAGNITUDES = 2.0 ** np.arange(-60, 60.5, 0.5)
_SIGNED = np.concatenate([-_MAGNITUDES[::-1], _MAGNITUDES])

#: Smallest scale of targets that are not all zero.
ZEROS = float(_MAGNITUDES[0])

#: Number of bins for a range of targets.
_OF_RANGE = 64

#: The spread is the largest distance between quantiles at these levels and their complements, relative to a
#: normal distribution.
_TAILS = np.array([0.25, 0.1, 0.05, 0.02])

#: A histogram is used if the bins above its noise hold more than this fraction of the rows.
_SEEN = 0.7


def target_share(mu: float, n_rows: int, n_targets: int) -> float:
    """Share of mu squared for :func:`noisy_targets`, from public facts; 0 if noise would hide them."""
    moved = math.sqrt(TARGET_RELEASES * n_targets)
    return share_for(mu, n_rows, moved, _TARGET_ERROR, _MOST_TARGET_ERROR, _TARGET_LIMITS)


def noisy_targets(
    learner: Learner, n_targets: int, mechanism: GaussianMechanism, n_features: int = 0
) -> Learning[tuple[FloatArray, FloatArray]]:
    """The centre and the scale (k,) of targets in any units; the scale is 0 where noise hides it.

    ``n_features`` is the width of the rows that have these targets.

    A histogram of signed magnitudes gives the range of most targets, and two more histograms narrow it down.
    Quantiles tell the scale, so that a few targets far out do not change it.

    *Guarantee*: ``TARGET_RELEASES`` Gaussian releases. A row adds 1 to one bin of each target, so the
    sensitivity of each is ``sqrt(k)``.
    """
    learner = thinned(learner, n_targets, mechanism.noise_multiplier / math.sqrt(TARGET_RELEASES))
    n_rows = learner.n_expected
    edges = [_SIGNED] * n_targets
    center, scale = np.zeros(n_targets), np.zeros(n_targets)
    for stage in range(TARGET_RELEASES):
        n_bins = len(edges[0]) + 1
        places = partial(_places_of_targets, edges=tuple(edges))
        stated = ReleasedArray(sensitivity_of(n_targets))
        query = PrivateQuery(np.zeros((0, n_features)), places, (stated,))  # without products
        released, noise = yield from learner.ask(mechanism, query)
        counts = released.reshape(n_targets, n_bins)
        certain = certain_count(counts, noise) if stage else certain_of_magnitudes(counts, noise, n_rows)
        for j, column in enumerate(counts):
            seen = np.zeros(n_bins)
            for start, width, count in windows_of(column, certain, np.zeros(n_bins, bool)):
                seen[start : start + width] = count / width
            low, high = edges[j][[0, -1]]
            if seen.sum() > _SEEN * n_rows and (stage == 0 or scale[j] > 0):
                center[j], scale[j], low, high = _summary(seen / seen.sum(), edges[j])
            edges[j] = np.linspace(low, high, _OF_RANGE - 1)
    return center, scale


def _places_of_targets(Z: FloatArray, block: Block, edges: tuple[FloatArray, ...]) -> Contribution:
    """Bins (rows, k) of targets between the edges of each; the end bins have all values outside."""
    targets = np.asarray(block.y, np.float64).T  # with a weight, where labels carry weights
    places = [np.searchsorted(ends, each, "right") for ends, each in zip(edges, targets, strict=False)]
    return None, BinCounts(np.stack(places, axis=1), len(edges[0]) + 1)


def _summary(shares: FloatArray, edges: FloatArray) -> tuple[float, float, float, float]:
    """Centre and spread of a histogram, and the ends of the bins that hold most of it.

    If nearly all are in a bin that holds 0, the ends are those of all bins with rows.
    """
    lower, upper = np.append(edges[0], edges), np.append(edges, edges[-1])
    cumulated = np.cumsum(shares)
    first, last = np.searchsorted(cumulated, [_TAILS[-1], 1 - _TAILS[-1]]).tolist()
    ends = np.interp([*_TAILS, *(1 - _TAILS)], np.append(0.0, cumulated), np.append(lower[0], upper))
    spread = float(np.max((ends[len(_TAILS) :] - ends[: len(_TAILS)]) / (-2 * ndtri(_TAILS))))
    zeros = first == last and lower[first] <= 0 <= upper[first]
    if zeros:
        first, last = np.flatnonzero(shares)[[0, -1]].tolist()
    middles = np.clip((lower + upper) / 2, lower[first], upper[last])
    center = float(shares @ middles)
    deviation = math.sqrt(float(shares @ (middles - center) ** 2)) if zeros else 0.0
    return center, max(spread, deviation), float(lower[first]), float(upper[last])


# -- the clip --------------------------------------------------------------------------------

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
_BINS = _PARTS * (_LARGEST - _LEAST)

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


def bound_shares(mu: float, n_rows: int, width: int) -> dict[str, float]:
    """Shares of mu squared for :func:`noisy_gradient_bound`, from public facts; none if it would not gain."""
    if width > _MOST_NOISE * mu * n_rows:
        return {}
    return {"first head": _FIRST_SHARE, "lengths of gradients": _LENGTHS_SHARE}


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
    deviation = noise * np.sqrt(np.arange(_BINS, 0, -1))
    outweighed = _ROWS_BEYOND * W.shape[1] / budget.mu
    surely, rule = (
        int(np.append(beyond <= np.maximum(outweighed, times * deviation), True).argmax())
        for times in (_SURE_DEVIATIONS, _LIKELY_DEVIATIONS)
    )
    return float(2.0 ** (_LEAST + min(rule, surely + _FURTHER_BINS) / _PARTS))


def _lengths(Z: FloatArray, block: Block) -> Contribution:
    """Bins (rows, 1) of the lengths of gradients without weights; the end bins have all other lengths."""
    residuals = Z.astype(np.float64) - np.asarray(block.y)[:, : Z.shape[1]]
    lengths = row_norms(residuals) * block.norms
    places = _PARTS * (np.log2(np.maximum(lengths, 2.0**_LEAST)) - _LEAST)
    # Unlike np.clip, this replaces NaN.
    return None, BinCounts(np.fmin(places, _BINS - 1).astype(np.intp)[:, np.newaxis], _BINS)


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


def start_predicts(info: PublicInfo, learner: Learner, multiplier: float) -> Learning[bool]:
    """Whether the public head helps with private rows, or does no worse on them than on public rows.

    It is useless if it predicts them worse than outputs of 0 do (the centre of targets, even chances of
    labels), and much worse than a head of half of the public rows predicts the other half. The noisy number
    is the sum of clipped differences of losses.

    *Guarantee*: one Gaussian release of this multiplier; one row changes the sum by at most 1.
    """
    nothing = np.zeros_like(info.view.W)
    held_out = _held_out_gains(info, nothing)
    limit = usual_gain(held_out) or 1.0
    query = gains_query(nothing, [info.view.W], limit, info.view.data.loss)
    released, scale = yield from learner.ask(multiplier, query)
    seen = (float(released[0]) + _CLEARLY * scale) / learner.n_rows
    public = clipped(held_out / limit, 1.0)
    error = float(public.std(ddof=1)) / math.sqrt(len(public))
    if seen >= min(0.0, float(public.mean()) - _CLEARLY * error):
        return True
    warn_later(
        "the head of the public rows predicts private rows worse than a constant, and public ones better, so "
        + (_OF_TARGETS if info.view.data.loss.quadratic else _OF_LABELS)
        + ", or pass other public rows, or none."
    )
    return False


def _held_out_gains(info: PublicInfo, W: FloatArray) -> FloatArray:
    """Losses of a head minus losses of the starts, on held-out public rows."""
    outputs = [np.hstack([judge.X @ W.T, judge.X @ start.T]) for start, judge in info.held_out]
    halves = [gains(Z, judge.y, judge.loss) for Z, (_, judge) in zip(outputs, info.held_out, strict=True)]
    return np.concatenate(halves)


def start_comparison(inner: Update, info: PublicInfo) -> PostTrainingRelease | None:
    """The release that returns the start if it predicts private targets clearly better than the trained head.

    After the last step, squared errors of the two heads on private rows are compared. None if noise would
    hide the difference.

    *Guarantee*: one release of a sum of clipped differences. One row changes it by at most 1. Its clip is a
    quantile of the differences on held-out public rows.
    """
    share = share_for(info.mu, info.n_private, 1.0, _ERROR, _MOST_ERROR)
    if not share or info.view.data.n_rows < FEWEST:
        return None
    return PostTrainingRelease({"comparison": share}, partial(_better_of_two, inner=inner, info=info))


def _better_of_two(W: FloatArray, state: Any, multiplier: float, inner: Update, info: PublicInfo) -> Rounds:
    """Yield the query of the comparison, and return the better head."""
    view = info.view
    W = inner.result(W, state)
    # Held-out rows, since the start fits its own rows too well for typical differences.
    with np.errstate(all="ignore"):  # a head that diverged is refused later
        limit = usual_gain(_held_out_gains(info, W)) or 1.0
        if info.gradient_bound is not None:
            # With skewed targets, rows with large errors matter most.
            usual = usual_gain(view.gradient_norms)
            limit *= max(1.0, info.gradient_bound / usual) if usual > 0 else 1.0
    (released,) = yield gains_query(W, [view.W], limit, view.data.loss)
    if not float(released[0]) > _CLEARLY * multiplier:
        return W
    warn_of_sufficient_public_rows(view.data.n_rows)
    return view.W
