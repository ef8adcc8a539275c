"""The products of rows with a few points, at the speed of the machine.

With ten outputs, a matrix product spends most of its time copying rows into the order in which its
kernel wants them. OpenBLAS has kernels for small matrices that do without; they take over where
the product of the three sizes is at most a million, so here rows are multiplied in panels as small.
"""

from functools import cache
from typing import Any

import numpy as np
from numpy.typing import NDArray
from threadpoolctl import threadpool_info

FloatArray = NDArray[np.floating[Any]]

#: Largest product of rows, terms and points that the kernels for small matrices take.
_SMALL = 1_000_000

#: Columns in a panel: more of them, and hardly a row would fit beside a hundred points.
_COLUMNS = 512

#: Rows in a panel, at least (a call has a price) and at most (more gains nothing).
_ROWS = (16, 128)

#: What threadpoolctl calls the processors for which OpenBLAS has those kernels.
_WITH_SMALL_KERNELS = {"SkylakeX", "Cooperlake", "Sapphirerapids"}


def row_products(X: FloatArray, points: FloatArray, out: FloatArray) -> FloatArray:
    """``X points^T``, shape (rows, m), of rows (rows, d_in) and points (m, d_in), in ``out``.

    The points are fastest where they lie in Fortran order. Which panels the rows are cut into
    depends on the shapes and on the kind of processor alone.
    """
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
