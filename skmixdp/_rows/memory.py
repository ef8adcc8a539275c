"""Private rows in one array."""

import math
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any
from weakref import WeakKeyDictionary

import numpy as np

from .._linear import (
    BLOCK_ROWS,
    EXACT,
    PANEL_ROWS,
    Cascade,
    FloatArray,
    SumError,
    add_products,
    clipped_sums,
    is_narrow,
    largest_entries,
    n_parts,
    on_grid,
    read_ahead,
    row_memory,
    row_norms,
    row_products,
)
from .blockwise import (
    Products,
    Selection,
    Visit,
    answer,
    block_size,
    in_parts,
    n_lanes,
    selections,
    stated_error,
)
from .row_map import RowMap
from .source import Block, Labels, PrivateRows, Request, Sums

#: Products of longer rows may lie near the ends of float32's range, where rounding is no fixed fraction.
LONGEST_ROW = 1e30


#: Rows and outputs of a block with few points or narrow rows, at most. The work between products has a fixed
#: cost for each block.
_NARROW_ROWS, _NARROW_OUTPUTS = 64512, 2**19

#: Size of the largest blocks that are read ahead of their products, and more than the number of points.
_AHEAD_BYTES, _FEW_POINTS = 2**23, 32

#: Size of the blocks that are mapped in every pass.
_PASSING_BYTES = 2**21

#: Largest cache, in bytes, of products that later steps use again.
_KEPT_BYTES = 2**28

#: Makes an array for rows, as :func:`~skmixdp._linear.row_memory` does.
RowMemory = Callable[[int, int, Any], FloatArray]


class InMemoryRows(PrivateRows):
    """Private rows in one array (n_rows, d_in), after the :class:`~skmixdp._rows.RowMap`.

    Their dtype is that of the products; ``y`` (n_rows,) are class indices or targets. With ``exact``, rows
    are kept in float64, rounded to a grid so coarse that sums over all of them are computed without rounding.
    ``norms`` (n_rows,) are the L2 norms if they are known. ``appended`` is a constant entry that each row has
    after those in ``X``, included in the norms. Rows so long that products could overflow are a ValueError.

    Blocks of ``block_bytes`` are so large that their fixed cost is small, and so small that some caches still
    hold a block when it is needed again. A block has at least 512 rows: adding up (k, d_in) sums then costs
    little compared with their products.
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
        self._appended = appended
        self._all = Block(self._X, y, row_norms(X) if norms is None else norms)
        check_lengths(self._all.norms, X.dtype)
        self.n_rows = len(X)
        # The products of a run are freed with the run.
        self._kept: WeakKeyDictionary[object, FixedProducts] = WeakKeyDictionary()
        self._block_rows = block_size(block_bytes // max(X.shape[1] * X.itemsize, 1))

    @classmethod
    def mapped(
        cls,
        X: FloatArray,
        y: Labels,
        row_map: RowMap,
        dtype: np.dtype[Any],
        *,
        memory: RowMemory = row_memory,
    ) -> "InMemoryRows":
        """Mapped features (n_rows, n_features), in new ``memory``."""
        norms, value = np.empty(len(X)), row_map.intercept_value
        if is_narrow(*X.shape):
            narrow = memory(len(X), row_map.width(X.shape[1]), dtype)
            row_map.write(X, narrow, norms)
            return cls(narrow, y, norms=norms)
        rows = memory(len(X), X.shape[1], dtype)
        row_map.write(X, rows, norms)
        return cls(rows, y, norms=norms if value is None else np.hypot(norms, value), appended=value)

    def private_sums(self, requests: Sequence[Request]) -> list[Sums]:
        if (sums := self._compiled_sums(requests)) is not None:
            return sums
        products: list[Products] = []
        for request in requests:
            kept_bytes = len(request.query.points) * self.n_rows * self._X.itemsize
            repeats = request.query.n_fixed > 0 and request.run is not None
            if not repeats or request.batch.mask is not None or kept_bytes > _KEPT_BYTES:
                products.append((request.query.points, None))
                continue
            kept = self._kept.setdefault(request.run, FixedProducts(self.n_rows, self._X.dtype))
            products.append((kept.begin(request.query.points, request.query.n_fixed), kept.complete))
        m = sum(len(computed) for computed, _ in products)
        block_rows = min(_NARROW_OUTPUTS // max(m, 1), _NARROW_ROWS)
        if not self._narrow:
            block_rows = min(block_rows, self._block_rows)
        block_rows = block_size(block_rows, self.n_rows, n_parts.get())
        bytes_of_block = block_rows * self._X.shape[1] * self._X.itemsize
        ahead = not self._narrow and m < _FEW_POINTS and bytes_of_block <= _AHEAD_BYTES

        def visited(blocks: Sequence[Selection]) -> list[Sums]:
            buffer = np.empty((min(block_rows, self.n_rows), m), self._X.dtype)
            visits = (self._visit(rows, buffer, ahead) for rows in blocks)
            return answer(requests, visits, self._X.dtype, products=products)

        return in_parts(requests, list(selections(requests, self.n_rows, block_rows)), visited)

    def _compiled_sums(self, requests: Sequence[Request]) -> list[Sums] | None:
        """The sums of requests of clipped residuals by compiled loops; None if these do not apply to all."""
        X, y = self._X, self._all.y
        loops_fit = self._narrow and self._appended is None and y.dtype == np.int8
        if not loops_fit or n_lanes([request.batch.rate for request in requests], self.n_rows) > 0:
            return None
        loops: list[Any] = []
        for request in requests:
            plain = request.query.clip_threshold is not None and request.query.panel_rows == PANEL_ROWS
            # If fewer than half of the rows take part, NumPy reads only these.
            members = request.batch.members
            few = members is not None and 2 * np.count_nonzero(members) < self.n_rows
            if not plain or request.resolution is not None or request.observe is not None or few:
                return None
            loop = clipped_sums(self.n_rows, X.shape[1], len(request.query.points), X.dtype)
            if loop is None:
                return None
            loops.append(loop)
        # Rows that take no part get infinite lengths, with which they contribute nothing.
        norms = self._all.single_norms
        lengths = [
            norms if mask is None else np.where(mask, norms, np.float32(np.inf))
            for mask in (request.batch.mask for request in requests)
        ]

        def visited(blocks: Sequence[slice]) -> list[Sums]:
            totals = [Cascade() for _ in requests]
            for rows in blocks:
                for request, add, of_request, total in zip(requests, loops, lengths, totals, strict=True):
                    total.add(add(X, y, of_request, request.query.points, request.query.clip_threshold, rows))
            return [(total.value, None) for total in totals]

        size = block_size(BLOCK_ROWS, self.n_rows, n_parts.get())
        blocks = [slice(i, min(i + size, self.n_rows)) for i in range(0, self.n_rows, size)]
        return in_parts(requests, blocks, visited)

    def _visit(self, rows: Selection, buffer: FloatArray, ahead: bool) -> Visit:
        """A block of rows, whose products are in the buffer until the next block."""
        X, value = self._X[rows], abs(self._appended or 0.0)
        if ahead and isinstance(rows, slice):  # others were copied just now
            read_ahead(X)
        block = Block(
            X,
            self._all.y[rows],
            self._all.norms[rows],
            compute_max_abs=lambda: np.maximum(largest_entries(X), value),
        )
        times = partial(row_products, X, out=buffer[: len(X)], appended=self._appended)
        return Visit(rows, block, times, partial(add_products, X, appended=self._appended))

    def sum_error(self, request: Request) -> SumError:
        if request.resolution is not None:
            return EXACT
        return stated_error(request, self.n_rows, self._X.dtype)


class RemappedRows(PrivateRows):
    """Private rows in memory that are mapped in every pass: for a few passes, this saves a copy.

    Rows are features (n_rows, n_features), and the map scales them to unit length and appends no intercept.
    """

    def __init__(self, X: FloatArray, y: Labels, row_map: RowMap, dtype: np.dtype[Any]) -> None:
        self._X = X
        self._y = y
        self._map = row_map
        self._dtype = np.dtype(dtype)
        self.n_rows = len(X)

    def private_sums(self, requests: Sequence[Request]) -> list[Sums]:
        m = sum(len(request.query.points) for request in requests)
        size = block_size(_PASSING_BYTES // (self._X.shape[1] * self._dtype.itemsize))

        def visited(blocks: Sequence[Selection]) -> list[Sums]:
            held = row_memory(min(size, max(self.n_rows, 1)), self._X.shape[1], self._dtype)
            buffer = np.empty((len(held), m), self._dtype)
            return answer(requests, (self._visit(rows, held, buffer) for rows in blocks), self._dtype)

        return in_parts(requests, list(selections(requests, self.n_rows, size)), visited)

    def _visit(self, rows: Selection, held: FloatArray, buffer: FloatArray) -> Visit:
        """A block of rows, which is in a buffer with its products until the next block."""
        features = self._X[rows]
        X, norms = held[: len(features)], np.empty(len(features))
        self._map.write(features, X, norms)
        times = partial(row_products, X, out=buffer[: len(features)])
        return Visit(rows, Block(X, self._y[rows], norms), times, partial(add_products, X))

    def sum_error(self, request: Request) -> SumError:
        return stated_error(request, self.n_rows, self._dtype)


class FixedProducts:
    """Cache of the products of points that are the same in all requests of a run.

    The cache is private state, and stays with the rows.
    """

    def __init__(self, n_rows: int, dtype: np.dtype[Any]) -> None:
        self._n_rows = n_rows
        self._dtype = dtype
        self._points: FloatArray | None = None

    def begin(self, points: FloatArray, n_fixed: int) -> FloatArray:
        """Start a pass for points (m, d_in), and return those whose products the pass must compute.

        The last ``n_fixed`` points are the same in all requests.
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
    """Refuse rows so long that products could overflow, and lengths that are NaN."""
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
    """Grid of the rows for exact sums: it has half of the free bits, and the residuals have the others."""
    return 2.0 ** -((52 - math.ceil(math.log2(max(n_rows, 2)))) // 2)
