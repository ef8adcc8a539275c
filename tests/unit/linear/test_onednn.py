"""Products of bfloat16 matrices: exact but for the rounding of float32 sums, or not used."""

import ctypes

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from skmixdp.linear import bfloat16_product, dot_error, onednn

rng = np.random.default_rng(0)


def to_bits(values):
    return (np.asarray(values, np.float32).view(np.uint32) >> 16).astype(np.uint16)


def from_bits(bits):
    return (bits.astype(np.uint32) << 16).view(np.float32)


def emulated(A, B, out):
    return np.matmul(from_bits(A), from_bits(B), out=out)


@pytest.fixture
def product():
    found = bfloat16_product()
    if found is None:
        pytest.skip("no oneDNN with bfloat16 products for this processor; install skmixdp[bfloat16]")
    return found


def nearest_eight_bits(A, B, out):
    emulated(A, B, out)
    bits = out.view(np.uint32)
    out[:] = from_bits(to_bits((bits + (0x7FFF + ((bits >> 16) & 1))).astype(np.uint32).view(np.float32)))
    return out


def misread(A, B, out):
    """Takes columns for rows."""
    return emulated(A.T.reshape(A.shape) if A.flags.f_contiguous else A, B, out)


@pytest.mark.parametrize(
    ("kind", "right"),
    [(emulated, True), (nearest_eight_bits, False), (misread, False)],
    ids=["right", "rounded", "misread"],
)
def test_a_product_is_tried_before_it_is_used(kind, right):
    assert onednn.is_right(kind) is right


VALUES = st.one_of(
    st.floats(-3, 3, width=32, allow_subnormal=False),
    st.sampled_from([0.0, 1e-30, 1e-20, -1e-6, 1e6, -1e15, 1e18, 1.0]),
)


@settings(max_examples=200, deadline=None)
@given(data=st.data())
def test_sums_are_those_of_float32(data):
    product = bfloat16_product()
    if product is None:
        pytest.skip("no oneDNN with bfloat16 products for this processor; install skmixdp[bfloat16]")
    m, n, p = (data.draw(st.sampled_from([1, 2, 17, 64])) for _ in range(3))
    A, B = (
        from_bits(to_bits(data.draw(hnp.arrays(np.float32, shape, elements=VALUES))))
        for shape in ((m, n), (n, p))
    )
    left, right = (np.asfortranarray(to_bits(X)) if data.draw(st.booleans()) else to_bits(X) for X in (A, B))
    found = product(left, right, np.full((m, p), np.nan, np.float32))
    exact = A.astype(np.longdouble) @ B.astype(np.longdouble)
    sizes = np.abs(A).astype(np.longdouble) @ np.abs(B).astype(np.longdouble)
    # Products and sums below the smallest normal number are flushed to zero.
    allowed = dot_error(n, found.dtype) * sizes + 2 * n * np.finfo(np.float32).tiny
    assert np.all(np.abs(found - exact) <= allowed)


@pytest.mark.parametrize(("m", "n", "p"), [(0, 3, 2), (2, 0, 3), (2, 3, 0)])
def test_products_of_nothing_are_zero(product, m, n, p):
    found = product(np.ones((m, n), np.uint16), np.ones((n, p), np.uint16), np.full((m, p), 7, np.float32))
    np.testing.assert_array_equal(found, np.zeros((m, p)))


def test_matrices_with_gaps_are_refused(product):
    with pytest.raises(ValueError, match="in rows or in columns without gaps"):
        product(np.ones((4, 8), np.uint16)[:, ::2], np.ones((4, 1), np.uint16), np.empty((4, 1), np.float32))


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
