"""The two products with rows, the memory layout of rows, and compiled loops that do both in one pass.

Rows are multiplied with a few points, and weighted residuals with rows. The second product is added up in
panels by a :class:`~skmixdp._linear.sums.Cascade`.

With few outputs, a pass of NumPy takes about as long for copying rows and for the work between its two
products as for the products. The compiled loops, where numba is installed, read the rows once. What they add
up obeys the same bounds as what NumPy adds up, and differs by rounding.
"""

from collections.abc import Callable
from functools import cache
from importlib.util import find_spec
from itertools import pairwise
from types import ModuleType
from typing import TypeVar

import numpy as np
from numpy.lib.stride_tricks import as_strided
from numpy.typing import DTypeLike, NDArray

from .arrays import FloatArray, row_slices
from .sums import BLOCK_ROWS, PANEL_ROWS, Cascade, dot_error

#: Largest product, in rows times entries times points, for which OpenBLAS uses its kernels for small
#: matrices, and which stays in cache.
_NARROW_WORK = 10**6

#: Minimum rows of such a product if they are held row by row: fewer are slower on processors with AVX2.
_FEWEST_ROWS = 192

#: Sums of at most this number of entries are computed for all panels in one call.
_FEW_ENTRIES = 2**13

#: Minimum rows of such a panel; with fewer, the sums of panels would be as large as the rows.
_FEWEST_SUMMED = 96

#: Rows of at most this number of entries are held column by column. Entries of many rows are then next to
#: each other, so that products need not copy short rows. The compiled loops need this layout too.
NARROW = 64

#: Alignment of wide rows in bytes (the longest vectors of a processor).
_ALIGNMENT = 64
#: Fewest entries of wide rows.
_PADDED = 128

#: Bytes of the integers as which :func:`read_ahead` reads rows.
_WORD = 8

#: Number of rows from which importing numba is worth its time.
_MANY_ROWS = 1_000_000
#: Work of a pass from which importing numba is worth its time.
_MUCH_WORK = 200_000_000

#: The same for the work of a pass over persons, with one row of each.
_FEWEST_OF_PERSONS = 2_000_000

#: Multiplications that take as long as the work on one output of a row.
_WORK_ON_OUTPUT = 48

#: Most features for the compiled loops; with more, BLAS is faster.
_MOST_FEATURES = 128
#: Most outputs for the compiled loops; with more, BLAS is faster.
_MOST_OUTPUTS = 16

#: Tolerance for the check of the compiled sums, in units of the longest term.
TOLERANCE = 1e-4

_Loops = TypeVar("_Loops")

#: ``(X, y, lengths, points, threshold, rows)``: ``sum_i c_i x_i^T`` (m, d_in) in float64 over some of the
#: rows ``X`` (n_rows, d_in), held column by column. The residuals ``c_i`` of cross-entropy are clipped such
#: that no term is longer than the threshold. Class indices ``y`` are int8, and ``lengths`` are upper bounds
#: in float32 on the lengths of the rows. Rows of infinite length contribute nothing. A lone point is the head
#: of class 1 of two. Terms are added as :func:`~skmixdp._linear.sums.sum_error` says of one block.
ClippedSums = Callable[[FloatArray, NDArray[np.int8], FloatArray, FloatArray, float, slice], FloatArray]


def is_narrow(n_rows: int, d_in: int) -> bool:
    """Whether rows (n_rows, d_in) are held column by column."""
    if d_in <= NARROW:
        return True
    # The compiled loops need this layout, and may be used with some number of outputs.
    many = d_in <= _MOST_FEATURES and work_of_pass(n_rows, d_in, _MOST_OUTPUTS) >= _MUCH_WORK
    return many and _numba_is_installed()


@cache
def _numba_is_installed() -> bool:
    return find_spec("numba") is not None


def row_memory(n_rows: int, d_in: int, dtype: DTypeLike) -> FloatArray:
    """A new array (n_rows, d_in) for rows, in the memory order that is fastest to multiply."""
    if is_narrow(n_rows, d_in):
        return np.empty((n_rows, d_in), dtype, order="F")
    # Wide rows start where processors load vectors fastest: passes over rows of 512 entries with ten outputs
    # then take 0.85 of the time.
    size = np.dtype(dtype).itemsize
    stride = -(-d_in * size // _ALIGNMENT) * _ALIGNMENT if d_in >= _PADDED else d_in * size
    memory = np.empty(n_rows * stride + _ALIGNMENT, np.uint8)
    first = -memory.ctypes.data % _ALIGNMENT
    rows = memory[first : first + n_rows * stride].view(dtype).reshape(n_rows, stride // size)
    return rows[:, :d_in]


def read_ahead(X: FloatArray) -> None:
    """Read rows (n_rows, d_in) in the order of memory, so that they are in the cache.

    A product reads several rows at a time, for which processors fetch less in advance. Both products of 512
    features with few points then take 0.9 of the time. Whole numbers are read, so that none raises a warning.
    """
    (stride, step), size = X.strides, X.itemsize
    length = X.shape[1] * size
    if len(X) < 2 or step != size or not 0 < length <= stride < 2 * length or stride % size:
        return
    # From the first row to the start of the last, with the padding between rows.
    n_bytes = (len(X) - 1) * stride // _WORD * _WORD
    entries = as_strided(X, (n_bytes // size,), (size,), writeable=False)
    np.bitwise_xor.reduce(entries.view(np.int64))


def row_products(
    X: FloatArray, points: FloatArray, out: FloatArray, *, appended: float | None = None
) -> FloatArray:
    """``X points^T``, shape (rows, m), of rows (rows, d_in) and points (m, d_in).

    They are in the memory of ``out`` (rows, m), which is C-contiguous, in either order. Points in Fortran
    order are multiplied fastest, and rows of a power of two of features faster than those with one more, an
    ``appended`` constant. Only shapes and memory order decide how products are computed.
    """
    if appended is not None:
        products = row_products(X, points[:, :-1], out)
        products += (appended * points[:, -1]).astype(products.dtype)
        return products
    step = _NARROW_WORK // max(points.size, 1)
    if X.strides[0] != X.itemsize:
        for rows in row_slices(len(X), step if step >= _FEWEST_ROWS else max(len(X), 1)):
            np.matmul(X[rows], points.T, out=out[rows])
        return out
    transposed = out.reshape(len(points), len(X))
    for rows in row_slices(len(X), max(step, PANEL_ROWS)):
        np.matmul(points, X[rows].T, out=transposed[:, rows])
    return transposed.T


def add_products(
    X: FloatArray,
    C: FloatArray,
    total: Cascade,
    panel_rows: int = PANEL_ROWS,
    *,
    appended: float | None = None,
) -> None:
    """Add ``sum_i c_i x_i^T``, shape (k, d_in), of rows (rows, d_in) and weighted residuals ``C`` (rows, k).

    At most ``panel_rows`` terms are added in single precision. If that is 0, or residuals are in double
    precision, the whole sum is one in double precision. With an ``appended`` constant after each row's last
    entry, the sum has one more column. Its rounding is that of :func:`~skmixdp._linear.sums.sum_error`.
    """
    if panel_rows == 0:
        C, panel_rows = C.astype(np.float64, copy=False), PANEL_ROWS
    k, d_in = C.shape[1], X.shape[1]
    if C.dtype != np.float64 and k * d_in > _FEW_ENTRIES and len(X) > 0:
        for rows in row_slices(len(X), panel_rows):
            term = np.empty((k, d_in + (appended is not None)), X.dtype)
            np.matmul(C[rows].T, X[rows], out=term[:, :d_in])
            if appended is not None:
                term[:, d_in] = _constant_column(C[rows], appended)
            total.add(term)
        return
    most = max(_NARROW_WORK // max(k * d_in, 1), _FEWEST_SUMMED)
    panel_rows = -(-panel_rows // -(-panel_rows // most))
    for block in row_slices(max(len(X), 1), BLOCK_ROWS):
        weights, rows_of_block = C[block], X[block]
        # Panels of single precision are multiplied in one call.
        n_panels = 0 if C.dtype == np.float64 else len(rows_of_block) // panel_rows
        whole = n_panels * panel_rows
        matrix = (weights[whole:].T @ rows_of_block[whole:]).astype(np.float64, copy=False)
        if n_panels:
            left = weights[:whole].T.reshape(k, n_panels, panel_rows).swapaxes(0, 1)
            panels = np.matmul(left, rows_of_block[:whole].reshape(n_panels, panel_rows, d_in))
            matrix += panels.sum(axis=0, dtype=np.float64)
        if appended is not None:
            matrix = np.column_stack([matrix, _constant_column(weights, appended)])
        total.add(matrix)


def _constant_column(C: FloatArray, value: float) -> FloatArray:
    """``value sum_i c_i``, shape (k,), in double precision."""
    return np.asarray(value * C.sum(axis=0, dtype=np.float64))


# -- compiled loops ------------------------------------------------------------------------


def work_of_pass(n_rows: int, d_in: int, m: int) -> int:
    """Multiplications in a pass over rows (n_rows, d_in) with ``m`` outputs, with the work on outputs."""
    return n_rows * (d_in + _WORK_ON_OUTPUT) * m


def clipped_sums(n_rows: int, d_in: int, m: int, dtype: DTypeLike) -> ClippedSums | None:
    """The function that sums clipped residuals of ``m`` outputs times rows; None where NumPy is faster."""
    many = n_rows >= _MANY_ROWS or work_of_pass(n_rows, d_in, m) >= _MUCH_WORK
    few = 0 < d_in <= _MOST_FEATURES and 0 < m <= _MOST_OUTPUTS
    return compiled() if few and many and np.dtype(dtype) == np.float32 else None


def loops_of_persons(n_persons: int, d_in: int, m: int, dtype: DTypeLike) -> ModuleType | None:
    """The loops that form mean gradients of persons with ``m`` outputs; None where NumPy is faster."""
    many = work_of_pass(n_persons, d_in, m) >= _FEWEST_OF_PERSONS
    few = 0 < d_in <= _MOST_FEATURES and 0 < m <= _MOST_OUTPUTS
    return compiled_gradients() if few and many and np.dtype(dtype) == np.float32 else None


@cache
def compiled() -> ClippedSums | None:
    """The compiled loops for rows, if they can be used."""
    return checked_loops(_clipped_sums_of, is_right)


@cache
def compiled_gradients() -> ModuleType | None:
    """The compiled loops, if those for persons can be used."""
    return checked_loops(lambda loops: loops, gradients_are_right)


def checked_loops(
    chosen: Callable[[ModuleType], _Loops], are_right: Callable[[_Loops], bool]
) -> _Loops | None:
    """What is ``chosen`` of the compiled loops; None without numba, or if compiling or a check fails."""
    try:
        from . import loops

        # There are no signatures if numba is set not to compile.
        compiled = chosen(loops) if getattr(loops.clipped_sums, "signatures", ()) else None
        return compiled if compiled is not None and are_right(compiled) else None
    # Any error is caught: NumPy can replace the loops, and a fit may have been charged already.
    except Exception:
        return None


def _clipped_sums_of(loops: ModuleType) -> ClippedSums:
    def sums(
        X: FloatArray,
        y: NDArray[np.int8],
        lengths: FloatArray,
        points: FloatArray,
        threshold: float,
        rows: slice,
    ) -> FloatArray:
        (n_rows, d_in), m = X.shape, len(points)
        W = np.zeros((m, -(-d_in // 4) * 4), np.float32)
        W[:, :d_in] = points
        stride = X.strides[1] // X.itemsize
        memory = as_strided(X, ((d_in - 1) * stride + n_rows,), (X.itemsize,))
        within = np.float32(threshold / (1 + dot_error(m + 5, np.dtype(np.float32))))
        start, stop, _ = rows.indices(n_rows)
        totals = loops.clipped_sums(memory, stride, d_in, y, lengths, W, within, start, stop, PANEL_ROWS)
        return np.asarray(totals[:, :d_in])

    return sums


def gradients_are_right(loops: ModuleType) -> bool:
    """Whether a few gradients are right, of persons with none to nine rows."""
    X, C = np.cos(np.arange(225)).reshape(45, 5), np.sin(np.arange(90)).reshape(2, 45)
    X, C = X.astype(np.float32), C.astype(np.float32)
    place, first = np.arange(45)[::-1].copy(), np.cumsum(np.arange(11)) - np.arange(11)
    norms, sums = np.sqrt(np.sum(X.astype(np.float64) ** 2, axis=1)), np.empty((10, 2, 5))
    factors = loops.shortening(C, norms, 0.3)
    terms = np.sqrt(np.sum(C.astype(np.float64) ** 2, axis=0)) * norms
    lengths = loops.mean_gradients(X[place], C, factors, place, first, sums)
    weighted = C * (0.3 / np.maximum(terms, 0.3))
    exact = np.array([weighted[:, place[i:j]] @ X[place[i:j]] for i, j in pairwise(first.tolist())])
    right = np.allclose(sums, exact, rtol=0, atol=1e-12)
    return bool(right and np.allclose(lengths, np.linalg.norm(exact, axis=(1, 2)), rtol=0, atol=1e-12))


def is_right(sums: ClippedSums) -> bool:
    """Whether a few small sums are right."""
    for n, d_in, k in ((3, 1, 1), (PANEL_ROWS + 5, 5, 1), (5 * PANEL_ROWS - 1, 7, 3), (40, 4, 4)):
        # (Cosines of integers serve as well as random numbers.)
        X = np.cos(np.arange(n * d_in)).reshape(n, d_in)
        W = 9 * np.cos(np.arange(k * d_in)).reshape(k, d_in)
        y = (np.arange(n) % max(k, 2)).astype(np.int8)
        lengths = np.sqrt(np.sum(X**2, axis=1))
        R = exact_residuals(X @ W.T, y)
        norms = np.sqrt(np.sum(R**2, axis=1)) * lengths
        C = ((0.3 / np.maximum(norms, 0.3))[:, np.newaxis] * R)[1:]
        rows = np.asarray(X, np.float32, order="F")
        result = sums(rows, y, lengths.astype(np.float32), W, 0.3, slice(1, n))
        exact = C.T @ X[1:]
        if result.shape != exact.shape or not np.all(np.abs(result - exact) <= 0.3 * TOLERANCE * n**0.5):
            return False
    return True


def exact_residuals(Z: FloatArray, y: NDArray[np.int8]) -> FloatArray:
    """Residuals (n, k) of cross-entropy in double precision; one output is the logit of class 1."""
    if Z.shape[1] == 1:
        return np.asarray(1 / (1 + np.exp(-Z)) - y[:, np.newaxis])
    P = np.exp(Z - Z.max(axis=1, keepdims=True))
    return np.asarray(P / P.sum(axis=1, keepdims=True) - (y[:, np.newaxis] == np.arange(Z.shape[1])))
