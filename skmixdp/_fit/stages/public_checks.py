"""Checks of public rows: whether their columns, targets and labels mean what private ones do."""

import math
from collections.abc import Iterator
from dataclasses import replace
from functools import partial

import numpy as np
from numpy.typing import NDArray
from scipy.special import betaincinv

from ..._engine import Procedure
from ..._linear.losses import predicted_classes
from ..._rows.source import BinCounts, Block, Contribution
from ..._utils.process import warn_later
from ...components.clipping import clipped
from ...components.protocols import FloatArray, PrivateQuery, PublicInfo, ReleasedArray
from ..stage import RARE, Fit, Price, Stage
from ..statistics import (
    CLEARLY,
    FEWEST,
    Learner,
    Learning,
    Worth,
    counts_query,
    gains_query,
    held_out_gains,
    sensitivity_of,
    share_for,
    thinned,
    usual_gain,
)
from .mapping import EXPONENT, learns_mean, unmapped
from .training import planned, public_info

#: Most columns that are checked.
_MOST_COLUMNS = 100
#: Fewest public rows for the check.
_FEWEST_PUBLIC = 10
#: Noise in a count, as a fraction of the rows.
_WORTH_OF_UNITS = Worth(0.05, 0.07, (0.002, 0.02))

#: Fewest rows in the part of a large dataset that is used.
_FEWEST_ROWS = 5_000
#: Public entries below this size count as 0.
_SMALLEST = 1e-30

#: Number of ranges of a column.
_RANGES = 10
#: Units differ if two ranges have more than this fraction of the private rows. This finds a factor of 5, or a
#: shift by two deviations.
_MOST_IN_RANGES = 0.75
#: Probability that public rows of the same unit cause such a fraction by chance.
_SURPRISE = 1e-6
#: Standard deviations of noise that are allowed for in such a fraction.
_SURE_DEVIATIONS = 4.0


def unit_share(mu: float, n_rows: int, n_public: int, n_columns: int) -> float:
    """Share of mu squared for :func:`columns_in_other_units`, from public facts; 0 if it tells nothing."""
    if n_columns > _MOST_COLUMNS or n_public < _FEWEST_PUBLIC:
        return 0.0
    return share_for(mu, n_rows, math.sqrt(n_columns), _WORTH_OF_UNITS)


def columns_in_other_units(
    learner: Learner,
    X_pub: FloatArray,
    y_pub: FloatArray,
    multiplier: float,
    center: FloatArray | float = 0.0,
) -> Learning[NDArray[np.bool_]]:
    """Flags (d + k,) of columns (:func:`unmapped`) and targets that have other units in public rows.

    Private rows are those less ``center`` (d,). Public rows divide each column into ten ranges. If most
    private rows are in two neighbouring ranges, or in the first and the last, which hold few public rows, the
    column has another unit or centre. ``y_pub`` (n_pub, k) are targets; k may be 0.

    *Guarantee*: one Gaussian release of this multiplier. A row adds 1 to one range of each column, so the
    sensitivity is ``sqrt(d + k)``.
    """
    ordered = np.sort(np.column_stack([X_pub - center, y_pub]).T)
    ordered[np.abs(ordered) < _SMALLEST] = 0.0
    n_columns, n_public = ordered.shape
    learner = thinned(learner, n_columns, multiplier, _FEWEST_ROWS, _WORTH_OF_UNITS.wanted)
    edges = np.stack([_ends_of_ranges(values) for values in ordered])
    # Clipped private entries are beyond this limit, so they stay in the first and the last range.
    limit = 0.99 * 2.0**EXPONENT
    edges[: X_pub.shape[1]] = np.clip(edges[: X_pub.shape[1]], -limit, limit)
    stated = ReleasedArray(sensitivity_of(n_columns))
    query = PrivateQuery(np.eye(X_pub.shape[1]), partial(_ranges, edges=edges), (stated,))
    released, noise = yield from learner.ask(multiplier, query)
    places = [np.searchsorted(ends, values, "right") for ends, values in zip(edges, ordered, strict=True)]
    public, private = (
        counts + np.roll(counts, 1, axis=1)
        for counts in (
            np.stack([np.bincount(each, minlength=_RANGES) for each in places]),
            released.reshape(n_columns, _RANGES),
        )
    )
    # Upper Clopper-Pearson limit, of confidence ``1 - _SURPRISE``, for the fraction of rows in two ranges.
    largest = 1 - betaincinv(np.maximum(n_public - public, 1), public + 1, _SURPRISE)
    n_rows = learner.n_expected
    of_coins = math.sqrt(n_rows * (1 - n_rows / learner.n_rows))  # the number of rows that they draw
    largest += _SURE_DEVIATIONS * math.hypot(math.sqrt(2) * noise, of_coins) / n_rows
    return np.asarray((private > np.maximum(_MOST_IN_RANGES, largest) * n_rows).any(axis=1))


def _ends_of_ranges(values: FloatArray) -> FloatArray:
    """Ends, halfway between two values, of ten ranges of about as many sorted values, or about a constant."""
    if values[0] == values[-1]:
        rounding = max(1e-5 * abs(values[0]), _SMALLEST)
        return np.asarray(values[0] + np.where(np.arange(1, _RANGES) < _RANGES / 2, -rounding, rounding))
    lower = values[np.round(len(values) * np.arange(1, _RANGES) / _RANGES).astype(int) - 1]
    upper = np.append(values, np.inf)[np.searchsorted(values, lower, "right")]
    return np.asarray(lower + (upper - lower) / 2)


def _ranges(Z: FloatArray, block: Block, edges: FloatArray) -> Contribution:
    """Bins (rows, d + k) of entries and targets; weights in ``y`` after the targets are left out."""
    entries = np.asarray(Z)
    if n_targets := len(edges) - entries.shape[1]:
        entries = np.hstack([entries, np.asarray(block.y)[:, :n_targets]])
    places = np.zeros_like(entries, np.int8)
    largest = np.finfo(entries.dtype).max
    # Faster than a search in each column.
    for ends in np.clip(edges.T, -largest, largest).astype(entries.dtype):
        places += entries >= ends
    return None, BinCounts(places, _RANGES)


class Units(Stage):
    """Leaves out public rows in other units, before anything rests on them."""

    name = "check of units"
    limits = _WORTH_OF_UNITS.limits
    needs = ("default", "divides", "bounded rows", "inexact sums")
    assumes = False  # public rows that are left out at the check of the start cost more than those here

    def price(self, fit: Fit) -> Price | None:
        if fit.settings.rows.scale is False or not check_share(fit):
            return None
        loss = fit.data.loss
        n_columns = fit.data.n_features + (loss.n_outputs if loss.quadratic else 0)
        return unit_share(fit.budget.mu, fit.data.n_rows, len(fit.public.X), n_columns) or None

    def run(self, fit: Fit, price: Price) -> Procedure[Fit]:
        d, X, y = fit.data.n_features, fit.public.X, fit.public.y
        y_pub = y if fit.data.loss.quadratic else np.zeros((len(X), 0))
        row_map = unmapped(d)
        assert row_map.columns is not None
        # The middle of public rows is subtracted in double precision, which keeps the digits of columns far
        # from 0.
        center = np.clip(np.median(X, axis=0), -row_map.columns.cut, row_map.columns.cut)
        row_map = replace(row_map, columns=replace(row_map.columns, center=center))
        queries = columns_in_other_units(fit.learner, X, y_pub, fit.budget.multiplier(price), center)
        rows = fit.ask(queries, fit.data.private.shared_map(row_map))
        differing = np.flatnonzero((yield from rows)).tolist()
        fit = fit.spent(self, price)
        if not differing:
            return fit
        columns = [column for column in differing if column < d][:8]
        named = f"the columns {columns} of X_pub, counted from 0," if columns else "the targets y_pub"
        warn_later(
            f"{named} have another unit or centre than private ones, so the fit left them out; pass public "
            "rows in the same units and transformed alike, or none."
        )
        return fit.without_public_rows(targets=differing[-1] >= d)


#: Noise in the accuracy of the start.
_WORTH_OF_START = Worth(0.03, 0.1, (0.002, 0.02))

#: The gain of the start is its accuracy less that of a random guess. Public rows are left out if its gain on
#: private rows is below this fraction of its gain on public rows.
_FAR_WORSE = 1 / 3

#: Messages for useless public rows: what the fit does, and what to check.
_OF_TARGETS = "the fit left them out; check that y and y_pub are in the same units and were transformed alike"
_OF_LABELS = "the fit left them out; check that y and y_pub have the same labels in the same columns"


def start_is_useful(info: PublicInfo, learner: Learner, multiplier: float) -> Learning[bool]:
    """Whether the public head classifies about as many private rows correctly as held-out public ones."""
    if not info.view.data.loss.has_classes:
        return (yield from start_predicts(info, learner, multiplier))
    query = counts_query(info.view.W, lambda Z, block: block.is_correct(Z))
    (correct,), _ = yield from learner.ask(multiplier, query)
    parts = [predicted_classes(judge.X @ start.T) == judge.labels for start, judge in info.held_out]
    right = np.concatenate(parts)
    guess = 1 / max(info.view.data.loss.n_outputs, 2)
    # A few public rows may all be classified correctly by chance. So one more correct and one more wrong row
    # are added (Laplace's rule).
    usual = (right.sum() + 1) / (len(right) + 2)
    better = max(float(right.mean() - guess - CLEARLY * np.sqrt(usual * (1 - usual) / len(right))), 0.0)
    expected = (guess + _FAR_WORSE * better) * learner.n_rows if better else 0.0
    if correct + CLEARLY * multiplier >= expected:
        return True
    warn_later(
        "the head of the public rows classifies far fewer private rows correctly than public ones: "
        "their labels or features mean something else, so the fit left them out; pass other public "
        "rows, or none."
    )
    return False


def start_predicts(info: PublicInfo, learner: Learner, multiplier: float) -> Learning[bool]:
    """Whether the public head helps with private rows, or does no worse on them than on public rows.

    It is useless if it predicts them worse than outputs of 0 do (the centre of targets, even chances of
    labels), and much worse than a head of half of the public rows predicts the other half.

    *Guarantee*: one Gaussian release of a sum of clipped differences of losses, which a row changes by at
    most 1.
    """
    nothing = np.zeros_like(info.view.W)
    held_out = held_out_gains(info, nothing)
    limit = usual_gain(held_out) or 1.0
    query = gains_query(nothing, [info.view.W], limit, info.view.data.loss)
    released, scale = yield from learner.ask(multiplier, query)
    seen = (float(released[0]) + CLEARLY * scale) / learner.n_rows
    public = clipped(held_out / limit, 1.0)
    error = float(public.std(ddof=1)) / math.sqrt(len(public))
    if seen >= min(0.0, float(public.mean()) - CLEARLY * error):
        return True
    warn_later(
        "the head of the public rows predicts private rows worse than a constant, and public ones better, so "
        + (_OF_TARGETS if info.view.data.loss.quadratic else _OF_LABELS)
        + ", or pass other public rows, or none."
    )
    return False


class Start(Stage):
    """Leaves out public rows whose head is of no use; what was learned with them is asked again."""

    name = "check of the start"
    limits = _WORTH_OF_START.limits

    def price(self, fit: Fit) -> Price | None:
        return check_share(fit) or None

    def outcomes(self, fit: Fit, price: Price) -> Iterator[Fit]:
        yield fit.spent(self, price)
        yield fit.spent(self, price).without_public_rows()

    def run(self, fit: Fit, price: Price) -> Procedure[Fit]:
        if fit.labels.rarest < RARE:
            # At the shares of a rare class, even a wrong head would classify most private rows correctly.
            info = public_info(fit.learned(labels=replace(fit.labels, logits=None)))
        else:
            fit = planned(fit)
            assert fit.plan is not None
            info = fit.plan.info
        queries = start_is_useful(info, fit.learner, fit.budget.multiplier(price))
        is_useful = yield from fit.ask(queries, fit.mapping.row_map)
        return fit.spent(self, price) if is_useful else fit.spent(self, price).without_public_rows()


def check_share(fit: Fit) -> float:
    """Share of the squared budget for checking the start on private rows; 0 if the check is not useful."""
    settings, public = fit.settings, fit.public
    enough = len(public.X) >= (2 if fit.data.loss.has_classes else FEWEST)
    checks = isinstance(settings.init, str) and settings.init == "public" and enough
    # The check may change the centre after the charge. Without a bound on lengths, a row could then be too
    # long, and refusing it would reveal it.
    if not (settings.is_default and checks and fit.divides) or settings.rows.norm is None:
        return 0.0
    if settings.rows.whiten is True and not learns_mean(fit, public.left_out(), None):
        return 0.0
    return share_for(fit.budget.mu, fit.data.n_rows, 1.0, _WORTH_OF_START)
