"""Extract rows of items: read those in a cache on disk, and pass the others through the network.

A cache folder has one folder for each encoder, named by a hash of its description and of the type of
the rows. It contains shards: NPZ files of ``keys`` (m, 16) and ``rows`` (m, d), where a key is the
hash of an item's content. A shard is written to a temporary file and moved into place in one step.
So an interrupted run leaves complete shards only, and processes can share a folder. NPZ files hold a
checksum of each array. A damaged shard is removed with a warning, and its rows are computed again.
"""

import hashlib
import json
import os
import time
import zipfile
import zlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from .._utils.files import write_arrays, written_whole
from .._utils.process import progress_bar, warn
from ._inputs import ItemError, Items

#: Most rows of a shard, and seconds after which a smaller shard is written.
_SHARD_ROWS = 2048
_SHARD_SECONDS = 10.0
#: Errors that NumPy raises for a damaged archive.
_DAMAGE = (OSError, ValueError, KeyError, EOFError, zipfile.BadZipFile, zlib.error)


class Encoder(Protocol):
    """A frozen network and the preparation of its input.

    Attributes
    ----------
    module : torch.nn.Module
        Moved to the device and put into evaluation mode before each extraction.
    preparation : object
        Turns items into the network's input, and is pickled to the loader's workers. ``one(item)`` prepares
        one item, and ``stack(prepared)`` makes a batch: a tensor, or a dict of tensors, whose first axis
        counts items. ``many(pixels)`` makes one of a uint8 tensor (n, height, width, channels), or None.
    n_outputs : int
        Number of features of a row.
    description : dict
        Everything except the item that determines a row, as JSON: the model, the preprocessing,
        and ``weights``, a mapping with their ``origin`` and ``sha256``. Without the origin it is
        the key of the cache.
    """

    module: Any
    preparation: Any
    n_outputs: int
    description: dict[str, Any]

    def forward(self, batch: Any) -> Any:
        """Rows (n, n_outputs) of a batch; each depends on its own item alone."""


@dataclass(frozen=True)
class Settings:
    """How to run an encoder; ``precision`` is ``"float32"``, or the type of automatic mixed precision."""

    device: str
    precision: str
    batch_size: int
    n_workers: int


@dataclass(frozen=True)
class Skipped:
    """An item that could not be read: its position, its name and the reason."""

    index: int
    name: str
    reason: str


#: Positions of some items, their rows, and the items that could not be read.
Chunk = tuple[list[int], NDArray[np.float32], list[Skipped]]
Run = Callable[[Encoder, Items, Sequence[int], Settings], Iterator[Chunk]]


@dataclass(frozen=True)
class Extraction:
    """Rows of the items that could be read, with a report.

    Attributes
    ----------
    features : array of shape (n_read, n_features_out), float32
        One row for each item that was read, in the order of the items.
    index : array of shape (n_read,)
        Position of each row's item in ``X``.
    skipped : tuple of Skipped
        The items that could not be read: ``index``, ``name`` (the path, if there is one)
        and ``reason``.
    n_computed : int
        Number of rows that the network computed; the others came from the cache.
    report : dict
        Model, origin and SHA-256 of the weights, preprocessing, device, precision and type of
        the rows, as JSON.
    """

    features: NDArray[np.float32]
    index: NDArray[np.intp]
    skipped: tuple[Skipped, ...]
    n_computed: int
    report: dict[str, Any] = field(repr=False)


def extract(items: Items, encoder: Encoder, run: Run, settings: Settings, transformer: Any) -> Extraction:
    """Rows of all items, from the cache of a transformer or by ``run`` from its encoder, in its ``dtype``."""
    n, dtype = len(items), transformer.dtype
    if n == 0:
        raise ValueError("X holds no items; pass at least one.")
    description = {**encoder.description, "precision": settings.precision}
    rows = np.empty((n, encoder.n_outputs), dtype=np.float32)
    read = np.zeros(n, dtype=bool)
    keys: list[bytes | None] = [None] * n
    store = None
    if transformer.cache is not None:
        # Rows do not depend on the place that weights come from.
        weights = description["weights"]["sha256"]
        store = RowCache(transformer.cache, {**description, "weights": weights}, dtype)
        keys = [_digest(items, index) for index in range(n)]
        read = store.read(keys, rows)
    todo = np.flatnonzero(~read).tolist()
    skipped: list[Skipped] = []
    n_computed = 0
    bar = progress_bar(
        total=n, initial=int(read.sum()), desc=type(transformer).__name__, verbose=transformer.verbose
    )
    try:
        for places, computed, failures in run(encoder, items, todo, settings):
            for failure in failures:
                if transformer.on_error == "raise":
                    raise ValueError(
                        f"{failure.name} {failure.reason}; fix or remove it, or pass on_error='skip'."
                    )
            skipped += failures
            rounded = _rounded(computed, dtype, items, places)
            rows[places], read[places] = rounded, True
            n_computed += len(places)
            if store is not None:
                store.add([keys[place] for place in places], rounded)
            if bar is not None:
                bar.update(len(places) + len(failures))
    finally:
        if bar is not None:
            bar.close()
        # Written now, so that these rows are not lost in an interruption.
        if store is not None:
            store.flush()
    skipped.sort(key=lambda failure: failure.index)
    report = {**description, "device": settings.device, "dtype": dtype}
    index = np.flatnonzero(read)
    return Extraction(
        rows if read.all() else rows[index], index, tuple(skipped), n_computed, json.loads(json.dumps(report))
    )


def _digest(items: Items, index: int) -> bytes | None:
    """The hash of an item; None for an unreadable one, whose error comes when its features are computed."""
    try:
        return items.digest(index)
    except ItemError:
        return None


def _rounded(
    rows: NDArray[np.float32], dtype: str, items: Items, places: Sequence[int]
) -> NDArray[np.float32]:
    """Rows (m, d) rounded as the cache would return them; refused unless finite."""
    with np.errstate(over="ignore"):
        rounded = rows.astype(dtype).astype(np.float32)
    finite = np.isfinite(rounded).all(axis=1)
    if not finite.all():
        name = items.name(places[int(np.argmin(finite))])
        raise ValueError(
            f"the row of {name} is not finite with dtype={dtype!r}; use dtype='float32' and amp=False, and "
            "check the weights."
        )
    return rounded


class RowCache:
    """Stored rows of one encoder, by digest of the item; ``description`` is what else they depend on."""

    def __init__(self, folder: str | os.PathLike[str], description: Mapping[str, Any], dtype: str) -> None:
        text = json.dumps({**description, "dtype": dtype}, sort_keys=True)
        self._name = str(folder)
        self._folder = Path(folder) / hashlib.sha256(text.encode()).hexdigest()[:32]
        self._dtype = np.dtype(dtype)
        # Pairs, so that an interruption leaves no key without its row.
        self._waiting: list[tuple[bytes, NDArray[Any]]] = []
        self._since = time.monotonic()
        try:
            # Only for the user, since rows can reveal as much as their items.
            Path(folder).mkdir(mode=0o700, parents=True, exist_ok=True)
            self._folder.mkdir(mode=0o700, exist_ok=True)
            if not (self._folder / "encoder.json").exists():
                with written_whole(self._folder / "encoder.json") as file:
                    file.write(text.encode())
        except OSError as error:
            raise self._refusal(error) from error

    def _refusal(self, error: OSError) -> ValueError:
        return ValueError(
            f"cache={self._name!r} cannot be used ({error.strerror}); name a folder that can be written to."
        )

    def read(self, keys: Sequence[bytes | None], out: NDArray[np.float32]) -> NDArray[np.bool_]:
        """Copy stored rows into ``out`` (n, d), and return the mask (n,) of the rows that were stored."""
        places: dict[bytes, list[int]] = {}
        for place, key in enumerate(keys):
            if key is not None:
                places.setdefault(key, []).append(place)
        stored = np.zeros(len(keys), dtype=bool)
        for path in sorted(self._folder.glob("*.npz")):
            if not places:
                break
            stored_keys = self._read_shard(path, places, out)
            for key in stored_keys:
                stored[places.pop(key)] = True
        return stored

    def _read_shard(
        self, path: Path, places: Mapping[bytes, list[int]], out: NDArray[np.float32]
    ) -> list[bytes]:
        """Copy the wanted rows of one shard, and return their keys."""
        try:
            with path.open("rb") as file, np.load(file, allow_pickle=False) as shard:
                stored = [key.tobytes() for key in shard["keys"]]
                wanted = {key: row for row, key in enumerate(stored) if key in places}
                if not wanted:
                    return []
                rows = shard["rows"]
            if rows.shape != (len(stored), out.shape[1]) or rows.dtype != self._dtype:
                raise ValueError(f"rows of shape {rows.shape} and type {rows.dtype}")
        except FileNotFoundError:  # another process removed it
            return []
        except _DAMAGE as error:
            warn(
                f"the cache file {path} is damaged ({' '.join(str(error).split())}); it is removed and its "
                "rows are computed again."
            )
            path.unlink(missing_ok=True)
            return []
        for key, row in wanted.items():
            out[places[key]] = rows[row]
        return [*wanted]

    def add(self, keys: Sequence[bytes | None], rows: NDArray[np.float32]) -> None:
        """Add rows (m, d), and write a shard when there are enough."""
        if not self._waiting:
            self._since = time.monotonic()
        for key, row in zip(keys, rows, strict=True):
            if key is not None:
                self._waiting.append((key, row.astype(self._dtype)))
        if len(self._waiting) >= _SHARD_ROWS or time.monotonic() - self._since >= _SHARD_SECONDS:
            self.flush()

    def flush(self) -> None:
        """Write the rows that are not yet on disk."""
        if not self._waiting:
            return
        digests, rows = zip(*self._waiting, strict=True)
        joined = b"".join(digests)
        keys = np.frombuffer(joined, dtype=np.uint8).reshape(len(rows), -1)
        # A shard is named by its keys, so that a repeated flush replaces the shard of an interrupted one.
        name = hashlib.sha256(joined).hexdigest()[:16]
        try:
            with written_whole(self._folder / f"{name}.npz") as file:
                write_arrays(file, keys=keys, rows=np.stack(rows))
        except OSError as error:
            raise self._refusal(error) from error
        self._waiting = []
