"""A fit is the list of its releases: the contract of a stage, and what is known of a fit.

A :class:`Stage` is a release, or free work with public rows and released numbers. The stages of a fit are in
the order of its report, where each that has a price has a line. A stage never asks for another stage: what
it needs is in the :class:`Fit`.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Generator, Iterator
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, ClassVar, Literal, NamedTuple, TypeVar

import numpy as np
from numpy.typing import NDArray

from .._engine import (
    GaussianMechanism,
    LostReleaseError,
    NoisyQuery,
    Plan,
    Procedure,
    Recipe,
    Released,
    RowsKey,
    Transaction,
    answer_step,
    bind_rows,
)
from .._linear.losses import Loss, WeightedLoss, with_weights
from .._rows.persons import PersonTable
from .._rows.row_map import UNCHANGED, RowMap, TargetMap
from .._rows.scaling import Columns
from .._rows.source import PrivateRows, Table
from .._rows.table import ArrayTable
from ..components.protocols import Rounds
from ..privacy import PerInstanceRecord
from ..privacy.accounting.budgets import Budget
from .statistics import Learner

Array = NDArray[Any]
_Result = TypeVar("_Result")

#: Minimum degrees of freedom of public rows within classes for whitening.
FEWEST_FREE = 20

#: A class is rare if its share at the start is below this.
RARE = 0.15


# -- rows ----------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False, repr=False)
class LabelledRows:
    """Private rows with class indices or scaled targets ``y``, and how their sums are computed.

    ``exact`` sums are on a grid. ``maps`` are public ones of fits to these rows.
    """

    table: Table
    y: Array
    dtype: np.dtype[Any]
    exact: bool
    record: PerInstanceRecord | None = None
    maps: list[RowMap] = field(default_factory=list)

    def mapped(self, row_map: RowMap | None) -> "MappedRows":
        """The rows after a map; None leaves labels alone. Fits share passes if their maps are one object."""
        return MappedRows(self, row_map)

    def shared_map(self, row_map: RowMap) -> RowMap:
        """The first of equal maps that public facts determine."""
        for existing in self.maps:
            if existing is row_map or existing.same_as(row_map):
                return existing
        self.maps.append(row_map)
        return row_map


@dataclass(frozen=True, repr=False)
class MappedRows(RowsKey):
    """Private rows as a linear head gets them; two are equal if they have the same objects."""

    private: LabelledRows
    row_map: RowMap | None

    def open(self) -> PrivateRows:
        private, row_map = self.private, self.row_map
        table, y, dtype = private.table, private.y, private.dtype
        if row_map is None:
            bare: Table = ArrayTable(np.empty((len(y), 0), dtype))
            table = table.holding(bare) if isinstance(table, PersonTable) else bare
            row_map = UNCHANGED
        opened = table.private_rows(y, row_map, dtype, exact=private.exact)
        opened.record = private.record
        return opened


@dataclass(frozen=True, repr=False)
class Data:
    """The private rows to fit to, and their loss. ``members`` (n_rows,) masks them; None is all."""

    private: LabelledRows
    loss: Loss
    members: NDArray[np.bool_] | None

    @cached_property
    def n_rows(self) -> int:
        """Number of private rows to fit to."""
        return self.private.table.shape[0] if self.members is None else int(self.members.sum())

    @property
    def n_features(self) -> int:
        """Number of columns."""
        return self.private.table.shape[1]


@dataclass(frozen=True, eq=False, repr=False)
class Weights:
    """The sample and class weights of a fit, declared or released.

    ``sample_weight`` (n_rows,) are PRIVATE, and ``largest`` counts as 1; None is a noisy one. ``of_classes``
    (k,) are public. Noisy counts of ``n_counted`` classes tell them instead; 0 counts none. ``bare`` are the
    rows without weights.
    """

    bare: Data
    sample_weight: Array | None = None
    largest: float | None = None
    of_classes: Array | None = None
    n_counted: int = 0
    mean: float = 1.0

    @property
    def of_any_class(self) -> bool:
        """Whether classes have weights."""
        return self.of_classes is not None or self.n_counted > 0

    def of_public(self, y: Array) -> Array | None:
        """Weights (n_pub,) of public rows by class, of mean 1; balanced weights follow from public counts."""
        by_class = self.of_classes
        if self.n_counted:
            by_class = 1 / np.maximum(np.bincount(y, minlength=self.n_counted), 1)
        if by_class is None or not len(y):
            return None
        weights = by_class[y]
        return np.asarray(weights / (float(weights.mean()) if weights.any() else 1.0))

    def applied(self, of_classes: Array | None) -> Data:
        """The rows with a weight in [0, 1] for each: by its class, times its sample weight."""
        private, y = self.bare.private, self.bare.private.y
        weights = np.ones(len(y))
        if of_classes is not None:
            weights *= (of_classes / of_classes.max())[y]
        if self.sample_weight is not None:
            weights *= np.minimum(self.sample_weight / (self.largest or 1.0), 1.0)
        private = replace(private, y=with_weights(y, weights))
        return replace(self.bare, loss=WeightedLoss(self.bare.loss), private=private)


@dataclass(frozen=True, eq=False, repr=False)
class PublicRows:
    """Public rows ``X`` with class indices or scaled targets ``y``, and rows without labels.

    ``of_scales`` are rows that were left out, which still tell the scale of columns; None if none were.
    """

    X: Array
    y: Array
    unlabeled: Array | None = None
    of_scales: Array | None = None

    @cached_property
    def known(self) -> Array:
        """Public rows (n_known, n_features) from which the map is computed; rows with labels come first."""
        return self.X if self.unlabeled is None else np.concatenate([self.X, self.unlabeled])

    @cached_property
    def error_of_mean(self) -> float:
        """Estimated squared length of the error of the mean of the rows at unit length."""
        return variance_of_mean(RowMap(None, True, None)(self.known, np.float64))

    def left_out(self) -> "PublicRows":
        """No rows but those that tell the scale of columns."""
        return PublicRows(self.X[:0], self.y[:0], None, self.known)


def variance_of_mean(unit_pub: Array) -> float:
    """Estimated squared length of the error of the mean of unit rows (n, d); infinite for one row."""
    mean = unit_pub.mean(axis=0)
    return (1 - float(mean @ mean)) / (len(unit_pub) - 1) if len(unit_pub) > 1 else np.inf


# -- stages --------------------------------------------------------------------------------


class Steps(int):
    """A price in steps of the plan of the training."""


#: A share of mu squared, 0 for what is free, or a number of steps of the plan.
Price = float | Steps


class Payment(NamedTuple):
    """A line of the report, empty for what was free; ``place`` is that of the stage in the order.

    ``unused`` is what a stage learned that is asked again without public rows.
    """

    place: int
    line: str
    price: Price
    unused: bool = False


class Stage(ABC):
    """A release of a fit, or free work.

    ``name`` is its line in the report, empty for what is always free. ``limits`` are the smallest and the
    largest share of mu squared. A fit without the :attr:`Fit.traits` that it ``needs`` leaves it out. What
    ``reopens`` is asked again if public rows mislead. If it ``assumes`` its numbers, the training cannot be
    planned before they are known.
    """

    name: ClassVar[str]
    limits: ClassVar[tuple[float, float]] = (0.0, 0.0)
    needs: ClassVar[tuple[str, ...]] = ()
    reopens: ClassVar[bool] = False
    assumes: ClassVar[bool] = True

    @abstractmethod
    def price(self, fit: "Fit") -> Price | None:
        """What it costs, by public facts and released numbers; None leaves it out. It may refuse."""

    @abstractmethod
    def run(self, fit: "Fit", price: Price) -> Procedure["Fit"]:
        """Yield queries, and return the fit with what was learned and spent, which is at most the price."""

    def outcomes(self, fit: "Fit", price: Price) -> Iterator["Fit"]:
        """Both extremes of each released fact on which later prices depend; first what is usual."""
        if not price:
            yield without_queries(self, fit)
        else:
            # A price in steps belongs to one plan, so a later stage plans with the same numbers.
            assumed = fit.assumed or (self.assumes and not isinstance(price, Steps))
            yield fit.spent(self, price, assumed=assumed)

    def lines(self, fit: "Fit", price: Price) -> tuple[tuple[str, Price], ...]:
        """The lines of the report."""
        return ((self.name, price),)

    def rows(self, fit: "Fit") -> RowsKey | None:
        """The rows of its queries if they are mapped as those of the training will be, or may be."""
        return None


def without_queries(stage: Stage, fit: "Fit") -> "Fit":
    """The fit after a stage that is free."""
    try:
        next(stage.run(fit, 0.0))
    except StopIteration as end:
        after: Fit = end.value
        return after
    raise RuntimeError(f"the stage {type(stage).__name__} is free and asks private rows.")


@dataclass(frozen=True)
class Order:
    """The stages of a fit. What those after the training cost is set aside before it."""

    before: tuple[Stage, ...]
    training: Stage
    after: tuple[Stage, ...]

    @cached_property
    def all(self) -> tuple[Stage, ...]:
        """All stages, in the order of the report."""
        return (*self.before, self.training, *self.after)


# -- what is known -------------------------------------------------------------------------


@dataclass(frozen=True, eq=False, repr=False)
class Kinds:
    """What is known of columns by how they were encoded: a public fact.

    ``numbers`` (n_features,) flags those whose unit is unknown. The others share one; ``square`` is about the
    sum of their squares in a row.
    """

    numbers: NDArray[np.bool_]
    square: float


@dataclass(frozen=True, repr=False)
class RowSettings:
    """Parameters of the map of the rows, by their names in ``rows`` and in the estimators.

    Rows are cut at ``length_factor`` times a noisy length. ``declared`` (2, n_features) has the centre and
    the spread of columns that are known beforehand, NaN for others.
    """

    fit_intercept: bool
    center: bool
    whiten: bool | Literal["auto"]
    geometry: bool | Literal["auto"]
    norm: str | None
    scale: bool | Literal["auto"]
    length_factor: float = 1.0
    kinds: Kinds | None = None
    declared: Array | None = None


@dataclass(frozen=True, repr=False)
class Settings:
    """Parameters of a fit, by their names in the estimators.

    ``is_default`` says whether "auto" turns on whitening and checks. ``init`` is a name, coefficients in the
    units of the labels or targets, or a start by names of classes. ``known_map`` is the map of the released
    head from which the fit continues. ``facts`` are treated as public.
    """

    algorithm: Any
    is_default: bool
    learning_rate: float | Literal["auto"]
    l2: float | Literal["auto"]
    public_l2: float | Literal["auto"]
    batch_size: int | None
    init: Any
    rows: RowSettings
    known_map: RowMap | None
    facts: tuple[str, ...]
    logit_adjustment: float | Literal["auto"] = 0
    self_training: bool = False
    classes: Array | None = None


@dataclass(frozen=True, repr=False)
class Labels:
    """Start logits and released shares of classes, or the scale of targets.

    Private targets are scaled by ``target_map`` if ``is_scaled``. ``price`` is that of their noisy scale,
    None if it is known, and ``price_alone`` the one without public rows. ``logits`` (k,) are those at which a
    fit starts: of released ``shares`` (k,), or of these times class weights.
    """

    target_map: TargetMap | None = None
    is_scaled: bool = True
    learns_center: bool = False
    price: Price | None = None
    price_alone: float = 0.0
    logits: Array | None = None
    shares: Array | None = None

    @property
    def rarest(self) -> float:
        """The share of the rarer of two classes at the start; 1/2 for other fits."""
        return 0.5 if self.shares is None or len(self.shares) > 2 else float(self.shares.min())


@dataclass(frozen=True, repr=False)
class Mapping:
    """What is known of the rows: a public map, or released numbers.

    ``row_map`` is that of the next release, or of the training. ``second_moment`` is the largest of the
    mapped rows, and ``moments`` (d_in,) are those along orthogonal directions. Few gradients of private rows
    are longer than ``gradient_bound``.
    """

    row_map: RowMap
    columns: Columns | None = None
    second_moment: float | None = None
    moments: Array | None = None
    preconditioner: Array | None = None
    gradient_bound: float | None = None


@dataclass(frozen=True, eq=False, repr=False)
class Head:
    """The trained head ``W`` (k, d_in), the state of its update, and the number of steps."""

    W: Array
    state: Any
    n_steps: int


@dataclass(frozen=True, eq=False, repr=False)
class Fit:
    """What is known of a fit: public facts, and numbers that were released. Queries alone touch its rows.

    ``tasks`` are the callbacks and the progress bar of the estimator. What is learned drops ``recipe`` and
    ``plan`` of the training. Facts that are only ``assumed`` plan a fit that may come.
    """

    stages: Order
    settings: Settings
    transaction: Transaction
    tasks: Any
    data: Data
    public: PublicRows
    weights: Weights
    labels: Labels
    mapping: Mapping = Mapping(UNCHANGED)
    recipe: Recipe | None = None
    plan: Plan | None = None
    head: Head | None = None
    payments: tuple[Payment, ...] = ()
    assumed: bool = False

    # -- what was spent --------------------------------------------------------------------

    def spent(self, stage: Stage, price: Price, **facts: object) -> "Fit":
        """The fit after a stage of this price, and with new facts on which no plan depends."""
        place = self.stages.all.index(stage)
        lines = [Payment(place, *line) for line in stage.lines(self, price)] if price else []
        payments = [*self.payments, *(lines or [Payment(place, "", 0.0)])]
        return self._with(payments=tuple(sorted(payments, key=lambda each: each.place)), **facts)

    def learned(self, **facts: object) -> "Fit":
        """The fit with new facts, whose training is not planned yet."""
        return self._with(recipe=None, plan=None, **facts)

    def _with(self, **facts: object) -> "Fit":
        """The fit with other facts, in a fifth of the time of ``replace``, which counts in each stage."""
        changed = object.__new__(Fit)
        vars(changed).update(vars(self), **facts)
        return changed

    def mapped(self, **facts: Any) -> "Fit":
        """The fit with new facts of its rows."""
        return self.learned(mapping=replace(self.mapping, **facts))

    def priced(self, stages: tuple[Stage, ...], first: int = 0) -> Iterator[tuple[int, Stage, Price]]:
        """Those of the stages that have not run and have a price, from a place on, with their places."""
        run, traits = {payment.place for payment in self.payments if not payment.unused}, self.traits
        for place, stage in enumerate(stages[first:], first):
            if place in run or not all(traits[name] for name in stage.needs):
                continue
            if (price := stage.price(self)) is not None:
                yield place, stage, price

    @property
    def n_steps_before(self) -> int:
        """Number of steps of the plan before those of the training."""
        return sum(payment.price for payment in self.payments if isinstance(payment.price, Steps))

    @property
    def share_left(self) -> float:
        """The share of mu squared that is left."""
        return 1 - sum(each.price for each in self.payments if not isinstance(each.price, Steps))

    @property
    def shares(self) -> tuple[tuple[str, float], ...]:
        """The lines of the report: shares of mu squared, or of the steps."""
        total = self.n_steps_before
        return tuple(
            (line, price / total if isinstance(price, Steps) else price)
            for _, line, price, _ in self.payments
            if line
        )

    def without_map(self) -> "Fit":
        """The fit without its map of the rows, which stages that cost nothing make anew for other columns."""
        order = self.stages.all
        payments = tuple(each for each in self.payments if each.line or not order[each.place].reopens)
        return self.learned(payments=payments, mapping=Mapping(UNCHANGED))

    def without_public_rows(self, *, targets: bool = True) -> "Fit":
        """The fit without public rows, which asks again what was learned from them, also of ``targets``."""
        fit, order, labels = self.without_map(), self.stages.all, self.labels
        first = min(place for place, stage in enumerate(order) if stage.reopens and stage.name)
        payments = [
            Payment(first, f"unused {each.line}", each.price, True) if order[each.place].reopens else each
            for each in fit.payments
        ]
        if targets and labels.price_alone:
            labels = replace(labels, price=labels.price_alone, price_alone=0.0)
        payments.sort(key=lambda each: each.place)
        return fit.learned(payments=tuple(payments), labels=labels, public=self.public.left_out())

    # -- facts -----------------------------------------------------------------------------

    @property
    def traits(self) -> dict[str, bool]:
        """What stages need, by public facts: the kind of the labels, the budget, and what rows are like."""
        loss, weights, settings = self.data.loss, self.weights, self.settings
        return {
            "targets": loss.quadratic,
            "probabilities": not loss.quadratic,
            "labels": not (loss.quadratic or loss.has_classes),
            "weights": weights.sample_weight is not None or weights.of_classes is not None,
            "default": settings.is_default,
            "self-training": settings.self_training,
            "divides": self.divides,
            "divides after": self.divides_after,
            "bounded rows": settings.rows.norm is not None,
            "inexact sums": not self.data.private.exact,
            "unit rows": self.mapping.row_map.unit_first and settings.known_map is None,
        }

    @property
    def budget(self) -> Budget:
        """The budget of the fit."""
        return self.transaction.budget

    @cached_property
    def divides(self) -> bool:
        """Whether releases over all rows can share the budget with the steps."""
        return self.settings.batch_size is None and self.budget.is_divisible

    @property
    def divides_after(self) -> bool:
        """Whether releases over all rows after the training can share the budget with the steps."""
        return self.budget.is_divisible and self.settings.batch_size in (None, self.data.n_rows)

    @property
    def learner(self) -> Learner:
        """Asks private rows, each of which counts once."""
        return Learner(self.data.n_rows, self.data.members, self.transaction.noise, self.data.private.dtype)

    @property
    def counting(self) -> Learner:
        """Asks private rows that count by their weights."""
        n_rows = max(round(self.weights.mean * self.data.n_rows), 1)
        return replace(self.learner, loss=self.data.loss, n_rows=n_rows)

    # -- queries ---------------------------------------------------------------------------

    def ask(
        self, queries: Generator[NoisyQuery, Released, _Result], row_map: RowMap | None = None
    ) -> Procedure[_Result]:
        """The result of a generator that queries rows after a map; without one, their labels alone."""
        return bind_rows(self.data.private.mapped(row_map), queries)

    def correct(self, ask: Callable[[float], Rounds], price: Price, before: Any) -> Procedure[Any]:
        """The result of queries about the trained head, which share one release over all rows.

        After an interruption between two of them, it is what was known ``before``: noise may have been drawn.
        """
        assert self.plan is not None
        multiplier = self.budget.multiplier(price)
        mechanism = GaussianMechanism(multiplier, 1, self.transaction.noise)
        mechanism.begin_step(self.data.members)
        queries = answer_step(mechanism, ask(multiplier), [], self.plan.info)
        try:
            return (yield from self.ask(queries, self.mapping.row_map))
        except LostReleaseError:
            return before
