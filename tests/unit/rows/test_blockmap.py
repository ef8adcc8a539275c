import numpy as np
import pytest

from tests.private_names import BlockMap, RowMap, Whitening, finite_rows, largest_entries, row_norms, widen
from tests.rounding import assert_close, assert_relative


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


MEAN = np.arange(5) / 7
WHITENING = Whitening(np.linalg.qr(np.random.default_rng(1).normal(size=(5, 2)))[0].T, np.array([0.9, 0.02]))
MAPS = [
    *(RowMap(None, False, None), RowMap(MEAN, True, 0.4), RowMap(MEAN, False, None)),
    *(RowMap(MEAN, True, 0.4, WHITENING), RowMap(MEAN, False, 0.4, WHITENING)),
    *(RowMap(None, True, None, WHITENING),),
]


def with_intercept(rows, value):
    return rows if value is None else np.column_stack([rows, np.full(len(rows), value, rows.dtype)])


@pytest.mark.covering
@pytest.mark.parametrize("source", ["float16", "float32", "float64"])
@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("row_map", MAPS, ids=str)
def test_blocks_are_mapped_as_the_row_map_does(source, dtype, row_map):
    X = np.random.default_rng(0).normal(size=(30, 5)).astype(source)
    X[3] = 0
    blocks = BlockMap(row_map, np.dtype(source), np.dtype(dtype))
    assert blocks.single == (source != "float64" and dtype == "float32")
    assert blocks.whitening is row_map.whitening
    out = np.empty((40, 5), dtype)
    measured = blocks.measured(X, out)
    mapped = blocks(X, measured.factors, out)
    assert mapped.dtype == measured.factors.dtype == dtype
    lacks_intercept = blocks.single or row_map.whitening is not None
    assert blocks.appended == (row_map.intercept_value if lacks_intercept else None)
    if row_map.whitening is not None:
        mapped = row_map.whitening(mapped)
    want = row_map(X, np.float64)
    mapped = with_intercept(mapped, blocks.appended)
    # Rows that are nearly all along what is shortened are as exact as they were before.
    np.testing.assert_allclose(mapped, want, rtol=1e-5 if dtype == "float32" else 1e-9, atol=1e-6)
    assert_relative(measured.norms, row_norms(want), 1e-5 if dtype == "float32" else 1e-9)
    if row_map.whitening is None:
        assert measured.max_abs is None
    else:
        np.testing.assert_allclose(measured.max_abs, largest_entries(want), atol=1e-5)


def test_rows_on_a_grid_are_whitened_themselves():
    X = np.random.default_rng(0).normal(size=(30, 5))
    row_map = MAPS[3]
    blocks = BlockMap(row_map, X.dtype, X.dtype, grid=2.0**-20)
    assert blocks.whitening is None and blocks.appended is None
    measured = blocks.measured(X, X)
    mapped = blocks(X, measured.factors, X)
    np.testing.assert_array_equal(mapped * 2**20, np.round(row_map(X, np.float64) * 2**20))
    np.testing.assert_array_equal(measured.norms, row_norms(mapped))


def test_rows_that_would_be_made_of_rounding_are_whitened_themselves():
    X = np.random.default_rng(0).normal(size=(30, 5)).astype(np.float32)
    row_map = RowMap(MEAN, True, None, Whitening(np.eye(1, 5), np.array([1e-6])))
    blocks = BlockMap(row_map, X.dtype, X.dtype)
    assert blocks.whitening is None and not blocks.single
    np.testing.assert_array_equal(blocks(X, blocks.measured(X, X).factors, X), row_map(X, np.float32))


FAR = {
    "huge": ([3e38, 3e38, 0, 0, 0], np.float32),
    "tiny": ([1e-30, 0, 0, 0, 0], np.float32),
    "subnormal": ([1e-42, 2e-44, 0, 0, 0], np.float32),
    "tiny half": ([1e-5, 0, 0, 0, 0], np.float16),
    "subnormal half": ([6e-8, 6e-8, 0, 0, 0], np.float16),
}


@pytest.mark.parametrize("whitening", [None, WHITENING], ids=["not whitened", "whitened"])
@pytest.mark.parametrize("name", FAR)
def test_a_row_out_of_the_reach_of_single_precision_is_mapped_by_the_row_map(name, whitening):
    """And no other row: what comes out for the others is the same, bit for bit."""
    row, dtype = FAR[name]
    row_map = RowMap(None, True, None, whitening)
    ordinary = np.random.default_rng(3).normal(size=(30, 5)).astype(dtype)
    ordinary[7] = 0
    changed = ordinary.copy()
    changed[4] = row
    found = []
    for X in (ordinary, changed):
        blocks = BlockMap(row_map, X.dtype, np.dtype(np.float32))
        measured = blocks.measured(X, np.empty((40, 5), np.float32))
        mapped = blocks(X, measured.factors, np.empty((40, 5), np.float32)).copy()
        found.append([mapped, measured.norms, measured.factors])
        want = row_map(X, np.float64)
        wide = mapped if whitening is None else whitening(mapped)
        np.testing.assert_allclose(wide, want, rtol=1e-5, atol=1e-6)
        assert_relative(measured.norms, row_norms(want), 1e-5)
        assert np.all(measured.norms >= row_norms(wide) * (1 - 1e-12))
    others = np.arange(30) != 4
    for before, after in zip(*found, strict=True):
        np.testing.assert_array_equal(before[others], after[others])
    assert found[0][2][4] > 0 > found[1][2][4]


@pytest.mark.parametrize("whitening", [None, WHITENING], ids=["not whitened", "whitened"])
def test_rows_within_the_reach_of_single_precision_are_mapped_in_it(whitening):
    row_map = RowMap(None, True, None, whitening)
    for dtype, large in ((np.float32, 1e17), (np.float16, 6e4)):
        X = np.array([[large, 0, 0, 0, 0], [0] * 5, [3, 4, 0, 0, 0]], dtype)
        measured = BlockMap(row_map, X.dtype, np.dtype("f4")).measured(X, np.empty((4, 5), "f4"))
        assert np.all(measured.factors > 0)
        np.testing.assert_allclose(measured.norms, [1, 0, 1], atol=1e-5)
    far = RowMap(np.array([1e300, 0, 0, 0, 0]), True, None, whitening)
    assert not BlockMap(far, np.dtype(np.float32), np.dtype(np.float32)).single


def test_half_precision_rows_whose_factor_would_overflow_are_mapped_by_the_row_map():
    """A whitening that shortens them makes the factors of the shortest ones too large."""
    X = np.array([[2e-4, 0, 0, 0, 0]], np.float16)
    along = RowMap(None, True, None, Whitening(np.eye(1, 5), np.array([0.01])))
    out = np.empty((1, 5), np.float32)
    assert BlockMap(RowMap(None, True, None), X.dtype, out.dtype).measured(X, out).factors > 0
    blocks = BlockMap(along, X.dtype, out.dtype)
    factors = blocks.measured(X, out).factors
    assert factors < 0
    assert_close(blocks.whitening(blocks(X, factors, out)), [[1, 0, 0, 0, 0]], 1e-4)
