"""Faster ways to what plain NumPy computes."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from skmixdp._kernels import Cascade, add_products, dot_error, laid_out, onednn, openblas, row_products
from skmixdp._kernels.accelerators import Measured
from skmixdp._linear import SoftmaxLoss, largest_singular_value, row_norm_bounds

rng = np.random.default_rng(0)


@pytest.mark.parametrize("kernels", [True, False], ids=["in panels", "plain"])
@pytest.mark.parametrize("order", ["C", "F"])
@pytest.mark.parametrize(
    ("rows", "d_in", "m"),
    [(1000, 513, 10), (300, 2049, 100), (70, 64, 1), (5, 3, 2), (0, 3, 2), (129, 40, 3)],
)
def test_products_of_rows_with_points(monkeypatch, kernels, order, rows, d_in, m):
    monkeypatch.setattr(openblas, "has_small_kernels", lambda: kernels)
    X = np.asarray(rng.normal(size=(rows, d_in)), order=order)
    points = np.asfortranarray(rng.normal(size=(m, d_in)))
    out = np.full((rows, m), np.nan)
    found = row_products(X, points, out)
    assert np.shares_memory(found, out) or rows == 0
    np.testing.assert_allclose(found, X @ points.T, rtol=1e-10, atol=1e-10)


@pytest.mark.parametrize(("rows", "d_in", "m"), [(1000, 513, 10), (17, 768, 30), (300, 2049, 2), (5, 100, 3)])
def test_products_by_the_kernel_along_rows_come_out_column_by_column(monkeypatch, rows, d_in, m):
    monkeypatch.setattr(openblas, "has_small_kernels", lambda: True)
    X = rng.normal(size=(rows, d_in + 3)).astype("f4")[:, :d_in]
    W = rng.normal(size=(m, d_in))
    points = np.ascontiguousarray(W, dtype="f4")
    assert openblas.accelerator.prefers_rows(points, "f4")
    out = np.full((rows, m), np.nan, "f4")
    found = openblas.accelerator.row_products(X, points, out)
    assert found.flags.f_contiguous and np.shares_memory(found, out)
    error = dot_error(d_in, found.dtype)
    assert np.all(np.abs(found - X.astype("f8") @ points.T) <= error * (np.abs(X) @ np.abs(points.T)))


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


def emulated(A, B, out):
    """What stands for oneDNN where that is not installed."""
    return np.matmul(A, B, out=out)


@pytest.fixture(params=["oneDNN", "oneDNN for all", "none"])
def library(request, monkeypatch):
    """Who multiplies float32 matrices, and how often it was asked."""
    asked = []
    product = onednn.float32_product() or emulated if request.param != "none" else None

    def counted(A, B, out):
        asked.append(A.shape)
        return product(A, B, out)

    monkeypatch.setattr(onednn, "product_of", lambda dtype: counted if product and dtype == "f4" else None)
    monkeypatch.setattr(onednn, "is_one_pool", lambda: request.param == "oneDNN for all")
    # No matter which library is faster here.
    monkeypatch.setattr(Measured, "_is_faster", lambda self, kind, d_in, m, dtype: dtype == np.float32)
    return request.param, asked


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize(
    ("rows", "d_in", "m", "by"),
    [(700, 180, 100, "oneDNN"), (2000, 513, 5, "oneDNN for all"), (300, 2049, 64, "oneDNN"), (9, 5, 100, "")],
)
def test_products_and_sums_of_many_rows(library, dtype, rows, d_in, m, by):
    """The same but for rounding, whoever multiplies; oneDNN where that was found to pay."""
    who, asked = library
    X = rng.normal(size=(rows, d_in)).astype(dtype)
    W, C = rng.normal(size=(m, d_in)), rng.normal(size=(rows, m)).astype(dtype)
    P = laid_out(W, dtype)
    assert P.dtype == dtype
    error = dot_error(max(rows, d_in), P.dtype)
    for points in (P, W.astype(dtype), laid_out(np.c_[W, W[:, :1]], dtype)[:, :-1]):
        found = row_products(X, points, np.full((rows, m), np.nan, dtype))
        exact, sizes = X.astype("f8") @ points.T.astype("f8"), np.abs(X) @ np.abs(points.T)
        assert np.all(np.abs(found - exact) <= error * sizes)
    for layout in (C, np.asfortranarray(C), np.c_[C, C][:, ::2]):
        exact, sizes = layout.T.astype("f8") @ X.astype("f8"), np.abs(layout.T) @ np.abs(X)
        total = Cascade()
        add_products(total, layout, X)
        assert np.all(np.abs(total.value - exact) <= error * sizes)
    assert bool(asked) == (dtype == "float32" and who != "none" and by in (who, "oneDNN"))


def test_onednn_gets_points_without_gaps(monkeypatch):
    given = []

    def product(A, B, out):
        given.append(A)
        return np.matmul(A, B, out=out)

    monkeypatch.setattr(onednn, "product_of", lambda dtype: product)
    X, W = rng.normal(size=(700, 180)).astype("f4"), rng.normal(size=(100, 181)).astype("f4")
    for points in (W[:, :-1], np.asfortranarray(W)[:, :-1]):
        found = onednn.accelerator.row_products(X, points, np.empty((700, 100), "f4"))
        np.testing.assert_allclose(found, X @ points.T, atol=1e-3)
    assert given[0].flags.c_contiguous and given[1].flags.f_contiguous


def test_panels_are_small_enough_for_the_kernels_and_large_enough_to_gain():
    for d_in in (1, 64, 513, 2049, 50_000):
        for m in (2, 10, 30):
            rows, columns = openblas.panel_of(d_in, m)
            assert rows >= 64 and rows * columns * m <= 1_000_000
            dots = openblas.dot_rows(d_in, m)
            assert dots == 0 or (dots >= 16 and dots * m <= 1200 and dots * d_in * m <= 1_000_000)
    assert openblas.dot_rows(512, 10) == 112 and openblas.dot_rows(512, 100) == 0
    assert openblas.panel_of(64, 160)[0] == 64
    assert openblas.panel_of(512, 77) == openblas.panel_of(512, 10_000) == (0, 0)


@pytest.mark.parametrize("kernels", [True, False], ids=["in panels", "plain"])
@pytest.mark.parametrize(
    ("k", "d_in", "panel_rows"), [(10, 1025, 384), (3, 700, 384), (100, 513, 48), (1, 3000, 384)]
)
def test_sums_of_panels(monkeypatch, kernels, k, d_in, panel_rows):
    """The same numbers but for rounding, with a constant column or without."""
    monkeypatch.setattr(openblas, "has_small_kernels", lambda: kernels)
    X, C = rng.normal(size=(1000, d_in)).astype("f4"), rng.normal(size=(1000, k)).astype("f4")
    exact, sizes = C.T.astype("f8") @ X.astype("f8"), np.abs(C.T) @ np.abs(X)
    for layout in (C, np.asfortranarray(C)):
        for appended in (None, 0.5):
            total = Cascade()
            add_products(total, layout, X, panel_rows=panel_rows, appended=appended)
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
