"""Which worker of a Dask cluster keeps which chunk of rows.

Left to itself, the scheduler gives most chunks to the worker that is ready first; every pass then waits for
that one, or moves chunks to where they are not kept.
"""

from collections.abc import Sequence
from contextlib import AbstractContextManager
from typing import Any, cast


def placed(X: Any, keys: Sequence[Any], sizes: Sequence[int]) -> list[str | None]:
    """Addresses of the workers that shall keep each chunk of a Dask array; None without a cluster.

    ``keys`` and ``sizes`` are the chunks' keys and numbers of rows; see :func:`divided`.
    """
    try:
        from distributed import get_client
        from distributed.client import futures_of

        client: Any = get_client()
    except (ImportError, ValueError):  # Dask runs in this process
        return [None] * len(sizes)
    persisted = futures_of(X)  # type: ignore[no-untyped-call]
    known = client.who_has(persisted) if persisted else {}
    return divided(sizes, client.nthreads(), [known.get(key, ()) for key in keys])


def divided(
    sizes: Sequence[int], threads: dict[str, int], holders: Sequence[Sequence[str]]
) -> list[str | None]:
    """A worker for each chunk, so that all threads get about as many rows.

    A chunk stays with one of its ``holders``, unless this worker had more than its share then. All others are
    dealt out in order: neighbours, whose sums are added first, come to lie together.
    """
    if not threads:
        return [None] * len(sizes)
    share = sum(sizes) / sum(threads.values())
    load = dict.fromkeys(threads, 0.0)  # rows for each thread
    places: list[str | None] = [None] * len(sizes)

    def place(index: int, candidates: Sequence[str], otherwise: Sequence[str] = ()) -> None:
        # A chunk that is half too much is taken: the next worker gets as much less.
        halves = {worker: sizes[index] / (2 * threads[worker]) for worker in threads}
        fitting = [worker for worker in candidates if load[worker] + halves[worker] <= share]
        for worker in [*fitting, *otherwise][:1]:
            load[worker] += 2 * halves[worker]
            places[index] = worker

    for index, known in enumerate(holders):
        place(index, [worker for worker in known if worker in threads])
    for index, chosen in enumerate(places):
        if chosen is None:
            place(index, list(threads), otherwise=[min(threads, key=lambda worker: load[worker])])
    return places


def at(place: str | None) -> AbstractContextManager[Any]:
    """Tasks that are made or sent within are for this worker, or for others should it be lost."""
    import dask

    wishes = {} if place is None else {"workers": [place], "allow_other_workers": True}
    return cast("AbstractContextManager[Any]", dask.annotate(**wishes))


def persisted(chunks: Sequence[Any], places: Sequence[str | None]) -> list[Any]:
    """Chunks, each computed and kept at its place."""
    import dask

    kept = list(chunks)
    for place in dict.fromkeys(places):
        indices = [index for index, own in enumerate(places) if own == place]
        with at(place):
            there = dask.persist(*[chunks[index] for index in indices])
        for index, chunk in zip(indices, there, strict=True):
            kept[index] = chunk
    return kept
