"""Private rows in one array."""

import math
from collections.abc import Sequence
from functools import cached_property
from typing import Any
from weakref import WeakKeyDictionary

import numpy as np

from .._linear import (
    BLOCK_ROWS,
    EXACT,
    PANEL_ROWS,
    Cascade,
    ClippedSums,
    FloatArray,
    SumError,
    clipped_sums,
    is_narrow,
    largest_entries,
    n_parts,
    narrow_block,
    on_grid,
    read_ahead,
    row_memory,
    row_norms,
)
from .answering import (
    Products,
    Selection,
    Visit,
    answer,
    block_size,
    even_blocks,
    in_parts,
    many_rows,
    n_lanes,
    selections,
    stated_error,
    visit_of,
)
from .row_map import RowMap
from .source import Block, Labels, PrivateRows, Request, Sums, upper_bounds

#: Longer rows would bring products so near the ends of float32's range that rounding no
#: longer is a fixed fraction of them.
LONGEST_ROW = 1e30


#: With at least so many points, blocks are as large as :func:`many_rows` says, or this part of those with
#: fewer points: there are more outputs, which are in cache as well.
_MANY_POINTS, _SMALLER = 32, 2

#: There, blocks for several requests are larger than those for one by this factor, at most.
_LARGER = 4

#: Size of the largest blocks that are read ahead of their products with fewer points.
_AHEAD_BYTES = 2**23

#: Size of the blocks that are mapped in every pass.
_PASSING_BYTES = 2**21

#: Products of more bytes than this are not kept from one step to the next.
_KEPT_BYTES = 2**28


class InMemoryRows(PrivateRows):
    """Private rows in one array.

    Parameters
    ----------
    X : array of shape (n_rows, d_in)
        Rows after the :class:`~skmixdp._rows.RowMap`; their dtype is that of the products.
    y : array of shape (n_rows,)
        Class indices.
    exact : bool
        Keep the rows in float64, rounded to a grid so coarse that sums over all of them can
        be computed without rounding.
    block_bytes : int
        Size of the blocks that are visited in turn: so large that the fixed cost of a block is small next
        to its products, so small that some caches still hold a block when it is needed again. A
        block has at least 512 rows: to add up (k, d_in) sums costs little compared with their products.
    norms : array of shape (n_rows,) or None
        L2 norms of the rows, where they are known; with ``exact`` they are computed anew.
    appended : float or None
        A constant entry that each row has after those in ``X``. The norms that are passed include it.

    Raises
    ------
    ValueError
        If a row is so long that its products could overflow.
    """

    def __init__(
        self,
        X: FloatArray,
        y: Labels,
        *,
        exact: bool = False,
        block_bytes: int = 2**22,
        norms: FloatArray | None = None,
        appended: float | None = None,
    ) -> None:
        self.grid = grid_of_rows(len(X)) if exact else None
        if self.grid is not None:
            X, norms = on_grid(X, self.grid), None
        self._narrow = is_narrow(*X.shape)
        self._X = np.asfortranarray(X) if self._narrow else X
        self._y = y
        self._appended = appended
        self._norms = row_norms(X) if norms is None else norms
        check_lengths(self._norms, X.dtype)
        self.n_rows = len(X)
        # A run's products go when the run does.
        self._kept: WeakKeyDictionary[object, FixedProducts] = WeakKeyDictionary()
        self._block_rows = block_size(block_bytes // max(X.shape[1] * X.itemsize, 1))

    @classmethod
    def mapped(
        cls, X: FloatArray, y: Labels, row_map: RowMap, dtype: np.dtype[Any], *, out: FloatArray | None = None
    ) -> "InMemoryRows":
        """Rows after a map of features (n_rows, n_features); wide rows are written to ``out``, if given."""
        if is_narrow(*X.shape):
            narrow, norms = row_map.measured(X, dtype)
            return cls(narrow, y, norms=norms)
        rows = row_memory(len(X), X.shape[1], dtype) if out is None else out
        norms, value = np.empty(len(X)), row_map.intercept_value
        row_map.write(X, rows, norms)
        return cls(rows, y, norms=norms if value is None else np.hypot(norms, value), appended=value)

    def remapped(self, row_map: RowMap) -> PrivateRows | None:
        if self.grid is not None or self._appended is not None:
            return None
        return InMemoryRows.mapped(self._X, self._y, row_map, self._X.dtype, out=self._X)

    def private_sums(self, requests: Sequence[Request]) -> list[Sums]:
        gathered = n_lanes((request.rate for request in requests), self.n_rows) > 0
        loops = [] if gathered else [self._loops(request) for request in requests]
        if loops and None not in loops:
            return self._clipped_sums(requests, loops)
        products = [self._products(request) for request in requests]
        m = sum(len(computed) for computed, _ in products)
        block_rows = self._block_of(m, len(requests))
        bytes_of_block = block_rows * self._X.shape[1] * self._X.itemsize
        ahead = not self._narrow and m < _MANY_POINTS and bytes_of_block <= _AHEAD_BYTES

        def visited(blocks: Sequence[Selection]) -> list[Sums]:
            buffer = np.empty((min(block_rows, self.n_rows), m), self._X.dtype)
            visits = (self._visit(rows, buffer, ahead) for rows in blocks)
            return answer(requests, visits, self._X.dtype, products=products)

        return in_parts(requests, list(selections(requests, self.n_rows, block_rows)), visited)

    def _block_of(self, m: int, n_requests: int) -> int:
        """Rows in a block, all of whose requests together have ``m`` points."""
        if self._narrow:
            rows = narrow_block(m)
        elif m < _MANY_POINTS:
            rows = min(narrow_block(m), self._block_rows)
        else:
            # Each request has a fixed cost in every block: several of them are asked for larger ones.
            smaller = self._block_rows // _SMALLER * min(n_requests, _LARGER)
            rows = max(smaller, many_rows(m, self._X.shape[1]))
        return block_size(even_blocks(self.n_rows, n_parts(), rows))

    def _loops(self, request: Request) -> ClippedSums | None:
        """How an accelerator adds up the clipped residuals of a request; None where it does not."""
        plain = request.clipped is not None and request.resolution is None and request.observe is None
        # Of fewer rows, NumPy reads only those that take part.
        few = request.members is not None and 2 * np.count_nonzero(request.members) < self.n_rows
        if not plain or request.panel_rows != PANEL_ROWS or self._y.dtype != np.int8 or few:
            return None
        return clipped_sums(self.n_rows, self._X.shape[1], len(request.points), self._X.dtype)

    def _clipped_sums(self, requests: Sequence[Request], loops: Sequence[Any]) -> list[Sums]:
        """The sums of requests by their loops."""
        d_in, value = self._X.shape[1], self._appended or 0.0
        # Rows that take no part are as if they were of infinite length.
        lengths = [
            self._single_norms if mask is None else np.where(mask, self._single_norms, np.float32(np.inf))
            for mask in (request.taking_part for request in requests)
        ]

        def visited(blocks: Sequence[slice]) -> list[Sums]:
            totals = [Cascade() for _ in requests]
            for rows in blocks:
                for request, add, own, total in zip(requests, loops, lengths, totals, strict=True):
                    W = np.asarray(request.points)
                    offsets = value * W[:, d_in:].sum(axis=1)
                    given = W[:, :d_in], offsets, request.clipped, rows
                    matrix, column = add(self._X, self._y, own, *given)
                    total.add(matrix if self._appended is None else np.c_[matrix, value * column])
            return [(total.value, None) for total in totals]

        size = block_size(even_blocks(self.n_rows, n_parts(), BLOCK_ROWS))
        blocks = [slice(i, min(i + size, self.n_rows)) for i in range(0, self.n_rows, size)]
        return in_parts(requests, blocks, visited)

    def _products(self, request: Request) -> Products:
        """The points to be multiplied for a request, and what completes their products."""
        size = len(request.points) * self.n_rows * self._X.itemsize
        if size > _KEPT_BYTES or request.n_fixed == 0 or not request.takes_all:
            return request.points, None
        kept = self._kept.get(request.run)
        if kept is None:
            kept = self._kept[request.run] = FixedProducts(self.n_rows, self._X.dtype)
        return kept.begin(request.points, request.n_fixed), kept.complete

    def _visit(self, rows: Selection, buffer: FloatArray, ahead: bool) -> Visit:
        """A block of rows; its products are in the buffer, until the next one's are."""
        X, value = self._X[rows], abs(self._appended or 0.0)
        if ahead and isinstance(rows, slice):  # others were copied just now
            read_ahead(X)
        block = Block(
            X,
            self._y[rows],
            self._norms[rows],
            max_abs=lambda: np.maximum(largest_entries(X), value),
            single_norms=lambda: self._single_norms[rows],
        )
        return visit_of(rows, X, block, buffer[: len(X)], appended=self._appended)

    @cached_property
    def _single_norms(self) -> FloatArray:
        return upper_bounds(self._norms)

    def sum_error(self, request: Request) -> SumError:
        if request.resolution is not None:
            return EXACT
        return stated_error(request, self.n_rows, self._X.dtype)


class PassingRows(PrivateRows):
    """Private rows in memory that are mapped anew in every pass: for a few passes, without a copy of them.

    Parameters
    ----------
    X : array of shape (n_rows, n_features)
        Features.
    y : array of shape (n_rows,)
        Class indices.
    row_map : RowMap
        A map that scales rows to unit length and appends no intercept.
    dtype : dtype
        Of the products.
    """

    def __init__(self, X: FloatArray, y: Labels, row_map: RowMap, dtype: np.dtype[Any]) -> None:
        self._X = X
        self._y = y
        self._map = row_map
        self._dtype = np.dtype(dtype)
        self.n_rows = len(X)

    def private_sums(self, requests: Sequence[Request]) -> list[Sums]:
        m = sum(len(request.points) for request in requests)
        size = block_size(_PASSING_BYTES // (self._X.shape[1] * self._dtype.itemsize))

        def visited(blocks: Sequence[Selection]) -> list[Sums]:
            held = row_memory(min(size, max(self.n_rows, 1)), self._X.shape[1], self._dtype)
            buffer = np.empty((len(held), m), self._dtype)
            return answer(requests, (self._visit(rows, held, buffer) for rows in blocks), self._dtype)

        return in_parts(requests, list(selections(requests, self.n_rows, size)), visited)

    def _visit(self, rows: Selection, held: FloatArray, buffer: FloatArray) -> Visit:
        """A block of rows; it and its products are in buffers, until the next one's are."""
        given = self._X[rows]
        X, norms = held[: len(given)], np.empty(len(given))
        self._map.write(given, X, norms)
        return visit_of(rows, X, Block(X, self._y[rows], norms), buffer[: len(given)], appended=None)

    def sum_error(self, request: Request) -> SumError:
        return stated_error(request, self.n_rows, self._dtype)


class FixedProducts:
    """Products of one run's points that are the same in all of its requests.

    They are private state, and stay with the rows.

    Parameters
    ----------
    n_rows : int
        Number of rows.
    dtype : dtype
        That of the products.
    """

    def __init__(self, n_rows: int, dtype: np.dtype[Any]) -> None:
        self._n_rows = n_rows
        self._dtype = dtype
        self._points: FloatArray | None = None

    def begin(self, points: FloatArray, n_fixed: int) -> FloatArray:
        """Start a pass for points (m, d_in), of which the last ``n_fixed`` are fixed.

        Returns
        -------
        array of shape (m', d_in)
            The points whose products the pass must compute.
        """
        fixed = points[len(points) - n_fixed :]
        if self._points is not None and np.array_equal(self._points, fixed):
            return points[: len(points) - n_fixed]
        self._points = fixed.copy()
        self._Z = np.empty((self._n_rows, len(points)), self._dtype)
        return points

    def complete(self, rows: Selection, computed: FloatArray) -> FloatArray:
        """Products of a block of rows with all points, from those that the pass computed."""
        self._Z[rows, : computed.shape[1]] = computed
        return self._Z[rows]


def check_lengths(norms: FloatArray, dtype: np.dtype[Any], name: str = "X") -> None:
    """Refuse rows so long, or of a length so unknown, that products could overflow."""
    if not np.all(norms <= LONGEST_ROW):
        raise ValueError(
            f"{name} holds a row that is too large for {dtype} products; pass row_norm='unit' or scale the "
            "features."
        )


def sum_resolution(n_rows: int, row_grid: float, bound: float) -> float:
    """Resolution of weighted residuals at which their sums against the rows are exact.

    One row contributes at most ``bound`` to any entry of a sum, so partial sums are multiples
    of ``row_grid * resolution`` no larger than ``n_rows * bound``; float64 holds them, and
    the products, exactly while there are fewer than 2**53 such multiples.
    """
    spare = 52 - math.ceil(math.log2(n_rows * bound)) + math.log2(row_grid)
    return 2.0 ** -math.floor(spare)


def grid_of_rows(n_rows: int) -> float:
    """Half of the bits that sums over the rows leave, the other half being the residuals'."""
    return 2.0 ** -((52 - math.ceil(math.log2(max(n_rows, 2)))) // 2)
