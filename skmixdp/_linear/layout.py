"""Memory layout of rows and products."""

import numpy as np
from numpy.lib.stride_tricks import as_strided
from numpy.typing import DTypeLike

from .arrays import FloatArray
from .compiled import may_be_compiled

#: Rows of at most so many entries are held column by column. Entries of many rows are then next to each
#: other, and products need not copy short rows to get them there. The compiled loops gain by it up to the
#: second number.
NARROW, _NARROW_IN_LOOPS = 64, 128

#: Wide rows start at multiples of so many bytes, the longest vectors of a processor, if they have at least
#: the second number of entries.
_ALIGNMENT, _PADDED = 64, 128

#: Bytes of a whole number when rows are read ahead.
_WORD = 8


def is_narrow(n_rows: int, d_in: int) -> bool:
    """Whether rows (n_rows, d_in) are held column by column."""
    return d_in <= NARROW or (d_in <= _NARROW_IN_LOOPS and may_be_compiled(n_rows, d_in))


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
    products of some megabytes of rows with few points then take 0.6 to 0.9 of the time. All numbers are read
    as whole numbers, so that none can raise a warning.
    """
    (stride, step), size = X.strides, X.itemsize
    length = X.shape[1] * size
    if len(X) < 2 or step != size or not 0 < length <= stride < 2 * length or stride % size:
        return
    # From the first row to the start of the last, with the padding between rows.
    n_bytes = (len(X) - 1) * stride // _WORD * _WORD
    entries = as_strided(X, (n_bytes // size,), (size,), writeable=False)
    np.bitwise_xor.reduce(entries.view(np.int64))
