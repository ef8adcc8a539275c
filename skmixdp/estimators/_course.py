"""The course of a linear head's fit: all that it asks of private rows, in order, and its shares of budget."""

import math
import warnings
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .._engine import Course, RowsKey, Run, Start, Transaction, of_rows, training
from .._learning.columns import columns_share, noisy_columns, unmapped
from .._learning.corrections import LogitAdjustment
from .._learning.facts import (
    LENGTH_LIMIT,
    Learner,
    NoisyMean,
    Shares,
    intercept_constant,
    leading_directions,
    length_share,
    noisy_length,
    noisy_logits,
    noisy_mean,
    noisy_second_moment,
    second_moment_share,
    share_for,
    variance_of_mean,
    warn_of_few_columns,
)
from .._learning.starts import start_is_useful
from .._learning.targets import FEWEST, noisy_gradient_bound
from .._linear import Loss, WeightedLoss, with_weights, work_of_pass
from .._rows import (
    UNCHANGED,
    ArrayTable,
    Columns,
    PersonTable,
    PrivateRows,
    RowMap,
    Table,
    Whitening,
    columns_of,
    n_groups,
)
from .._utils.validation import shown
from ..algorithms import Algorithm, Auto
from ..algorithms.auto import AutoRegression
from ..privacy import PerInstanceRecord
from ..privacy.accounting.budgets import Budget
from ._callbacks import FitTasks, stage_ended
from ._fit import FitCourse
from ._weights import OF_WEIGHTS, counting, learned_weights, public_weights, weight_shares

Array = NDArray[Any]

#: After a release no row may be refused, so entries whose squares could overflow are cut at this.
_LARGEST_ENTRY = 1e150

#: Fewest public rows from which to compute the spread of columns, and fewest degrees of freedom that they
#: must have within classes for whitening.
_FEWEST_KNOWN, _FEWEST_FREE = 10, 20

#: Whitening by rows of unknown classes: the largest weight of their scatter, and the weight times the number
#: of outputs. The more classes there are, the more of that scatter separates them.
_MOST_WEIGHT, _WEIGHT_OF_ALL = 0.1, 0.5

#: Largest noise, as a part of the rows' variance, at which private directions are of use.
_LARGEST_FLOOR = 0.25

#: With less noise than this, as in ``bound_shares``, rows of a regression are cut less.
_HARDLY_NOISY, _MOST_TIMES = 1e-4, 5.0

#: Target for the noise in the accuracy of the start, and the largest noise that is still useful.
_CHECK_ERROR, _MOST_CHECK_ERROR = 0.03, 0.1

#: Without public rows, rows times mu below which noise hides what they tell, times the root of the columns.
_CLEAR = 3.0


@dataclass(frozen=True, repr=False)
class FitInputs:
    """The checked inputs of a head's fit.

    ``y`` and ``y_pub`` hold class indices or scaled targets, and ``members`` (n_rows,) masks the private rows
    to fit to; None is all. ``passed`` are the objects that the user passed, which determine ``y`` together
    with the public values in ``labels``. ``X_scale`` has public rows that only tell the scale of the columns;
    None stands for ``X_known``. ``label_share`` is the share of the squared budget for the logits (k,)
    at which labels start, ``label_logits`` once they are released; 0 releases none. ``X_unlabeled`` are
    public rows without labels; None stands for none. ``target_share`` is the share of the squared budget for
    centre and scale of the targets, or ``target_steps`` the number of releases of the plan for them.

    ``sample_weight`` (n_rows,) are PRIVATE weights as passed, of which ``largest_weight`` counts as 1; None
    stands for a noisy one. ``class_weight`` (k,) are public. Noisy counts of ``n_counted`` classes tell them
    instead; 0 counts none. ``mean_weight`` is a released mean, and ``public_weight`` (n_pub,) those of public
    rows, of mean 1.
    """

    transaction: Transaction
    algorithm: Algorithm
    loss: Loss
    table: Table
    y: Array
    X_pub: Array
    y_pub: Array
    members: NDArray[np.bool_] | None
    dtype: np.dtype[Any]
    treated_as_public: tuple[str, ...]
    passed: tuple[Any, ...]
    labels: tuple[Any, ...]
    X_scale: Array | None = None
    record: PerInstanceRecord | None = None
    n_counted: int = 0
    sample_weight: Array | None = None
    largest_weight: float | None = None
    class_weight: Array | None = None
    mean_weight: float = 1.0
    public_weight: Array | None = None
    label_share: float = 0.0
    label_logits: Array | None = None
    X_unlabeled: Array | None = None
    target_share: float = 0.0
    target_steps: int = 0

    @cached_property
    def X_known(self) -> Array:
        """Public rows (n_known, n_features), first those with labels, from which the map is computed."""
        return self.X_pub if self.X_unlabeled is None else np.concatenate([self.X_pub, self.X_unlabeled])

    @cached_property
    def groups(self) -> tuple[Array, float | None]:
        """Group of each of the first known rows for whitening: its class or labels; one for a regression.

        Also the share of the sphere for whitening by these groups; None is the usual one. If few rows have
        labels, all known rows are one group.
        """
        few = len(self.y_pub) - n_groups(self.y_pub) < _FEWEST_FREE
        if not self.loss.quadratic and not (few and self.X_unlabeled is not None):
            return self.y_pub, None
        weight = min(_MOST_WEIGHT, _WEIGHT_OF_ALL / self.loss.n_outputs)
        return np.zeros(len(self.X_known), dtype=np.intp), None if self.loss.quadratic else 1 - weight

    @property
    def budget(self) -> Budget:
        """What the fit may spend."""
        return self.transaction.budget

    @property
    def is_default(self) -> bool:
        """Whether ``"auto"`` turns on whitening and checks: the default algorithm of the loss."""
        return isinstance(self.algorithm, AutoRegression if self.loss.quadratic else Auto)

    @property
    def n_rows(self) -> int:
        """Number of private rows to fit to."""
        return self.table.shape[0] if self.members is None else int(self.members.sum())

    @property
    def is_weighted(self) -> bool:
        """Whether rows have weights."""
        return self.sample_weight is not None or self.class_weight is not None or self.n_counted > 0

    @property
    def y_pub_weighted(self) -> Array:
        """Labels or targets of public rows with their weights, if they have any."""
        weights = self.public_weight
        return self.y_pub if weights is None else with_weights(self.y_pub, weights)

    def weighted(self, largest_weight: float = 1.0, by_class: Array | None = None) -> "FitInputs":
        """The inputs with a weight from 0 to 1 for each private row, relative to the largest.

        It is that of its class, (k,), times its sample weight.
        """
        weights = np.ones(len(self.y))
        if by_class is not None:
            weights *= (by_class / by_class.max())[self.y]
        if self.sample_weight is not None:
            weights *= np.minimum(self.sample_weight / largest_weight, 1.0)
        by_class = np.empty(0) if by_class is None else by_class
        labels = (*self.labels, "weighted", largest_weight, *by_class.tolist())
        return replace(self, loss=WeightedLoss(self.loss), y=with_weights(self.y, weights), labels=labels)

    def weighted_public(self, by_class: Array) -> "FitInputs":
        """The inputs with public rows weighted by their class, relative to the mean over public rows."""
        weights = by_class[self.y_pub]
        mean = float(weights.mean()) if weights.any() else 1.0
        return replace(self, public_weight=weights / mean)

    def without_public_rows(self) -> "FitInputs":
        """The inputs without public rows, which only tell the scale of columns that cannot be learned."""
        X_pub, y_pub = self.X_pub[:0], self.y_pub[:0]
        return replace(
            self, X_pub=X_pub, y_pub=y_pub, X_scale=self.X_known, X_unlabeled=None, public_weight=None
        )


@dataclass(frozen=True, eq=False, repr=False)
class HeadRows(RowsKey):
    """Private rows after a row map, as a linear head sees them; ``once`` if few passes visit them."""

    inputs: FitInputs
    row_map: RowMap
    once: bool = False

    def same_as(self, other: RowsKey) -> bool:
        if self is other:
            return True
        if not isinstance(other, HeadRows):
            return False
        mine, theirs = self.inputs, other.inputs
        return (
            all(one is another for one, another in zip(mine.passed, theirs.passed, strict=True))
            and mine.labels == theirs.labels
            and mine.dtype == theirs.dtype
            and mine.transaction.noise.needs_grid == theirs.transaction.noise.needs_grid
            and mine.table.device == theirs.table.device
            and mine.record is theirs.record
            and self.once == other.once
            and (self.row_map is other.row_map or self.row_map.same_as(other.row_map))
        )

    def open(self) -> PrivateRows:
        inputs, exact = self.inputs, self.inputs.transaction.noise.needs_grid
        if self.once and not exact:
            opened = inputs.table.passing_rows(inputs.y, self.row_map, inputs.dtype)
        else:
            opened = inputs.table.private_rows(inputs.y, self.row_map, inputs.dtype, exact=exact)
        opened.record = inputs.record
        return opened


@dataclass(frozen=True, eq=False, repr=False)
class LabelRows(RowsKey):
    """The labels of private rows, without features."""

    inputs: FitInputs

    def same_as(self, other: RowsKey) -> bool:
        return self is other

    def open(self) -> PrivateRows:
        inputs = self.inputs
        table: Table = ArrayTable(np.empty((len(inputs.y), 0), inputs.dtype))
        if isinstance(inputs.table, PersonTable):
            table = inputs.table.holding(table)
        exact = inputs.transaction.noise.needs_grid
        source = table.private_rows(inputs.y, UNCHANGED, inputs.dtype, exact=exact)
        source.record = inputs.record
        return source


@dataclass(frozen=True)
class MapRules:
    """What the parameters of a head allow for the map of its fit.

    ``divides``: releases over all rows can share the budget with the steps. ``scales``: columns are scaled.
    ``centres_columns``: they are centred before rows are scaled; rows of unit length are centred after it.
    ``whitens_alone``: rows are whitened without public rows, by directions of private rows of unit length.
    ``preconditions``: budget may be spent on noisy columns or a second moment. ``learns_columns``: centre and
    spread of columns can be learned from private rows.
    """

    divides: bool
    scales: bool
    centres_columns: bool
    whitens_alone: bool
    preconditions: bool
    learns_columns: bool


@dataclass(frozen=True)
class Mapped:
    """The map of a fit, and what was released of the mapped rows; None if nothing was.

    ``second_moment`` is their largest second moment, and ``preconditioner`` (d_in, d_in) a matrix for
    directions of descent. Few gradients of private rows are longer than ``gradient_bound``.
    """

    row_map: RowMap
    second_moment: float | None = None
    preconditioner: Array | None = None
    gradient_bound: float | None = None


@dataclass(frozen=True)
class MapStage:
    """The next release of a course that learns a map.

    ``rows`` are those of the query, and ``mapped`` the map as far as it is known. ``shares`` of the squared
    budget are for the releases of this stage, and ``most`` for these and all that may follow.
    """

    rows: HeadRows
    mapped: Mapped
    shares: dict[str, float]
    most: dict[str, float]


@dataclass(frozen=True)
class PlannedHead:
    """A head that is ready to train; ``report`` makes the report of the fit."""

    run: Run
    row_map: RowMap
    report: Callable[[], Any]
    adjustment: LogitAdjustment | None


def course(head: Any, inputs: FitInputs) -> FitCourse:
    """Yield all that a fit asks, and set the results on ``head``, a copy of the user's estimator.

    The first request is a :class:`Start`, after every refusal that depends on public facts; its answer is the
    charge. The others are queries of private rows, with noisy answers.
    """
    learner = Learner(inputs.n_rows, inputs.members, inputs.transaction.noise, inputs.dtype)
    clear = _CLEAR * math.sqrt(inputs.table.shape[1] + 1)
    if not len(inputs.X_pub) and inputs.budget.mu * inputs.n_rows < clear:
        warnings.warn(
            f"this budget leaves more noise than {inputs.n_rows} {inputs.table.unit}s can show through, so "
            "predictions may be no better than guesses; pass a larger epsilon, more private rows, or public "
            "rows.",
            UserWarning,
            stacklevel=5,
        )
    # Shares of the squared budget, by the names of what they are spent on.
    spent: dict[str, float] = {}
    balanced = inputs
    if inputs.is_weighted:
        spent |= weight_shares(inputs, divides=head._map_rules(inputs).divides)
        inputs = balanced = public_weights(inputs)
        # Until what tells the weights is released, if it is not known.
        balanced = inputs.weighted(inputs.largest_weight or 1.0, inputs.class_weight)
    if inputs.label_share:
        spent["label shares"] = inputs.label_share
    if inputs.target_share:
        spent["scale of the targets"] = inputs.target_share
    check, first = check_share(head, inputs), first_stage(head, balanced)
    checking = {"check of the start": check} if check else {}
    checking |= (bounding := head._bound_shares(inputs))
    rows, mapped, planned = first.rows, first.mapped, None
    if first.shares:
        ahead = head._planned(balanced, mapped, spent | first.most | checking, ahead=True)
    else:
        ahead = planned = head._planned(balanced, mapped, spent | checking)
    if check:
        without = balanced.without_public_rows()
        alone = first_stage(head, without)
        most_spent = _unused(spent | first.most) | checking | alone.most
        head._planned(without, alone.mapped, most_spent, ahead=True)
    event = inputs.budget.whole if planned is None else planned.run.plan.event
    work = None
    if inputs.table.is_shared:
        work = work_of_pass(len(inputs.y), inputs.table.shape[1], inputs.loss.n_outputs)
    public = None
    if inputs.record is None and not ahead.run.recipe.draws:
        public = (inputs.X_pub, inputs.y_pub, inputs.X_unlabeled, inputs.labels)
    transaction, unit = inputs.transaction, inputs.table.unit
    yield Start(transaction, event, inputs.n_rows, unit, rows, work, public, head)

    if inputs.is_weighted and spent:
        balanced = yield from learned_weights(head, inputs, learner, spent, LabelRows)
        rows = replace(rows, inputs=balanced)
    if inputs.label_share:
        multiplier = inputs.budget.multiplier(inputs.label_share)
        counted = noisy_logits(counting(learner, balanced), inputs.loss.n_outputs, multiplier)
        balanced = replace(balanced, label_logits=(yield from of_rows(LabelRows(balanced), counted)))
        stage_ended(head)
        rows = replace(rows, inputs=balanced)
    if inputs.target_share or inputs.target_steps:
        balanced = yield from head._with_scaled_targets(balanced, learner, planned)
        stage_ended(head)
        rows = replace(rows, inputs=balanced)
    if planned is not None and balanced is not first.rows.inputs:
        planned = head._planned(balanced, mapped, spent | checking)
    if planned is None:
        mapped, shares = yield from learned_map(head, replace(first, rows=rows), learner)
        spent |= shares
        planned = head._planned(balanced, mapped, spent | checking)
    if check:
        rows = HeadRows(balanced, planned.row_map)
        asked = start_is_useful(planned.run.info, learner, inputs.budget.multiplier(check))
        useful = yield from of_rows(rows, asked)
        stage_ended(head)
        if not useful:
            balanced = balanced.without_public_rows()
            alone = replace(alone, rows=replace(alone.rows, inputs=balanced))
            mapped, shares = yield from learned_map(head, alone, learner)
            spent = _unused(spent) | shares
            planned = head._planned(balanced, mapped, spent | checking)
    if bounding:
        rows = HeadRows(balanced, planned.row_map)
        bounded = noisy_gradient_bound(planned.run, counting(learner, balanced), inputs.budget)
        bound = yield from of_rows(rows, bounded)
        stage_ended(head)
        planned = head._planned(balanced, replace(mapped, gradient_bound=bound), spent | checking)
    head._row_map = planned.row_map
    with FitTasks(head, planned.run.plan.n_steps) as tasks:
        run = replace(planned.run, callback=tasks)
        W = yield from of_rows(HeadRows(balanced, planned.row_map), training(run))
    finish(head, planned, W, inputs.record)
    head.n_iter_ = tasks.n_done  # fewer than planned if a callback has stopped it


def _unused(spent: dict[str, float]) -> dict[str, float]:
    """Shares spent on a map that used public rows, if these are left out and a new map is learned."""
    return {name if name in OF_WEIGHTS else f"unused {name}": share for name, share in spent.items()}


def finish(fitted: Any, planned: PlannedHead, W: Array, record: PerInstanceRecord | None) -> None:
    """Set the results on the copy: coefficients and report."""
    plan = planned.run.plan
    fitted.coef_, fitted.intercept_ = fitted._coefficients(W)
    if not (np.all(np.isfinite(fitted.coef_)) and np.all(np.isfinite(fitted.intercept_))):
        raise ValueError(
            f"the head diverged: its coefficients are not finite; pass learning_rate='auto' (now "
            f"{shown(fitted.learning_rate)}), a larger epsilon, or rows and targets of a usual scale."
        )
    fitted.learning_rate_ = plan.step_size(1)
    fitted.privacy_ = planned.report()
    vars(fitted).pop("per_instance_", None)  # that of an earlier fit
    if record is not None:
        fitted.per_instance_ = record
    if planned.adjustment is not None:
        fitted.class_shares_ = planned.adjustment.shares


# -- the map ---------------------------------------------------------------------------------


def first_stage(head: Any, inputs: FitInputs) -> MapStage:
    """The first release that learns the map, if there is any, from public facts; none for a given map."""
    if (model := head._released_start) is not None:
        return MapStage(HeadRows(inputs, model._row_map), Mapped(model._row_map), {}, {})
    known = inputs.X_known if inputs.X_scale is None else inputs.X_scale
    rules, columns, n_features = head._map_rules(inputs), None, inputs.table.shape[1]
    if rules.scales:
        # Unlabelled rows hold rare values. Scaled to spread 1, each would be a long entry of few rows.
        columns = columns_of(known, centred=rules.centres_columns, balanced=inputs.X_unlabeled is not None)
    stage = _stage_with(head, inputs, columns)
    # A few public rows give a poor estimate of the spread of columns, and those that a classifier left out
    # perhaps one in other units.
    poor = len(known) < _FEWEST_KNOWN or (inputs.X_scale is not None and inputs.loss.has_classes)
    learned = poor and rules.learns_columns
    share = columns_share(inputs.budget.mu, inputs.n_rows, n_features) if learned else 0.0
    if not share:
        return stage
    # Columns that need no scale are followed by the stage of unknown columns.
    shares = {"columns": share}
    rows = HeadRows(inputs, unmapped(n_features), once=True)
    return MapStage(rows, stage.mapped, shares, shares | _stage_with(head, inputs, None).shares)


def _stage_with(head: Any, inputs: FitInputs, columns: Columns | None) -> MapStage:
    """The stage after the columns: learning the rest of the map, or training with a public one."""
    shares, n_features = map_shares(head, inputs, columns), inputs.table.shape[1]
    if "mean" in shares:
        row_map = RowMap(None, True, None, unit_first=True, columns=columns)
    elif head.whiten != "auto" and head.whiten and len(inputs.X_known) == 0:
        raise ValueError("whiten=True needs public rows; pass X_pub and y_pub, or whiten=False.")
    elif "length of the rows" in shares:
        # Rows of any length are measured: to refuse one would tell that it exists. They have no intercept,
        # which would count as a part of their length; the start may have one.
        row_map = RowMap(None, True, None, columns=columns, bound=LENGTH_LIMIT)
        mapped = Mapped(head._with_intercept(row_map, inputs))
        return MapStage(HeadRows(inputs, row_map), mapped, shares, shares)
    else:
        whiten = bool(head.whiten)
        if head.whiten == "auto":  # a regression needs enough public rows
            enough = not inputs.loss.quadratic or len(inputs.X_known) > _FEWEST_FREE
            whiten = inputs.is_default and enough
        groups, shrinkage = inputs.groups
        row_map = RowMap.of(
            inputs.X_known,
            head.center and not (columns is not None and columns.center.any()),
            head.row_norm is not None,
            head.fit_intercept,
            groups if whiten and len(groups) else None,
            clip=head._clips(columns),
            columns=columns,
            shrinkage=shrinkage,
        )
        times = math.sqrt(_HARDLY_NOISY * inputs.budget.mu * inputs.n_rows / n_features)
        if times > 1 and row_map.bound is not None and inputs.loss.quadratic and inputs.is_default:
            row_map = row_map.widened(min(times, _MOST_TIMES))
        centred_units = row_map.mean is not None and row_map.normalize and row_map.bound is None
        if inputs.X_unlabeled is not None and centred_units and head.fit_intercept:
            row_map = replace(row_map, intercept_value=intercept_constant(inputs.loss.n_outputs))
    return MapStage(HeadRows(inputs, row_map, once="mean" in shares), Mapped(row_map), shares, shares)


def map_shares(head: Any, inputs: FitInputs, columns: Columns | None) -> dict[str, float]:
    """Shares of the squared budget for learning the map after the columns from private rows."""
    if head._learns_geometry(inputs, columns):
        shares = Shares.of(inputs.budget.mu, inputs.n_rows, inputs.table.shape[1])
        learned = {"mean": shares.mean}
        groups, _ = inputs.groups
        few = len(groups) - n_groups(groups) < _FEWEST_FREE and shares.floor < _LARGEST_FLOOR
        if few or not len(groups):  # public rows whiten worse than private directions
            learned["directions"] = shares.directions
        return learned
    rules = head._map_rules(inputs)
    if columns is not None and head._clips(columns) and rules.preconditions:
        share = second_moment_share(inputs.budget.mu, inputs.n_rows, inputs.table.shape[1])
        return {"second moment": share} if share else {}
    needed = head.row_norm == "clip" and len(inputs.X_known) == 0 and columns is None
    possible = rules.divides and not inputs.transaction.noise.needs_grid
    share = length_share(inputs.budget.mu, inputs.n_rows) if needed and possible else 0.0
    return {"length of the rows": share} if share else {}


def learned_map(head: Any, stage: MapStage, learner: Learner) -> Course[tuple[Mapped, dict[str, float]]]:
    """The map, learned from private rows if public ones do not tell it, and the shares that it has cost.

    What noisy columns tell decides what else is released. The squared budgets of adaptive Gaussian releases
    add up as those of fixed ones, if their sum is bounded: Smith and Thakurta 2022, "Fully adaptive
    composition for Gaussian differential privacy".
    """
    spent: dict[str, float] = {}
    rows, mapped, shares = stage.rows, stage.mapped, stage.shares
    inputs, n_features = rows.inputs, rows.inputs.table.shape[1]
    if "columns" in shares:
        spent |= shares
        multiplier = inputs.budget.multiplier(shares["columns"])
        noisy = yield from of_rows(rows, noisy_columns(learner, n_features, multiplier))
        stage_ended(head)
        columns = noisy.standardised(centred=head._map_rules(inputs).centres_columns)
        after = _stage_with(head, inputs, columns)
        rows, mapped, shares = after.rows, after.mapped, after.shares
        if columns is None and not isinstance(inputs.table, ArrayTable):
            # To refuse a row whose length overflows, now, would tell that it exists.
            limits = Columns.limits(n_features, _LARGEST_ENTRY)
            rows = replace(rows, row_map=replace(rows.row_map, columns=limits))
            mapped = replace(mapped, row_map=replace(mapped.row_map, columns=rows.row_map.columns))
    spent |= shares
    multipliers = {name: inputs.budget.multiplier(share) for name, share in shares.items()}
    if not shares:
        return mapped, spent
    if "length of the rows" in shares:
        bound = yield from of_rows(rows, noisy_length(learner, n_features, multipliers["length of the rows"]))
        stage_ended(head)
        return Mapped(head._with_intercept(replace(rows.row_map, bound=bound), inputs)), spent

    if "second moment" in shares:
        bare = replace(mapped.row_map, intercept_value=None)
        multiplier = multipliers["second moment"]
        moment = yield from of_rows(
            HeadRows(inputs, bare), noisy_second_moment(learner, n_features, multiplier)
        )
        stage_ended(head)
        matrix, second_moment = moment.preconditioner(mapped.row_map.intercept_value)
        return replace(mapped, second_moment=second_moment, preconditioner=matrix), spent

    mean = yield from of_rows(rows, noisy_mean(learner, n_features, multipliers["mean"]))
    stage_ended(head)
    warn_of_few_columns(mean.energies)
    row_map = replace(mapped.row_map, mean=_centre(mean, mapped.row_map, inputs))
    largest: float | None = None
    if "directions" in shares:
        asked = leading_directions(learner, n_features, multipliers["directions"])
        directions = yield from of_rows(HeadRows(inputs, row_map), asked)
        stage_ended(head)
        warn_of_few_columns(directions.energies)
        lasting, factors = directions.shortened()
        whitening = Whitening(lasting, factors) if head.whiten is not False and len(factors) else None
        largest = directions.largest_second_moment(None if whitening is None else factors)
        row_map = replace(row_map, whitening=whitening)
    elif head.whiten is not False:
        groups, shrinkage = inputs.groups
        known = row_map(inputs.X_known[: len(groups)], np.float64)
        whitening = Whitening.of(known, groups, shrinkage)
        row_map = replace(row_map, whitening=whitening)
    if head.fit_intercept:
        row_map = replace(row_map, intercept_value=intercept_constant(inputs.loss.n_outputs))
    return Mapped(row_map, largest), spent


def _centre(private: NoisyMean, row_map: RowMap, inputs: FitInputs) -> Array:
    """The centre of unit rows: that of private rows, and of public rows where there are any."""
    unit_pub = RowMap(None, True, None, columns=row_map.columns)(inputs.X_known, np.float64)
    if len(unit_pub) < 2:  # one row gives no variance
        return private.shrunk()
    return private.combined(unit_pub.mean(axis=0), variance_of_mean(unit_pub))


# -- the start -------------------------------------------------------------------------------


def check_share(head: Any, inputs: FitInputs) -> float:
    """Share of the squared budget for checking the start on private rows; 0 if a check is useless."""
    enough = len(inputs.X_pub) >= (2 if inputs.loss.has_classes else FEWEST)
    public = isinstance(head.init, str) and head.init == "public" and enough
    # Without public rows the centre moves, so a row of any length could become too long after the charge.
    if not (inputs.is_default and public and head._map_rules(inputs).divides) or head.row_norm is None:
        return 0.0
    without = inputs.without_public_rows()
    if head._map_rules(without).whitens_alone and not head._learns_geometry(without, None):
        return 0.0
    return share_for(inputs.budget.mu, inputs.n_rows, 1.0, _CHECK_ERROR, _MOST_CHECK_ERROR)
