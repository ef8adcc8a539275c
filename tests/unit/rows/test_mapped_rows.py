"""Rows in memory after a map, in fast arrays."""

import weakref

import numpy as np
import pytest

from skmixdp import MixedDPLogisticRegression, RowMapping
from tests.asking import request_of
from tests.private_names import (
    NARROW,
    Columns,
    InMemoryRows,
    MappedRows,
    RowMap,
    Whitening,
    geometry_module,
    row_memory,
    row_norms,
)
from tests.rounding import assert_close, assert_relative

N = 700
WIDTHS = [7, 64, 200]


def rows_of(d, dtype="float32", seed=0):
    return np.random.default_rng(seed).normal(size=(N, d)).astype(dtype) + 0.5


def whitening_of(d, r=5):
    directions = np.linalg.qr(np.random.default_rng(1).normal(size=(d, r)))[0].T
    return Whitening(directions, np.linspace(0.1, 0.9, r))


def everything(source, d_in):
    """Sums of weighted rows, and of statistics of their products, lengths and entries."""
    points = np.random.default_rng(2).normal(size=(3, d_in))

    def contribute(Z, block):
        return Z * 1, np.column_stack([np.asarray(Z, np.float64), block.norms, block.max_abs])

    return source.private_sums([request_of(points, contribute)])[0]


def assert_same_sums(found, wanted, X, row_map, dtype):
    """Of `everything`: panels are added in double precision, so few roundings touch a term."""
    rows = np.abs(row_map(X.astype(np.float64), np.float64))
    Z = rows @ np.abs(np.random.default_rng(2).normal(size=(3, rows.shape[1]))).T
    vector = np.append(Z.sum(axis=0), [row_norms(rows).sum(), rows.max(axis=1).sum()])
    for one, other, terms in zip(found, wanted, (Z.T @ rows, vector), strict=True):
        assert_close(one, other, 16 * np.finfo(dtype).eps, terms=terms)


@pytest.mark.covering
@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("d", WIDTHS)
def test_an_appended_constant_is_a_column(d, dtype):
    X, row_map = rows_of(d, dtype), RowMap(np.full(d, 0.4), True, 0.3, whitening_of(d))
    source = InMemoryRows.mapped(X, np.zeros(N, int), row_map, np.dtype(dtype))
    expected = InMemoryRows(row_map(X, dtype), np.zeros(N, int))
    assert_same_sums(everything(source, d + 1), everything(expected, d + 1), X, row_map, dtype)


@pytest.mark.covering
@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("intercept", [None, 0.1, 1 / 3, 1e-20, 1e9])
@pytest.mark.parametrize("d", [1, *WIDTHS])
def test_no_row_is_longer_than_it_is_said_to_be(d, intercept, dtype):
    X = rows_of(d, dtype)
    X[: N // 2] *= 10.0 ** np.random.default_rng(3).uniform(-30, 30, size=(N // 2, 1))
    for row_map in (
        RowMap(np.full(d, 0.4), True, intercept),
        RowMap(np.full(d, 0.4), True, intercept, whitening_of(d, min(d, 5))),
        RowMap(np.full(d, 0.4), True, intercept, whitening_of(d, min(d, 5)), unit_first=True),
        RowMap(None, True, intercept, bound=2.0),
        RowMap(np.full(d, 0.4), True, intercept, whitening_of(d, min(d, 5)), bound=2.0),
        RowMap(None, True, intercept, columns=Columns(np.zeros(d), np.linspace(0.1, 1, d))),
    ):
        source, seen = InMemoryRows.mapped(X, np.zeros(N, int), row_map, np.dtype(dtype)), []
        rows = source._X.astype(np.longdouble)
        if source._appended is not None:  # in double precision, in which its sums are
            rows = np.column_stack([rows, np.full(N, source._appended, np.longdouble)])

        def look(Z, block, seen=seen):
            seen.append((block.norms, block.single_norms))
            return None, np.zeros((len(Z), 1))

        source.private_sums([request_of(np.ones((1, d + (intercept is not None))), look)])
        norms, single = (np.concatenate(parts) for parts in zip(*seen, strict=True))
        lengths = np.sqrt((rows**2).sum(axis=1))
        assert np.all(lengths <= norms * (1 + 2**-33)) and np.all(lengths <= single)
        assert np.all(norms <= lengths * (1 + 1e-6) + 1e-37) and norms.max() <= row_map.norm_bound


def test_a_row_of_zeros_ends_no_fit_whose_mean_is_shrunk_to_zero(monkeypatch):
    # Noise that hides the mean makes it exactly zero. The row then stays one of zeros, as in the neighbour.
    monkeypatch.setattr(geometry_module, "center_of", lambda mean, *args: np.zeros_like(mean))
    X, y = rows_of(200), np.arange(N) % 3
    X[3] = 0
    clf = MixedDPLogisticRegression(epsilon=0.01, classes=range(3), rows=RowMapping(whiten=False))
    assert np.all(np.isfinite(clf.fit(X, y).coef_))


def test_wide_rows_are_aligned_and_narrow_ones_are_columns():
    for d in (NARROW + 1, 200, 513):
        rows = row_memory(5, d, np.float32)
        assert rows.shape == (5, d) and rows.strides[1] == 4
        assert rows.ctypes.data % 64 == 0
        assert d < 128 or rows.strides[0] % 64 == 0
    assert row_memory(5, NARROW, np.float32).flags.f_contiguous


EXTREME = [1e-41, 1e-25, 1e-16, 1.0, 1e4, 1e16, 3e28]


@pytest.mark.parametrize("size", EXTREME)
@pytest.mark.parametrize("whitened", [False, True])
def test_an_extreme_row_is_mapped_like_any_other_and_changes_none(size, whitened):
    X, d = rows_of(40), 40
    row_map = RowMap(None, True, None, whitening_of(d) if whitened else None, unit_first=True)
    plain = row_map(X, np.float32)
    X[3] *= np.float32(size)
    found = row_map(X, np.float32)
    others = np.arange(N) != 3
    np.testing.assert_array_equal(found[others], plain[others])
    exact = row_map(X[3:4].astype(np.float64), np.float64)
    np.testing.assert_allclose(found[3:4], exact, atol=2e-6)


@pytest.mark.parametrize("size", [1e-150, 1.0, 1e150])
def test_a_clipped_row_of_any_size_has_at_most_the_bound(size):
    X = rows_of(20, "float64") * size
    for whitening in (None, whitening_of(20)):
        bound = 2.0 * size
        row_map = RowMap(None, True, None, whitening, bound=bound)
        lengths = row_norms(X if whitening is None else whitening(X / size) * size)
        expected = np.minimum(lengths / bound, 1.0)
        assert_relative(row_norms(row_map(X, np.float64)), expected, 1e-9)


def test_single_precision_rows_are_centred_by_the_whole_mean():
    """A mean that is rounded to single precision would move these rows together."""
    rng, d = np.random.default_rng(0), 200
    mean = 1e3 + rng.random(d)
    X = (mean + rng.normal(size=(N, d)) * 1e-2).astype(np.float32)
    found = RowMap(mean, True, None)(X, np.float32).mean(axis=0)
    expected = RowMap(mean, True, None)(X.astype(np.float64), np.float64).mean(axis=0)
    np.testing.assert_allclose(found, expected, atol=1e-6)


def test_a_default_fit_without_public_rows_holds_one_copy_of_wide_rows(monkeypatch):
    """The source of the first passes is gone when that of the training is opened."""
    opened = []
    open_ = MappedRows.open

    def open_alone(rows):
        assert not [source for source in opened if source() is not None]
        source = open_(rows)
        opened.append(weakref.ref(source))
        return source

    monkeypatch.setattr(MappedRows, "open", open_alone)
    rng = np.random.default_rng(0)
    y = np.arange(600) % 3
    X = (3 * np.eye(3, 150)[y] + rng.normal(size=(600, 150))).astype(np.float32)
    estimator = MixedDPLogisticRegression(epsilon=50.0, classes=range(3), random_state=0, noise="float")
    with pytest.warns(UserWarning, match="random_state"):
        estimator.fit(X, y)
    assert len(opened) == 5
    assert estimator.score(X, y) > 0.9
