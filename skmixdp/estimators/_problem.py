"""What a fit of a linear head is given: its parameters and its checked inputs."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, Literal, Protocol

import numpy as np
from numpy.typing import NDArray

from .._engine import RowsKey, Transaction
from .._linear import Loss, WeightedLoss, with_weights
from .._rows import (
    UNCHANGED,
    ArrayTable,
    Columns,
    PersonTable,
    PrivateRows,
    RowMap,
    Table,
    TargetMap,
    n_groups,
)
from ..algorithms import Algorithm
from ..components.public import PublicData
from ..privacy import PerInstanceRecord
from ..privacy.accounting.budgets import Budget
from ._callbacks import FitTasks

Array = NDArray[Any]

#: Fewest degrees of freedom that public rows must have within classes for whitening.
FEWEST_FREE = 20

#: Whitening by rows of unknown classes: the largest weight of their scatter, and the weight times the number
#: of outputs. The more classes there are, the more of that scatter separates them.
_MOST_WEIGHT, _WEIGHT_OF_ALL = 0.1, 0.5

#: With fewer columns, rows of unit length lose too much of their information.
_FEWEST_AT_UNIT_LENGTH = 4


class NamedStart(Protocol):
    """A start that is made from the names of the classes."""

    def start(self, classes: Array, data: PublicData, widen: Callable[[Array], Array]) -> Array:
        """The head (k, d_in); ``widen`` turns coefficients (k, n_features) into a head."""


@dataclass(frozen=True, eq=False, repr=False)
class Parameters:
    """Checked parameters of a linear head that say how it is fitted, by the names of the estimators.

    ``init`` is a name, coefficients in the units of the labels or targets, or a start by names of classes.
    ``row_map`` is that of the released head from which the fit continues; None without one.
    ``learns_center`` says whether the centre of targets may be learned.
    """

    learning_rate: float | Literal["auto"]
    l2: float | Literal["auto"]
    public_l2: float | Literal["auto"]
    fit_intercept: bool
    center: bool
    whiten: bool | Literal["auto"]
    geometry: bool | Literal["auto"]
    row_norm: str | None
    scale: bool | Literal["auto"]
    batch_size: int | None
    init: str | Array | NamedStart
    record_per_instance: bool | Literal["picklable"]
    logit_adjustment: float | Literal["auto"] = 0
    learns_center: bool = False
    row_map: RowMap | None = None

    def clips(self, columns: Columns | None) -> bool:
        """Whether rows keep their length up to a bound.

        Columns of unknown centre are centred at unit length, unless it would leave too little of them.
        """
        if self.row_norm != "auto" or columns is None:
            return self.row_norm == "clip"
        few = len(columns.center) < _FEWEST_AT_UNIT_LENGTH
        return bool(columns.center.any()) or not self.center or few


@dataclass(frozen=True, eq=False, repr=False)
class LabelledRows:
    """Private rows with their class indices or scaled targets ``y``, and the sums that they are asked for.

    ``exact`` sums are on a grid. ``record`` records the privacy loss of each row.
    """

    table: Table
    y: Array
    dtype: np.dtype[Any]
    exact: bool
    record: PerInstanceRecord | None = None


@dataclass(frozen=True, repr=False)
class MappedRows(RowsKey):
    """Private rows after a row map, as a linear head sees them; without a map, their labels alone.

    Two of these are equal if they have the same two objects: nothing compares private rows. Rows of a
    ``single_pass`` are mapped as they are read, and not kept.
    """

    private: LabelledRows
    row_map: RowMap | None
    single_pass: bool = False

    def open(self) -> PrivateRows:
        private, row_map = self.private, self.row_map
        table, y, dtype = private.table, private.y, private.dtype
        if row_map is None:
            bare: Table = ArrayTable(np.empty((len(y), 0), dtype))
            table = table.holding(bare) if isinstance(table, PersonTable) else bare
            row_map = UNCHANGED
        if self.single_pass and not private.exact:
            opened = table.remapped_rows(y, row_map, dtype)
        else:
            opened = table.private_rows(y, row_map, dtype, exact=private.exact)
        opened.record = private.record
        return opened


@dataclass(frozen=True, repr=False)
class FitInputs:
    """The checked inputs of a head's fit.

    ``y_pub`` holds class indices or scaled targets, and ``members`` (n_rows,) masks the private rows to fit
    to; None is all. ``classes`` are labels in the order of their indices, or names of several labels;
    ``target_map`` scales targets. ``is_default`` says whether ``"auto"`` turns on whitening and checks, for
    the default algorithm of the loss, and ``divides`` whether releases over all rows can share the budget
    with the steps. ``X_scale`` has public rows that only tell the scale of the columns; None
    stands for ``X_known``. ``label_share`` is the share of the squared budget for the logits (k,)
    at which labels start, ``label_logits`` once they are released; 0 releases none. ``X_unlabeled`` are
    public rows without labels; None stands for none. ``target_share`` is the share of the squared budget for
    centre and scale of the targets, or ``target_steps`` the number of releases of the plan for them.

    ``sample_weight`` (n_rows,) are PRIVATE weights as passed, of which ``largest_weight`` counts as 1; None
    stands for a noisy one. ``class_weight`` (k,) are public. Noisy counts of ``n_counted`` classes tell them
    instead; 0 counts none. ``mean_weight`` is a released mean, and ``public_weight`` (n_pub,) those of public
    rows, of mean 1.
    """

    transaction: Transaction
    parameters: Parameters
    tasks: FitTasks
    algorithm: Algorithm
    loss: Loss
    private: LabelledRows
    X_pub: Array
    y_pub: Array
    members: NDArray[np.bool_] | None
    treated_as_public: tuple[str, ...]
    is_default: bool
    divides: bool
    classes: Array | None = None
    target_map: TargetMap | None = None
    X_scale: Array | None = None
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
        few = len(self.y_pub) - n_groups(self.y_pub) < FEWEST_FREE
        if not self.loss.quadratic and not (few and self.X_unlabeled is not None):
            return self.y_pub, None
        weight = min(_MOST_WEIGHT, _WEIGHT_OF_ALL / self.loss.n_outputs)
        return np.zeros(len(self.X_known), dtype=np.intp), None if self.loss.quadratic else 1 - weight

    @property
    def budget(self) -> Budget:
        """What the fit may spend."""
        return self.transaction.budget

    @property
    def preconditions(self) -> bool:
        """Whether budget may be spent on noisy columns or a second moment."""
        return self.divides and self.is_default and self.parameters.row_norm is not None

    @property
    def whitens_alone(self) -> bool:
        """Whether rows are whitened without public rows, by directions of private rows of unit length."""
        return self.parameters.whiten is True and len(self.X_known) == 0

    @property
    def centres_columns(self) -> bool:
        """Whether columns are centred before rows are scaled; rows of unit length are centred after it."""
        parameters = self.parameters
        unit = parameters.row_norm == "unit" or parameters.geometry is True or self.whitens_alone
        return parameters.center and not unit

    @property
    def n_rows(self) -> int:
        """Number of private rows to fit to."""
        return self.private.table.shape[0] if self.members is None else int(self.members.sum())

    @property
    def is_weighted(self) -> bool:
        """Whether rows have weights."""
        return self.sample_weight is not None or self.class_weight is not None or self.n_counted > 0

    def weighted(self, largest_weight: float = 1.0, by_class: Array | None = None) -> "FitInputs":
        """The inputs with a weight from 0 to 1 for each private row, relative to the largest.

        It is that of its class, (k,), times its sample weight.
        """
        y = self.private.y
        weights = np.ones(len(y))
        if by_class is not None:
            weights *= (by_class / by_class.max())[y]
        if self.sample_weight is not None:
            weights *= np.minimum(self.sample_weight / largest_weight, 1.0)
        private = replace(self.private, y=with_weights(y, weights))
        return replace(self, loss=WeightedLoss(self.loss), private=private)

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
