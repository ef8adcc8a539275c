import numpy as np
import pytest

from skmixdp.linear import BlockMap, RowMap, finite_rows, widen


def test_every_finite_half_precision_number_is_widened_exactly():
    every = np.arange(2**16, dtype=np.uint16).view(np.float16)
    finite = every[np.isfinite(every)].reshape(-1, 8)
    out = np.empty(finite.shape, np.float32)
    widen(finite, out)
    np.testing.assert_array_equal(out * np.float32(2.0**112), finite.astype(np.float32))
    np.testing.assert_array_equal(np.signbit(out), np.signbit(finite))


def test_other_rows_are_copied():
    X = np.arange(6, dtype=np.float32).reshape(2, 3)
    out = np.empty((2, 3), np.float32)
    widen(X, out)
    np.testing.assert_array_equal(out, X)


@pytest.mark.parametrize("dtype", ["float16", "float32", "float64"])
@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
def test_rows_that_are_not_finite_are_found(dtype, value):
    X = np.full((4, 3), np.finfo(dtype).max, dtype=dtype)
    X[2, 1] = value
    np.testing.assert_array_equal(finite_rows(X), [True, True, False, True])


@pytest.mark.parametrize("source", ["float16", "float32", "float64"])
@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize(
    "row_map",
    [RowMap(None, False, None), RowMap(np.arange(5) / 7, True, 0.4), RowMap(np.arange(5) / 7, False, None)],
    ids=str,
)
def test_blocks_are_mapped_as_the_row_map_does(source, dtype, row_map):
    X = np.random.default_rng(0).normal(size=(30, 5)).astype(source)
    X[3] = 0
    blocks = BlockMap(row_map, np.dtype(source), np.dtype(dtype))
    assert blocks.single == (source != "float64" and dtype == "float32")
    out = np.empty((40, 5), dtype)
    lengths = blocks.lengths(X, out)
    assert np.isfinite(lengths).all() == blocks.single
    mapped = blocks(X, blocks.factors(np.nan_to_num(lengths)), out)
    assert mapped.dtype == dtype
    assert blocks.appended == (row_map.intercept_value if blocks.single else None)
    want = row_map(X, dtype)
    if blocks.appended is not None:
        assert np.all(want[:, -1] == np.float32(blocks.appended))
        want = want[:, :-1]
    np.testing.assert_allclose(mapped, want, rtol=1e-5, atol=1e-6)


def test_rows_out_of_the_reach_of_single_precision_have_no_length_in_it():
    X = np.array([[3e38, 3e38], [1e-30, 0], [0, 0], [3, 4]], np.float32)
    out = np.empty((4, 2), np.float32)
    lengths = BlockMap(RowMap(None, True, None), X.dtype, X.dtype).lengths(X, out)
    np.testing.assert_array_equal(lengths, [np.nan, np.nan, 0, 5])
    half = np.array([[6e4, 0], [1e-5, 0], [0, 0], [3, 4]], np.float16)
    lengths = BlockMap(RowMap(None, True, None), half.dtype, X.dtype).lengths(half, out)
    np.testing.assert_array_equal(lengths, [half[0, 0], np.nan, 0, 5])
    far = RowMap(np.array([1e300, 0]), True, None)
    assert not BlockMap(far, X.dtype, X.dtype).single
