"""From a path to what the file holds: a data frame, arrays, or a model.

``where`` is how a file is called in messages: its flag and its path. Nothing here unpickles,
except :func:`load_model`, whose purpose it is.
"""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from .messages import InputError, listed

if TYPE_CHECKING:
    import pandas as pd

Array = NDArray[Any]

#: Ending of a file name -> format.
_FORMATS = {
    ".csv": "csv",
    ".csv.gz": "csv",
    ".csv.xz": "csv",
    ".parquet": "parquet",
    ".npy": "npy",
    ".npz": "npz",
}
_PICKLED = "allow_pickle=False"


def format_of(path: Path, where: str) -> str:
    """``"csv"``, ``"parquet"``, ``"npy"`` or ``"npz"``, by the ending of the name."""
    for ending, name in _FORMATS.items():
        if path.name.lower().endswith(ending):
            return name
    raise InputError(f"{where} must end in one of {', '.join(_FORMATS)}; convert the file to one of these.")


def is_table(path: Path, where: str) -> bool:
    """Whether the file holds named columns."""
    return format_of(path, where) in ("csv", "parquet")


def read_table(path: Path, where: str) -> "pd.DataFrame":
    """The data frame of a CSV or Parquet file."""
    import pandas as pd

    if format_of(path, where) == "parquet":
        if find_spec("pyarrow") is None:
            raise InputError(
                f"{where} needs the pyarrow package, which is not installed; install pyarrow, or "
                "save the table as CSV."
            )
        with _reading(where):
            frame = pd.read_parquet(path, engine="pyarrow")
    else:
        with _reading(where):
            # In one piece, since types found chunk by chunk can differ within a column.
            frame = pd.read_csv(path, low_memory=False)
        nameless = [name for name in frame.columns if name.startswith("Unnamed: ")]
        if nameless:
            raise InputError(
                f"{where} has a column without a name (pandas calls it {nameless[0]!r}), often the row "
                "numbers saved with a table; remove it, or name it if it is a feature."
            )
    frame.columns = [str(name) for name in frame.columns]
    if len(frame) == 0:
        raise InputError(f"{where} has columns and no rows; check that it is the right file.")
    return frame


def read_npy(path: Path, where: str) -> Array:
    """The array of an NPY file."""
    with _loading(path, where) as content:
        if not isinstance(content, np.ndarray):
            raise InputError(f"{where} is not one array but an archive of arrays; rename it to end in .npz.")
        return content


def read_npz(path: Path, where: str, names: Sequence[str]) -> dict[str, Array]:
    """Those of the named arrays that an NPZ file has; ``X`` it must have."""
    with _loading(path, where) as content:
        if isinstance(content, np.ndarray):
            raise InputError(f"{where} is one array and not an archive; rename it to end in .npy.")
        if "X" not in content.files:
            raise InputError(
                f"{where} holds the arrays {listed(content.files)} and no X; save it with "
                "numpy.savez(path, X=rows, y=labels)."
            )
        return {name: content[name] for name in names if name in content.files}


def load_model(path: Path) -> Any:
    """The object in a joblib file. This can run code: the help texts say so."""
    import joblib

    where = f"MODEL {path}"
    with _reading(where):
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


@contextmanager
def _loading(path: Path, where: str) -> Iterator[Any]:
    """The array or the open archive in a NumPy file, which is closed in any case."""
    with _reading(where), path.open("rb") as file:
        yield np.load(file, allow_pickle=False)


@contextmanager
def _reading(where: str) -> Iterator[None]:
    """Turn what readers raise into one sentence."""
    try:
        yield
    except InputError:
        raise
    except Exception as error:  # of a damaged file, which may be of any kind
        if _PICKLED in str(error):
            raise InputError(
                f"{where} holds Python objects, which are not opened because they could run code, or is "
                "not a NumPy file; save numbers, and labels as numbers or with astype(str)."
            ) from None
        # What a reader says beyond the system's own words may quote the file.
        reason = (
            getattr(error, "strerror", None) or f"damaged, or not what its name says: {type(error).__name__}"
        )
        raise InputError(f"{where} cannot be read ({reason}); check the path and the file.") from None
