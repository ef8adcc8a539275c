"""Images and their labels from ``IMAGES`` and ``--labels``, and the networks of ``--model``."""

import argparse
import inspect
import json
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from .._files.text import TextForm
from .._utils.validation import listed, shown
from ..datasets import from_folder, image_files
from ..features import OpenClipFeatures, ScatteringFeatures, TimmFeatures
from .arguments import passed
from .files import is_table, is_text, read_arrays, read_table
from .labels import labels_of_array, labels_of_column, typed_labels
from .messages import InputError
from .rows import read_labels

Array = NDArray[Any]

#: The transformer of each family, and an example of ``--model``. Without a name there are no weights.
FAMILIES: Mapping[str, tuple[Callable[..., Any], str]] = {
    "timm": (TimmFeatures, "timm:resnet50"),
    "open-clip": (OpenClipFeatures, "open-clip:ViT-B-32"),
    "scattering": (ScatteringFeatures, "scattering"),
}

#: Parameters of all transformers that extraction and prediction have.
READING_FLAGS = {"device": "--device", "on_error": "--on-error"}


class LabelledItems(NamedTuple):
    """Images for a transformer, with labels and file names where these are known."""

    X: Any
    y: Array | None
    files: Array | None


def read_images(path: Path, labels: Path | None) -> LabelledItems:
    """Images of a folder, or uint8 images in a NumPy file, with their labels."""
    if not path.is_dir():
        return _arrays(path, f"IMAGES {path}", labels)
    if labels is None and any(entry.is_dir() and not entry.name.startswith(".") for entry in path.iterdir()):
        images = from_folder(path)
        return LabelledItems(images.paths, images.labels, _relative(images.paths, path))
    files = image_files(path)
    names = _relative(files, path)
    return LabelledItems(np.array(files), None if labels is None else _labels_by_file(labels, names), names)


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


def make_transformer(args: argparse.Namespace, model: str, weights: str | None, options: str | None) -> Any:
    """The transformer of a ``--model``, its ``--weights``, ``--options`` and other flags."""
    prefix, _, name = model.partition(":")
    examples = ", ".join(example for _, example in FAMILIES.values())
    if prefix not in FAMILIES:
        raise InputError(f"--model {model} starts with none of the known families; use one like {examples}.")
    transformer, example = FAMILIES[prefix]
    if (":" in example) != bool(name):
        raise InputError(f"--model {model} is written like {example}; fix the name.")
    if weights is not None and not name:
        raise InputError(f"--weights {weights} was given and {prefix} has none; leave it out.")
    parameters = passed(args, transformer) | {"verbose": int(sys.stderr.isatty() and not args.quiet)}
    parameters |= {"model_name": name} if name else {}
    if weights is not None:
        parameters["pretrained"] = weights
    for key, value in _read_options(options).items():
        allowed = [key for key in inspect.signature(transformer).parameters if key not in parameters]
        if key not in allowed:
            raise InputError(
                f"--options names {key!r}, which is not among the other parameters of {prefix}, "
                f"{listed(allowed, 20)}; use one of these."
            )
        parameters[key] = value
    return transformer(**parameters)


def extract_images(transformer: Any, images: Any, where: str, command: str) -> Any:
    """The extraction of images; the names of skipped ones go to stderr."""
    extraction = transformer.extract(images)
    if len(extraction.features) == 0:
        raise InputError(f"{where}: none of the {len(extraction.skipped)} images could be read.")
    for item in extraction.skipped:
        sys.stderr.write(f"skmixdp {command}: skipped {item.name}, which {item.reason}\n")
    return extraction


def _read_options(text: str | None) -> dict[str, Any]:
    if text is None:
        return {}
    try:
        options = json.loads(text)
        reason = "" if isinstance(options, dict) else "must be a JSON object"
    except (ValueError, RecursionError) as error:
        options, reason = {}, f"is not JSON ({error})"
    if reason:
        raise InputError(f'--options {shown(text)} {reason}; write it like {{"a": 1}}.')
    return dict(options)
