"""From a path to what the file holds: a data frame, arrays, or a model.

``where`` is how a file is called in messages: its flag and its path. Nothing here unpickles,
except :func:`load_model`, whose purpose it is.
"""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import joblib
import pandas as pd
from numpy.typing import NDArray

from .._rows.files import ArrayFile, TableFile, format_of, reading
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
    """Those of the named arrays that a NumPy file has; ``X`` it always has."""
    file = format_of(path, where)(path, where)
    assert isinstance(file, ArrayFile)
    return {name: file.read(name) for name in names if name in file.headers}


def load_model(path: Path) -> Any:
    """The object in a joblib file. This can run code: the help texts say so."""
    where = f"MODEL {path}"
    with reading(where):
        file = path.open("rb")
    with file:
        try:
            return joblib.load(file)
        # What a damaged or foreign pickle raises is anything at all.
        except Exception as error:
            raise InputError(
                f"{where} is not a model saved by `fit` or with joblib ({type(error).__name__}); give the "
                "file that `fit --out` wrote, or fit again."
            ) from None  # what it says may quote the file, which may be one of private rows
