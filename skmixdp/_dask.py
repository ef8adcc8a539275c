"""Private rows in a Dask array: workers compute sums of their chunks, which are added in a tree.

Chunks are mapped once, by the workers that read them, and stay there. In each pass the queries go out to
them, without the noise source of the run; the noise is added where the fit runs, to the sum of all chunks. A
chunk that is lost with its worker is made again from the array's graph, and gives the same sums.
"""

from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import CancelledError
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from functools import partial
from itertools import pairwise
from time import monotonic
from typing import TYPE_CHECKING, Any
from uuid import uuid4

import numpy as np
from numpy.typing import NDArray

from ._linear.arrays import FloatArray, row_norms
from ._linear.sums import SumError, on_grid
from ._rows.blockwise import Arithmetic, InMemoryRows, added, check_lengths, grid_of_rows
from ._rows.row_map import RowFunction, RowMap
from ._rows.source import Batch, Labels, LostRowsError, PrivateRows, Request, Sums, Table, declared_type
from ._rows.table import finite_rows
from ._utils.frames import entries_of, is_frame, letter_of
from ._utils.process import LEFT_OUT
from ._utils.validation import check_finite, listed

if TYPE_CHECKING:
    from distributed import Client

Array = NDArray[Any]

#: Number of chunks whose sums are added by one task.
_FAN_IN = 8

#: Seconds between two looks at the cluster while tasks are not done.
_LOOK = 1.0

#: Seconds after which a cluster is given up on which no task runs, if Dask's configuration sets no other.
_PATIENCE = 300


# Fields are not in the repr, since workers log the inputs of tasks that fail.
@dataclass(frozen=True, repr=False)
class _Chunk:
    """Mapped rows on a worker, and whether they were numbers of the declared shape, and finite."""

    X: FloatArray
    y: Labels
    norms: FloatArray
    finite: bool = True
    numeric: bool = True

    def __sizeof__(self) -> int:
        # Dask moves and spills data by its size.
        return object.__sizeof__(self) + self.X.nbytes + self.y.nbytes + self.norms.nbytes

    @np.errstate(all="ignore")  # this setting belongs to each worker
    def sums(self, requests: Sequence[Request], batches: Sequence[Batch]) -> list[Sums]:
        here = [replace(request, batch=batch) for request, batch in zip(requests, batches, strict=True)]
        return InMemoryRows(self.X, self.y, norms=self.norms).private_sums(here)


class DaskRows(PrivateRows):
    """Private rows in the chunks of a table, which are mapped where they are.

    With ``exact``, rows are rounded to a grid on which sums are exact. Rows that are lost with the cluster
    are a LostRowsError.

    *Guarantee*: workers see private rows and released heads; neither noise nor the generator that draws it
    leaves the process that fits. Exact sums that workers send are NOT private: the cluster is trusted like a
    disk that holds the rows.
    """

    def __init__(
        self, table: "DaskTable", y: Labels, row_map: RowMap, dtype: np.dtype[Any], *, exact: bool
    ) -> None:
        import dask

        self._dtype = np.dtype(dtype)
        client = self._client = table.client
        ends = np.cumsum([0, *table.sizes])
        self.n_rows = int(ends[-1])
        self.grid = grid_of_rows(self.n_rows) if exact else None
        self._spans = list(pairwise(ends))
        prepare = dask.delayed(_prepare, pure=False)
        # In one graph: what several chunks need is sent once.
        mapped_chunks = [
            prepare(chunk, table.source, (b - a, table.shape[1]), y[a:b], row_map, dtype, self.grid)
            for chunk, (a, b) in zip(table.chunks, self._spans, strict=True)
        ]
        with _without_quotes():
            self._chunks = dask.persist(*mapped_chunks) if client is None else client.persist(mapped_chunks)
        check = dask.delayed(_chunk_facts, pure=False)
        checks = _computed(client, [check(chunk) for chunk in self._chunks])
        if not all(numeric for numeric, _, _ in checks):
            raise ValueError(
                "a chunk of X holds an entry that is not a number, or other numbers of rows and columns than "
                "X declares; make all chunks numbers, of the shapes in X.chunks."
            )
        check_finite(all(finite for _, finite, _ in checks), "X")
        check_lengths(np.array([longest for *_, longest in checks]), np.dtype(dtype))

    def private_sums(self, requests: Sequence[Request]) -> list[Sums]:
        import dask

        # The function that assembles sums stays here. Each chunk gets its part of the batch.
        bare = [
            replace(request.with_query(n_fixed=0, releases=(), assemble=tuple, lengths=None), batch=Batch())
            for request in requests
        ]
        shared = dask.delayed(bare, name=f"requests-{uuid4().hex}", traverse=False)
        ask = dask.delayed(_Chunk.sums, pure=False)
        add = dask.delayed(added, pure=False)
        answers = [
            ask(chunk, shared, [request.batch.part(a, b) for request in requests])
            for chunk, (a, b) in zip(self._chunks, self._spans, strict=True)
        ]
        while len(answers) > 1:
            answers = [add(answers[i : i + _FAN_IN]) for i in range(0, len(answers), _FAN_IN)]
        (total,) = _computed(self._client, answers)
        return list(total)

    def sum_error(self, request: Request) -> SumError:
        # (The tree adds in double precision, like a cascade, and fewer terms at a time.)
        return Arithmetic(self._dtype).error(request, self.n_rows)


class DaskTable(Table):
    """A Dask array or Dask DataFrame that a user passed."""

    can_be_observed = False

    def __init__(self, X: Any) -> None:
        import dask

        X, self.names = _array_of(X)
        if X.ndim != 2 or X.dtype.kind not in "biuf" or not isinstance(X._meta, np.ndarray):
            raise ValueError(
                f"X is a Dask array of {entries_of(X.dtype)} in {X.ndim} dimensions, in chunks of "
                f"{type(X._meta).__name__}; pass a 2-D one of real numbers with NumPy chunks."
            )
        if np.isnan(X.shape[1]):
            raise ValueError("X is a Dask array of unknown width; call X.compute_chunk_sizes() first.")
        X = X.rechunk({1: -1})
        self._X = X
        #: Client of the cluster; None computes in this process.
        self.client = _client_of(X)
        self.declared = declared_type(X.dtype)
        #: Type of the arrays that chunks become: their own types may follow from their cells.
        self.source = np.dtype(np.float32 if X.dtype == np.float32 else np.float64)
        self.chunks = X.to_delayed()[:, 0].tolist()
        sizes = X.chunks[0]
        if np.isnan(sizes).any():
            sizes = _computed(self.client, [dask.delayed(len)(chunk) for chunk in self.chunks])
        self.sizes = [int(size) for size in sizes]
        self.shape: tuple[int, int] = (sum(self.sizes), int(X.shape[1]))

    def private_rows(self, y: Labels, row_map: RowMap, dtype: np.dtype[Any], *, exact: bool) -> PrivateRows:
        return DaskRows(self, y, row_map, dtype, exact=exact)

    def blocks(self) -> Iterator[Array]:
        for chunk in self.chunks:
            (computed,) = _computed(self.client, [chunk])
            with _without_quotes():
                rows = np.asarray(computed, self.source)
            yield rows

    def whole(self) -> Array:
        """All rows, computed together and held in memory."""
        return np.concatenate(_computed(self.client, self.chunks))

    def transformed(self, function: RowFunction) -> Table:
        compute = partial(_transformed, function=function, source=self.source)
        return DaskTable(self.lazily(self._X, compute, function.width, np.float64))

    @staticmethod
    def lazily(X: Any, compute: Callable[[Array], Array], n_columns: int | None, dtype: Any) -> Any:
        """A lazy Dask array of results of ``compute`` on chunks, with ``n_columns``; None is a flat one."""
        X = _array_of(X)[0].rechunk({1: -1})
        if n_columns is None:
            return X.map_blocks(compute, dtype=dtype, drop_axis=1, meta=np.empty(0, dtype))
        chunks = (X.chunks[0], (n_columns,))
        return X.map_blocks(compute, dtype=dtype, chunks=chunks, meta=np.empty((0, 0), dtype))


def _array_of(X: Any) -> tuple[Any, list[str] | None]:
    """The Dask array of the rows of a Dask DataFrame, and the names of its columns; None for an array."""
    if not is_frame(X):
        return X, None
    names = [*X.columns]
    kinds = {name: kind for name, kind in zip(names, X.dtypes, strict=True) if letter_of(kind) not in "biuf"}
    if kinds or len(set(names)) < len(names):
        raise ValueError(
            f"X is a Dask DataFrame with columns that are no numbers, {listed([*kinds])}, or of one name; "
            "leave them out, or encode them as numbers, and give each column a name of its own."
        )
    return X.astype(np.float64).to_dask_array(), names


def _client_of(X: object) -> "Client | None":
    """The client of the cluster that computes a Dask array; None where Dask runs in this process."""
    from dask.base import get_scheduler

    try:
        from distributed.client import futures_of
    except ImportError:
        return None
    try:
        clients = [future.client for future in futures_of(X)] or [getattr(get_scheduler(), "__self__", None)]
    except RuntimeError:  # no client is open, and Dask is set to use one
        raise ValueError(
            "X is a Dask array and Dask's client is closed; open a distributed.Client, or call "
            "dask.config.set(scheduler='threads')."
        ) from None
    client: Client | None = clients[0]
    return client


def _computed(client: "Client | None", tasks: Sequence[object]) -> tuple[Any, ...]:
    """The results of tasks, with errors that quote no rows."""
    import dask

    with _without_quotes():
        if client is None:
            return tuple(dask.compute(*tasks))
        try:
            futures = client.compute(list(tasks))
            _wait_for(client, futures)
            return tuple(client.gather(futures))
        except Exception as error:
            library = type(error).__module__.split(".")[0]
            if not isinstance(error, CancelledError) and library != "distributed":
                raise
            raise LostRowsError(
                "X is a Dask array whose cluster was closed or restarted, or lost chunks that it cannot "
                f"compute again ({type(error).__name__}); start workers with enough memory, and persist X "
                "anew if it was."
            ) from None


def _wait_for(client: "Client", futures: Sequence[object]) -> None:
    """Wait for tasks, but not for ever on a cluster that runs none."""
    import dask
    from distributed import wait

    limit = dask.config.get("distributed.scheduler.no-workers-timeout", None)
    patience = _PATIENCE if limit is None else dask.utils.parse_timedelta(limit)
    seen = monotonic()
    while True:
        try:
            wait(futures, timeout=_LOOK)
            return
        except TimeoutError:
            with suppress(OSError):  # the scheduler does not answer
                if any(client.processing().values()):
                    seen = monotonic()
                    continue
        if monotonic() - seen >= patience:
            raise LostRowsError(
                f"X is a Dask array whose cluster has run no task for {patience:g} s while some are due; "
                "start workers that can run them."
            )


@contextmanager
def _without_quotes() -> Iterator[None]:
    """Replaces errors of the user's code that makes the chunks, which may quote rows."""
    try:
        yield
    except (LostRowsError, MemoryError):
        raise
    except Exception:
        raise ValueError(
            f"a chunk of X ends with {LEFT_OUT}; compute the array by itself to find out why."
        ) from None


def _numbers_of(X: Array, source: np.dtype[Any]) -> Array | None:
    """A chunk as an array of numbers; None for another one, since workers write errors and chunks to logs."""
    try:
        return np.asarray(X, source)
    except MemoryError:
        raise
    except Exception:
        return None


def _transformed(X: Array, *, function: RowFunction, source: np.dtype[Any]) -> Array:
    numbers = _numbers_of(X, source)
    # A text for each entry makes `_prepare` refuse the chunk.
    return np.full((len(X), function.width), "no number") if numbers is None else function(numbers)


@np.errstate(all="ignore")
def _prepare(
    X: Array,
    source: np.dtype[Any],
    shape: tuple[int, int],
    y: Labels,
    row_map: RowMap,
    dtype: np.dtype[Any],
    grid: float | None,
) -> _Chunk:
    numbers = _numbers_of(X, source)
    if numbers is None or numbers.shape != shape or not finite_rows(numbers).all():
        is_numeric = numbers is not None and numbers.shape == shape
        return _Chunk(np.empty((0, 0), dtype), y[:0], np.empty(0), finite=False, numeric=is_numeric)
    rows = row_map(numbers, dtype)
    if grid is not None:
        rows = on_grid(rows, grid)
    return _Chunk(rows, y, row_norms(rows))


@np.errstate(all="ignore")
def _chunk_facts(chunk: _Chunk) -> tuple[bool, bool, float]:
    return chunk.numeric, chunk.finite, float(np.max(chunk.norms, initial=0.0))
