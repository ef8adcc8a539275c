"""The two products of row sources, and the memory layout of rows.

Rows are multiplied with a few points, and weighted residuals with rows. The second product is added up in
panels by a :class:`~skmixdp._linear.sums.Cascade`.
"""

import numpy as np
from numpy.lib.stride_tricks import as_strided
from numpy.typing import DTypeLike

from .arrays import FloatArray, row_slices
from .compiled import may_be_compiled
from .sums import BLOCK_ROWS, PANEL_ROWS, Cascade

#: Rows times entries times points of a product that OpenBLAS computes by its kernels for small matrices, and
#: that stays in cache.
_NARROW_WORK = 10**6

#: Rows of such a product, at least, if they are held row by row: fewer are slower on processors with AVX2.
_FEWEST_ROWS = 192

#: Sums of so few entries are multiplied panel by panel in one call, whose result is small.
_FEW_ENTRIES = 2**13

#: Least rows of such a panel; with fewer, the sums of panels would be as large as the rows.
_FEWEST_SUMMED = 96

#: Rows of at most so many entries are held column by column. Entries of many rows are then next to each
#: other, and products need not copy short rows to get them there. The compiled loops need such rows too.
NARROW = 64

#: Wide rows start at multiples of so many bytes, the longest vectors of a processor, if they have at least
#: the second number of entries.
_ALIGNMENT, _PADDED = 64, 128

#: Bytes of a whole number when rows are read ahead.
_WORD = 8


def is_narrow(n_rows: int, d_in: int) -> bool:
    """Whether rows (n_rows, d_in) are held column by column."""
    return d_in <= NARROW or may_be_compiled(n_rows, d_in)


def row_memory(n_rows: int, d_in: int, dtype: DTypeLike) -> FloatArray:
    """A new array (n_rows, d_in) for rows, in the memory order in which they are multiplied fastest.

    Narrow rows are held column by column. Wide ones start where processors load vectors fastest: passes over
    rows of 512 entries with ten outputs then take 0.85 of the time.
    """
    if is_narrow(n_rows, d_in):
        return np.empty((n_rows, d_in), dtype, order="F")
    size = np.dtype(dtype).itemsize
    stride = -(-d_in * size // _ALIGNMENT) * _ALIGNMENT if d_in >= _PADDED else d_in * size
    memory = np.empty(n_rows * stride + _ALIGNMENT, np.uint8)
    first = -memory.ctypes.data % _ALIGNMENT
    rows = memory[first : first + n_rows * stride].view(dtype).reshape(n_rows, stride // size)
    return rows[:, :d_in]


def read_ahead(X: FloatArray) -> None:
    """Read rows (n_rows, d_in) once in the order of memory, so that caches hold them.

    A product reads several rows at a time, for which processors fetch less from memory in advance. Both
    products of 512 features with few points then take 0.9 of the time. All numbers are read as whole numbers,
    so that none can raise a warning.
    """
    (stride, step), size = X.strides, X.itemsize
    length = X.shape[1] * size
    if len(X) < 2 or step != size or not 0 < length <= stride < 2 * length or stride % size:
        return
    # From the first row to the start of the last, with the padding between rows.
    n_bytes = (len(X) - 1) * stride // _WORD * _WORD
    entries = as_strided(X, (n_bytes // size,), (size,), writeable=False)
    np.bitwise_xor.reduce(entries.view(np.int64))


def row_products(X: FloatArray, points: FloatArray, out: FloatArray) -> FloatArray:
    """``X points^T``, shape (rows, m), of rows (rows, d_in) and points (m, d_in).

    They are in the memory of ``out`` (rows, m), which is C-contiguous, in either order. Points in Fortran
    order are multiplied fastest. Only shapes and memory order decide how products are computed, so those of a
    row depend on that row alone.
    """
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
    total: Cascade,
    C: FloatArray,
    X: FloatArray,
    *,
    panel_rows: int = PANEL_ROWS,
    appended: float | None = None,
) -> None:
    """Add ``sum_i c_i x_i^T``, shape (k, d_in), of weighted residuals ``C`` (rows, k) and rows (rows, d_in).

    Residuals in double precision make the whole sum one in double precision; else at most ``panel_rows``
    terms are added in single precision. With an ``appended`` constant after each row's last entry, the sum
    has one more column. Its rounding is that of :func:`~skmixdp._linear.sums.sum_error`.
    """
    k, d_in = C.shape[1], X.shape[1]
    if C.dtype != np.float64 and k * d_in > _FEW_ENTRIES and len(X) > 0:
        for rows in row_slices(len(X), panel_rows):
            term = total.buffer((k, d_in + (appended is not None)), X.dtype)
            np.matmul(C[rows].T, X[rows], out=term[:, :d_in])
            if appended is not None:
                term[:, d_in] = _constant_column(C[rows], appended)
            total.add(term)
        return
    most = max(_NARROW_WORK // max(k * d_in, 1), _FEWEST_SUMMED)
    panel_rows = -(-panel_rows // -(-panel_rows // most))
    for block in row_slices(max(len(X), 1), BLOCK_ROWS):
        weights, rows_of_block = C[block], X[block]
        # Panels of single precision are all multiplied by one call.
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
