"""Which accelerators there are: the one place that knows them.

An accelerator is a module of this folder that multiplies some matrices faster than NumPy. It may decline any
of them, and NumPy multiplies what all decline. One that cannot be imported is left out. To delete an
accelerator, delete its file and its name in :data:`_MODULES`.
"""

import statistics
import time
from collections.abc import Callable, Hashable, Iterator, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager, nullcontext, suppress
from functools import cache
from importlib import import_module
from itertools import cycle
from typing import Any

import numpy as np
from numpy.typing import DTypeLike, NDArray

from .layout import row_memory
from .sums import PANEL_ROWS

FloatArray = NDArray[np.floating[Any]]

#: ``(A, B, out)``: ``A B`` of matrices (m, n) and (n, p), in float32, written to ``out`` (m, p), which is
#: C-contiguous. Each matrix has contiguous rows or contiguous columns. Subnormal numbers may count as zero.
Product = Callable[[NDArray[Any], NDArray[Any], FloatArray], FloatArray]

#: ``(X, y, lengths, points, threshold, rows)``: ``sum_i c_i x_i^T`` (m, d_in) in float64 over some of the
#: rows. The residuals ``c_i`` of cross-entropy are clipped such that no term is longer than the threshold.
#: ``X`` holds rows (n_rows, d_in) column by column. Class indices ``y`` are int8, and ``lengths`` are upper
#: bounds in float32 on the lengths of the rows; those of infinite length contribute nothing. A lone point is
#: the head of class 1 of two. Terms are added as :func:`~skmixdp._kernels.sums.sum_error` says of one block.
ClippedSums = Callable[[FloatArray, NDArray[np.int8], FloatArray, FloatArray, float, slice], FloatArray]

#: A call that is timed.
Trial = Callable[[], object]

#: Rows of a trial, and the largest sizes for it; larger matrices are multiplied at much the same speed.
_TRIAL_ROWS, _WIDEST, _MOST_POINTS = 1536, 2048, 256

#: Memory of the rows of a trial, about as much as that of a block of rows.
_TRIAL_BYTES = 2**24

#: Calls of each kind in a trial, and seconds after which it ends once there are enough.
_FEWEST_TURNS, _MOST_TURNS, _TRIAL_SECONDS = 5, 40, 0.05

#: An accelerator is used where it takes less than this part of the time in one of so many trials. The
#: processor may have other work during a trial.
_CLEARLY, _TRIALS = 0.98, 2

#: The accelerators, each asked before those after it. Every one is a module with an object ``accelerator``.
_MODULES = ("onednn", "openblas", "fused")


class Accelerator:
    """A library that is faster than NumPy for some products; this one declines them all.

    Attributes
    ----------
    is_measured : bool
        Whether a product of made-up matrices tells for which sizes it is faster; otherwise it knows itself.
    """

    is_measured = False

    def state(self) -> Hashable:
        """What its speed depends on, besides the sizes of matrices."""
        return None

    def row_products(self, X: FloatArray, points: FloatArray, out: FloatArray) -> FloatArray | None:
        """``X points^T`` (n, m) in the memory of ``out``, in either order; None declines."""
        return None

    def panel_sum(self, C: FloatArray, X: FloatArray, out: FloatArray) -> bool:
        """Write ``C^T X`` (k, d_in) of the rows of one panel to ``out``; False declines."""
        return False

    def prefers_rows(self, points: FloatArray, dtype: DTypeLike) -> bool:
        """Whether it multiplies with these points, and faster if their rows are contiguous."""
        return False

    def bfloat16_product(self) -> Product | None:
        """How it multiplies matrices of bfloat16 bits (uint16) with float32 sums; None where it does not."""
        return None

    def clipped_sums(self, n_rows: int, d_in: int, m: int, dtype: DTypeLike) -> ClippedSums | None:
        """How it adds up clipped residuals of ``m`` outputs times rows; None where it does not."""
        return None

    def session(self, dtype: DTypeLike) -> AbstractContextManager[None]:
        """A context for many products in a dtype, such as those of one fit."""
        return nullcontext()


class Measured(Accelerator):
    """An accelerator where it is faster than what is asked after it, as measured in this process.

    Each class of sizes is measured once, when it is first met, in some milliseconds. The matrices are made
    up, so that nothing about rows decides which library multiplies them. A choice stays for the process: all
    passes of a fit are rounded alike.

    Parameters
    ----------
    inner : Accelerator
        The accelerator.
    others : sequence of Accelerator
        Those that are asked after it, before NumPy.
    """

    def __init__(self, inner: Accelerator, others: Sequence[Accelerator]) -> None:
        self.inner = inner
        self._others = others
        self._faster: dict[Hashable, bool] = {}

    def row_products(self, X: FloatArray, points: FloatArray, out: FloatArray) -> FloatArray | None:
        if not self.prefers_rows(points, X.dtype):
            return None
        return self.inner.row_products(X, points, out)

    def panel_sum(self, C: FloatArray, X: FloatArray, out: FloatArray) -> bool:
        d_in, k = X.shape[1], C.shape[1]
        return self._is_faster("sum", d_in, k, X.dtype) and self.inner.panel_sum(C, X, out)

    def prefers_rows(self, points: FloatArray, dtype: DTypeLike) -> bool:
        if not self.inner.prefers_rows(points, dtype):
            return False
        return self._is_faster("products", points.shape[1], len(points), dtype)

    def bfloat16_product(self) -> Product | None:
        return self.inner.bfloat16_product()

    def session(self, dtype: DTypeLike) -> AbstractContextManager[None]:
        return self.inner.session(dtype)

    def _is_faster(self, kind: str, d_in: int, m: int, dtype: DTypeLike) -> bool:
        """Whether to use the accelerator for ``m`` points or outputs and rows of ``d_in`` entries."""
        if dtype != np.float32 or d_in == 0 or m == 0:
            return False
        key = (kind, d_in.bit_length(), m.bit_length(), self.inner.state())
        if key not in self._faster:
            trial = self._products if kind == "products" else self._sums
            ours, theirs = trial(min(d_in, _WIDEST), min(m, _MOST_POINTS))
            found = ours is not None and any(_seconds(ours, theirs) < _CLEARLY for _ in range(_TRIALS))
            # Of threads that measure at the same time, the first decides for all.
            return self._faster.setdefault(key, found)
        return self._faster[key]

    def _products(self, d_in: int, m: int) -> tuple[Trial | None, Trial]:
        parts, points = _parts(_TRIAL_ROWS, d_in), np.ones((m, d_in), np.float32)
        out = np.empty((_TRIAL_ROWS, m), np.float32)
        by_rows = any(other.prefers_rows(points, np.float32) for other in self._others)
        given = np.array(points, order="C" if by_rows else "F")

        def theirs() -> None:
            X = next(parts)
            if all(other.row_products(X, given, out) is None for other in self._others):
                np.matmul(X, given.T, out=out)

        if self.inner.row_products(next(parts), points, out) is None:
            return None, theirs
        return lambda: self.inner.row_products(next(parts), points, out), theirs

    def _sums(self, d_in: int, k: int) -> tuple[Trial | None, Trial]:
        parts = _parts(PANEL_ROWS, d_in)
        # Those of a panel are part of those of a block.
        C = np.ones((_TRIAL_ROWS, k), np.float32, order="F")[:PANEL_ROWS]
        out = np.empty((k, d_in), np.float32)

        def theirs() -> None:
            X = next(parts)
            if not any(other.panel_sum(C, X, out) for other in self._others):
                np.matmul(C.T, X, out=out)

        if not self.inner.panel_sum(C, next(parts), out):
            return None, theirs
        return lambda: self.inner.panel_sum(C, next(parts), out), theirs


def _parts(n_rows: int, d_in: int) -> Iterator[FloatArray]:
    """Rows of ones, without end: other ones each time, since those of a fit are not in the nearest caches."""
    X = row_memory(max(_TRIAL_BYTES // (4 * d_in * n_rows), 1) * n_rows, d_in, np.float32)
    X[:] = 1
    return cycle([X[start : start + n_rows] for start in range(0, len(X), n_rows)])


def _seconds(ours: Trial, theirs: Trial) -> float:
    """Time of the first call in units of that of the second: medians of some that took turns.

    Medians, since threads that find no free core are slow as a rule, and fast at times.
    """
    spent: tuple[list[float], list[float]] = ([], [])
    theirs()  # warms up; ours has been called before
    start = time.perf_counter()
    for turn in range(_MOST_TURNS):
        for i, trial in enumerate((ours, theirs)):
            begin = time.perf_counter()
            trial()
            spent[i].append(time.perf_counter() - begin)
        if turn >= _FEWEST_TURNS and time.perf_counter() - start > _TRIAL_SECONDS:
            break
    return statistics.median(spent[0]) / statistics.median(spent[1])


@cache
def accelerators() -> tuple[Accelerator, ...]:
    """The accelerators that are there, in the order in which they are asked."""
    found: list[Accelerator] = []
    for name in reversed(_MODULES):
        with suppress(ImportError):
            accelerator: Accelerator = import_module(f"{__package__}.{name}").accelerator
            others = tuple(found)
            found.insert(0, Measured(accelerator, others) if accelerator.is_measured else accelerator)
    return tuple(found)


def bfloat16_product() -> Product | None:
    """How to multiply matrices of bfloat16 bits with float32 sums; None where no accelerator does."""
    products = (accelerator.bfloat16_product() for accelerator in accelerators())
    return next((product for product in products if product is not None), None)


def clipped_sums(n_rows: int, d_in: int, m: int, dtype: DTypeLike) -> ClippedSums | None:
    """How to add up clipped residuals times rows without forming them; None where no accelerator does."""
    found = (accelerator.clipped_sums(n_rows, d_in, m, dtype) for accelerator in accelerators())
    return next((sums for sums in found if sums is not None), None)


@contextmanager
def product_session(dtype: DTypeLike) -> Iterator[None]:
    """A context within which a fit multiplies rows of a dtype, with threads set as accelerators need them."""
    with ExitStack() as sessions:
        for accelerator in accelerators():
            sessions.enter_context(accelerator.session(dtype))
        yield
