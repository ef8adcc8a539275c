"""Read images, their labels and their names from ``IMAGES`` and ``--labels``."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .._files.text import TextForm
from .._utils.validation import listed
from ..datasets import from_folder, image_files
from .files import is_table, is_text, read_arrays, read_table
from .labels import labels_of_array, labels_of_column, typed_labels
from .messages import InputError
from .rows import read_labels

Array = NDArray[Any]


@dataclass(frozen=True)
class LabelledItems:
    """Images for a transformer, with labels and file names where these are known."""

    X: Any
    y: Array | None
    files: Array | None


def read_images(path: Path, labels: Path | None) -> LabelledItems:
    """Images of a folder, or uint8 images in a NumPy file, with their labels."""
    where = f"IMAGES {path}"
    if not path.is_dir():
        return _arrays(path, where, labels)
    if labels is None and any(entry.is_dir() and not entry.name.startswith(".") for entry in path.iterdir()):
        images = from_folder(path)
        return LabelledItems(images.paths, images.labels, _relative(images.paths, path))
    files = image_files(path)
    names = _relative(files, path)
    y = None if labels is None else _labels_by_file(labels, names)
    return LabelledItems(np.array(files), y, names)


def _relative(files: Any, folder: Path) -> Array:
    return np.array([Path(file).relative_to(folder).as_posix() for file in files])


def _labels_by_file(path: Path, names: Array) -> Array:
    """Labels from a table with the columns ``file`` and ``label``."""
    where = f"--labels {path}"
    if not is_table(path, where):
        raise InputError(f"{where} must be a table with the columns file and label, to go with a folder.")
    frame = read_table(path, where)
    if not {"file", "label"} <= set(frame.columns):
        raise InputError(f"{where} has the columns {listed(frame.columns)}; name them file and label.")
    places = dict(zip(frame["file"].astype(str), range(len(frame)), strict=True))
    if len(places) < len(frame):
        raise InputError(f"{where} names a file more than once; keep one row for each file.")
    absent = [name for name in names.tolist() if name not in places]
    if absent:
        raise InputError(f"{where} has no rows for {len(absent)} files, such as {absent[0]!r}; add them.")
    extra = sorted(set(places) - set(names.tolist()))
    if extra:
        raise InputError(
            f"{where} names {len(extra)} files that are not there, such as {extra[0]!r}; check it."
        )
    what, spelt = f"the column label of {where}", is_text(path, where)
    y = labels_of_column(frame["label"], what, spelt)
    y = typed_labels(y, what) if spelt else y
    return y[[places[name] for name in names.tolist()]]


def _arrays(path: Path, where: str, labels: Path | None) -> LabelledItems:
    """Images in a .npy file, or in the array ``X`` of an archive."""
    if not path.exists() or path.suffix.lower() not in (".npy", ".npz"):
        reason = "is a file and not a folder" if path.exists() else "does not exist"
        raise InputError(f"{where} {reason}; give a folder of images, or a .npy or .npz file of them.")
    arrays = read_arrays(path, where, ("X", "y"))
    X = arrays["X"]
    y = labels_of_array(arrays["y"], f"array y of {where}") if "y" in arrays else None
    y = read_labels(("--labels", labels), where, y, TextForm())
    if labels is not None and y is not None and is_text(labels, f"--labels {labels}"):
        y = typed_labels(y, f"--labels {labels}")
    if y is not None and (X.ndim == 0 or len(y) != len(X)):
        raise InputError(
            f"{where} has images of shape {X.shape} and {len(y)} labels; give one for each image."
        )
    return LabelledItems(X, y, None)
