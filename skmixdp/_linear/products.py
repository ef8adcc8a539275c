"""The two products of row sources: rows times a few points, and weighted residuals times rows.

The second one is added up in panels by a :class:`~skmixdp._linear.sums.Cascade`.
"""

import numpy as np
from numpy.typing import DTypeLike

from .arrays import FloatArray, row_slices
from .sums import BLOCK_ROWS, PANEL_ROWS, Cascade

#: Rows times entries times points of a product that OpenBLAS computes by its kernels for small matrices, and
#: that stays in cache.
_NARROW_WORK = 10**6

#: Rows and outputs of a block, at most. The work between products has a fixed cost for each block.
_NARROW_ROWS, _NARROW_OUTPUTS = 64512, 2**19

#: Sums of so few entries are multiplied panel by panel in one call, whose result is small.
_FEW_ENTRIES = 2**13

#: Least rows of such a panel; with fewer, the sums of panels would be as large as the rows.
_FEWEST_SUMMED = 96


def laid_out(points: FloatArray, dtype: DTypeLike) -> FloatArray:
    """Points (m, d_in) in a dtype, in the memory order that :func:`row_products` multiplies fastest."""
    return points.astype(dtype, order="F")


def narrow_block(m: int) -> int:
    """Rows in a block whose products with ``m`` points, and the work on them, have a small fixed cost."""
    return min(_NARROW_OUTPUTS // max(m, 1), _NARROW_ROWS)


def row_products(X: FloatArray, points: FloatArray, out: FloatArray) -> FloatArray:
    """``X points^T``, shape (rows, m), of rows (rows, d_in) and points (m, d_in).

    They are in the memory of ``out`` (rows, m), which is C-contiguous, in either order. Only shapes and
    memory order decide how they are computed, so a row's products depend on that row alone.
    """
    if X.strides[0] == X.itemsize:
        return _products_of_columns(X, points, out.reshape(len(points), len(X))).T
    return np.matmul(X, points.T, out=out)


def _products_of_columns(X: FloatArray, points: FloatArray, out: FloatArray) -> FloatArray:
    """Write ``points X^T`` (m, rows) of rows that are held column by column to ``out``."""
    m, n_rows = out.shape
    step = max(_NARROW_WORK // max(m * X.shape[1], 1), PANEL_ROWS)
    for start in range(0, n_rows, step):
        rows = slice(start, start + step)
        np.matmul(points, X[rows].T, out=out[:, rows])
    return out


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
    n_columns = d_in + (appended is not None)
    if C.dtype == np.float64 or k * d_in <= _FEW_ENTRIES or len(X) == 0:
        for rows in row_slices(max(len(X), 1), BLOCK_ROWS):
            matrix = _wide_sum(C[rows], X[rows], panel_rows)
            if appended is not None:
                matrix = np.column_stack([matrix, _constant_column(C[rows], appended)])
            total.add(matrix)
        return
    for rows in row_slices(len(X), panel_rows):
        term = total.buffer((k, n_columns), X.dtype)
        np.matmul(C[rows].T, X[rows], out=term[:, :d_in])
        if appended is not None:
            term[:, d_in] = _constant_column(C[rows], appended)
        total.add(term)


def _wide_sum(C: FloatArray, X: FloatArray, panel_rows: int) -> FloatArray:
    """``C^T X`` in double precision; panels of single precision are all multiplied by one call."""
    if C.dtype == np.float64:
        return np.asarray(C.T @ X)
    most = max(_NARROW_WORK // max(C.shape[1] * X.shape[1], 1), _FEWEST_SUMMED)
    panel_rows = -(-panel_rows // -(-panel_rows // most))
    n_panels = len(X) // panel_rows
    whole = n_panels * panel_rows
    rest = (C[whole:].T @ X[whole:]).astype(np.float64)
    if n_panels == 0:
        return np.asarray(rest)
    left = C[:whole].T.reshape(C.shape[1], n_panels, panel_rows).swapaxes(0, 1)
    panels = np.matmul(left, X[:whole].reshape(n_panels, panel_rows, X.shape[1]))
    rest += panels.sum(axis=0, dtype=np.float64)
    return np.asarray(rest)


def _constant_column(C: FloatArray, value: float) -> FloatArray:
    """``value sum_i c_i``, shape (k,), in double precision."""
    return np.asarray(value * C.sum(axis=0, dtype=np.float64))
