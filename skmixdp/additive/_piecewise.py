"""Rows of piecewise linear functions of columns, of which a piece and a place within it are kept.

A curve of a column has many entries, such as a line and hats, and is linear between its breakpoints. So its
entries are a mean of those at two breakpoints, the *vertices*. Products with points are sums of products of
vertices, and sums over rows are sums over vertices, which are few. The row map is applied by linearity, as to
sparse rows (:mod:`~skmixdp._rows.sparse`).
"""

import math
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from functools import cache, cached_property
from types import ModuleType
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp
from numpy.typing import DTypeLike, NDArray

from .._files.shards import Shard, array_shard
from .._files.streamed import StreamedTable
from .._files.temporary import temporary_memory
from .._linear.arrays import FloatArray, row_slices, shorten_rows
from .._linear.losses import classification_loss
from .._linear.products import TOLERANCE, checked_loops, exact_residuals
from .._linear.sums import SHORTEST_DIFFERENCE, SumError, dot_error
from .._rows.blockwise import ClipLoop, Selection, block_size
from .._rows.row_map import RowFunction, RowMap
from .._rows.source import Labels, PrivateRows, Request, Table
from .._rows.sparse import CenteredSparseRows, SparseRows, mapped_lengths
from .._rows.table import ArrayTable

#: Most outputs of a block.
_OUTPUTS = 2**17
#: Most rows of a block: each block has a fixed cost.
_MOST_ROWS = 2**13

#: Most numbers in curves of which SciPy's arrays are kept, with 24 bytes for each.
_MOST_KEPT = 2_500_000

#: Largest number of outputs for which compiled loops clip.
_FEW_OUTPUTS = 6

#: Rows that are measured at a time.
_MEASURED_ROWS = 4096

#: Values in piecewise linear rows from which it is worth importing numba.
_FEWEST_VALUES = 2_000_000
#: Most points whose products SciPy computes one after the other.
_FEW_POINTS = 4

#: A function that makes an array of a shape and dtype.
Memory = Callable[[tuple[int, int], DTypeLike], NDArray[Any]]


class PieceLoops(NamedTuple):
    """Compiled loops over :class:`PiecewiseRows`, or those of NumPy and SciPy.

    Arguments are those of ``piece_products``, ``add_piece_sums`` and ``clipped_piece_sums`` of
    :mod:`~skmixdp._linear.loops`, but that the last one takes the threshold itself. Where there are
    ``curves``, what these make of places and parts, and a number of vertices, takes the place of both.
    """

    products: Callable[..., FloatArray]
    add_sums: Callable[..., None]
    clipped_sums: Callable[..., FloatArray]
    curves: Callable[..., Any] | None = None


def piece_loops(n_rows: int, d: int, places: type[np.unsignedinteger[Any]]) -> PieceLoops:
    """The loops over piecewise linear rows of ``d`` columns, whose places have this type."""
    compiles = n_rows * d >= _FEWEST_VALUES and places is np.uint16
    return (compiled_pieces() if compiles else None) or scipy_pieces()


def scipy_pieces() -> PieceLoops:
    """Loops of NumPy and SciPy."""

    def curves(places: NDArray[Any], parts: FloatArray, n_vertices: int) -> Any:
        """CSR array (n_rows, n_vertices) that takes vertices to the sums of the curves of rows."""
        n_rows, d = places.shape
        ends, weights = np.empty((n_rows, 2, d), np.int32), np.empty((n_rows, 2, d))
        ends[:, 0], weights[:, 1] = places, parts
        np.add(ends[:, 0], 1, out=ends[:, 1])
        np.subtract(1, weights[:, 1], out=weights[:, 0])
        starts = 2 * d * np.arange(n_rows + 1, dtype=np.int32)
        return sp.csr_array((weights.ravel(), ends.ravel(), starts), shape=(n_rows, n_vertices))

    def products(
        at: "sp.csr_array[Any]", lines: FloatArray, of_vertices: FloatArray, of_lines: FloatArray
    ) -> FloatArray:
        Z: FloatArray = (of_lines @ lines.T.astype(np.float64)).T
        # SciPy is faster with one point after the other, if they are few.
        n_at_once = 1 if len(of_vertices) <= _FEW_POINTS else len(of_vertices)
        for part in row_slices(len(of_vertices), n_at_once):
            Z[:, part] += at @ of_vertices[part].T
        return Z

    def add_sums(at: "sp.csr_array[Any]", lines: FloatArray, C: FloatArray, *sums: FloatArray) -> None:
        sums[0][:] += (at.T @ C).T
        sums[1][:] += C.T @ lines.astype(np.float64)

    def clipped_sums(
        at: "sp.csr_array[Any]", lines: FloatArray, *of_rows: FloatArray, threshold: float
    ) -> FloatArray:
        *moves, factors, y, lengths = of_rows
        m = len(moves[0])
        k, weights = max(m - 1, 1), factors[:, np.newaxis]
        of_vertices, of_lines, offsets, constants = (each[:k] - each[k:] if m > 1 else each for each in moves)
        Z = np.zeros((len(lines), m), np.float32, order="F")
        with np.errstate(over="ignore"):
            Z[:, :k] = weights * (products(at, lines, of_vertices, of_lines) + offsets) + constants
        R = classification_loss(max(m, 2)).residuals(Z, y)
        if m > 1:
            np.negative(R[:, :k].sum(axis=1), out=R[:, k])
        R[shorten_rows(R, lengths, _within(threshold, m))] = 0
        C = weights * R[:, :k]
        sums = [(at.T @ C.copy()).T, C.T @ lines.astype(np.float64)]
        sums += [each.sum(axis=0, dtype=np.float64)[:, np.newaxis] for each in (C, R[:, :k])]
        total = np.hstack(sums)
        return total if m == 1 else np.vstack([total, -total.sum(axis=0)])

    return PieceLoops(products, add_sums, clipped_sums, curves)


def _within(threshold: float, m: int) -> float:
    """The threshold less the rounding of the last of m residuals, which is minus the sum of the others."""
    # Adding m - 1 residuals and rounding each of them once is off by m - 1 roundoffs of the sum of their
    # sizes, which is at most sqrt(m - 1) times their length.
    return threshold / (1 + dot_error(m * (m - 1), np.dtype(np.float32)))


@cache
def compiled_pieces() -> PieceLoops | None:
    """The compiled loops for piecewise linear rows, if they can be used."""
    return checked_loops(_piece_loops_of, pieces_are_right)


def _piece_loops_of(loops: ModuleType) -> PieceLoops:
    def clipped(*arguments: NDArray[Any], threshold: float) -> FloatArray:
        m = len(arguments[3])
        within = np.float32(_within(threshold, m) / (1 + dot_error(m + 5, np.dtype(np.float32))))
        return np.asarray(loops.clipped_piece_sums(*arguments, within))

    return PieceLoops(loops.piece_products, loops.add_piece_sums, clipped)


def pieces_are_right(loops: PieceLoops) -> bool:
    """Whether products and sums are right of rows of a line and two curves, of two vertices and three."""
    n = 1030
    places = np.stack([np.zeros(n), 2 + np.arange(n) % 2], axis=1).astype(np.uint16)
    parts = np.cos(np.arange(2 * n)).reshape(n, 2).astype(np.float32) ** 2
    lines = np.sin(np.arange(n)).reshape(n, 1).astype(np.float32)
    rows, right = np.zeros((n, 6)), parts.astype(np.float64)
    rows[:, 5:] = lines
    for j in range(2):
        at = places[:, j].astype(int)
        rows[np.arange(n), at], rows[np.arange(n), at + 1] = 1 - right[:, j], right[:, j]
    pieces = places, parts, lines

    def close(first: FloatArray, second: FloatArray) -> bool:
        return bool(np.allclose(first, second, rtol=0, atol=1e-9))

    for m in (1, 3, 8):
        points, C = (
            9 * np.sin(np.arange(6.0 * m)).reshape(m, 6),
            np.cos(np.arange(float(n * m))).reshape(n, m),
        )
        of_points = points[:, :5].copy(), points[:, 5:].copy()
        of_vertices, of_lines = np.zeros((m, 5)), np.zeros((m, 1))
        loops.add_sums(*pieces, C, of_vertices, of_lines)
        added = np.column_stack([of_vertices, of_lines])
        if not (close(loops.products(*pieces, *of_points), rows @ points.T) and close(added, C.T @ rows)):
            return False
        factors, y = 1 + np.cos(np.arange(n)) ** 2, (np.arange(n) % max(m, 2)).astype(np.int8)
        lengths, moves = factors * np.sqrt((rows**2).sum(axis=1)), np.sin(np.arange(2.0 * m)).reshape(2, m)
        R = exact_residuals(factors[:, np.newaxis] * (rows @ points.T + moves[0]) + moves[1], y)
        R *= (0.3 / np.maximum(np.sqrt((R**2).sum(axis=1)) * lengths, 0.3))[:, np.newaxis]
        exact = (factors[:, np.newaxis] * R).T @ np.column_stack([rows, np.ones(n), 1 / factors])
        of_rows = factors, y, lengths.astype(np.float32)
        sums = loops.clipped_sums(*pieces, *of_points, *moves, *of_rows, threshold=0.3)
        if not np.all(np.abs(sums - exact) <= 0.3 * TOLERANCE * n**0.5):
            return False
    return True


@dataclass(frozen=True, eq=False)
class PiecewiseRows:
    """Rows (n, width) of d curves and some columns that are lines, for :class:`SparseRows`.

    Curve j of row i is ``(1 - t) v_p + t v_(p+1)`` with ``p = places[i, j]``, ``t = parts[i, j]`` in [0, 1]
    and the rows ``v`` of ``vertices`` (n_vertices, width). Curves have no entries in common. The
    entries ``of_lines`` of row i are ``lines[i]``. Numbers of rows are float32. ``factors`` (n,) multiply
    rows, and ``lengths`` (n,) are the lengths that they have then. ``longest`` bounds the length of vertices,
    one of each curve together. Products and sums are those of ``loops``.
    """

    places: NDArray[np.unsignedinteger[Any]]
    parts: FloatArray
    lines: FloatArray
    vertices: "sp.csr_array[Any]"
    of_lines: NDArray[np.intp]
    factors: FloatArray
    lengths: FloatArray
    longest: float
    loops: PieceLoops

    #: NumPy leaves products with an array on the left to this class.
    __array_ufunc__ = None

    @classmethod
    def of(
        cls,
        places: NDArray[np.unsignedinteger[Any]],
        parts: FloatArray,
        lines: FloatArray,
        first: NDArray[np.int64],
        vertices: "sp.csr_array[Any]",
        of_lines: NDArray[np.intp],
    ) -> "PiecewiseRows":
        """The rows at factors 1; ``first`` (d,) are the first vertices of the curves."""
        n_rows = len(places)
        squares = np.append(vertices.multiply(vertices).sum(axis=1), 0.0)
        products = np.append(vertices[:-1].multiply(vertices[1:]).sum(axis=1), 0.0)
        lengths = np.empty(n_rows)
        for rows in row_slices(n_rows, _MEASURED_ROWS):
            right, at = parts[rows].astype(np.float64), places[rows].astype(np.intp)
            left, line = 1 - right, lines[rows].astype(np.float64)
            curves = left**2 * squares[at] + 2 * left * right * products[at] + right**2 * squares[at + 1]
            lengths[rows] = np.sqrt(curves.sum(axis=1) + np.vecdot(line, line))
        longest = float(np.sqrt(np.maximum.reduceat(squares, first).sum())) if len(first) else 0.0
        loops = piece_loops(n_rows, places.shape[1] + lines.shape[1], places.dtype.type)
        return cls(places, parts, lines, vertices, of_lines, np.ones(n_rows), lengths, longest, loops)

    @property
    def shape(self) -> tuple[int, int]:
        return len(self.places), self.vertices.shape[1]

    @cached_property
    def pieces(self) -> tuple[Any, ...]:
        """What the loops read of rows."""
        if self.loops.curves is None:
            return self.places, self.parts, self.lines
        return self.loops.curves(self.places, self.parts, self.vertices.shape[0]), self.lines

    def __getitem__(self, rows: Selection) -> "PiecewiseRows":
        places, parts, lines = self.places[rows], self.parts[rows], self.lines[rows]
        factors, lengths = self.factors[rows], self.lengths[rows]
        return replace(self, places=places, parts=parts, lines=lines, factors=factors, lengths=lengths)

    def astype(self, dtype: DTypeLike, copy: bool = False) -> "PiecewiseRows":
        """The rows themselves, which are multiplied in float64."""
        return self

    def at_unit_length(self) -> "PiecewiseRows":
        """The rows divided by their lengths; a row of zeros stays as it is."""
        divisors = np.where(self.lengths > 0, self.lengths, 1.0)
        return replace(self, factors=self.factors / divisors, lengths=self.lengths / divisors)

    def __matmul__(self, points: FloatArray) -> FloatArray:
        """Products (n, m) with points (width, m)."""
        Z = self.loops.products(*self.pieces, *self.of_points(points.T))
        Z *= self.factors[:, np.newaxis]
        return Z

    def of_points(self, points: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Products (m, n_vertices) of points (m, width) with vertices, and their entries for lines."""
        return (self.vertices @ points.T).T.copy(), points[:, self.of_lines].copy()

    def __rmatmul__(self, weights: FloatArray) -> FloatArray:
        """Sums (m, width) of rows times weights (m, n)."""
        C = np.ascontiguousarray((weights * self.factors).T)
        of_vertices = np.zeros((C.shape[1], self.vertices.shape[0]))
        of_lines = np.zeros((C.shape[1], len(self.of_lines)))
        self.loops.add_sums(*self.pieces, C, of_vertices, of_lines)
        return self.summed(of_vertices, of_lines)

    def summed(self, of_vertices: FloatArray, of_lines: FloatArray) -> FloatArray:
        """Sums (m, width) from those of weights for vertices (m, n_vertices) and lines (m, n_lines)."""
        total = np.asarray(of_vertices @ self.vertices)
        total[:, self.of_lines] += of_lines
        return total

    def toarray(self) -> FloatArray:
        """The rows as an array (n, width) in float64."""
        return np.asarray(self @ np.eye(self.shape[1]))


def centered_piecewise_rows(X: PiecewiseRows, row_map: RowMap) -> CenteredSparseRows:
    """Factors, lengths and bounds of rows after a map, as :func:`~skmixdp._rows.sparse.centered_sparse_rows`.

    ``|x - m|^2`` is computed as ``|x|^2 - 2 m^T x + |m|^2``. A row is a mean of vertices, so that ``|x|`` in
    ``|x| + |m|`` stands for its length and that of its vertices. Each of the three is off by at most
    ``dot_error(width + 16)`` of the square of that, four times of which is added.
    """
    mean = np.zeros(X.shape[1]) if row_map.mean is None else row_map.mean
    size = float(np.linalg.norm(mean))
    sizes = X.lengths + X.factors * X.longest + size
    squares = np.maximum(X.lengths**2 - 2 * (X @ mean[:, np.newaxis])[:, 0] + size**2, 0)
    squares += 4 * dot_error(X.shape[1] + 16, np.dtype(np.float64)) * sizes**2
    largest = X.lengths + float(np.abs(mean).max())

    def along(directions: FloatArray) -> FloatArray:
        return X @ directions - mean @ directions

    return mapped_lengths(row_map, squares, sizes, np.ones(len(squares)), largest, along)


class MappedPiecewiseRows(SparseRows):
    """Private piecewise linear rows, mapped by linearity like other sparse rows.

    *Guarantee*: that of :class:`SparseRows`. A row that is much shorter than its vertices counts as one near
    the mean, see :func:`centered_piecewise_rows`, so that the same bounds the rounding of sums for vertices.
    """

    def __init__(self, X: PiecewiseRows, y: Labels, row_map: RowMap, dtype: np.dtype[Any]) -> None:
        if row_map.unit_first:
            X, row_map = X.at_unit_length(), replace(row_map, unit_first=False)
        super().__init__(X, y, row_map, dtype, centered_piecewise_rows)
        self._kept: dict[tuple[int, int], PiecewiseRows] = {}
        # Sums of all rows are taken from vertices to entries.
        terms = int(np.diff(X.vertices.tocsc().indptr).max(initial=0))
        taken = dot_error(terms + 8, np.dtype(np.float64)) / SHORTEST_DIFFERENCE
        later = *self.arithmetic.later, taken
        self.arithmetic = replace(self.arithmetic, block_rows=block_size(_MOST_ROWS), later=later)

    def wanted_rows(self, m: int) -> int:
        return min(_OUTPUTS // max(m, 1), _MOST_ROWS)

    def sum_error(self, request: Request) -> SumError:
        # Loops that clip take the sum of the last class from those of the others, with their rounding.
        longer = 1.0 if request.query.clip_threshold is None else math.sqrt(len(request.query.points))
        arithmetic = replace(self.arithmetic, stretch=longer * self.arithmetic.stretch)
        return arithmetic.error(request, self.n_rows)

    def clip_loop(self, request: Request) -> ClipLoop | None:
        X, y, query = self._X, self._all.y, request.query
        suits = y.dtype == np.int8 and self._dtype == np.float32 and len(query.points) <= _FEW_OUTPUTS
        if not suits or request.batch.taken is not None:
            return None
        (whitening, mean, value) = self.whitening, self._map.mean, self._map.intercept_value
        points = query.points.astype(np.float64)
        points = points if whitening is None else whitening(points)
        bare = points[:, : X.shape[1]]
        offsets = np.zeros(len(bare)) if mean is None else -bare @ mean
        constants = np.zeros(len(bare)) if value is None else value * points[:, -1]
        of_points = *X.of_points(bare), offsets, constants

        keeps = X.loops.curves is None or X.places.size <= _MOST_KEPT

        def term(rows: slice, lengths: FloatArray) -> FloatArray:
            of_rows, place = (self._total_factors[rows], y[rows], lengths[rows]), (rows.start, rows.stop)
            part = self._kept.get(place) or X[rows]
            if keeps:
                self._kept[place] = part
            sums: FloatArray = X.loops.clipped_sums(
                *part.pieces, *of_points, *of_rows, threshold=query.clip_threshold
            )
            return sums

        def matrix(sums: FloatArray) -> FloatArray:
            n_vertices = X.vertices.shape[0]
            total = X.summed(sums[:, :n_vertices], sums[:, n_vertices:-2])
            if mean is not None:
                total -= np.outer(sums[:, -2], mean)
            return total if value is None else np.column_stack([total, value * sums[:, -1]])

        return ClipLoop(term, self._all.single_norms, matrix)

    @cached_property
    def _total_factors(self) -> FloatArray:
        """Factors (n,) of rows from their values to what the head sees."""
        return np.asarray(self._X.factors * self._factors)


class ColumnFunction(RowFunction):
    """A function of rows whose results are held as pieces of curves, or computed in every pass."""

    def table_of(self, table: Table) -> Table:
        n_rows = table.shape[0]
        if isinstance(table, ArrayTable):
            return self.table_of_array(table.rows)

        def blocks() -> Iterator[FloatArray]:
            for block in table.blocks():
                rows: Any = block
                yield rows.toarray() if sp.issparse(block) else rows

        shard = Shard("X", "X", n_rows, self.width, np.dtype(np.float64), lambda: map(self, blocks()))
        return TransformedTable(shard, self.pieces_of(blocks, n_rows, piece_files))

    def table_of_array(self, X: FloatArray) -> Table:
        """The table of the results for rows (n, d) in memory."""
        computed: Any = ComputedRows(X, self)
        shard = array_shard("X", (computed.shape, computed.dtype), lambda: computed)
        return TransformedTable(shard, self.pieces_of(lambda: [X], len(X), np.empty))

    def pieces_of(
        self, blocks: Callable[[], Iterable[FloatArray]], n_rows: int, memory: Memory
    ) -> Callable[[], PiecewiseRows] | None:
        """What makes the results for blocks of rows as pieces of curves, if they are that."""
        return None


class ComputedRows:
    """What a function makes of rows (n, n_features), like an array of which rows are computed when read."""

    def __init__(self, X: FloatArray, function: RowFunction) -> None:
        self._X, self._function = X, function
        self.shape = len(X), function.width
        self.dtype = np.dtype(np.float64)

    def __len__(self) -> int:
        return len(self._X)

    def __getitem__(self, rows: Selection) -> FloatArray:
        return self._function(self._X[rows])


class TransformedTable(StreamedTable):
    """What a function makes of rows: as pieces of curves, or computed in every pass."""

    def __init__(self, shard: Shard, pieces: Callable[[], PiecewiseRows] | None) -> None:
        super().__init__([shard])
        self._pieces = pieces
        self.is_shared = pieces is not None

    @cached_property
    def _rows(self) -> PiecewiseRows | None:
        return None if self._pieces is None else self._pieces()

    def private_rows(self, y: Labels, row_map: RowMap, dtype: np.dtype[Any], *, exact: bool) -> PrivateRows:
        if exact or row_map.columns is not None or self._rows is None:
            return super().private_rows(y, row_map, dtype, exact=exact)
        return MappedPiecewiseRows(self._rows, y, row_map, dtype)


def piece_files(shape: tuple[int, int], dtype: DTypeLike) -> NDArray[Any]:
    """Memory for pieces of rows that are not in memory themselves, in a temporary file."""
    return temporary_memory(*shape, dtype, order="C") if shape[1] else np.empty(shape, dtype)
