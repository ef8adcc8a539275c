"""Which accelerators there are: the one place that knows them.

An accelerator is a module of this folder that multiplies some matrices faster than NumPy. It may decline any
of them, and NumPy multiplies what all decline. One that cannot be imported is left out. To delete an
accelerator, delete its file and its name in :data:`_MODULES`.
"""

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager, nullcontext, suppress
from functools import cache
from importlib import import_module
from typing import Any

import numpy as np
from numpy.typing import DTypeLike, NDArray

FloatArray = NDArray[np.floating[Any]]

#: ``(A, B, out)``: ``A B`` of matrices (m, n) and (n, p), in float32, written to ``out`` (m, p), which is
#: C-contiguous. Each matrix has contiguous rows or contiguous columns. Subnormal numbers may count as zero.
Product = Callable[[NDArray[Any], NDArray[Any], FloatArray], FloatArray]

#: The accelerators, each asked before those after it. Every one is a module with an object ``accelerator``.
_MODULES = ("onednn", "openblas")


class Accelerator:
    """A library that is faster than NumPy for some products; this one declines them all."""

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

    def session(self, dtype: DTypeLike) -> AbstractContextManager[None]:
        """A context for many products in a dtype, such as those of one fit."""
        return nullcontext()


@cache
def accelerators() -> tuple[Accelerator, ...]:
    """The accelerators that are there, in the order in which they are asked."""
    found = []
    for name in _MODULES:
        with suppress(ImportError):
            found.append(import_module(f"{__package__}.{name}").accelerator)
    return tuple(found)


def bfloat16_product() -> Product | None:
    """How to multiply matrices of bfloat16 bits with float32 sums; None where no accelerator does."""
    products = (accelerator.bfloat16_product() for accelerator in accelerators())
    return next((product for product in products if product is not None), None)


@contextmanager
def product_session(dtype: DTypeLike) -> Iterator[None]:
    """A context within which a fit multiplies rows of a dtype, with threads set as accelerators need them."""
    with ExitStack() as sessions:
        for accelerator in accelerators():
            sessions.enter_context(accelerator.session(dtype))
        yield
