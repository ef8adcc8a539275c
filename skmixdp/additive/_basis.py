"""The basis of an additive model: new columns of a row, from one column at a time."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import pairwise

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from scipy.special import ndtri

from .._linear.arrays import FloatArray, row_slices
from .._rows.scaling import check_numbers
from .._rows.source import Table
from .._rows.table import ArrayTable
from .._utils.validation import POSITIVE, check
from ._piecewise import ColumnFunction, Memory, PiecewiseRows

#: Linear terms are cut at this many spreads of a column.
_CUT_IN_SPREADS = 4.0

#: Columns without curves are in effect not clipped: only beyond this, which is finite in single precision.
_HUGE_CUT = 1e30

#: Probabilities of the quantiles that are kept of each column, and those of a normal distribution.
MIDDLES = (np.arange(32) + 0.5) / 32
NORMAL = ndtri(MIDDLES)

#: Numbers of the two columns of each pair.
Pairs = tuple[tuple[int, int], ...]

#: Knots that a column has in products with another column.
_COARSE = 4

#: Bytes of a place and a part of one number.
_PIECE_BYTES = 6

#: Rows of which all columns stay in cache while they are computed.
_BLOCK_ROWS = 4096


@dataclass(frozen=True, eq=False)
class Column:
    """Facts about a column, from public rows or noisy histograms; see :class:`Basis`."""

    center: float = 0.0
    factor: float = 1.0
    #: Knots ascend strictly. Without any, there are no hats.
    knots: FloatArray = field(default_factory=lambda: np.zeros(0))
    #: The mean of each hat.
    mean: FloatArray = field(default_factory=lambda: np.zeros(0))
    missing: bool = False
    #: Values of equal mass, of which NaN stands for missing ones; there are none if nothing tells them.
    quantiles: FloatArray = field(default_factory=lambda: np.zeros(0))


@dataclass(frozen=True, eq=False)
class Basis(ColumnFunction):
    """Linear terms, hat functions and missing values of each column, and products, as columns of new rows.

    The first d entries of a new row are the linear terms ``(x - center) factor`` of the columns, cut at
    ``cut`` on both sides. The hats of each column with ``knots`` follow, one for each knot: a hat is 1 at its
    knot, 0 at the others, linear between neighbours, constant beyond the outermost knots, and less by its
    ``mean``. Then come entries that are 1 where a column of those in ``missing`` (d,) has no number, and
    else 0. All other entries of such a column are then 0.

    Last come the products of ``pairs`` of columns: of each coarse hat of one, which has up to four of its
    knots, with each of the other. A column without knots has its linear term in their place.

    It is a function of one row, of public or released numbers. ``quantiles`` are no part of the function.
    """

    center: FloatArray
    factor: FloatArray
    knots: tuple[FloatArray, ...]
    mean: tuple[FloatArray, ...]
    missing: NDArray[np.bool_]
    cut: float = _CUT_IN_SPREADS
    quantiles: tuple[FloatArray, ...] = ()
    pairs: Pairs = ()

    def check_for(self, n_features: int) -> None:
        """Refuse values that no basis of this many features has, such as those of a forged file."""
        check_numbers("basis.center", self.center, (n_features,))
        check_numbers("basis.factor", self.factor, (n_features,))
        check("cut", self.cut, POSITIVE)
        for name, arrays in (("knots", self.knots), ("mean", self.mean), ("quantiles", self.quantiles)):
            if not isinstance(arrays, tuple) or len(arrays) != n_features:
                raise ValueError(f"basis.{name} is not a tuple of {n_features} arrays")
        for knots, mean in zip(self.knots, self.mean, strict=True):
            check_numbers("basis.knots", knots, np.shape(knots)[:1])
            check_numbers("basis.mean", mean, knots.shape)
            if len(knots) in (1, 2) or not np.all(np.diff(knots) > 0):
                raise ValueError("knots do not ascend")
        for quantiles in self.quantiles:  # NaN stands for missing values
            numbers = np.nan_to_num(quantiles, posinf=np.inf, neginf=-np.inf)
            check_numbers("basis.quantiles", numbers, np.shape(quantiles)[:1])
        missing: object = self.missing
        if not isinstance(missing, np.ndarray) or missing.dtype != bool or missing.shape != (n_features,):
            raise ValueError(f"basis.missing is not {n_features} flags")
        of_two = [each for each in self.pairs if isinstance(each, tuple) and len(each) == 2]
        places = [(type(place), place in range(n_features)) for pair in of_two for place in pair]
        if not isinstance(self.pairs, tuple) or places != [(int, True)] * (2 * len(self.pairs)):
            raise ValueError(f"basis.pairs are not pairs of {n_features} columns")

    @classmethod
    def of(cls, columns: Sequence[Column], cut: float = _CUT_IN_SPREADS, pairs: Pairs = ()) -> "Basis":
        """The basis of some columns, and of products of pairs."""
        return cls(
            np.array([each.center for each in columns]),
            np.array([each.factor for each in columns]),
            tuple(each.knots for each in columns),
            tuple(each.mean for each in columns),
            np.array([each.missing for each in columns], dtype=bool),
            cut,
            quantiles=tuple(each.quantiles for each in columns),
            pairs=pairs,
        )

    @cached_property
    def hats(self) -> list[slice]:
        """Indices of the hats of each column among the entries of a new row."""
        ends = len(self.knots) + np.cumsum([0, *map(len, self.knots)])
        return [slice(a, b) for a, b in pairwise(ends.tolist())]

    @cached_property
    def missing_entries(self) -> dict[int, int]:
        """Index of the entry for missing values of each column that has one, by the number of the column."""
        first = self.hats[-1].stop
        return {int(j): first + place for place, j in enumerate(np.flatnonzero(self.missing))}

    def entries(self, column: int) -> list[int]:
        """The places of a column's entries: the linear term, the hats, and missing values."""
        hats, missing = self.hats[column], self.missing_entries
        return [column, *range(hats.start, hats.stop), *([missing[column]] if column in missing else [])]

    def of_column(self, column: int) -> "Basis":
        """The basis of one column, with its :meth:`entries`."""
        own = slice(column, column + 1)
        return replace(
            self,
            center=self.center[own],
            factor=self.factor[own],
            knots=self.knots[own],
            mean=self.mean[own],
            missing=self.missing[own],
            quantiles=self.quantiles[own],
            pairs=(),
        )

    @property
    def n_single(self) -> int:
        """Number of entries of single columns, which are the first ones."""
        return int(self.hats[-1].stop + self.missing.sum())

    @cached_property
    def products(self) -> list[slice]:
        """Indices of the products of each pair."""
        n_factors = [min(len(knots), _COARSE) or 1 for knots in self.knots]
        ends = self.n_single + np.cumsum([0, *(n_factors[i] * n_factors[j] for i, j in self.pairs)])
        return [slice(a, b) for a, b in pairwise(ends.tolist())]

    def _coarse(self, rows: FloatArray, j: int) -> FloatArray:
        """Coarse hats (n, m) of a column, as sums of its hats in new rows (n, width)."""
        knots, hats = self.knots[j], self.hats[j]
        if not len(knots):
            return rows[:, [j]]
        grid = knots[np.linspace(0, len(knots) - 1, min(len(knots), _COARSE)).astype(int)]
        coarse = np.zeros((len(rows), len(grid)))
        # A product of matrices would round a row differently next to other rows.
        for place, knot in zip(range(hats.start, hats.stop), knots, strict=True):
            coarse += rows[:, [place]] * [np.interp(knot, grid, unit) for unit in np.eye(len(grid))]
        return coarse

    def factors(self, rows: FloatArray, pair: tuple[int, int]) -> tuple[FloatArray, FloatArray]:
        """The first and the second factors of the products of a pair, both (n, m), from new rows."""
        left, right = (self._coarse(rows, j) for j in pair)
        return np.repeat(left, right.shape[1], axis=1), np.tile(right, (1, left.shape[1]))

    @property
    def width(self) -> int:
        """Number of entries of a new row."""
        return self.products[-1].stop if self.pairs else self.n_single

    @np.errstate(over="ignore")  # overflow becomes the cut
    def __call__(self, X: FloatArray) -> FloatArray:
        """New rows (n, width) of rows (n, d), in double precision."""
        rows = np.zeros((len(X), self.width))
        number = np.arange(len(X))
        for j, (knots, hats) in enumerate(zip(self.knots, self.hats, strict=True)):
            values = X[:, j].astype(np.float64)
            present = ~np.isnan(values)
            values = np.where(present, values, self.center[j])
            linear = np.clip((values - self.center[j]) * self.factor[j], -self.cut, self.cut)
            rows[:, j] = np.where(present, linear, 0.0)
            if j in self.missing_entries:
                rows[~present, self.missing_entries[j]] = 1.0
            if not len(knots):
                continue
            within = np.clip(values, knots[0], knots[-1])
            left = np.clip(np.searchsorted(knots, within, "right") - 1, 0, len(knots) - 2)
            part = (within - knots[left]) / (knots[left + 1] - knots[left])
            rows[number, hats.start + left] = 1 - part
            rows[number, hats.start + left + 1] = part
            rows[:, hats] -= self.mean[j]
            rows[~present, hats] = 0.0
        for pair, products in zip(self.pairs, self.products, strict=True):
            rows[:, products] = np.multiply(*self.factors(rows, pair))
        return rows

    @property
    def has_curves(self) -> bool:
        """Whether a column has knots, and no entry is a product of columns."""
        return any(map(len, self.knots)) and not self.pairs

    def table_of_array(self, X: FloatArray) -> Table:
        return super().table_of_array(X) if self.has_curves else ArrayTable(self(X))

    def pieces_of(
        self, blocks: Callable[[], Iterable[FloatArray]], n_rows: int, memory: Memory
    ) -> Callable[[], PiecewiseRows] | None:
        if not self.has_curves:
            return None
        # Room for the pieces is asked for now, since a full disk must be refused before the charge.
        memory((n_rows, _PIECE_BYTES * len(self.knots)), np.uint8)
        return lambda: self.piecewise(blocks(), n_rows, memory)

    def breakpoints(self, j: int) -> FloatArray:
        """Where the entries of a column change their slope: at knots, and where lines are cut."""
        ends = self.center[j] + np.array([-self.cut, self.cut]) / self.factor[j]
        return np.unique(np.concatenate([self.knots[j], ends]))

    def piecewise(self, blocks: Iterable[FloatArray], n_rows: int, memory: Memory) -> PiecewiseRows:
        """New rows of blocks of rows: a curve for each column with knots, and lines for the others."""
        curves = [j for j, knots in enumerate(self.knots) if len(knots)]
        others = [j for j, knots in enumerate(self.knots) if not len(knots)]
        breakpoints = [self.breakpoints(j) for j in curves]
        # A curve has a vertex for each breakpoint, one for missing values, and one of zeros at its end.
        first = np.cumsum([0, *(len(points) + 2 for points in breakpoints)])
        vertices = sp.lil_array((int(first[-1]), self.width))
        for j, start, points in zip(curves, first.tolist(), breakpoints, strict=False):
            at = np.append(points, np.nan)[:, np.newaxis]
            vertices[start : start + len(at), self.entries(j)] = self.of_column(j)(at)
        of_lines = [entry for j in others for entry in self.entries(j)]
        # The loops are compiled for numbers of 16 bits.
        shape, kind = (n_rows, len(curves)), np.uint16 if vertices.shape[0] < 2**16 else np.uint32
        places, parts = memory(shape, kind), memory(shape, np.float32)
        lines = memory((n_rows, len(of_lines)), np.float32)
        start = 0
        for X in (block[part] for block in blocks for part in row_slices(len(block), _BLOCK_ROWS)):
            rows = slice(start, start + len(X))
            for place, (j, points) in enumerate(zip(curves, breakpoints, strict=True)):
                piece, parts[rows, place] = _pieces(X[:, j].astype(np.float64), points)
                places[rows, place] = first[place] + piece
            place = 0
            for j in others:
                entries = self.of_column(j)(X[:, j : j + 1])
                lines[rows, place : place + entries.shape[1]] = entries
                place += entries.shape[1]
            start = rows.stop
        return PiecewiseRows.of(
            places, parts, lines, first[:-1], sp.csr_array(vertices), np.array(of_lines, np.intp)
        )


def unchanged(n_features: int) -> Basis:
    """Columns as they are, but 0 where a value is missing."""
    return Basis.of([Column()] * n_features, cut=_HUGE_CUT)


@np.errstate(over="ignore")  # what overflows is beyond the outermost points
def _pieces(values: FloatArray, points: FloatArray) -> tuple[NDArray[np.uint8], FloatArray]:
    """The piece of each value between points and its place in [0, 1] there; if missing, one piece more."""
    missing = np.isnan(values)
    piece = np.zeros(len(values), np.uint8)
    for point in points[1:-1]:
        piece += values >= point
    part = np.clip((values - points[piece]) / np.diff(points)[piece], 0.0, 1.0)
    return np.where(missing, np.uint8(len(points)), piece), np.where(missing, 0.0, part)
