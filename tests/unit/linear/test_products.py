"""The two products that row sources are made of, and what is computed for each row."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from tests.private_names import (
    Cascade,
    SoftmaxLoss,
    add_products,
    dot_error,
    largest_singular_value,
    row_norm_bounds,
    row_products,
)

rng = np.random.default_rng(0)


@pytest.mark.covering
@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("order", ["C", "F"])
@pytest.mark.parametrize(
    ("rows", "d_in", "m"),
    [(1000, 513, 10), (300, 2049, 100), (70, 64, 1), (5, 3, 2), (0, 3, 2), (129, 40, 3)],
)
def test_products_of_rows_with_points(order, dtype, rows, d_in, m):
    X = np.asarray(rng.normal(size=(rows, d_in)), dtype, order=order)
    W = rng.normal(size=(m, d_in))
    wider = np.c_[W, W[:, :1]].astype(dtype, order="F")
    for points in (W.astype(dtype, order="F"), W.astype(dtype), wider[:, :-1]):
        out = np.full((rows, m), np.nan, dtype)
        found = row_products(X, points, out)
        assert points.dtype == dtype and (np.shares_memory(found, out) or rows == 0)
        exact, sizes = X.astype("f8") @ points.T.astype("f8"), np.abs(X) @ np.abs(points.T)
        assert np.all(np.abs(found - exact) <= dot_error(d_in + 1, points.dtype) * sizes)


def test_narrow_rows_are_multiplied_in_parts_and_come_out_column_by_column():
    X, points = np.asfortranarray(rng.normal(size=(40_000, 20))), rng.normal(size=(3, 20))
    found = row_products(X, points, np.empty((40_000, 3)))
    assert found.flags.f_contiguous
    np.testing.assert_allclose(found, X @ points.T, rtol=1e-10, atol=1e-10)


@pytest.mark.parametrize("order", ["C", "F"])
@pytest.mark.parametrize("labels", [np.int8, np.uint16, np.int64])
def test_labels_of_any_whole_type_are_subtracted(order, labels):
    y = np.arange(5_000, dtype=np.int64) % 7
    R = SoftmaxLoss(7).residuals(np.zeros((5_000, 7), order=order), y.astype(labels))
    np.testing.assert_allclose(R, 1 / 7 - np.eye(7)[y], atol=1e-15)


@pytest.mark.parametrize(
    ("k", "d_in", "panel_rows"), [(10, 1025, 384), (3, 700, 384), (100, 513, 48), (1, 3000, 384)]
)
def test_sums_of_panels(k, d_in, panel_rows):
    """The same numbers but for rounding, with a constant column or without."""
    X, C = rng.normal(size=(1000, d_in)).astype("f4"), rng.normal(size=(1000, k)).astype("f4")
    exact, sizes = C.T.astype("f8") @ X.astype("f8"), np.abs(C.T) @ np.abs(X)
    for layout in (C, np.asfortranarray(C)):
        for appended in (None, 0.5):
            total = Cascade()
            add_products(X, layout, total, panel_rows, appended=appended)
            error = dot_error(panel_rows, np.dtype("f4"))
            assert np.all(np.abs(total.value[:, :d_in] - exact) <= error * sizes)
            if appended is not None:
                np.testing.assert_allclose(total.value[:, d_in], 0.5 * C.sum(axis=0, dtype="f8"), atol=1e-4)


@given(
    st.sampled_from([np.float32, np.float64]),
    hnp.arrays(
        np.float64,
        st.tuples(st.integers(1, 4), st.sampled_from([1, 3, 40])),
        elements=st.one_of(st.floats(-3, 3), st.sampled_from([0.0, 1e-30, 1e-20, 1e6, 1e18, 3e30])),
    ),
)
def test_bounds_on_row_lengths_are_bounds_and_close(dtype, values):
    C = values.astype(dtype)
    exact = np.linalg.norm(C.astype(np.longdouble), axis=1)
    for layout in (C, np.asfortranarray(C)):
        with np.errstate(over="ignore"):
            bounds = row_norm_bounds(layout)
        assert np.all(bounds >= exact)
        assert np.all(bounds <= exact * (1 + 1e-4) + 1e-18)


def test_lengths_that_are_not_finite_are_not():
    with np.errstate(all="ignore"):
        bounds = row_norm_bounds(np.array([[np.nan, 1], [np.inf, 1], [3, 4]], dtype=np.float32))
    assert not np.isfinite(bounds[:2]).any()
    assert bounds[2] == pytest.approx(5)


@pytest.mark.covering
@pytest.mark.parametrize("shape", [(3, 8), (8, 3), (0, 3), (1, 1)])
@pytest.mark.parametrize("scale", [1.0, 1e-200, 1e200, 0.0])
def test_the_largest_singular_value(shape, scale):
    X = scale * rng.normal(size=shape)
    expected = np.linalg.norm(X, ord=2) if X.size else 0.0
    assert largest_singular_value(X) == pytest.approx(expected, rel=1e-12, abs=0)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_softmax_residuals_of_a_row_depend_on_that_row_alone(dtype):
    """Bit for bit, whether the other rows have moderate outputs, large ones, or none that are numbers."""
    Z, y = rng.normal(scale=9, size=(64, 4)).clip(-39, 39).astype(dtype), rng.integers(4, size=64)
    # Large outputs, small ones, and none that are numbers; the first of them next to each of the others.
    far = [[45.0, 0, -90, 1], [500, 0, 0, 0], [-70, -80, -90, -60], [np.nan, np.inf, 0, 0]]

    def residuals(*last):
        # As many rows each time: how sums are rounded depends on the shape of the outputs.
        return SoftmaxLoss(4).residuals(np.concatenate([Z[:62], last]).astype(dtype), y)

    moderate, first = residuals(Z[62], Z[63]), residuals(far[0], Z[63])
    for other in far:
        found = residuals(far[0], other)
        np.testing.assert_array_equal(found[:62], moderate[:62])
        np.testing.assert_array_equal(found[62], first[62])


@pytest.mark.parametrize("scale", [0.0, 1.0, 49.0, 1e3, 1e30])
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_softmax_residuals_of_moderate_and_of_large_outputs(scale, dtype):
    Z = (scale * rng.uniform(-1, 1, size=(50, 6))).astype(dtype)
    y = rng.integers(6, size=50)
    wide = Z.astype(np.longdouble)
    P = np.exp(wide - wide.max(axis=1, keepdims=True))
    expected = P / P.sum(axis=1, keepdims=True) - np.eye(6)[y]
    eps = np.finfo(dtype).eps
    for layout in ("C", "F"):
        found = SoftmaxLoss(6).residuals(np.array(Z, order=layout), y)
        assert found.dtype == dtype
        np.testing.assert_allclose(found, expected.astype(float), rtol=0, atol=100 * eps)
