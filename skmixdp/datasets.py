"""Data sets on disk: folders of images, and files of rows that ``fit`` reads in parts."""

import os
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from ._files.row_files import RowFiles, open_rows

__all__ = ["ImageFolder", "RowFiles", "from_folder", "open_rows"]

#: Endings of the files that count as images.
_ENDINGS = (".bmp", ".gif", ".jpeg", ".jpg", ".pgm", ".png", ".ppm", ".tif", ".tiff", ".webp")


class ImageFolder(NamedTuple):
    """Images of a folder with one subfolder for each class, from :func:`from_folder`.

    Attributes
    ----------
    paths, labels : array of str, shape (n,)
        Path and class of each image, sorted by class, then by path.
    class_names : array of str, shape (n_classes,)
        The names of the subfolders, sorted.
    """

    paths: NDArray[np.str_]
    labels: NDArray[np.str_]
    class_names: NDArray[np.str_]


def from_folder(path: str | os.PathLike[str]) -> ImageFolder:
    """Return paths and labels of the images in a folder with one subfolder for each class.

    Parameters
    ----------
    path : path-like
        The folder. The subfolder of a class may contain further folders. Names that start with a dot are
        ignored.

    Returns
    -------
    paths : array of str, shape (n,)
        Sorted by class, then by path.
    labels : array of str, shape (n,)
        The class name of each image. Names instead of numbers allow combining folders with different
        classes.
    class_names : array of str, shape (n_classes,)
        The names of the subfolders, sorted.

    Raises
    ------
    FileNotFoundError, NotADirectoryError
        If there is no such folder.
    ValueError
        If the folder has no subfolders, or has files next to them. Also if a subfolder has no images, or has
        other files.

    Notes
    -----
    *Guarantee*: the names of the subfolders become labels unchanged, without protection. If the images are
    private, take the classes from public images or from another public source.

    Examples
    --------
    >>> from skmixdp.datasets import from_folder
    >>> paths, labels, class_names = from_folder("animals")  # doctest: +SKIP
    """
    folder = _checked_folder(path)
    classes = sorted(entry.name for entry in folder.iterdir() if entry.is_dir() and _seen(entry))
    if not classes:
        raise ValueError(
            f"path={str(path)!r} has no subfolders; put the images of each class into a separate folder."
        )
    loose = sorted(str(entry) for entry in folder.iterdir() if entry.is_file() and _seen(entry))
    if loose:
        raise ValueError(
            f"path={str(path)!r} holds {len(loose)} files next to its subfolders, such as {loose[0]!r}; "
            "move images into the folder of their class, and other files away."
        )
    paths: list[str] = []
    labels: list[str] = []
    for name in classes:
        files = image_files(folder / name)
        paths += files
        labels += [name] * len(files)
    return ImageFolder(np.array(paths), np.array(labels), np.array(classes))


def image_files(path: str | os.PathLike[str]) -> list[str]:
    """The images in a folder and its subfolders, sorted by path; other files are refused."""
    folder = _checked_folder(path)
    files = sorted(entry for entry in folder.rglob("*") if entry.is_file() and _seen(entry, folder))
    strange = [file for file in files if file.suffix.lower() not in _ENDINGS]
    if strange:
        raise ValueError(
            f"path={str(path)!r} holds {len(strange)} files without an image ending, such as "
            f"{str(strange[0])!r}; remove them, or rename them to end in one of {', '.join(_ENDINGS)}."
        )
    if not files:
        raise ValueError(f"path={str(path)!r} holds no images; add some, or remove the folder.")
    return [str(file) for file in files]


def _checked_folder(path: str | os.PathLike[str]) -> Path:
    folder = Path(path)
    if not folder.exists():
        raise FileNotFoundError(f"path={str(path)!r} does not exist; give a folder of images.")
    if not folder.is_dir():
        raise NotADirectoryError(f"path={str(path)!r} is a file; give a folder of images.")
    return folder


def _seen(entry: Path, folder: Path | None = None) -> bool:
    parts = entry.relative_to(folder).parts if folder else (entry.name,)
    return not any(part.startswith(".") for part in parts)
