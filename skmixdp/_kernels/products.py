"""The products of rows with a few points, and their weighted sums, at the speed of the machine.

With ten outputs, a matrix product spends most of its time copying rows into the order in which its
kernel wants them. OpenBLAS has kernels for small matrices that do without; they take over where
the product of the three sizes is at most a million, so here rows are multiplied in panels as small.
With many outputs oneDNN, where it is installed, is faster than either.
"""

from functools import cache
from typing import Any

import numpy as np
from numpy.typing import DTypeLike, NDArray
from threadpoolctl import threadpool_info

from .onednn import Product, product_of, steps
from .sums import BLOCK_ROWS, PANEL_ROWS, Cascade
from .threads import alone

FloatArray = NDArray[np.floating[Any]]

#: Largest product of rows, terms and points that the kernels for small matrices take.
_SMALL = 1_000_000

#: Columns in a panel: more of them, and hardly a row would fit beside a hundred points.
_COLUMNS = 512

#: Rows in a panel, at least (a call has a price) and at most (more gains nothing).
_ROWS = (16, 128)

#: A sum of fewer rows in a panel is faster by one large product, whose kernel copies its rows first.
_FEWEST_SUMMED = 96

#: Sums of so few entries are multiplied panel by panel in one call, whose result is small.
_FEW_ENTRIES = 2**11

#: What threadpoolctl calls the processors for which OpenBLAS has those kernels.
_WITH_SMALL_KERNELS = {"SkylakeX", "Cooperlake", "Sapphirerapids"}


#: With one thread, oneDNN is faster from so many points on, if these have so many entries together.
_MANY_POINTS, _MANY_ENTRIES = 64, 2**12

#: Products of fewer multiplications are over before a call of oneDNN has begun.
_FEW_MULTIPLICATIONS = 2**22


def laid_out(points: FloatArray, dtype: DTypeLike) -> FloatArray:
    """Points (m, d_in) in a dtype, lying as :func:`row_products` multiplies them fastest."""
    return points.astype(dtype, order="F" if _with_many(points, dtype) is None else "C")


def row_products(X: FloatArray, points: FloatArray, out: FloatArray) -> FloatArray:
    """``X points^T``, shape (rows, m), of rows (rows, d_in) and points (m, d_in).

    Products are written to ``out`` (rows, m), which is C-contiguous: row by row or, by oneDNN, column by
    column. So what is returned has the memory of ``out`` and may have another order. Which way is taken
    depends on nothing but shapes, processor, threads and what is installed.
    """
    product = _with_many(points, X.dtype)
    if product is not None and _pays(points, X):
        return product(points, X.T, out.reshape(len(points), len(X))).T
    rows, columns = _panel(X.shape[1], len(points))
    whole = len(X) // rows * rows if rows and X.flags.c_contiguous else 0
    if whole == 0:
        return np.matmul(X, points.T, out=out)
    panels = out[:whole].reshape(-1, rows, len(points))
    for start in range(0, X.shape[1], columns):
        taken = slice(start, start + columns)
        part = X[:whole, taken].reshape(len(panels), rows, -1)
        if start == 0:
            np.matmul(part, points[:, taken].T, out=panels)
        else:
            panels += part @ points[:, taken].T
    if whole < len(X):
        np.matmul(X[whole:], points.T, out=out[whole:])
    return out


def add_products(
    total: Cascade,
    C: FloatArray,
    X: FloatArray,
    *,
    panel_rows: int = PANEL_ROWS,
    appended: float | None = None,
) -> None:
    """Add ``sum_i c_i x_i^T``, shape (k, d_in), of weighted residuals (rows, k) and rows (rows, d_in).

    Parameters
    ----------
    total : Cascade
        What the sum is added to.
    C : array of shape (rows, k)
        Weighted residuals. In double precision they make the whole sum one in double precision.
    X : array of shape (rows, d_in)
        The rows.
    panel_rows : int, default=PANEL_ROWS
        Largest number of rows whose terms are added in single precision.
    appended : float or None
        A constant entry that each row has after its last; the sum then has one more column.

    Notes
    -----
    The rounding is that of :func:`~skmixdp._kernels.sums.sum_error`.
    """
    k, d_in = C.shape[1], X.shape[1]
    n_columns = d_in + (appended is not None)
    if C.dtype == np.float64 or k * d_in <= _FEW_ENTRIES or len(X) == 0:
        for start in range(0, max(len(X), 1), BLOCK_ROWS):
            rows = slice(start, start + BLOCK_ROWS)
            matrix = _wide_sum(C[rows], X[rows], panel_rows)
            if appended is not None:
                matrix = np.column_stack([matrix, _constant_column(C[rows], appended)])
            total.add(matrix)
        return
    product = product_of(X.dtype)
    if product is not None and not _pays(C.T, X):
        product = None
    rows_at_once, columns = (panel_rows, d_in) if product is not None else _sum_panel(k, d_in, panel_rows)
    for start in range(0, len(X), rows_at_once):
        rows = slice(start, start + rows_at_once)
        term = total.buffer((k, n_columns), X.dtype)
        if product is not None and appended is None:
            product(C[rows].T, X[rows], term)
        elif product is not None:
            term[:, :d_in] = product(C[rows].T, X[rows], np.empty((k, d_in), X.dtype))
        else:
            for first in range(0, d_in, columns):
                taken = slice(first, min(first + columns, d_in))
                np.matmul(C[rows].T, X[rows, taken], out=term[:, taken])
        if appended is not None:
            term[:, d_in] = _constant_column(C[rows], appended)
        total.add(term)


def _wide_sum(C: FloatArray, X: FloatArray, panel_rows: int) -> FloatArray:
    """``C^T X`` in double precision; panels of single precision are all multiplied by one call."""
    if C.dtype == np.float64:
        return np.asarray(C.T @ X)
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


def _sum_panel(k: int, d_in: int, most_rows: int) -> tuple[int, int]:
    """Rows and columns of the products that a sum is made of."""
    if k > 1 and _small_kernels():
        columns = -(-d_in // -(-d_in // _COLUMNS))
        rows = min(most_rows, _SMALL // (k * columns) // 16 * 16)
        if rows >= _FEWEST_SUMMED:
            return rows, columns
    return most_rows, d_in


def _with_many(points: FloatArray, dtype: DTypeLike) -> Product | None:
    return product_of(dtype) if len(points) >= _MANY_POINTS or alone() else None


def _pays(left: FloatArray, X: FloatArray) -> bool:
    """Whether the product of rows with as many outputs is one for oneDNN, which has to read both."""
    size = len(left) * X.shape[1]
    enough = (size >= _MANY_ENTRIES or alone()) and size * len(X) >= _FEW_MULTIPLICATIONS
    return enough and steps(left) is not None and steps(X) is not None


def _panel(d_in: int, m: int) -> tuple[int, int]:
    """Rows and columns of a panel; no rows where panels are of no use."""
    if d_in == 0 or m < 2 or not _small_kernels():
        return 0, 0
    for most in (_COLUMNS, _COLUMNS // 2):
        columns = -(-d_in // -(-d_in // most))
        rows = _ROWS[1]
        while rows * columns * m > _SMALL:
            rows //= 2
        if rows >= _ROWS[0]:
            return rows, columns
    return 0, 0


@cache
def _small_kernels() -> bool:
    """Whether NumPy's BLAS has kernels for small matrices on this processor."""
    np.ones((2, 2)) @ np.ones((2, 2))  # loads it
    return any(
        library["internal_api"] == "openblas" and library.get("architecture") in _WITH_SMALL_KERNELS
        for library in threadpool_info()
    )
