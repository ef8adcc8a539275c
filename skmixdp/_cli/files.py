"""Read files as data frames or arrays.

``where`` is how a file is called in messages: its flag and its path. Nothing here unpickles.
"""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from .._rows.files import ArrayFile, TableFile, format_of
from .messages import InputError

Array = NDArray[Any]


def is_table(path: Path, where: str) -> bool:
    """Whether the file holds named columns."""
    return issubclass(format_of(path, where), TableFile)


def read_table(path: Path, where: str) -> pd.DataFrame:
    """The data frame of a table."""
    file = format_of(path, where)(path, where)
    assert isinstance(file, TableFile)
    frame = file.frame()
    frame.columns = [str(name) for name in frame.columns]
    if len(frame) == 0:
        raise InputError(f"{where} has columns and no rows; check that it is the right file.")
    return frame


def read_arrays(path: Path, where: str, names: Sequence[str] = ("X",)) -> dict[str, Array]:
    """The named arrays that a NumPy file has; it always has ``X``."""
    file = format_of(path, where)(path, where)
    assert isinstance(file, ArrayFile)
    return {name: file.read(name) for name in names if name in file.headers}


def shape_of(path: Path, where: str) -> tuple[tuple[int, ...], np.dtype[Any]]:
    """Shape and type of the rows in a NumPy file, from its header."""
    file = format_of(path, where)(path, where)
    assert isinstance(file, ArrayFile)
    return file.headers["X"]
