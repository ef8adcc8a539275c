"""The rows of a fit: private ones with their labels, and public ones."""

from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .._engine import RowsKey
from .._linear.losses import Loss, WeightedLoss, with_weights
from .._rows.persons import PersonTable
from .._rows.row_map import UNCHANGED, RowMap
from .._rows.source import PrivateRows, Table
from .._rows.table import ArrayTable
from ..privacy import PerInstanceRecord

Array = NDArray[Any]


@dataclass(frozen=True, eq=False, repr=False)
class LabelledRows:
    """Private rows with class indices or scaled targets ``y``, and how their sums are computed.

    ``exact`` sums are on a grid. ``record`` records the privacy loss of each row. ``maps`` are public
    ones of fits to these rows.
    """

    table: Table
    y: Array
    dtype: np.dtype[Any]
    exact: bool
    record: PerInstanceRecord | None = None
    maps: list[RowMap] = field(default_factory=list)

    def mapped(self, row_map: RowMap | None) -> "MappedRows":
        """The rows after a map. Fits share passes if their maps are the same object."""
        return MappedRows(self, row_map)

    def same(self, row_map: RowMap) -> RowMap:
        """The first of equal maps that public facts determine."""
        for existing in self.maps:
            if existing is row_map or existing.same_as(row_map):
                return existing
        self.maps.append(row_map)
        return row_map


@dataclass(frozen=True, repr=False)
class MappedRows(RowsKey):
    """Private rows after a row map, as a linear head gets them; without a map, their labels alone.

    Two of these are equal if they have the same two objects: nothing compares private rows.
    """

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

    ``sample_weight`` (n_rows,) are PRIVATE, as passed, and ``largest`` counts as 1; None is a noisy one.
    ``of_classes`` (k,) are public. Noisy counts of ``n_counted`` classes tell them instead; 0 counts none.
    ``mean`` is a released mean. ``bare`` are the private rows without weights.
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
