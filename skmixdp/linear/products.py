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

from .geometry import weighted_sum
from .onednn import Product, product_of, steps
from .pools import alone

FloatArray = NDArray[np.floating[Any]]

#: Largest product of rows, terms and points that the kernels for small matrices take.
_SMALL = 1_000_000

#: Columns in a panel: more of them, and hardly a row would fit beside a hundred points.
_COLUMNS = 512

#: Rows in a panel, at least (a call has a price) and at most (more gains nothing).
_ROWS = (16, 128)

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


def row_sum(C: FloatArray, X: FloatArray) -> FloatArray:
    """``sum_i c_i x_i^T``, shape (k, d_in), of weighted residuals (rows, k) and rows (rows, d_in)."""
    product = product_of(X.dtype)
    if product is not None and C.dtype == X.dtype and _pays(C.T, X):
        return product(C.T, X, np.empty((C.shape[1], X.shape[1]), X.dtype))
    return weighted_sum(C, X)


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
