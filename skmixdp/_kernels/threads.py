"""One library's threads at a time.

The threads of OpenBLAS wait for the next product by spinning, for some 0.1 s. While they do, a product of
another library that has as many threads as there are cores takes several times as long.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar

from numpy.typing import DTypeLike
from threadpoolctl import threadpool_info, threadpool_limits

from .onednn import product_of

_alone = ContextVar("_alone", default=False)


@contextmanager
def one_pool(dtype: DTypeLike) -> Iterator[None]:
    """Within, all products of rows in this dtype are oneDNN's, and BLAS has one thread.

    Nothing changes where that has one thread anyway, or where there is no such library for the dtype.
    """
    blas = [] if product_of(dtype) is None else threadpool_info()
    if not any(library["user_api"] == "blas" and library["num_threads"] > 1 for library in blas):
        yield
        return
    with threadpool_limits(limits=1, user_api="blas"):
        token = _alone.set(True)
        try:
            yield
        finally:
            _alone.reset(token)


def alone() -> bool:
    """Whether that is so here and now."""
    return _alone.get()
