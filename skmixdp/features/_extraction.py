"""Extract rows of items: read those in the cache, and pass the others through the network."""

import json
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .._utils.process import progress_bar
from ._cache import RowCache
from ._inputs import ItemError, Items
from ._protocols import Encoder, Settings, Skipped

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
