"""One interface to all inputs: a sequence of items, each with a name and a digest.

An item is an 8-bit PIL image or a text. Reading a damaged one raises :class:`ItemError`.
"""

import hashlib
import os
from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any, Literal, TypeGuard

import numpy as np
from numpy.typing import NDArray

from .._utils.frames import entries_of
from .._utils.validation import reason_of

ItemKind = Literal["image", "text"]
#: Image modes with more than 8 bits per channel, which a conversion to 8 bits would truncate.
_DEEP_MODES = ("I", "F", "I;16", "I;16B", "I;16L", "I;16N")
_DIGEST_BYTES = 16
#: EXIF tag of the orientation.
_ORIENTATION = 0x0112


class ItemError(ValueError):
    """An item cannot be used. The message is a fragment, to which the caller adds the name of the item."""


class Items(ABC):
    """A sequence of images or texts."""

    def __init__(self, elements: Any) -> None:
        self._elements = elements

    def __len__(self) -> int:
        return len(self._elements)

    @abstractmethod
    def __getitem__(self, index: int) -> Any:
        """The item: a PIL image of 8 bits a channel, or a str; ItemError if it cannot be read."""

    def name(self, index: int) -> str:
        """Name of the item in messages: its path or its position."""
        return f"item {index}"

    @abstractmethod
    def digest(self, index: int) -> bytes:
        """A hash of the item's content; ItemError if it cannot be read."""

    def pixels(self, indices: Sequence[int]) -> NDArray[np.uint8] | None:
        """These items as an array (n, height, width, channels), if they are stored as one."""
        return None


class ImageList(Items):
    """Paths, PIL images and arrays of one image, in any mixture."""

    def __getitem__(self, index: int) -> Any:
        return _as_image(self._elements[index])

    def name(self, index: int) -> str:
        element = self._elements[index]
        return os.fspath(element) if isinstance(element, (str, os.PathLike)) else super().name(index)

    def digest(self, index: int) -> bytes:
        element = self._elements[index]
        if not isinstance(element, (str, os.PathLike)):
            return _image_digest(_as_image(element))
        with _as_item_errors(), open(element, "rb") as file:  # noqa: PTH123
            return _digest(b"upright file", file.read())


class ImageArray(Items):
    """Images of one size in an array (n, height, width, channels)."""

    def __getitem__(self, index: int) -> Any:
        return _as_image(self._elements[index])

    def digest(self, index: int) -> bytes:
        pixels = np.ascontiguousarray(self._elements[index])
        return _digest(b"pixels", repr(pixels.shape).encode(), pixels.tobytes())

    def pixels(self, indices: Sequence[int]) -> NDArray[np.uint8] | None:
        return np.asarray(self._elements[np.asarray(indices, dtype=np.intp)])


class DatasetItems(Items):
    """A torch Dataset of images, or of tuples that start with one."""

    def __getitem__(self, index: int) -> Any:
        with _as_item_errors():
            element = self._elements[index]
        return _as_image(element[0] if isinstance(element, (tuple, list)) else element)

    def digest(self, index: int) -> bytes:
        return _image_digest(self[index])


class Texts(Items):
    """A list of texts."""

    def __getitem__(self, index: int) -> Any:
        # Lone halves of surrogate pairs, which networks cannot read, become question marks.
        return self._elements[index].encode("utf-8", "replace").decode()

    def digest(self, index: int) -> bytes:
        return _digest(b"text", self[index].encode())


def as_items(X: Any, kind: ItemKind) -> Items:
    """The items of an input ``X``."""
    if isinstance(X, (str, bytes, os.PathLike)):
        fix = "skmixdp.datasets.from_folder lists the images of a folder" if kind == "image" else "use [X]"
        name = f"X={X!r}" if kind == "image" else "X"  # a path may be named, but a text may be private
        raise TypeError(f"{name} is one {type(X).__name__}; pass a list of items ({fix}).")
    if hasattr(X, "iloc") or type(X).__module__.partition(".")[0] == "polars":
        X = X.to_numpy()
    elif _is_tensor(X):
        X = X.detach().cpu().numpy()
    if isinstance(X, np.ndarray):
        if X.ndim == 2 and X.shape[1] == 1:
            X = X[:, 0]
        if kind == "image" and X.ndim in (3, 4):
            return ImageArray(_checked_pixels(X))
        if X.ndim != 1 or X.dtype.kind not in "OU":
            wanted = (
                "uint8 images of shape (n, height, width) or (n, height, width, channels), or n paths"
                if kind == "image"
                else "n texts"
            )
            raise ValueError(f"X holds {entries_of(X.dtype)} of shape {X.shape}; pass {wanted}.")
        X = X.tolist()
    if isinstance(X, (list, tuple)):
        return _checked_texts(X) if kind == "text" else ImageList(X)
    if kind == "image" and hasattr(X, "__getitem__") and hasattr(X, "__len__"):
        return DatasetItems(X)
    raise TypeError(
        f"X is a {type(X).__name__}; pass a list of "
        f"{'image paths or PIL images, a uint8 array, or a torch Dataset' if kind == 'image' else 'texts'}."
    )


def _checked_pixels(X: NDArray[Any]) -> NDArray[np.uint8]:
    if X.dtype != np.uint8:
        raise ValueError(
            f"X holds {entries_of(X.dtype)} of shape {X.shape}; pass images as uint8, from 0 to 255, since "
            "scaling is part of the model's own preprocessing."
        )
    X = X[..., None] if X.ndim == 3 else X
    if X.shape[3] not in (1, 3) or 0 in X.shape[1:]:
        raise ValueError(
            f"X has shape {X.shape}; pass images as (n, height, width, channels) with 1 or 3 channels."
        )
    return X


def _is_tensor(element: object) -> TypeGuard[Any]:
    return hasattr(element, "detach")


def _checked_texts(X: Sequence[Any]) -> Items:
    for element in X:
        if not isinstance(element, str):
            raise TypeError(f"X holds a {type(element).__name__}; pass texts (str).")
    return Texts(X)


def _as_image(element: Any) -> Any:
    """A PIL image of 8 bits a channel, from a path, an image, an array or a tensor of one."""
    from PIL import Image

    if isinstance(element, (str, os.PathLike)):
        with _as_item_errors(), Image.open(element) as file:
            file.load()
            image: Any = file
    elif hasattr(element, "convert") and hasattr(element, "mode"):
        image = element
        with _as_item_errors():
            image.load()
    else:
        if _is_tensor(element):  # torchvision's order is channels first
            element = element.detach().cpu().numpy()
            element = element.transpose(1, 2, 0) if element.ndim == 3 else element
        image = _from_pixels(element)
    image = _upright(image)
    if image.mode in _DEEP_MODES:
        raise ItemError(f"has pixels of mode {image.mode}, of more than 8 bits; convert it to 8 bits")
    return image


def _upright(image: Any) -> Any:
    """A photograph turned by its EXIF orientation; other images unchanged."""
    from PIL import ImageOps

    try:
        if image.getexif().get(_ORIENTATION, 1) != 1:
            return ImageOps.exif_transpose(image)
    except Exception:  # damaged metadata, or an image of another library
        return image
    return image


def _from_pixels(element: object) -> Any:
    from PIL import Image

    if not isinstance(element, np.ndarray):
        raise ItemError(f"is a {type(element).__name__} and not an image, a path or an array")
    if element.dtype != np.uint8:
        raise ItemError(
            f"holds {entries_of(element.dtype)}; give uint8 pixels, before any scaling or normalisation"
        )
    flat = element[..., 0] if element.ndim == 3 and element.shape[2] == 1 else element
    if not (flat.ndim == 2 or (flat.ndim == 3 and flat.shape[2] == 3)) or 0 in flat.shape:
        raise ItemError(f"has shape {element.shape} and not (height, width) with 1 or 3 channels")
    return Image.fromarray(np.ascontiguousarray(flat))


@contextmanager
def _as_item_errors() -> Iterator[None]:
    """Turn any error of a file reader or a dataset into an ItemError of one line."""
    try:
        yield
    except ItemError:
        raise
    except Exception as error:
        raise ItemError(f"cannot be read ({reason_of(error, 'damaged, or not what it seems')})") from None


def _image_digest(image: Any) -> bytes:
    palette = b"" if image.palette is None else bytes(image.palette.palette)
    return _digest(b"image", f"{image.mode} {image.size}".encode(), palette, image.tobytes())


def _digest(*parts: bytes) -> bytes:
    """A hash of the parts and of their lengths, so that different parts never have the same text."""
    hasher = hashlib.sha256()
    for part in parts:
        hasher.update(len(part).to_bytes(8, "little"))
        hasher.update(part)
    return hasher.digest()[:_DIGEST_BYTES]
