"""Memory for rows in a temporary file that other programs cannot open by a name."""

import os
import shutil
import tempfile
from errno import ENOSPC
from typing import Any, Literal

import numpy as np
from numpy.typing import DTypeLike

from .._linear.arrays import FloatArray
from .._linear.products import is_narrow


def temporary_memory(
    n_rows: int, d_in: int, dtype: DTypeLike, *, order: Literal["C", "F"] | None = None
) -> FloatArray:
    """A new array (n_rows, d_in) for rows, mapped to a file without a name in the system's temporary folder.

    The file disappears with the array or the process. Its space is reserved; a full disk is a ValueError.
    """
    size = max(n_rows * d_in, 1) * np.dtype(dtype).itemsize
    folder = tempfile.gettempdir()
    try:
        with tempfile.TemporaryFile(dir=folder) as file:
            if hasattr(os, "posix_fallocate"):
                os.posix_fallocate(file.fileno(), 0, size)
            elif shutil.disk_usage(folder).free < size:
                raise OSError(ENOSPC, os.strerror(ENOSPC))
            order = order or ("F" if is_narrow(n_rows, d_in) else "C")
            memory: Any = np.memmap(file, dtype, "r+", shape=(n_rows, d_in), order=order)
            return np.asarray(memory)
    except OSError as error:
        raise ValueError(
            f"X needs {size / 2**20:,.0f} MiB for decoded rows in the temporary folder {folder} "
            f"({os.strerror(error.errno or 0)}); free space there, or set TMPDIR to a folder with more."
        ) from None
