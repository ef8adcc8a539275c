"""Products by oneDNN: exact but for the rounding of float32 sums, or not used."""

import ctypes
import os
import subprocess
import sys
import threading

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from skmixdp._kernels import bfloat16_product, dot_error, onednn

rng = np.random.default_rng(0)


def to_bits(values):
    return (np.asarray(values, np.float32).view(np.uint32) >> 16).astype(np.uint16)


def from_bits(bits):
    return (bits.astype(np.uint32) << 16).view(np.float32)


def emulated(A, B, out):
    if A.dtype == np.uint16:
        A, B = from_bits(A), from_bits(B)
    return np.matmul(A, B, out=out)


KINDS = {"bfloat16": np.dtype(np.uint16), "float32": np.dtype(np.float32)}


def found_product(kind):
    product = bfloat16_product() if kind == "bfloat16" else onednn.float32_product()
    if product is None:
        pytest.skip("no oneDNN with bfloat16 products for this processor; install skmixdp[onednn]")
    return product


def stored(kind, values):
    """Float32 numbers as a product takes them, and what they are worth then."""
    if kind == "float32":
        return values, values
    return to_bits(values), from_bits(to_bits(values))


@pytest.fixture
def product():
    return found_product("bfloat16")


def nearest_eight_bits(A, B, out):
    emulated(A, B, out)
    bits = out.view(np.uint32)
    out[:] = from_bits(to_bits((bits + (0x7FFF + ((bits >> 16) & 1))).astype(np.uint32).view(np.float32)))
    return out


def misread(A, B, out):
    """Takes columns for rows."""
    return emulated(A.T.reshape(A.shape) if A.flags.f_contiguous else A, B, out)


def narrowed(A, B, out):
    """Rounds float32 matrices to bfloat16 before it multiplies them."""
    return emulated(to_bits(A), to_bits(B), out) if A.dtype == np.float32 else emulated(A, B, out)


@pytest.mark.parametrize(
    ("product", "kind", "right"),
    [
        (emulated, "bfloat16", True),
        (emulated, "float32", True),
        (nearest_eight_bits, "bfloat16", False),
        (nearest_eight_bits, "float32", False),
        (narrowed, "float32", False),
        (misread, "bfloat16", False),
        (misread, "float32", False),
    ],
)
def test_a_product_is_tried_before_it_is_used(product, kind, right):
    assert onednn.is_right(product, KINDS[kind]) is right


def test_float32_is_not_narrowed_whatever_the_environment_allows():
    found_product("float32")
    program = """if True:
        import numpy as np
        from skmixdp._kernels import onednn
        A = np.random.default_rng(0).standard_normal((300, 300), dtype=np.float32)
        got = onednn.float32_product()(A, A, np.empty_like(A))
        print(np.abs(got - A.astype(float) @ A).max())
    """
    done = subprocess.run(
        [sys.executable, "-c", program],
        env=os.environ | {"ONEDNN_DEFAULT_FPMATH_MODE": "BF16", "DNNL_DEFAULT_FPMATH_MODE": "BF16"},
        capture_output=True,
        text=True,
        check=True,
    )
    assert float(done.stdout) < 1e-4  # rounded to bfloat16 first, it would be some 0.2


VALUES = st.one_of(
    st.floats(-3, 3, width=32, allow_subnormal=False),
    st.sampled_from([0.0, 1e-30, 1e-20, -1e-6, 1e6, -1e15, 1e18, 1.0]),
)


@pytest.mark.parametrize("kind", KINDS)
@given(data=st.data())
def test_sums_are_those_of_float32(kind, data):
    product = found_product(kind)
    m, n, p = (data.draw(st.sampled_from([1, 2, 17, 64])) for _ in range(3))
    given, worth = zip(
        *(
            stored(kind, data.draw(hnp.arrays(np.float32, shape, elements=VALUES)))
            for shape in ((m, n), (n, p))
        ),
        strict=True,
    )
    A, B = (matrix.astype(np.longdouble) for matrix in worth)
    left, right = (np.asfortranarray(X) if data.draw(st.booleans()) else X for X in given)
    found = product(left, right, np.full((m, p), np.nan, np.float32))
    # Products and sums below the smallest normal number are flushed to zero.
    allowed = dot_error(n, found.dtype) * (np.abs(A) @ np.abs(B)) + 2 * n * np.finfo(np.float32).tiny
    assert np.all(np.abs(found - A @ B) <= allowed)


@pytest.mark.parametrize(("m", "n", "p"), [(0, 3, 2), (2, 0, 3), (2, 3, 0)])
def test_products_of_nothing_are_zero(product, m, n, p):
    found = product(np.ones((m, n), np.uint16), np.ones((n, p), np.uint16), np.full((m, p), 7, np.float32))
    np.testing.assert_array_equal(found, np.zeros((m, p)))


WIDE = np.arange(7 * 12, dtype=np.float32).reshape(7, 12)
LYING = {
    "rows": WIDE,
    "columns": WIDE.T,
    "every third row": WIDE[::3],
    "some columns": WIDE[:, 2:9],
    "some columns, turned": WIDE[1:4, 2:9].T,
    "a row": WIDE[2:3],
    "a column of a matrix": WIDE[:, 3:4],
    "a number": WIDE[1:2, 4:5],
    "every other column": WIDE[:, ::2],
    "backwards": WIDE[::-1],
    "one row again and again": np.broadcast_to(WIDE[0], (5, 12)),
}


@pytest.mark.parametrize("how", LYING)
def test_matrices_are_multiplied_as_they_lie_or_refused(how):
    product, A = found_product("float32"), LYING[how]
    B = rng.standard_normal((A.shape[1], 3), dtype=np.float32)
    out = np.empty((len(A), 3), np.float32)
    if onednn.steps(A) is None:
        assert how in ("every other column", "backwards", "one row again and again")
        with pytest.raises(ValueError, match="must lie side by side"):
            product(A, B, out)
    else:
        np.testing.assert_allclose(product(A, B, out), A @ B, rtol=1e-5, atol=1e-4)


def test_products_that_are_no_longer_kept_are_given_back(product):
    for n in range(1, 100):
        A = rng.standard_normal((3, n), dtype=np.float32)
        found = product(to_bits(A), to_bits(A).T, np.empty((3, 3), np.float32))
        np.testing.assert_allclose(
            found, from_bits(to_bits(A)) @ from_bits(to_bits(A)).T, rtol=1e-5, atol=1e-5
        )


class Library:
    """A library that is no oneDNN of a kind that can be used."""

    def __init__(self, major, isa, status=0):
        version = onednn._Version(major, 0, 0)
        self.dnnl_version = Call(ctypes.pointer(version))
        self.dnnl_get_effective_cpu_isa = Call(isa)
        self.dnnl_engine_create = Call(status)


class Call:
    def __init__(self, value):
        self.value = value

    def __call__(self, *arguments):
        return self.value


@pytest.mark.parametrize(
    "library",
    [None, object(), Library(2, 0xE7), Library(3, 0x67), Library(3, 0xE7, status=1), Library(3, 0xE7)],
    ids=["none", "another", "old", "no instructions", "no engine", "half of it"],
)
def test_what_cannot_be_used_is_not(monkeypatch, library):
    def load(name):
        if library is None:
            raise OSError(name)
        return library

    monkeypatch.setattr(onednn.ctypes, "CDLL", load)
    assert onednn.bfloat16_product.__wrapped__() is None
    assert onednn.float32_product.__wrapped__() is None


@pytest.mark.parametrize("shape", [(31, 1536, 2048), (10, 2048, 512), (31, 384, 2048)])
def test_products_of_several_threads_do_not_touch_each_other(shape):
    """With scratch memory of the library's, a sum was wrong by hundreds of clips."""
    product = onednn.float32_product()
    if product is None:
        pytest.skip("no oneDNN; install skmixdp[onednn]")
    m, n, p = shape
    rng = np.random.default_rng(0)
    given = [(rng.standard_normal((m, n)), rng.standard_normal((n, p))) for _ in range(4)]
    pairs = [(A.astype(np.float32), np.asfortranarray(B, np.float32)) for A, B in given]
    right = [product(A, B, np.empty((m, p), np.float32)).copy() for A, B in pairs]
    wrong = []

    def work(index):
        A, B = pairs[index]
        for _ in range(40):
            found = product(A, B, np.empty((m, p), np.float32))
            if not np.allclose(found, right[index], atol=1e-2):
                wrong.append(index)

    threads = [threading.Thread(target=work, args=(index,)) for index in range(len(pairs))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert wrong == []
