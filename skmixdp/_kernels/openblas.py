"""Products in panels so small that OpenBLAS multiplies them without copying the rows first.

With ten outputs, a matrix product spends most of its time copying rows into the order in which its kernel
wants them. OpenBLAS has kernels for small matrices that do without; they take over where the product of the
three sizes is at most a million. On one head of ten outputs a pass over the rows takes half of the time.

One of these kernels adds up along rows. With up to ten points, it multiplies as fast as memory can be read.
It takes panels of at most 1,200 products.

Source: OpenBLAS 0.3.31, kernel/x86_64/sgemm_small_kernel_permit_skylakex.c.
"""

from functools import cache
from typing import Any

import numpy as np
from numpy.typing import DTypeLike, NDArray
from threadpoolctl import threadpool_info

from .accelerators import Accelerator

FloatArray = NDArray[np.floating[Any]]

#: Largest product of rows, terms and points that the kernels for small matrices take.
_SMALL = 1_000_000

#: Most products that the kernel along rows takes, and fewest entries of a row.
_DOTS, _FEWEST_ENTRIES = 1200, 32

#: Rows that the kernel along rows takes: with fewer it is slower than the other one, and more gain nothing.
_DOT_ROWS = (16, 240)

#: Columns in a panel: with more of them few rows would fit next to a hundred points.
_COLUMNS = 512

#: Rows in a panel, at least (with 16 or 32 rows it takes up to 1.3 times as long as one large product) and at
#: most (more gains nothing).
_ROWS = (64, 128)

#: A sum of fewer rows in a panel is faster by one large product, whose kernel copies its rows first.
_FEWEST_SUMMED = 96

#: What threadpoolctl calls the processors for which OpenBLAS has those kernels.
_WITH_SMALL_KERNELS = {"SkylakeX", "Cooperlake", "Sapphirerapids"}


class OpenBlas(Accelerator):
    """OpenBLAS's kernels for small matrices, on processors for which it has them."""

    def prefers_rows(self, points: FloatArray, dtype: DTypeLike) -> bool:
        m, d_in = points.shape
        return np.dtype(dtype) == np.float32 and dot_rows(d_in, m) > 0 and has_small_kernels()

    def row_products(self, X: FloatArray, points: FloatArray, out: FloatArray) -> FloatArray | None:
        by_rows = X.strides[1] == X.itemsize
        if not by_rows or not has_small_kernels():
            return None
        if self.prefers_rows(points, X.dtype) and points.strides[1] == points.itemsize:
            return _dots(X, points, out.reshape(len(points), len(X))).T
        rows, columns = panel_of(X.shape[1], len(points))
        whole = len(X) // rows * rows if rows else 0
        if whole == 0:
            return None
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

    def panel_sum(self, C: FloatArray, X: FloatArray, out: FloatArray) -> bool:
        k, d_in = C.shape[1], X.shape[1]
        if k < 2 or d_in == 0 or not has_small_kernels():
            return False
        columns = _even(d_in, _COLUMNS)
        most_rows = _SMALL // (k * columns)
        if most_rows < _FEWEST_SUMMED:
            return False
        rows = _even(len(X), most_rows)
        for first in range(0, len(X), rows):
            for start in range(0, d_in, columns):
                taken, summed = slice(start, start + columns), slice(first, first + rows)
                if first == 0:
                    np.matmul(C[summed].T, X[summed, taken], out=out[:, taken])
                else:
                    out[:, taken] += C[summed].T @ X[summed, taken]
        return True


def _dots(X: FloatArray, points: FloatArray, out: FloatArray) -> FloatArray:
    """Write ``points X^T`` (m, rows) to ``out``, by the kernel along rows."""
    rows = dot_rows(X.shape[1], len(points))
    whole = len(X) // rows * rows
    panels = out[:, :whole].reshape(len(points), -1, rows).swapaxes(0, 1)
    np.matmul(points, X[:whole].reshape(-1, rows, X.shape[1]).swapaxes(1, 2), out=panels)
    np.matmul(points, X[whole:].T, out=out[:, whole:])
    return out


def dot_rows(d_in: int, m: int) -> int:
    """Rows in a panel for the kernel along rows, given m points; 0 where it is of no use."""
    if d_in < _FEWEST_ENTRIES or m < 2:
        return 0
    most = min(_DOTS // m, _SMALL // (m * d_in), _DOT_ROWS[1])
    return most // _DOT_ROWS[0] * _DOT_ROWS[0]


def panel_of(d_in: int, m: int) -> tuple[int, int]:
    """Rows and columns of a panel for products with m points; no rows where panels are of no use."""
    if d_in == 0 or m < 2:
        return 0, 0
    columns = _even(d_in, _COLUMNS)
    rows = _ROWS[1]
    while rows * columns * m > _SMALL:
        rows //= 2
    return (rows, columns) if rows >= _ROWS[0] else (0, 0)


def _even(size: int, most: int) -> int:
    """The size of parts of at most ``most``, which are as equal as can be."""
    return -(-size // -(-size // most))


@cache
def has_small_kernels() -> bool:
    """Whether NumPy's BLAS has kernels for small matrices on this processor."""
    np.ones((2, 2)) @ np.ones((2, 2))  # loads it
    return any(
        library["internal_api"] == "openblas" and library.get("architecture") in _WITH_SMALL_KERNELS
        for library in threadpool_info()
    )


accelerator = OpenBlas()
