"""Products of bfloat16 and of float32 matrices with float32 sums, by oneDNN where it is installed.

NumPy has no bfloat16, and torch rounds the sums of such products to bfloat16 on processors. oneDNN returns
them in float32, at about half the time of a float32 product on processors with instructions for it. Its
float32 products are faster than OpenBLAS's for some sizes, which are measured. Only functions of
its documented C interface are called, and none before a few products of the library that was found have
come out right.

Source: oneDNN developer guide, "MatMul", "Primitive Attributes: floating-point math mode" and "C API",
version 3.
"""

import ctypes
import sys
import threading
from collections.abc import Hashable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from functools import cache, lru_cache
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import DTypeLike, NDArray

from .accelerators import Accelerator, Product
from .rounding import dot_error
from .threads import limited, pools_of

FloatArray = NDArray[np.floating[Any]]
#: Numbers in float32, or bits of bfloat16 numbers in uint16.
Matrix = NDArray[Any]

#: Within one pool of threads oneDNN multiplies all that is large; otherwise from so many points on, and if
#: these have so many entries together.
_MANY_POINTS, _MANY_ENTRIES = 8, 2**12

#: Products of fewer multiplications are over before a call of oneDNN has begun.
_FEW_MULTIPLICATIONS = 2**22

_one_pool = ContextVar("_one_pool", default=False)

_BFLOAT16, _FLOAT32 = 2, 3  # dnnl_data_type_t
_STRICT = 0  # dnnl_fpmath_mode_t: float32 is not rounded to anything narrower
_CPU, _IN_ORDER = 1, 1  # dnnl_engine_kind_t, dnnl_stream_flags_t
_ARGUMENTS = (1, 33, 17, 80)  # DNNL_ARG_SRC, DNNL_ARG_WEIGHTS, DNNL_ARG_DST, DNNL_ARG_SCRATCHPAD
_BY_CALLER = 1  # dnnl_scratchpad_mode_t: each call brings memory of its own
_SCRATCHPAD = 136  # dnnl_query_t: dnnl_query_scratchpad_md
_ALIGNMENT = 64
#: The bit of dnnl_cpu_isa_t that instruction sets with bfloat16 products share.
_HAS_BFLOAT16 = 0x80
_VERSION = 3

_Handle = ctypes.c_void_p
_Dims = ctypes.c_int64 * 12


class _Version(ctypes.Structure):
    _fields_ = [("major", ctypes.c_int), ("minor", ctypes.c_int), ("patch", ctypes.c_int)]


class _Argument(ctypes.Structure):
    _fields_ = [("name", ctypes.c_int), ("memory", _Handle)]


class OneDNN(Accelerator):
    """oneDNN, where it is installed: float32 products with many points, and bfloat16 products.

    The threads of OpenBLAS wait for the next product by spinning, for some 0.1 s. While they do, a product of
    another library that has as many threads as there are cores takes several times as long. So within a
    :meth:`session` BLAS has one thread, and all large products are oneDNN's.
    """

    is_measured = True

    def state(self) -> Hashable:
        return is_one_pool()

    def row_products(self, X: FloatArray, points: FloatArray, out: FloatArray) -> FloatArray | None:
        product = product_of(X.dtype)
        if product is None or not (self.prefers_rows(points, X.dtype) and _is_large(points, X)):
            return None
        # Points with gaps between them, left by a constant entry, take up to three times as long.
        dense = points if points.flags.f_contiguous else np.ascontiguousarray(points)
        # With the points on the left, products come out column by column, and sooner.
        return product(dense, X.T, out.reshape(len(points), len(X))).T

    def panel_sum(self, C: FloatArray, X: FloatArray, out: FloatArray) -> bool:
        product = product_of(X.dtype)
        if product is None or not _is_large(C.T, X):
            return False
        if out.flags.c_contiguous:
            product(C.T, X, out)
        else:
            out[:] = product(C.T, X, np.empty(out.shape, out.dtype))
        return True

    def prefers_rows(self, points: FloatArray, dtype: DTypeLike) -> bool:
        return (len(points) >= _MANY_POINTS or is_one_pool()) and product_of(dtype) is not None

    def bfloat16_product(self) -> Product | None:
        return bfloat16_product()

    @contextmanager
    def session(self, dtype: DTypeLike) -> Iterator[None]:
        """Give BLAS one thread, unless it has one anyway or oneDNN does not multiply this dtype."""
        if product_of(dtype) is None:
            yield
            return
        with limited(pools_of(len(sys.modules)).select(user_api="blas")) as had_more:
            token = _one_pool.set(is_one_pool() or had_more)
            try:
                yield
            finally:
                _one_pool.reset(token)


def is_one_pool() -> bool:
    """Whether a session has given BLAS one thread, here and now."""
    return _one_pool.get()


def _is_large(left: FloatArray, X: FloatArray) -> bool:
    """Whether a product of rows with as many outputs is one for oneDNN, which has to read both matrices."""
    size = len(left) * X.shape[1]
    enough = (size >= _MANY_ENTRIES or is_one_pool()) and size * len(X) >= _FEW_MULTIPLICATIONS
    return enough and steps(left) is not None and steps(X) is not None


@cache
def bfloat16_product() -> Product | None:
    """How to multiply matrices of bfloat16 bits; None where no library does it both fast and right."""
    return _found(np.dtype(np.uint16))


@cache
def float32_product() -> Product | None:
    """How to multiply float32 matrices; None where no library is right."""
    return _found(np.dtype(np.float32))


def product_of(dtype: DTypeLike) -> Product | None:
    """How oneDNN multiplies matrices of this dtype; None where it does not."""
    return float32_product() if dtype == np.float32 else None


def _found(dtype: np.dtype[Any]) -> Product | None:
    for name in (Path(sys.prefix, "lib", "libdnnl.so.3"), "libdnnl.so.3"):
        try:
            library = ctypes.CDLL(str(name))
            library.dnnl_version.restype = ctypes.POINTER(_Version)
            if library.dnnl_version().contents.major != _VERSION:
                continue
            if dtype == np.uint16 and not library.dnnl_get_effective_cpu_isa() & _HAS_BFLOAT16:
                continue
            product = _Library(library, _BFLOAT16 if dtype == np.uint16 else _FLOAT32).product
            if is_right(product, dtype):
                return product
        except (OSError, AttributeError, RuntimeError):
            continue  # no such library, or one that lacks what is asked of it
    return None


def is_right(product: Product, dtype: np.dtype[Any]) -> bool:
    """Whether a few products come out as they must: exact but for the rounding of float32 sums."""
    for m, n, p in ((3, 200, 40), (40, 33, 7), (1, 64, 1), (70, 600, 130)):
        # (Cosines of whole numbers are as good as random ones here.)
        A, B = (np.cos(np.arange(i * j, dtype=np.float32)).reshape(i, j) for i, j in ((m, n), (n, p)))
        given = [A, B]
        if dtype == np.uint16:
            given = [np.asarray(matrix.view(np.uint32) >> 16, dtype=np.uint16) for matrix in (A, B)]
            A, B = ((part.astype(np.uint32) << 16).view(np.float32) for part in given)
        exact, sizes = A.astype(np.float64) @ B, np.abs(A).astype(np.float64) @ np.abs(B)
        for left in (given[0], np.asfortranarray(given[0])):
            for right in (given[1], np.asfortranarray(given[1])):
                found = product(left, right, np.full((m, p), np.nan, np.float32))
                if not np.all(np.abs(found - exact) <= dot_error(n, found.dtype) * sizes):
                    return False
    return True


class _Library:
    """The C interface of one library, for matrices of one dnnl_data_type_t."""

    def __init__(self, library: ctypes.CDLL, kind: int) -> None:
        self._library = library
        self._kind = kind
        self._engine = _Handle()
        self._call("dnnl_engine_create", ctypes.byref(self._engine), _CPU, ctypes.c_size_t(0))
        self._matmul = lru_cache(maxsize=64)(self._made)
        library.dnnl_primitive_desc_query_md.restype = _Handle
        library.dnnl_memory_desc_get_size.restype = ctypes.c_size_t
        # Threads multiply at the same time. With memory of the library's, they write to each other's.
        self._own = threading.local()

    def product(self, A: Matrix, B: Matrix, out: FloatArray) -> FloatArray:
        matrices = (A, B, out)
        if 0 in A.shape + B.shape:
            out[:] = 0
            return out
        made = self._matmul(tuple((matrix.shape, _steps(matrix)) for matrix in matrices))
        addresses = [*(matrix.ctypes.data for matrix in matrices), self._scratchpad(made.scratchpad_bytes)]
        stream, memories = _Handle(), [_Handle() for _ in addresses]
        self._call("dnnl_stream_create", ctypes.byref(stream), self._engine, _IN_ORDER)
        try:
            for memory, description, address in zip(memories, made.descriptions, addresses, strict=True):
                data = _Handle(address)
                self._call("dnnl_memory_create", ctypes.byref(memory), description, self._engine, data)
            arguments = (_Argument * len(memories))(*map(_Argument, _ARGUMENTS, memories))
            self._call("dnnl_primitive_execute", made.primitive, stream, len(memories), arguments)
            self._call("dnnl_stream_wait", stream)
        finally:
            for memory in memories:
                self._call("dnnl_memory_destroy", memory)
            self._call("dnnl_stream_destroy", stream)
        return out

    def _scratchpad(self, n_bytes: int) -> int:
        """Address of memory for what a product notes down; no other thread has it."""
        memory = getattr(self._own, "memory", None)
        if memory is None or len(memory) < n_bytes + _ALIGNMENT:
            memory = self._own.memory = np.empty(n_bytes + _ALIGNMENT, np.uint8)
        address: int = memory.ctypes.data
        return address + -address % _ALIGNMENT

    def _made(self, shapes: Sequence[tuple[tuple[int, int], tuple[int, int]]]) -> "_Matmul":
        """The product of matrices of these shapes and steps."""
        descriptions: list[_Handle] = []
        for (shape, steps), kind in zip(shapes, (self._kind, self._kind, _FLOAT32), strict=True):
            made = _Handle()
            self._call(
                "dnnl_memory_desc_create_with_strides",
                ctypes.byref(made),
                2,
                _Dims(*shape),
                kind,
                _Dims(*steps),
            )
            descriptions.append(made)
        how, primitive, attributes = _Handle(), _Handle(), _Handle()
        left, right, result = descriptions
        self._call("dnnl_primitive_attr_create", ctypes.byref(attributes))
        # By default an environment variable could allow less.
        self._call("dnnl_primitive_attr_set_fpmath_mode", attributes, _STRICT)
        self._call("dnnl_primitive_attr_set_scratchpad_mode", attributes, _BY_CALLER)
        self._call(
            "dnnl_matmul_primitive_desc_create",
            ctypes.byref(how),
            self._engine,
            left,
            right,
            None,
            result,
            attributes,
        )
        self._call("dnnl_primitive_create", ctypes.byref(primitive), how)
        noted = _Handle(self._library.dnnl_primitive_desc_query_md(how, _SCRATCHPAD, 0))
        scratchpad_bytes = self._library.dnnl_memory_desc_get_size(noted)
        scratchpad = _Handle()
        self._call("dnnl_memory_desc_clone", ctypes.byref(scratchpad), noted)
        descriptions.append(scratchpad)
        self._call("dnnl_primitive_desc_destroy", how)
        self._call("dnnl_primitive_attr_destroy", attributes)
        return _Matmul(self._library, primitive, descriptions, scratchpad_bytes)

    def _call(self, name: str, *arguments: Any) -> None:
        status = getattr(self._library, name)(*arguments)
        if status != 0:
            raise RuntimeError(f"oneDNN's {name} failed with status {status}.")


class _Matmul:
    """A product for matrices of certain shapes, given back to the library when it is no longer kept."""

    def __init__(
        self,
        library: ctypes.CDLL,
        primitive: _Handle,
        descriptions: list[_Handle],
        scratchpad_bytes: int,
    ) -> None:
        self._library = library
        self.primitive = primitive
        self.descriptions = descriptions
        self.scratchpad_bytes = scratchpad_bytes

    def __del__(self) -> None:
        self._library.dnnl_primitive_destroy(self.primitive)
        for description in self.descriptions:
            self._library.dnnl_memory_desc_destroy(description)


def steps(matrix: Matrix) -> tuple[int, int] | None:
    """Steps from row to row and from column to column, in entries; None for matrices that lie otherwise.

    Those of a lone row or column do not matter.
    """
    (m, n), size = matrix.shape, matrix.itemsize
    down, right = (stride // size if stride % size == 0 else 0 for stride in matrix.strides)
    if (n == 1 or right == 1) and (m == 1 or down >= n):
        return (n if m == 1 else down), 1
    if (m == 1 or down == 1) and (n == 1 or right >= m):
        return 1, (m if n == 1 else right)
    return None


def _steps(matrix: Matrix) -> tuple[int, int]:
    found = steps(matrix)
    if found is None:
        raise ValueError("the entries of a matrix's rows, or of its columns, must lie side by side.")
    return found


accelerator = OneDNN()
