"""Threads that share a pass over rows in memory.

NumPy lets other threads run while it computes. So as many threads as BLAS may use visit parts of the rows,
and each of them multiplies with one thread. The work between products is then shared too. No thread waits for
others inside a product, which takes long if other programs use the processor.
"""

import operator
import os
import sys
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor, wait
from contextlib import AbstractContextManager, contextmanager, nullcontext
from contextvars import ContextVar, copy_context
from functools import lru_cache
from threading import Lock
from typing import TypeVar

from threadpoolctl import ThreadpoolController, threadpool_info, threadpool_limits

#: Most threads, and most parts of a pass, since each part adds one rounding.
_MOST_PARTS = 8

#: Parts for each thread, so that other threads take over the work of a slow one.
_PARTS = 2

_Result = TypeVar("_Result")

#: The pool of threads that help the calling thread, and their number.
_helpers: ContextVar[tuple[ThreadPoolExecutor, int] | None] = ContextVar("_helpers", default=None)

#: Number of parts for a pass over the rows; 1 where :func:`in_parallel` has no threads.
n_parts: ContextVar[int] = ContextVar("n_parts", default=1)

#: Lock for setting numbers of threads.
_setting = Lock()


@contextmanager
def worker_session() -> Iterator[None]:
    """A context in which :func:`in_parallel` has threads, if BLAS may use several.

    BLAS has one thread within, and so has OpenMP. Their numbers of threads are set back afterwards.
    """
    n_threads = 1 if _helpers.get() is not None else min(_allowed_threads(), _MOST_PARTS)
    if n_threads < 2:
        yield
        return
    with one_thread(), ThreadPoolExecutor(n_threads - 1, initializer=_one_thread_each) as pool:
        tokens = _helpers.set((pool, n_threads - 1)), n_parts.set(min(_PARTS * n_threads, _MOST_PARTS))
        try:
            yield
        finally:
            _helpers.reset(tokens[0])
            n_parts.reset(tokens[1])


@contextmanager
def one_thread() -> Iterator[None]:
    """A context in which BLAS and OpenMP have one thread, for small work.

    NumPy and SciPy may have separate threads. Those of one library wait for its next product by
    spinning, while those of another one compute. Small work then takes several times as long.
    """
    pools = pools_of(len(sys.modules))
    # Numbers of threads are read and set under a lock, so that no temporary number of another thread is
    # restored.
    with _setting:
        any_more = any(library["num_threads"] > 1 for library in pools.info())
        limit: AbstractContextManager[object] = pools.limit(limits=1) if any_more else nullcontext()
    with limit:
        yield


@lru_cache(maxsize=1)
def pools_of(n_modules: int) -> ThreadpoolController:
    """The libraries with threads, searched again after imports only: it takes as long as a small fit."""
    return ThreadpoolController()


def in_parallel(tasks: Sequence[Callable[[], _Result]]) -> list[_Result]:
    """The results of all tasks, in their order. Each runs in a copy of the caller's context.

    The calling thread takes tasks as the others do. So it need not wait for another one to wake up.
    """
    helpers = _helpers.get()
    if helpers is None or len(tasks) < 2:
        return list(map(operator.call, tasks))
    pool, n_helpers = helpers
    waiting = deque(enumerate(tasks))
    results: dict[int, _Result] = {}

    def work() -> None:
        """Take tasks until none is left. Tasks get no threads of their own, so that none waits for itself."""
        _helpers.set(None)
        n_parts.set(1)
        while True:
            try:
                index, task = waiting.popleft()
            except IndexError:
                return
            try:
                results[index] = copy_context().run(task)
            except BaseException:
                waiting.clear()
                raise

    helping = [pool.submit(copy_context().run, work) for _ in range(min(n_helpers, len(tasks) - 1))]
    try:
        copy_context().run(work)
    finally:
        begun = [each for each in helping if not each.cancel()]
        wait(begun)
    for each in begun:
        each.result()
    return [results[index] for index in range(len(tasks))]


def _allowed_threads() -> int:
    """Number of threads for BLAS, at most one for each processor; 1 where it cannot be set."""
    blas: list[int] = [
        library["num_threads"] for library in threadpool_info() if library["user_api"] == "blas"
    ]
    affinity = getattr(os, "sched_getaffinity", None)
    processors = (os.cpu_count() or 1) if affinity is None else len(affinity(0))
    return min([processors, *blas]) if blas else 1


def _one_thread_each() -> None:
    # BLAS already has one thread; the number of threads of OpenMP belongs to the calling thread.
    threadpool_limits(limits=1, user_api="openmp")
