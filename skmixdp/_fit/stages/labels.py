"""What comes with rows: sample weights, the shares of classes and labels, and the scale of targets."""

import math
from collections.abc import Iterator
from dataclasses import replace
from functools import partial
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray
from scipy.special import logit, ndtri

from ..._engine import GaussianMechanism, Procedure, bind_rows
from ..._rows.row_map import TargetMap
from ..._rows.source import BinCounts, Block, Contribution
from ..._utils.process import warn_later
from ..._utils.validation import shown
from ...components.protocols import FloatArray, PrivateQuery, ReleasedArray, Rounds
from ..stage import RARE, Fit, Price, Stage, Steps
from ..statistics import (
    OF_ACCURACIES,
    Learner,
    Learning,
    Worth,
    comparison_query,
    counts_query,
    expected_losses,
    in_class,
    james_stein_factor,
    magnitude_threshold,
    noise_threshold,
    sensitivity_of,
    share_for,
    shown_counts,
    thinned,
)

#: Bins of weights for each power of two.
_PER_OCTAVE = 16
#: Weights are binned up to this power of two on both sides of 1.
_EXPONENT = 64
#: Octaves of the range that is taken if noise hides all bins.
_OCTAVES = 2
#: Fraction of the total weight that a cut of large weights may remove.
_MOST_LOST = 0.02

#: Noise in a count of rows, as a fraction of them. Even a very noisy histogram helps.
_WORTH_OF_SCALE = Worth(0.001, math.inf, (0.002, 0.02))
#: Noise in the mean weight.
_WORTH_OF_MEAN = Worth(0.005, 0.5, (0.002, 0.02))


def scale_share(mu: float, n_rows: int) -> float:
    """Share of mu squared for :func:`noisy_scale`, from public facts."""
    return share_for(mu, n_rows, 1.0, _WORTH_OF_SCALE)


def noisy_scale(learner: Learner, multiplier: float, n_features: int = 0) -> Learning[float]:
    """The weight at which larger weights are cut. Labels are weights, or have them in a last column.

    The cut loses at most 2% of the total that a noisy histogram shows, and weights too rare to show.

    *Guarantee*: one Gaussian release of this multiplier. A row adds 1 to one bin, so the sensitivity is 1.
    """
    n_bins = 2 * _PER_OCTAVE * _EXPONENT + 1
    # Labels need no products.
    query = PrivateQuery(np.zeros((0, n_features)), _binned, (ReleasedArray(1.0),))
    counts, noise = yield from learner.ask(multiplier, query)
    # Weights of zero, in the first bin, have no scale.
    seen = shown_counts(counts, magnitude_threshold(counts, noise, learner.n_rows), without=(0,))
    if not seen.any():  # the end of the two octaves with most rows is taken as the scale
        of_octaves = np.convolve(counts[1:], np.ones(_OCTAVES * _PER_OCTAVE), "valid")
        seen[int(of_octaves.argmax()) + _OCTAVES * _PER_OCTAVE] = 1.0
    middles = 2.0 ** ((np.arange(n_bins) - 0.5) / _PER_OCTAVE - _EXPONENT)
    # The weight that a cut at each bin's middle removes.
    above = np.cumsum((seen * middles)[::-1])[::-1] - middles * np.cumsum(seen[::-1])[::-1]
    lost = np.where(middles <= middles[np.flatnonzero(seen)[-1]], above, 0.0)
    return float(middles[np.flatnonzero(lost <= _MOST_LOST * float(seen @ middles))[0]])


def _binned(Z: FloatArray, block: Block) -> Contribution:
    """The bin of each weight: 0 for weight zero, then by size; the end bins have all other weights."""
    weights: NDArray[Any] = np.asarray(block.y, np.float64).reshape(len(block.y), -1)[:, -1]
    positive = weights > 0
    logs = np.log2(np.where(positive, weights, 1.0)) + _EXPONENT
    bins = 1 + np.clip(np.floor(_PER_OCTAVE * logs), 0, 2 * _PER_OCTAVE * _EXPONENT - 1).astype(np.intp)
    return None, BinCounts((bins * positive)[:, np.newaxis], 2 * _PER_OCTAVE * _EXPONENT + 1)


def noisy_mean_weight(learner: Learner, multiplier: float) -> Learning[float]:
    """The mean weight of rows, in (0, 1], at least the standard deviation of its noise.

    *Guarantee*: one Gaussian release of this multiplier. A row adds its weight, which is at most 1.
    """
    query = PrivateQuery(
        np.zeros((0, 0)), lambda Z, block: (None, np.ones((len(block.y), 1))), (ReleasedArray(1.0),)
    )
    total, noise = yield from learner.ask(multiplier, query)
    return min(max(float(total[0]), noise, 1.0) / learner.n_rows, 1.0)


class ScaleOfWeights(Stage):
    """The sample weight that counts as 1."""

    name = "scale of weights"
    limits = _WORTH_OF_SCALE.limits
    needs = ("weights",)

    def price(self, fit: Fit) -> Price | None:
        weights = fit.weights
        if weights.sample_weight is None or weights.largest is not None:
            return None
        if not fit.divides:
            raise ValueError(
                "max_sample_weight='auto' learns the scale of sample_weight from noisy counts, which needs "
                "a budget that can be divided; declare the largest weight, such as "
                "max_sample_weight=1.0, or leave out n_steps, noise_multiplier and batch_size."
            )
        return scale_share(fit.budget.mu, fit.data.n_rows)

    def run(self, fit: Fit, price: Price) -> Procedure[Fit]:
        weights = fit.weights
        assert weights.sample_weight is not None
        rows = replace(weights.bare.private, y=weights.sample_weight).mapped(None)
        largest = yield from bind_rows(rows, noisy_scale(fit.learner, fit.budget.multiplier(price)))
        weights = replace(weights, largest=largest)
        return fit.spent(self, price).learned(weights=weights, data=weights.applied(weights.of_classes))


class MeanWeight(Stage):
    """The mean weight, by which noisy sums are divided."""

    name = "mean weight"
    limits = _WORTH_OF_MEAN.limits
    needs = ("weights", "divides")

    def price(self, fit: Fit) -> Price | None:
        if fit.weights.n_counted:
            return None
        return share_for(fit.budget.mu, fit.data.n_rows, 1.0, _WORTH_OF_MEAN) or None

    def run(self, fit: Fit, price: Price) -> Procedure[Fit]:
        mean = yield from fit.ask(noisy_mean_weight(fit.counting, fit.budget.multiplier(price)))
        return fit.spent(self, price).learned(weights=replace(fit.weights, mean=mean))


#: Number of releases for the centre and the scale of targets.
TARGET_RELEASES = 3

#: Noise in a count of targets, as a fraction of the rows.
_WORTH_OF_TARGETS = Worth(0.003, 0.03, (0.002, 0.05))

#: Ends of the bins of signed magnitudes: half powers of two, up to 60 on both sides of 1.
_MAGNITUDES = 2.0 ** np.arange(-60, 60.5, 0.5)
_SIGNED = np.concatenate([-_MAGNITUDES[::-1], _MAGNITUDES])
#: Smallest scale of targets that are not all zero.
_ZEROS = float(_MAGNITUDES[0])
#: Number of bins for a range of targets.
_OF_RANGE = 64
#: The spread is the largest distance between quantiles at these levels and their complements, relative to a
#: normal distribution.
_TAILS = np.array([0.25, 0.1, 0.05, 0.02])
#: A histogram is used if the bins above its noise hold more than this fraction of the rows.
_SEEN = 0.7


def target_share(mu: float, n_rows: int, n_targets: int) -> float:
    """Share of mu squared for :func:`noisy_targets`, from public facts; 0 if noise would hide them."""
    return share_for(mu, n_rows, math.sqrt(TARGET_RELEASES * n_targets), _WORTH_OF_TARGETS)


def noisy_targets(
    learner: Learner, n_targets: int, mechanism: GaussianMechanism, n_features: int = 0
) -> Learning[tuple[FloatArray, FloatArray]]:
    """The centre and the scale (k,) of targets in any units; the scale is 0 where noise hides it.

    A histogram of signed magnitudes gives the range of most targets, and two more narrow it down.
    ``n_features`` is the width of the rows.

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
        certain = noise_threshold(counts, noise) if stage else magnitude_threshold(counts, noise, n_rows)
        for j, column in enumerate(counts):
            seen = shown_counts(column, certain)
            low, high = edges[j][[0, -1]]
            if seen.sum() > _SEEN * n_rows and (stage == 0 or scale[j] > 0):
                center[j], scale[j], low, high = _middle_and_ends(seen / seen.sum(), edges[j])
            edges[j] = np.linspace(low, high, _OF_RANGE - 1)
    return center, scale


def _places_of_targets(Z: FloatArray, block: Block, edges: tuple[FloatArray, ...]) -> Contribution:
    """Bins (rows, k) of targets between the edges of each; the end bins have all values outside."""
    targets = np.asarray(block.y, np.float64).T  # a last column of weights is left out below
    places = [np.searchsorted(ends, each, "right") for ends, each in zip(edges, targets, strict=False)]
    return None, BinCounts(np.stack(places, axis=1), len(edges[0]) + 1)


def _middle_and_ends(shares: FloatArray, edges: FloatArray) -> tuple[float, float, float, float]:
    """Centre and spread of a histogram, and the ends of the bins that hold most of it, or all of zeros."""
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


class TargetScale(Stage):
    """Targets of unit scale, by a part of the budget, or by the first steps of a plan."""

    name = "scale of the targets"
    limits = _WORTH_OF_TARGETS.limits
    needs = ("targets",)
    reopens = True  # if public targets told the scale

    def price(self, fit: Fit) -> Price | None:
        return fit.labels.price

    def run(self, fit: Fit, price: Price) -> Procedure[Fit]:
        k, private, labels, learner = fit.data.loss.n_outputs, fit.data.private, fit.labels, fit.learner
        target_map = labels.target_map
        assert target_map is not None
        y = private.y
        if labels.is_scaled:
            y = np.column_stack([y[:, :k] * target_map.scale + target_map.center, y[:, k:]])
        if isinstance(price, Steps):
            assert fit.plan is not None  # which was charged
            learner = replace(learner, sampling=fit.plan.recipe.sampling)
            multiplier = fit.plan.noise_multiplier
        else:
            multiplier = fit.budget.multiplier(price, TARGET_RELEASES)
        queries = noisy_targets(learner, k, GaussianMechanism(multiplier, TARGET_RELEASES, learner.noise))
        center, scale = yield from bind_rows(replace(private, y=y).mapped(None), queries)
        if not np.all(scale > 0):
            warn_later(unknown_scale("is hidden by noise"))
        elif np.any(scale < _ZEROS):
            warn_later(
                "nearly all targets y are 0 and noise hides the others, so predictions are about 0; pass "
                "target_scale from prior knowledge, a larger epsilon or public rows."
            )
        middle = center if labels.learns_center else target_map.center
        target_map = TargetMap(middle, np.where(scale > 0, np.hypot(scale, center - middle), 1.0))
        scaled = target_map(y[:, :k], private.dtype)
        if y.shape[1] > k:  # weights, in double precision
            scaled = np.column_stack([scaled, y[:, k:]])
        return fit.spent(self, price).learned(
            data=replace(fit.data, private=replace(private, y=scaled)),
            labels=replace(labels, target_map=target_map, is_scaled=True),
            public=replace(fit.public, y=target_map(fit.public.y, np.float64)),
        )


def unknown_scale(why: str) -> str:
    """The warning that the fit assumes targets of unit scale, since their scale is not known."""
    return (
        f"the scale of the targets y {why}, so the fit assumes a scale of 1; pass target_scale and "
        "target_center from prior knowledge, or two public rows or more."
    )


#: Noise in a class count, as a fraction of the mean count, if private rows compare adjustments.
WORTH = Worth(0.1, 0.5, (0.005, 0.02))
#: The same if no comparison follows.
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
    """Class shares (k,), all positive, from noisy counts (k,) of ``n_rows`` rows, shrunk towards equal ones.

    No count is taken to be below ``scale``, the standard deviation of its noise.
    """
    mean = n_rows / len(counts)
    away = counts - mean
    fraction = james_stein_factor(_NOISE_FACTOR * (len(counts) - 1) * scale**2, away)
    # A class whose noisy count is not positive gets a small positive share.
    shrunk = np.maximum(mean + fraction * away, min(max(scale, 1.0), mean))
    return np.asarray(shrunk / shrunk.sum())


def starts_at_shares(fit: Fit, with_public_rows: bool = False) -> bool:
    """Whether a fit starts at the shares of its classes or labels, as by default without public rows."""
    settings = fit.settings
    by_default = isinstance(settings.init, str) and settings.init == "public" and settings.known_map is None
    labels_tell = len(fit.public.X) and not with_public_rows
    return by_default and settings.rows.fit_intercept and fit.divides and not labels_tell


class ClassCounts(Stage):
    """Balanced weights, or the start, by noisy sums of the sample weights of each class.

    The start has the logarithms of ``w_c q_c`` as intercepts, for class shares ``q`` and class weights ``w``.
    With balanced weights it is at 0. A head of public rows of two classes gets their intercept if one is
    rare.
    """

    name = "class counts"
    limits = WORTH.limits

    def price(self, fit: Fit) -> Price | None:
        loss, n_classes = fit.data.loss, max(fit.data.loss.n_outputs, 2)
        if fit.weights.n_counted:
            return count_share(fit.budget.mu, fit.data.n_rows, n_classes)
        moves_public = fit.settings.is_default and n_classes == 2
        if not (loss.has_classes and starts_at_shares(fit, moves_public)):
            return None
        if n_classes == 2:
            return share_for(fit.budget.mu, fit.data.n_rows, 1.0, _WORTH_OF_START) or None
        return count_share(fit.budget.mu, fit.data.n_rows, n_classes) or None

    def outcomes(self, fit: Fit, price: Price) -> Iterator[Fit]:
        if fit.weights.n_counted:
            yield from super().outcomes(fit, price)
            return
        n_classes = max(fit.data.loss.n_outputs, 2)
        for rare in 1 / n_classes, 1 / fit.data.n_rows:
            shares = np.array([1 - (n_classes - 1) * rare] + (n_classes - 1) * [rare])
            yield _at_shares(fit.spent(self, price, assumed=True), shares)

    def run(self, fit: Fit, price: Price) -> Procedure[Fit]:
        weights, data, n_rows = fit.weights, fit.data, fit.data.n_rows
        multiplier = fit.budget.multiplier(price)
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
            return _at_shares(fit, shares)
        # Mean of relative weights, with which each class has the total weight of the rarest one.
        mean = min(total / n_rows, 1.0) * len(shares) * float(shares.min())
        return fit.learned(weights=replace(weights, mean=mean), data=weights.applied(1 / shares))


def _warn_of_hidden(counts: FloatArray, noise: float, fit: Fit) -> None:
    """Warn if the ``noise`` in the counts (2,) of two classes hides the rarer one."""
    rarer, classes = int(counts.argmin()), fit.settings.classes
    if counts[rarer] < _CLEAR * noise and counts[rarer] < RARE * fit.data.n_rows and classes is not None:
        name, rows = shown(classes.tolist()[rarer]), max(counts[rarer], 0.0)
        warn_later(
            f"the class {name} has {rows:.0f} rows by a noisy count, whose noise has a standard deviation of "
            f"{noise:.0f}. A class of fewer than {_CLEAR * noise:.0f} rows is hidden by it, so probabilities "
            "may be no better than its share; pass a larger epsilon, more rows, or public rows."
        )


def _at_shares(fit: Fit, shares: FloatArray) -> Fit:
    """The fit that starts at class shares (k,), as its weights of classes change them."""
    if fit.weights.of_classes is not None:
        shares = shares * fit.weights.of_classes
        shares = np.maximum(shares / shares.sum(), 1 / fit.data.n_rows)  # a weight may be zero
    labels = replace(fit.labels, shares=shares)
    if labels.rarest < RARE or not len(fit.public.X):
        logs = np.log(shares)
        logits = logs[1:] - logs[:1] if fit.data.loss.n_outputs == 1 else logs - logs.mean()
        labels = replace(labels, logits=logits)
    return fit.learned(labels=labels)


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
    if not count_share(fit.budget.mu, fit.data.n_rows, n_classes):
        return f"{fit.data.n_rows} rows of {n_classes} classes are too few for this budget"
    return None


#: Noise in the fraction of rows with a label.
WORTH_OF_LABELS = Worth(0.003, 0.25, (0.002, 0.03))


def noisy_logits(learner: Learner, n_labels: int, multiplier: float) -> Learning[FloatArray]:
    """Logits (k,) of the fraction of rows that have each label, from noisy sums, shrunk to their mean.

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
    fraction = james_stein_factor((n_labels - 1) * error**2, away)
    least = max(error * math.sqrt(fraction + (1 - fraction) / n_labels), 1 / learner.n_rows)
    least = min(least, 0.5)
    return np.asarray(logit(np.clip(shares.mean() + fraction * away, least, 1 - least)))


class LabelShares(Stage):
    """The default start of several labels without public rows."""

    name = "label shares"
    limits = WORTH_OF_LABELS.limits
    needs = ("labels",)

    def price(self, fit: Fit) -> Price | None:
        if not starts_at_shares(fit):
            return None
        moved = sensitivity_of(fit.data.loss.n_outputs) / 2
        return share_for(fit.budget.mu, fit.data.n_rows, moved, WORTH_OF_LABELS) or None

    def run(self, fit: Fit, price: Price) -> Procedure[Fit]:
        queries = noisy_logits(fit.counting, fit.data.loss.n_outputs, fit.budget.multiplier(price))
        logits = yield from fit.ask(queries)
        return fit.spent(self, price).learned(labels=replace(fit.labels, logits=logits))


#: Strength of the default adjustment with a start at zero.
_FROM_ZERO = 0.6
#: Strength of the default adjustment with a public start.
_FROM_START = 0.25
#: The line of the comparison in the report.
_COMPARED = "strength of the adjustment"
#: Largest loss of accuracy that an adjustment may cause.
_TOLERATED_LOSS = 0.01
#: Prior for the loss of accuracy by a multiple m of the adjustment: its mean divided by m.
_EXPECTED_LOSS = 0.012
#: Standard deviation of the prior of this loss.
_LOSS_SPREAD = 0.02


class Adjustment(Stage):
    """Subtracts a multiple of the logarithms of noisy class shares from the logits of a trained head.

    The logit of class j becomes ``z_j - tau log q_j``, in units of calibrated logits. ``min(1, tau)`` times
    the start is added back to rare classes, in proportion to ``1 - k q_j``, since private rows of frequent
    classes erase it. A strength of "auto" is the strongest of three that loses at most one point of accuracy
    on private rows.

    *Guarantee*: one Gaussian release of the counts, of sensitivity 1, and one of three differences. A row
    moves each difference by at most 1, so their sensitivity is ``sqrt(3)``.

    Source: Menon, Jayasumana, Rawat, Jain, Veit and Kumar 2021, "Long-tail learning via logit adjustment",
    section 4.1.
    """

    name = "class shares"
    limits = (WORTH.limits[0], WORTH.limits[1] + OF_ACCURACIES.limits[1])

    def price(self, fit: Fit) -> Price | None:
        strength, loss = fit.settings.logit_adjustment, fit.data.loss
        if strength == "auto":
            several = loss.has_classes and loss.n_outputs > 2 and not fit.weights.of_any_class
            if not (fit.settings.is_default and several) or obstacle_to_counts(fit) is not None:
                return None
        elif strength == 0:
            return None
        else:
            refuse_without_counts("logit_adjustment", strength, fit)
        if fit.mapping.row_map.intercept_value is None:  # before the map is known
            return None
        return sum(share for _, share in self.lines(fit, 0.0)) or 0.0

    def lines(self, fit: Fit, price: Price) -> tuple[tuple[str, Price], ...]:
        lines = []
        if fit.labels.shares is None:  # no counts were released for the start
            n_classes = max(fit.data.loss.n_outputs, 2)
            lines.append((self.name, count_share(fit.budget.mu, fit.data.n_rows, n_classes)))
        if fit.settings.logit_adjustment == "auto":
            lines.append((_COMPARED, share_for(fit.budget.mu, fit.data.n_rows, math.sqrt(len(MULTIPLES)))))
        return tuple(line for line in lines if line[1])

    def run(self, fit: Fit, price: Price) -> Procedure[Fit]:
        assert fit.head is not None
        rounds, before = partial(self._adjust, fit, price), (fit.head.W, fit.labels.shares)
        queries = fit.correct(rounds, price, before) if price else cast(Procedure[Any], rounds(0.0))
        W, shares = yield from queries
        labels = replace(fit.labels, shares=shares)
        return fit.spent(self, price, head=replace(fit.head, W=W), labels=labels)

    def _adjust(self, fit: Fit, price: Price, multiplier: float) -> Rounds:
        """Yield queries that share the budget of one step; return the adjusted head and class shares."""
        constant = fit.mapping.row_map.intercept_value
        assert fit.plan is not None and fit.head is not None and constant is not None
        W, info, strength = fit.head.W, fit.plan.info, fit.settings.logit_adjustment
        shares, prices = fit.labels.shares, dict(self.lines(fit, price))
        if shares is None:
            part, labels_alone = prices[self.name] / price, np.zeros((0, W.shape[1]))
            classes = partial(in_class, n_classes=max(fit.data.loss.n_outputs, 2))
            (counts,) = yield counts_query(labels_alone, classes, part)
            shares = class_shares(counts, multiplier / math.sqrt(part), info.n_effective)
        k, public = len(shares), fit.labels.logits is None and bool(np.any(info.view.W))

        def adjusted(strength: float, restored: float) -> FloatArray:
            """The head with adjusted intercepts, and with a part of the start."""
            head = np.array(W)
            if public and restored and len(W) == k:  # one output for two classes has no row for each class
                rare = np.maximum(0.0, 1 - k * shares)
                # Scaled so that the outputs of the start are no larger than those of the head.
                data, start = info.view.data, info.view.W
                outputs = (W, start) if data.n_rows == 0 else (data.X @ W.T, data.X @ start.T)
                first, second = (float(np.linalg.norm(each)) for each in outputs)
                scale = min(1.0, first / second) if second > 0 else 0.0
                head += restored * rare[:, np.newaxis] * scale * start
            logs = np.log(shares)
            head[:, -1] -= strength / constant * (logs - logs.mean() if len(W) == k else logs[1:] - logs[:1])
            return head

        if strength != "auto":
            return adjusted(float(strength), min(1.0, float(strength))), shares
        if np.ptp(shares) == 0:
            return W, shares
        # 1 without noise in the counts, and 1/2 at the largest noise allowed.
        noise = k / (math.sqrt(WORTH.limits[1]) * fit.budget.mu * info.n_private)
        reliability = 1 - min(1.0, noise / WORTH.most) / 2
        usual = _FROM_START if public else _FROM_ZERO
        heads = [adjusted(m * usual * reliability, m) for m in MULTIPLES]
        if _COMPARED not in prices:
            return heads[0], shares
        part = prices[_COMPARED] / price
        (gains,) = yield comparison_query(W, heads, part)
        error = multiplier / math.sqrt(part) * sensitivity_of(len(heads)) / info.n_effective
        expected, spread = _EXPECTED_LOSS * MULTIPLES, np.full(len(heads), _LOSS_SPREAD)
        losses = expected_losses(-gains / info.n_effective, error, expected, spread)
        tolerable = np.flatnonzero(losses <= _TOLERATED_LOSS)
        return heads[int(tolerable[-1])] if len(tolerable) else W, shares
