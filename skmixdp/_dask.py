"""Private rows in a Dask array: workers compute sums of their chunks, which are added in a tree.

Chunks are mapped once and stay on the workers, about as many rows on each. In each pass the queries go
out to them, without the noise source of the run; the noise is added where the fit runs, to the sum of all
chunks. A chunk that is lost with its worker is made again from the array's graph.
"""

from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, replace
from typing import Any, cast
from uuid import uuid4

import numpy as np
from numpy.typing import DTypeLike, NDArray

from ._linear import EXACT, FloatArray, SumError, on_grid, row_norms
from ._rows.blockwise import InMemoryRows, added, check_lengths, grid_of_rows, stated_error
from ._rows.row_map import RowFunction, RowMap
from ._rows.source import Batch, Labels, PrivateRows, Request, Sums, Table, declared_type
from ._rows.table import finite_rows
from ._utils.validation import check_finite

Array = NDArray[Any]

#: Number of chunks whose sums are added by one task.
_FAN_IN = 8


# Fields are not in the repr, since workers log the inputs of tasks that fail.
@dataclass(frozen=True, repr=False)
class _Chunk:
    """Mapped rows on a worker; ``finite`` says whether the features were finite."""

    X: FloatArray
    y: Labels
    norms: FloatArray
    finite: bool = True

    @np.errstate(all="ignore")  # this setting belongs to each worker
    def sums(self, requests: Sequence[Request], batches: Sequence[Batch]) -> list[Sums]:
        asked = [replace(request, batch=batch) for request, batch in zip(requests, batches, strict=True)]
        return InMemoryRows(self.X, self.y, norms=self.norms).private_sums(asked)


class DaskRows(PrivateRows):
    """Private rows in the chunks of a Dask array: delayed arrays (rows, n_features) of some ``sizes``.

    Chunks become arrays of the type ``source``. Their own types may follow from their cells.

    ``places`` has the address of the worker that keeps each chunk; None leaves that to the scheduler. With
    ``exact``, rows are rounded to a grid on which sums are exact. A row that is not finite or too long, or a
    chunk that cannot be computed, is a ValueError.

    *Guarantee*: workers see private rows and released heads; neither noise nor the generator that draws it
    leaves the process that fits. Exact sums that workers send are NOT private: the cluster is trusted like a
    disk that holds the rows.
    """

    def __init__(
        self,
        chunks: Sequence[Any],
        sizes: Sequence[int],
        y: Labels,
        row_map: RowMap,
        dtype: np.dtype[Any],
        *,
        exact: bool = False,
        places: Sequence[str | None] | None = None,
        source: DTypeLike = np.float64,
    ) -> None:
        import dask

        self._dtype = np.dtype(dtype)
        self._ends = np.cumsum([0, *sizes])
        self.n_rows = int(self._ends[-1])
        self.grid = grid_of_rows(self.n_rows) if exact else None
        prepare = dask.delayed(_prepare, pure=False)
        spans = list(zip(self._ends[:-1], self._ends[1:], strict=True))
        made = [
            prepare(chunk, source, y[a:b], row_map, dtype, self.grid)
            for chunk, (a, b) in zip(chunks, spans, strict=True)
        ]
        self._places = [None] * len(made) if places is None else places
        with _without_quotes():
            self._chunks = _persisted(made, self._places)
        self._spans = spans
        checks = _computed(*[dask.delayed(_check, pure=False)(chunk) for chunk in self._chunks])
        check_finite(all(finite for finite, _ in checks), "X")
        check_lengths(np.array([longest for _, longest in checks]), np.dtype(dtype))

    def private_sums(self, requests: Sequence[Request]) -> list[Sums]:
        import dask

        # The function that assembles sums stays here. Each chunk gets its part of the batch.
        bare = [
            replace(request.with_query(n_fixed=0, releases=(), assemble=tuple, lengths=None), batch=Batch())
            for request in requests
        ]
        shared = dask.delayed(bare, name=f"requests-{uuid4().hex}", traverse=False)
        ask = dask.delayed(_Chunk.sums, pure=False)
        answers = []
        for chunk, place, (a, b) in zip(self._chunks, self._places, self._spans, strict=True):
            batches = [request.batch.part(a, b) for request in requests]
            with _at(place):
                answers.append(ask(chunk, shared, batches))
        add = dask.delayed(added, pure=False)
        while len(answers) > 1:
            answers = [add(answers[i : i + _FAN_IN]) for i in range(0, len(answers), _FAN_IN)]
        (total,) = _computed(*answers)
        return list(total)

    def sum_error(self, request: Request) -> SumError:
        # (The tree adds in double precision, like a cascade, and fewer terms at a time.)
        if request.resolution is not None:
            return EXACT
        return stated_error(request, self.n_rows, self._dtype)


class DaskTable(Table):
    """A Dask array that a user passed."""

    can_be_observed = False

    def __init__(self, X: Any) -> None:
        import dask

        if X.ndim != 2 or X.dtype.kind not in "biuf" or not isinstance(X._meta, np.ndarray):
            raise ValueError(
                f"X is a Dask array of {X.ndim} dimensions, type {X.dtype} and {type(X._meta).__name__} "
                "chunks; pass a 2-D one of real numbers with NumPy chunks."
            )
        if np.isnan(X.shape[1]):
            raise ValueError("X is a Dask array of unknown width; call X.compute_chunk_sizes() first.")
        X = X.rechunk({1: -1})
        self._X = X
        self.declared = declared_type(X.dtype)
        self._type = np.dtype(np.float32 if X.dtype == np.float32 else np.float64)
        self._blocks = X.to_delayed()[:, 0].tolist()
        sizes = X.chunks[0]
        if np.isnan(sizes).any():
            sizes = _computed(*[dask.delayed(len)(block) for block in self._blocks])
        self._sizes = [int(size) for size in sizes]
        self.shape: tuple[int, int] = (sum(self._sizes), int(X.shape[1]))

    def private_rows(self, y: Labels, row_map: RowMap, dtype: np.dtype[Any], *, exact: bool) -> PrivateRows:
        places = _placed(self._X, [block.key for block in self._blocks], self._sizes)
        return DaskRows(
            self._blocks, self._sizes, y, row_map, dtype, exact=exact, places=places, source=self._type
        )

    def blocks(self) -> Iterator[Array]:
        for block in self._blocks:
            (computed,) = _computed(block)
            with _without_quotes():
                rows = np.asarray(computed, self._type)
            yield rows

    def transformed(self, function: RowFunction) -> Table:
        return DaskTable(self.lazily(self._X, function, function.width, np.float64))

    @staticmethod
    def lazily(X: Any, compute: Callable[[Array], Array], n_columns: int | None, dtype: Any) -> Any:
        """A lazy Dask array of the results of ``compute`` on the chunks of another one.

        ``n_columns`` is the width of the result; None is a flat one.
        """
        X = X.rechunk({1: -1})
        if n_columns is None:
            return X.map_blocks(compute, dtype=dtype, drop_axis=1, meta=np.empty(0, dtype))
        chunks = (X.chunks[0], (n_columns,))
        return X.map_blocks(compute, dtype=dtype, chunks=chunks, meta=np.empty((0, 0), dtype))


def _computed(*delayed: object) -> tuple[Any, ...]:
    """The results of tasks, with errors that quote no rows."""
    import dask

    with _without_quotes():
        return tuple(dask.compute(*delayed))


@contextmanager
def _without_quotes() -> Iterator[None]:
    """Replaces errors of the user's code that makes the chunks, which may quote rows."""
    try:
        yield
    except (ValueError, TypeError, ArithmeticError, LookupError) as error:
        raise ValueError(
            f"a chunk of X cannot be computed ({type(error).__name__}, whose text is left out since it may "
            "quote rows); compute the array by itself to find out why."
        ) from None


@np.errstate(all="ignore")
def _prepare(
    X: Array, source: np.dtype[Any], y: Labels, row_map: RowMap, dtype: np.dtype[Any], grid: float | None
) -> _Chunk:
    X = np.asarray(X, source)
    if not finite_rows(X).all():
        nothing = np.empty((0, X.shape[1]), dtype)
        return _Chunk(nothing, y[:0], np.empty(0), finite=False)
    rows = row_map(X, dtype)
    if grid is not None:
        rows = on_grid(rows, grid)
    return _Chunk(rows, y, row_norms(rows))


@np.errstate(all="ignore")
def _check(chunk: _Chunk) -> tuple[bool, float]:
    return chunk.finite, float(np.max(chunk.norms, initial=0.0))


# -- workers of the chunks ------------------------------------------------------------------ By default, the
# scheduler gives most chunks to the worker that is ready first. In each pass, others then wait for it, or
# chunks are moved.


def _placed(X: object, keys: Sequence[Any], sizes: Sequence[int]) -> list[str | None]:
    """Addresses of the workers that keep each chunk of a Dask array; None without a cluster.

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
    """A worker for each chunk, so that all threads get about the same number of rows.

    A chunk stays with one of its ``holders``, unless this worker had more than its share then. All others are
    dealt out in order: neighbours, whose sums are added first, come to lie together.
    """
    if not threads:
        return [None] * len(sizes)
    share = sum(sizes) / sum(threads.values())
    load = dict.fromkeys(threads, 0.0)  # rows per thread
    places: list[str | None] = [None] * len(sizes)

    def place(index: int, candidates: Sequence[str], otherwise: Sequence[str] = ()) -> None:
        # A worker may exceed its part by half a chunk; the next one then gets less.
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


def _at(place: str | None) -> AbstractContextManager[Any]:
    """A context whose tasks go to this worker, or to others if it is lost."""
    import dask

    preference = {} if place is None else {"workers": [place], "allow_other_workers": True}
    return cast("AbstractContextManager[Any]", dask.annotate(**preference))


def _persisted(chunks: Sequence[Any], places: Sequence[str | None]) -> list[Any]:
    """Chunks, each computed and kept by its worker."""
    import dask

    kept = list(chunks)
    for place in dict.fromkeys(places):
        indices = [index for index, other in enumerate(places) if other == place]
        with _at(place):
            persisted = dask.persist(*[chunks[index] for index in indices])
        for index, chunk in zip(indices, persisted, strict=True):
            kept[index] = chunk
    return kept
