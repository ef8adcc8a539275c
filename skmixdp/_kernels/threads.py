"""Threads that share the passes over rows in memory.

NumPy lets other threads run while it computes. So as many threads as BLAS may use visit parts of the rows,
and each of them multiplies with one thread. The work between products is then shared too. No thread waits for
others inside a product, which takes long if other programs use the processor.
"""

import os
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from contextvars import ContextVar, copy_context
from typing import TypeVar

from threadpoolctl import threadpool_info, threadpool_limits

#: Most threads, and most parts of a pass: the sum of each part is rounded once more.
_MOST_PARTS = 8

#: Parts for each thread: a thread that other programs hold up then leaves some of its work to others.
_PARTS = 2

_Result = TypeVar("_Result")

_pool: ContextVar[ThreadPoolExecutor | None] = ContextVar("_pool", default=None)
_n_parts: ContextVar[int] = ContextVar("_n_parts", default=1)


@contextmanager
def worker_session() -> Iterator[None]:
    """A context in which :func:`in_parallel` has threads, if BLAS may use several.

    BLAS has one thread within. Its number of threads is set back afterwards.
    """
    n_threads = 1 if _pool.get() is not None else min(_allowed_threads(), _MOST_PARTS)
    if n_threads < 2:
        yield
        return
    with (
        threadpool_limits(limits=1, user_api="blas"),
        ThreadPoolExecutor(n_threads, initializer=_one_thread_each) as pool,
    ):
        tokens = _pool.set(pool), _n_parts.set(min(_PARTS * n_threads, _MOST_PARTS))
        try:
            yield
        finally:
            _pool.reset(tokens[0])
            _n_parts.reset(tokens[1])


def n_parts() -> int:
    """Into how many parts to divide a pass over the rows; 1 where :func:`in_parallel` has no threads."""
    return _n_parts.get()


def in_parallel(tasks: Sequence[Callable[[], _Result]]) -> list[_Result]:
    """The results of all tasks, in their order. Each runs in a copy of the caller's context."""
    pool = _pool.get()
    if pool is None or len(tasks) < 2:
        return [task() for task in tasks]
    running = [pool.submit(copy_context().run, _alone, task) for task in tasks]
    try:
        return [each.result() for each in running]
    finally:
        for each in running:
            each.cancel()  # what has not begun when a task fails


def _alone(task: Callable[[], _Result]) -> _Result:
    """The result of a task that has no threads of its own: it could wait for itself."""
    _pool.set(None)
    _n_parts.set(1)
    return task()


def _allowed_threads() -> int:
    """How many threads BLAS may use, and how many processors there are for them."""
    blas: list[int] = [
        library["num_threads"] for library in threadpool_info() if library["user_api"] == "blas"
    ]
    affinity = getattr(os, "sched_getaffinity", None)
    processors = (os.cpu_count() or 1) if affinity is None else len(affinity(0))
    return min([processors, *blas])


def _one_thread_each() -> None:
    # Not of BLAS, which has one already, but of OpenMP, whose number is one of the calling thread.
    threadpool_limits(limits=1, user_api="openmp")
