"""One implementation for NumPy's arrays and torch's tensors.

Functions are written with what both libraries have under one name, much of it from the array API standard.
The few operations in which they differ are here. Torch is not imported: whoever has a tensor has imported it.
``Array`` is either.
"""

import sys
from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import DTypeLike, NDArray

Array = Any
FloatArray = NDArray[np.floating[Any]]

#: Rows of at least so many entries are multiplied with themselves one by one.
_LONG = 32

#: Entries that are handled at a time: in double precision they stay in cache until they are needed again.
_IN_CACHE = 2**15


def namespace_of(array: Array) -> Any:
    """The library of an array: numpy or torch."""
    return np if isinstance(array, (np.ndarray, np.generic)) else sys.modules["torch"]


def dtype_of(array: Array) -> np.dtype[Any]:
    """NumPy's dtype of an array's entries."""
    if isinstance(array, np.ndarray):
        return np.dtype(array.dtype)
    return np.dtype(str(array.dtype).removeprefix("torch."))


def astype(array: Array, dtype: DTypeLike, *, copy: bool = False) -> Array:
    """The array in a dtype of NumPy's; the same object if it has that dtype, unless ``copy``."""
    if isinstance(array, np.ndarray):
        return array.astype(dtype, copy=copy)
    return array.to(getattr(namespace_of(array), np.dtype(dtype).name), copy=copy)


def empty_in(array: Array, shape: tuple[int, ...], dtype: DTypeLike) -> Array:
    """A new array in the library of another array and on its device, with a dtype of NumPy's."""
    xp = namespace_of(array)
    return xp.empty(shape, dtype=getattr(xp, np.dtype(dtype).name), device=array.device)


def in_library_of(array: Array, values: Array) -> Array:
    """NumPy's ``values`` in the library of another array and on its device."""
    xp = namespace_of(array)
    return values if xp is np else xp.asarray(np.ascontiguousarray(values), device=array.device)


def row_dots(A: Array, B: Array, dtype: DTypeLike) -> Array:
    """``sum_j a_ij b_ij`` (n,) of two (n, k) arrays, multiplied and added up in a dtype."""
    if not isinstance(A, np.ndarray):
        return (astype(A, dtype) * astype(B, dtype)).sum(dim=1)
    if A is B and A.dtype != dtype and A.size > _IN_CACHE:
        return _widened_squares(A, np.dtype(dtype))
    if A.dtype == dtype and A.shape[1] >= _LONG and A.strides[1] == A.itemsize:
        return np.vecdot(A, B)
    return np.einsum("ij,ij->i", A, B, dtype=np.dtype(dtype))  # type: ignore[arg-type]


def _widened_squares(A: NDArray[Any], dtype: np.dtype[Any]) -> NDArray[Any]:
    """Sums of squares (n,) in another dtype, to which a few rows of ``A`` (n, k) at a time are converted.

    ``einsum`` takes twice as long, since it converts entries one by one.
    """
    dots = np.empty(len(A), dtype)
    for rows in parts_in_cache(A):
        wide = A[rows].astype(dtype)
        dots[rows] = row_dots(wide, wide, dtype)
    return dots


def parts_in_cache(A: Array) -> Iterator[slice]:
    """Parts of the rows of an array (n, k), each small enough to stay in cache in double precision."""
    return row_slices(len(A), max(_IN_CACHE // max(A.shape[1], 1), 1))


def row_slices(n_rows: int, step: int) -> Iterator[slice]:
    """Slices of ``step`` rows, one after the other."""
    return (slice(start, start + step) for start in range(0, n_rows, step))


def logistic(Z: Array) -> Array:
    """``1 / (1 + exp(-z))`` of each entry, in place."""
    if not isinstance(Z, np.ndarray):
        return Z.sigmoid_()
    # Four passes that NumPy vectorises take a quarter of the time of scipy.special.expit.
    np.negative(Z, out=Z)
    with np.errstate(over="ignore"):
        np.exp(Z, out=Z)
    Z += 1
    return np.divide(1, Z, out=Z)
