"""The columns of a table as parts of an additive model: their usual cells, and the cells that are drawn."""

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .._linear.arrays import FloatArray
from ..preprocessing import TableColumn
from ..preprocessing._cells import FARTHEST
from ._basis import NORMAL

#: Numbers or days at which a curve is drawn.
_N_VALUES = 200

#: Turns of a wave that are drawn. More would hide the curve.
_MOST_TURNS = 12

#: Days since 1970 of the years 1 to 9999, and microseconds of a day.
_DAYS = -719_160.0, 2_932_890.0
_DAY = 86_400_000_000

#: Shares of words are clear from this multiple of their median on: 2.7 deviations if most are noise.
_CLEAR = 4.0

#: Smallest sum of noisy shares that tells anything.
_LEAST_SHARE = 0.1

#: Name of missing cells among categories.
MISSING = "missing"


@dataclass(frozen=True, eq=False)
class Panel:
    """Cells (m,) of a column that are drawn, their effects and errors (m, k), and what is not drawn.

    Cells are numbers, days as ``datetime64``, or names; the last may be NaN, NaT or "missing".
    """

    cells: NDArray[Any]
    effects: FloatArray
    errors: FloatArray
    note: str


@dataclass(frozen=True, eq=False)
class Part:
    """One column of a table, or of the model itself, and the ``places`` of those that it becomes there."""

    places: NDArray[np.intp]
    column: TableColumn | None = None

    @property
    def _levels(self) -> tuple[str, ...]:
        """Names of the cells of a column of few values."""
        if self.column is None:
            return ()
        return ("False", "True") if self.column.kind == "boolean" else self.column.categories

    @property
    def width(self) -> int:
        """The number of hashed words, or of the entries of a list."""
        return 0 if self.column is None else self.column.n_hashed or self.column.length

    @property
    def _missing(self) -> FloatArray:
        """The columns (1, c) at a missing cell."""
        return np.full((1, 1), np.nan) if self.column is None else self.column.encode([None])

    def usual(self, rows: FloatArray, is_known: bool, mean: FloatArray, chances: FloatArray) -> FloatArray:
        """The columns (n, c) at usual cells, drawn by two ``chances`` (2, n).

        ``rows`` (n, c) are usual if that ``is_known``. A released or public ``mean`` (c,) has the shares of
        categories, frequent words and missing cells; NaN stands for equal ones, and 0 for missing cells.
        """
        column = self.column
        if column is None:
            return rows
        if self.width:
            shares = np.abs(mean[: self.width])
            drawn = _drawn(np.where(shares > _CLEAR * np.median(shares), shares, 0.0), chances[0])
            signs = np.where(np.isnan(shares), np.arange(self.width) % 2 - 0.5, mean[: self.width])[drawn]
            rows = np.zeros_like(rows)
            rows[np.arange(len(rows)), drawn] = np.where(signs < 0, -1.0, 1.0) * math.sqrt(
                column.sum_of_squares
            )
        elif self._levels:
            shares = mean[: len(self._levels)]
            if column.kind == "boolean":
                shares = np.array([1 - mean[0], 1 + mean[0]]) / 2
            elif np.isnan(shares).any() and column.shares:
                shares = np.array(column.shares)
            rows = column.encode(list(self._levels))[_drawn(shares, chances[0])]
        else:
            first: FloatArray = rows[:, 0]
            if not is_known and column.cut < FARTHEST:
                declared, normal = 2 * chances[0] - 1, NORMAL[(chances[0] * len(NORMAL)).astype(int)]
                first = declared if column.cut == 1.0 else normal
            rows = self._cells_and_rows(first)[1]
        if column.indicator:
            rows = np.where((chances[1] < mean[-1])[:, np.newaxis], self._missing, rows)
        return rows

    def _cells_and_rows(self, numbers: FloatArray) -> tuple[NDArray[Any], FloatArray]:
        """The cells (m,) at which the first column has these numbers, and all columns there (m, c)."""
        column = self.column
        if column is None:
            return numbers, numbers[:, np.newaxis]
        cells = numbers * column.scale + column.center
        if column.periods:
            days = (np.clip(cells, *_DAYS) * _DAY).astype("datetime64[us]")
            return days, column.encode(days)
        rows = np.zeros((len(numbers), len(self.places)))
        rows[:, 0] = numbers
        return cells, rows

    @property
    def kind(self) -> str:
        """The kind of its cells."""
        return "number" if self.column is None else self.column.kind

    def panel(
        self, usual: FloatArray, knots: FloatArray, curved: bool, missing: bool
    ) -> tuple[NDArray[Any], FloatArray, dict[str, FloatArray]]:
        """Cells (m,) that are drawn and their columns (m, c); usual rows (n, c) and knots say where.

        For each period that is too short to be drawn: the columns where its sine is 1, where its cosine is,
        and where both are 0. In a model that is ``curved``, a column without knots has two values.
        """
        column, short = self.column, dict[str, FloatArray]()
        cells: Any
        rows: NDArray[Any]
        missing = missing or (column is not None and column.indicator)
        if column is not None and self._levels:
            cells, rows = np.array(self._levels, dtype=object), column.encode(list(self._levels))
        elif self.width:
            cells, rows = np.linspace(0, 100, len(usual)), usual
        else:
            numbers: NDArray[Any] = np.unique(usual[~np.isnan(usual[:, 0]), 0])
            shows_ends_alone = not len(knots) and (curved or len(numbers) <= 2)
            low, high = numbers[0], numbers[-1]
            if shows_ends_alone:
                numbers = np.unique([low, high])
            else:
                inner = knots[(knots > low) & (knots < high)]
                numbers = np.unique(np.concatenate([np.linspace(low, high, _N_VALUES), inner]))
            cells, rows = self._cells_and_rows(numbers)
            if shows_ends_alone:
                cells = np.array(_spelt(cells), dtype=object)
            elif column is not None:
                days = np.ptp(numbers) * column.scale
                for number, (name, length) in enumerate(column.periods):
                    if days > _MOST_TURNS * length:
                        waves = [2 * number + 1, 2 * number + 2]
                        rows[:, waves] = 0.0
                        short[name] = np.zeros((3, len(self.places)))
                        short[name][[0, 1], waves] = 1.0
        if missing:
            nothing = {"f": np.nan, "M": np.datetime64("NaT"), "O": MISSING}[cells.dtype.kind]
            cells = np.append(cells, np.array([nothing], dtype=cells.dtype))
            rows = np.concatenate([rows, self._missing])
        return cells, rows, short


def _drawn(shares: FloatArray, chances: FloatArray) -> NDArray[np.intp]:
    """Places (n,) drawn by noisy ``shares``; evenly if they are unknown or nothing but noise."""
    shares = np.clip(np.nan_to_num(shares), 0.0, None)
    shares = shares if shares.sum() > _LEAST_SHARE else np.ones(len(shares))
    return np.asarray(np.searchsorted(np.cumsum(shares)[:-1], chances * shares.sum(), "right"))


def _spelt(cells: NDArray[Any]) -> list[str]:
    """Two numbers or days as names; numbers with the digits that tell them apart."""
    if cells.dtype.kind == "M":
        return [str(cell)[:10] for cell in cells]
    span = float(np.ptp(cells)) or abs(float(cells[0])) or 1.0
    return [f"{round(cell, 1 - math.floor(math.log10(span))) + 0.0:.15g}" for cell in cells.tolist()]
