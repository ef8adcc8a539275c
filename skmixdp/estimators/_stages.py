"""The stages of a linear head's fit: what it learns from private rows before the training, and the training.

:class:`HeadInputs` is the same in all stages. A :class:`PreparedHead` is one stage, ready to run; the last
one is the training. Other stages release something that the next one is prepared with: how rows are centred
and whitened (:class:`GeometryLearner`), how long they are (:class:`LengthLearner`), how many each class has
(:class:`ClassCounter`), and whether the start is of use (:class:`StartCheck`). Each stage has its own row
map. Budgets are divided, and the ledger is charged, before the first stage.
"""

import warnings
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .._engine import Budget, noisy_counts
from .._engine.geometry import (
    INTERCEPT,
    LONGEST_FOUND,
    START_SHARE,
    NoisyMean,
    Shares,
    leading_directions,
    noisy_length,
    noisy_mean,
    noisy_start_scale,
)
from .._linear import Loss, WeightedLoss, predicted_classes, with_weights
from .._rowmap import RowMap, Whitening, few_columns_dominate
from .._rows import ArrayTable, PrivateRows, Table
from .._utils.validation import shown
from ..algorithms import Algorithm, Auto
from ..components import LogitAdjustment
from ..components.class_shares import class_shares, count_share, in_class
from ..components.comparison import comparison_share, is_correct
from ..privacy import Charge, NoiseSource, PerInstanceRecord
from ._fit import PreparedFit

Array = NDArray[Any]

#: Multiplications in a pass that takes longer than threads need to share it. The work on an output of a row
#: takes as long as so many of them.
_MANY, _WORK_ON_OUTPUT = 70_000_000, 48


@dataclass(frozen=True, repr=False)
class HeadInputs:
    """The checked inputs of a head's fit, the same in all stages.

    Attributes
    ----------
    budget : Budget
        The budget of the whole fit.
    algorithm : Algorithm
        What trains the head.
    loss : Loss
        The loss of the head.
    table : Table
        The private rows as the user passed them.
    y : array of shape (n_rows,) or (n_rows, k)
        Class indices or scaled targets.
    X_pub, y_pub : arrays
        Public rows, of which there may be none, and their class indices or scaled targets.
    own : boolean array (n_rows,) or None
        The private rows to fit to; None is all rows.
    noise : NoiseSource
        Source of all noise of the fit.
    dtype : dtype
        Dtype of the products with private rows.
    treated_as_public : tuple of str
        For the report.
    spent : tuple of (str, float)
        Shares of the squared budget that an earlier stage has spent.
    X_scale : array of shape (n, d_in) or None
        Public rows that only tell the scale of the columns; None stands for ``X_pub``.
    record : PerInstanceRecord or None
        Adds up each private row's own privacy loss, over all stages.
    """

    budget: Budget
    algorithm: Algorithm
    loss: Loss
    table: Table
    y: Array
    X_pub: Array
    y_pub: Array
    own: NDArray[np.bool_] | None
    noise: NoiseSource
    dtype: np.dtype[Any]
    treated_as_public: tuple[str, ...]
    spent: tuple[tuple[str, float], ...] = ()
    X_scale: Array | None = None
    record: PerInstanceRecord | None = None

    @property
    def scale_rows(self) -> Array:
        """Public rows that tell the scale of the columns."""
        return self.X_pub if self.X_scale is None else self.X_scale

    @property
    def groups(self) -> Array:
        """Group of each public row for whitening: its class; all rows of a regression are one group."""
        return np.zeros(len(self.y_pub), dtype=np.intp) if self.loss.quadratic else self.y_pub

    @property
    def is_default(self) -> bool:
        """Whether ``"auto"`` turns on whitening, geometry and checks: the default algorithm, for classes."""
        return isinstance(self.algorithm, Auto) and not self.loss.quadratic

    @property
    def n_rows(self) -> int:
        """Number of private rows to fit to."""
        return self.table.shape[0] if self.own is None else int(self.own.sum())


@dataclass(frozen=True)
class Stage:
    """What the steps of a fit are planned with.

    Attributes
    ----------
    row_map : RowMap
        The map of this stage.
    seen_pub : array of shape (n_pub, d_in)
        The public rows after this map.
    second_moment : float or None
        Released largest second moment of mapped rows.
    shares : tuple of (str, float)
        What the budget is divided into; empty if all of it is for the steps.
    start_scale : float
        Factor of the start.
    learn : callable or None
        ``rows -> fit``: releases what this stage learns, and prepares the next one. None is the training.
    passes_once : bool
        Whether this stage makes a single pass over unit rows, for which it needs no head.
    """

    row_map: RowMap
    seen_pub: Array
    second_moment: float | None = None
    shares: tuple[tuple[str, float], ...] = ()
    start_scale: float = 1.0
    learn: Callable[[PrivateRows], PreparedFit] | None = None
    passes_once: bool = False

    def after(self, spent: tuple[tuple[str, float], ...]) -> "Stage":
        """The stage if the training also leaves what an earlier stage has spent."""
        if not spent:
            return self
        shares = {**dict(spent), **(dict(self.shares) or {"training": 1.0})}
        shares["training"] -= sum(dict(spent).values())
        return replace(self, shares=tuple(shares.items()))

    @property
    def training_share(self) -> float:
        """Share of the squared budget that is left for the steps."""
        return dict(self.shares).get("training", 1.0)


@dataclass(frozen=True, repr=False)
class PreparedHead(PreparedFit):
    """A linear head that is ready to train.

    Attributes
    ----------
    table : Table
        The private rows as the user passed them.
    y : array of shape (n_rows,) or (n_rows, k)
        Class indices or scaled targets.
    row_map : RowMap
        The map of the rows at this stage.
    device : str or None
        The device that will hold the rows; None leaves them where they are.
    report : callable
        Takes the charge and returns the report of the fit.
    adjustment : LogitAdjustment or None
        The closing that learns the class shares; None if there is none.
    record : PerInstanceRecord or None
        Adds up each private row's own privacy loss; None if it was not asked for.
    passes_once : bool
        Whether this stage makes a single pass over unit rows.
    """

    table: Table
    y: Array
    row_map: RowMap
    device: str | None
    report: Callable[[Charge | None], Any]
    adjustment: LogitAdjustment | None = None
    record: PerInstanceRecord | None = None
    passes_once: bool = False

    @property
    def shares_threads(self) -> bool:
        return self._in_memory and not self.is_small

    @property
    def is_small(self) -> bool:
        if not self._in_memory:
            return False
        n_rows, n_features = self.table.shape
        return n_rows * (n_features + _WORK_ON_OUTPUT) * len(self.run.info.view.W) < _MANY

    @property
    def _in_memory(self) -> bool:
        return isinstance(self.table, ArrayTable) and self.device in (None, "cpu")

    def rows(self) -> PrivateRows:
        exact = self.run.noise.needs_grid
        table = self.table if self.device is None else self.table.on_device(self.device)
        row_map = self.row_map
        if self.passes_once and not exact:
            return self._recorded(table.passing_rows(self.y, row_map, self.run.dtype))
        return self._recorded(table.private_rows(self.y, row_map, self.run.dtype, exact=exact))

    def _recorded(self, source: PrivateRows) -> PrivateRows:
        source.record = self.record
        return source

    def continued(self, earlier: PreparedFit, rows: PrivateRows) -> PrivateRows | None:
        if not isinstance(earlier, PreparedHead) or self.y is not earlier.y:
            return None
        further = self.row_map.after(earlier.row_map)
        source = None if further is None else rows.remapped(further)
        return None if source is None else self._recorded(source)

    def shares_rows(self, other: PreparedFit) -> bool:
        """Whether another head maps these rows and labels in the same way."""
        return (
            isinstance(other, PreparedHead)
            and (self.estimator.dtype, self.run.dtype) == (other.estimator.dtype, other.run.dtype)
            and self.device == other.device
            and self.record is other.record
            and self.run.noise.needs_grid == other.run.noise.needs_grid
            and self.row_map.same_as(other.row_map)
            and np.array_equal(self.y, other.y)
        )

    def finish(self, W: Array, charge: Charge | None) -> None:
        fitted, plan = self.estimator, self.run.plan
        with np.errstate(over="ignore", invalid="ignore"):
            fitted.coef_, fitted.intercept_ = fitted._coefficients(W)
        if not (np.all(np.isfinite(fitted.coef_)) and np.all(np.isfinite(fitted.intercept_))):
            raise ValueError(
                f"the head diverged: its coefficients are not finite; pass learning_rate='auto' (now "
                f"{shown(fitted.learning_rate)}), a larger epsilon, or rows and targets of a usual scale."
            )
        fitted.n_iter_ = plan.n_steps
        fitted.learning_rate_ = plan.step_size(1)
        fitted.privacy_ = self.report(charge)
        vars(fitted).pop("per_instance_", None)  # that of an earlier fit
        if self.record is not None:
            fitted.per_instance_ = self.record
        if self.adjustment is not None:
            fitted.class_shares_ = self.adjustment.shares


#: Public rows tell the mean well enough unless the variance of their mean is so many times as large.
_TIMES_AS_GOOD = 2.0

#: Part of the squared length of unit rows that a few columns must make up for a warning.
_MOST_OF_A_ROW = 0.5

#: Public rows within classes must have so many degrees of freedom for whitening.
_FEWEST_FREE = 20

#: Private directions are worth their noise if this part of the rows' variance can be told from it.
_LARGEST_FLOOR = 0.25


#: Noise in the accuracy of the start that its check aims at, and the most that still tells something.
_CHECK_ERROR, _MOST_CHECK_ERROR = 0.03, 0.1

#: Public rows are left out if the accuracy of the start on private rows is below this part of that on public
#: rows, by so many standard deviations of the noise.
_FAR_WORSE, _CLEARLY = 1 / 3, 2.0


def needs_private_rows(inputs: HeadInputs) -> bool:
    """Whether private rows tell the centre of unit rows much better than the public ones; public facts."""
    if not len(inputs.X_pub):
        return True
    n_features = inputs.table.shape[1]
    unit_pub = RowMap(None, True, None)(inputs.X_pub, np.float64)
    public = (1 - float(np.sum(unit_pub.mean(axis=0) ** 2))) / len(unit_pub)
    shares = Shares.of(inputs.budget.mu, inputs.n_rows, n_features)
    private = n_features / (inputs.n_rows * inputs.budget.mu) ** 2 / shares.mean
    return public > _TIMES_AS_GOOD * private


def few_for_whitening(inputs: HeadInputs) -> bool:
    """Whether public rows are so few that private directions whiten better; public facts."""
    n_features = inputs.table.shape[1]
    n_free = len(inputs.X_pub) - len(np.unique(inputs.y_pub))
    shares = Shares.of(inputs.budget.mu, inputs.n_rows, n_features)
    return (
        n_free < _FEWEST_FREE and shares.floor(inputs.budget.mu, inputs.n_rows, n_features) < _LARGEST_FLOOR
    )


@dataclass(frozen=True)
class GeometryLearner:
    """Learns how to centre and whiten rows, from the private rows and any public ones.

    Attributes
    ----------
    inputs : HeadInputs
        The inputs of the fit.
    prepare : callable
        ``stage -> fit``.
    groups : array of shape (n_pub,) or None
        Groups for whitening by public rows; None whitens by private directions, if ``whiten``.
    scale : array of shape (n_features,) or None
        Public factors of the columns.
    start_scales : array of shape (m,) or None
        Factors of the start among which to choose.
    whiten, fit_intercept : bool
        As the estimator's parameters.
    finish : callable
        ``stage -> fit``, for the stage whose map is final, unless a scale of the start is to be chosen.
    """

    inputs: HeadInputs
    prepare: Callable[[Stage], PreparedHead]
    groups: Array | None
    scale: Array | None
    start_scales: Array | None
    whiten: bool
    fit_intercept: bool
    finish: Callable[[Stage], PreparedHead]

    def first(self) -> PreparedHead:
        """The fit before its first stage."""
        stage = self._stage(RowMap(None, True, None, unit_first=True, scale=self.scale))
        # The steps are planned again once the rows are mapped. Until then, 1 bounds a moment of unit rows.
        stage = replace(stage, second_moment=1.0, passes_once=True)
        return self.prepare(replace(stage, learn=self._after_unit_rows))

    @property
    def _shares(self) -> Shares:
        given = self.inputs
        shares = Shares.of(given.budget.mu, given.n_rows, given.table.shape[1])
        return shares if self.groups is None else replace(shares, directions=0.0)

    def _stage(self, row_map: RowMap) -> Stage:
        shares = self._shares
        start = 0.0 if self.start_scales is None else START_SHARE
        spent = {"mean": shares.mean, "directions": shares.directions, "scale of the start": start}
        spent = {name: share for name, share in spent.items() if share}
        spent["training"] = 1 - sum(spent.values())
        return Stage(row_map, row_map(self.inputs.X_pub, np.float64), shares=tuple(spent.items()))

    def _after_unit_rows(self, rows: PrivateRows) -> PreparedFit:
        given = self.inputs
        multiplier = given.budget.multiplier(self._shares.mean)
        found = noisy_mean(rows, given.table.shape[1], multiplier, given.noise, given.dtype, given.own)
        _warn_of_few_columns(found.energies)
        row_map = RowMap(self._center(found), True, None, unit_first=True, scale=self.scale)
        if self.groups is None:
            return self.prepare(replace(self._stage(row_map), learn=partial(self._after_centred, row_map)))
        if self.whiten:
            centred = row_map(given.X_pub, np.float64)
            row_map = replace(row_map, whitening=Whitening.of(centred, self.groups))
        return self._mapped(self._with_intercept(row_map))

    def _center(self, found: NoisyMean) -> Array:
        """The centre of unit rows: that of private rows, and of public rows where there are any."""
        unit_pub = RowMap(None, True, None, scale=self.scale)(self.inputs.X_pub, np.float64)
        if not len(unit_pub):
            return found.shrunk()
        mean = unit_pub.mean(axis=0)
        return found.combined(mean, (1 - float(mean @ mean)) / len(unit_pub))

    def _after_centred(self, row_map: RowMap, rows: PrivateRows) -> PreparedFit:
        given = self.inputs
        multiplier = given.budget.multiplier(self._shares.directions)
        found = leading_directions(
            rows, given.table.shape[1], multiplier, given.noise, given.dtype, given.own
        )
        _warn_of_few_columns(found.energies)
        directions, factors = found.shortened()
        whitening = Whitening(directions, factors) if self.whiten and len(factors) else None
        moment = found.largest_second_moment(None if whitening is None else factors)
        stage = self._with_intercept(replace(row_map, whitening=whitening))
        return self._mapped(replace(stage, second_moment=moment))

    def _mapped(self, stage: Stage) -> PreparedHead:
        """The fit whose row map is final: ready to train, or to choose the scale of its start."""
        if self.start_scales is None:
            return self.finish(stage)
        fit = self.prepare(stage)
        return replace(fit, learn=partial(self._after_mapped, stage, fit.run.info.view.W))

    def _after_mapped(self, stage: Stage, start: Array, rows: PrivateRows) -> PreparedFit:
        given, scales = self.inputs, self.start_scales
        assert scales is not None
        multiplier = given.budget.multiplier(START_SHARE)
        scale = noisy_start_scale(rows, start, scales, given.loss, multiplier, given.noise, given.own)
        return self.prepare(replace(stage, start_scale=scale))

    def _with_intercept(self, row_map: RowMap) -> Stage:
        if self.fit_intercept:
            row_map = replace(row_map, intercept_value=INTERCEPT)
        return self._stage(row_map)


def _warn_of_few_columns(energies: Array) -> None:
    """Warn if released mean squares of unit rows say that a few columns make up most of their length."""
    if energies.sum() > _MOST_OF_A_ROW and few_columns_dominate(energies):
        warnings.warn(
            "a few columns of X make up nearly all of the length of its rows, so the others hardly count; "
            "scale the columns by public rows (pass X_pub), by known ranges, or by NoisyScaler.",
            UserWarning,
            stacklevel=2,
        )


@dataclass(frozen=True)
class LengthLearner:
    """Learns the length up to which rows keep their length, for rows that are clipped instead of scaled.

    Attributes
    ----------
    inputs : HeadInputs
        The inputs of the fit, without public rows.
    prepare : callable
        ``stage -> fit``, ready to train.
    share : float
        Share of the squared budget.
    fit_intercept : bool
        As the estimator's parameter.
    """

    inputs: HeadInputs
    prepare: Callable[[Stage], PreparedHead]
    share: float
    fit_intercept: bool

    def first(self) -> PreparedHead:
        """The fit before its first stage."""
        # Rows of any length are measured: to refuse one would tell that it exists. They have no intercept,
        # which would count as a part of their length; the start may have one. The second moment is that of
        # rows after they are clipped.
        measured = self._row_map(LONGEST_FOUND)
        planned = self.prepare(replace(self._stage(measured), second_moment=1.0))
        return replace(planned, row_map=replace(measured, intercept_value=None), learn=self._after_raw_rows)

    def _stage(self, row_map: RowMap) -> Stage:
        shares = (("length of the rows", self.share), ("training", 1 - self.share))
        return Stage(row_map, row_map(self.inputs.X_pub, np.float64), shares=shares)

    def _after_raw_rows(self, rows: PrivateRows) -> PreparedFit:
        given = self.inputs
        multiplier = given.budget.multiplier(self.share)
        bound = noisy_length(rows, given.table.shape[1], multiplier, given.noise, given.own)
        return self.prepare(self._stage(self._row_map(bound)))

    def _row_map(self, bound: float) -> RowMap:
        row_map = RowMap(None, True, None, bound=bound)
        return row_map.with_intercept_for(self.inputs.X_pub) if self.fit_intercept else row_map


@dataclass(frozen=True)
class ClassCounter:
    """Releases noisy class counts before the training, for balanced class weights.

    Attributes
    ----------
    inputs : HeadInputs
        The inputs of the fit, without weights.
    n_classes : int
        Number of classes.
    sample_weight : array of shape (n_rows,) or None
        Further weights of the private rows.
    then : callable
        ``inputs -> fit``: the fit with its weights.
    """

    inputs: HeadInputs
    n_classes: int
    sample_weight: Array | None
    then: Callable[[HeadInputs], PreparedHead]

    @property
    def share(self) -> float:
        """Share of the squared budget for the counts."""
        return count_share(self.inputs.budget.mu, self.inputs.n_rows, self.n_classes)

    def first(self) -> PreparedHead:
        """The fit before the counts are released."""
        # Counting looks at labels alone. The rows are those of the next stage, so that what it refuses is
        # refused before the charge.
        given = self.inputs
        following = self.then(weighted(self._spending(), np.ones(len(given.y))))
        width = following.row_map.width(given.table.shape[1])
        return replace(following, y=given.y, learn=partial(self._after_counts, width))

    def _spending(self) -> HeadInputs:
        return replace(self.inputs, spent=(("class counts", self.share),))

    def _after_counts(self, width: int, rows: PrivateRows) -> PreparedFit:
        given = self.inputs
        multiplier = given.budget.multiplier(self.share)
        nowhere = np.zeros((0, width))  # labels need no products
        flags = partial(in_class, n_classes=self.n_classes)
        counts = noisy_counts(rows, nowhere, flags, multiplier, given.noise, given.own)
        weights = balanced_weights(class_shares(counts, multiplier, given.n_rows))[given.y]
        if self.sample_weight is not None:
            weights = weights * self.sample_weight
        return self.then(weighted(self._spending(), weights))


def balanced_weights(shares: Array) -> Array:
    """Class weights (k,) in inverse proportion to class shares, of mean 1 over the rows."""
    return np.asarray(1 / (len(shares) * shares))


def weighted(inputs: HeadInputs, weights: Array) -> HeadInputs:
    """The inputs of a fit with a weight for each private row."""
    return replace(inputs, loss=WeightedLoss(inputs.loss), y=with_weights(inputs.y, weights))


@dataclass(frozen=True)
class StartCheck:
    """Leaves out public rows whose head is of no use for private rows.

    A noisy count tells how many private rows the public head classifies correctly. Heads of one half of the
    public rows tell how many it should, on the other half. If it is far fewer, the labels or features of the
    public rows mean something else, and the fit goes on without them. They then only tell the scale of
    the columns, if the fit learns its geometry. A fit that is not possible without them has no check.

    Attributes
    ----------
    inputs : HeadInputs
        The inputs of the fit.
    stage : Stage
        The training, whose map the check uses too.
    prepare : callable
        ``(inputs, stage) -> fit``.
    without : callable
        ``inputs -> fit``: a fit from the beginning, without the public rows.
    """

    inputs: HeadInputs
    stage: Stage
    prepare: Callable[[HeadInputs, Stage], PreparedHead]
    without: Callable[[HeadInputs], PreparedHead]

    @staticmethod
    def share_of(inputs: HeadInputs) -> float:
        """Share of the squared budget for the check; 0 if it would tell nothing."""
        return comparison_share(inputs.budget.mu, inputs.n_rows, 1, _CHECK_ERROR, _MOST_CHECK_ERROR)

    def first(self) -> PreparedHead:
        """The fit before the check."""
        shares = dict(self.stage.shares) or {"training": 1.0}
        left = shares.pop("training") - self.share_of(self.inputs)
        shares |= {"check of the start": self.share_of(self.inputs), "training": left}
        stage = replace(self.stage, shares=tuple(shares.items()))
        training = self.prepare(self.inputs, stage)
        return replace(training, learn=partial(self._after_count, training, stage.shares))

    def _after_count(
        self, training: PreparedFit, shares: tuple[tuple[str, float], ...], rows: PrivateRows
    ) -> PreparedFit:
        given, info = self.inputs, training.run.info
        multiplier = given.budget.multiplier(self.share_of(given))
        (correct,) = noisy_counts(rows, info.view.W, is_correct, multiplier, given.noise, given.own)
        right = [predicted_classes(judge.X @ start.T) == judge.y for start, judge in info.held_out]
        expected = _FAR_WORSE * float(np.mean(np.concatenate(right))) * given.n_rows
        if correct + _CLEARLY * multiplier >= expected:
            return training
        warnings.warn(
            "the head of the public rows classifies far fewer private rows correctly than public ones: "
            "their labels or features mean something else, so the fit left them out; pass other public "
            "rows, or none.",
            UserWarning,
            stacklevel=2,
        )
        # What the geometry has cost is not used, and the fit without public rows learns its own.
        spent = [(name, share) for name, share in shares if name != "training"]
        named = [(name if name == "check of the start" else f"unused {name}", share) for name, share in spent]
        left_out = replace(given, X_pub=given.X_pub[:0], y_pub=given.y_pub[:0], X_scale=given.X_pub)
        return self.without(replace(left_out, spent=(*given.spent, *named)))
