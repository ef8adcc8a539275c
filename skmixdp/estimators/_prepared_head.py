"""A linear head that is ready to train."""

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .._rowmap import RowMap
from .._rows import ArrayTable, PrivateRows, Table
from .._validation import shown
from ..components import LogitAdjustment
from ..privacy import Charge, PerInstanceRecord
from ._fit import PreparedFit
from ._rows import bfloat16_rows, placed

Array = NDArray[Any]

#: Entries of rows whose passes take longer than it takes to start threads.
_MANY = 2**21


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
        in_memory = isinstance(self.table, ArrayTable) and self.device in (None, "cpu")
        return in_memory and self.estimator.dtype != "bfloat16" and math.prod(self.table.shape) >= _MANY

    def rows(self) -> PrivateRows:
        exact = self.run.noise.needs_grid
        table, row_map = placed(self.table, self.device), self.row_map
        if self.estimator.dtype == "bfloat16":
            return bfloat16_rows(table, self.y, row_map, exact=exact)
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
