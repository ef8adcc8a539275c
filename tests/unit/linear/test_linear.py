"""Closed forms of the head against dense references."""

import numpy as np
import pytest
from scipy.optimize import check_grad

from tests.private_names import (
    LogisticLoss,
    MultilabelLoss,
    RowMap,
    SoftmaxLoss,
    SquaredLoss,
    TargetMap,
    classification_loss,
    orthonormal_columns,
    predicted_classes,
    remove_mean_output,
    row_dots,
    row_norm_bounds,
    row_norms,
    scale_rows,
    shorten_rows,
)
from tests.rounding import assert_close, assert_relative

rng = np.random.default_rng(0)
LOSSES = [LogisticLoss(), SoftmaxLoss(3), SoftmaxLoss(7)]


@pytest.mark.parametrize("loss", LOSSES, ids=lambda loss: f"{type(loss).__name__}-{loss.n_outputs}")
class TestLosses:
    def test_residuals_are_the_gradient_of_the_values(self, loss):
        for y in range(max(loss.n_outputs, 2)):
            label = np.array([y])
            error = check_grad(
                lambda z, label=label: loss.values(z[None], label)[0],
                lambda z, label=label: loss.residuals(z[None].copy(), label)[0],
                rng.normal(size=loss.n_outputs),
            )
            assert error < 1e-6

    def test_bounds_hold_and_are_reached(self, loss):
        classes = max(loss.n_outputs, 2)
        Z = rng.normal(size=(5000, loss.n_outputs)) * rng.choice([0.1, 1, 10, 100], size=(5000, 1))
        y = rng.integers(classes, size=5000)
        lengths = row_norms(loss.residuals(Z.copy(), y))
        assert lengths.max() <= loss.lipschitz * (1 + 1e-12)
        assert lengths.max() > 0.99 * loss.lipschitz
        curvature = 0.0
        for z in Z[np.abs(Z).max(axis=1) < 30][:500]:
            step = 1e-5 * np.eye(loss.n_outputs)
            hessian = [
                (loss.residuals((z + s)[None], y[:1])[0] - loss.residuals((z - s)[None], y[:1])[0]) / 2e-5
                for s in step
            ]
            curvature = max(curvature, np.linalg.eigvalsh(hessian)[-1])
        assert curvature <= loss.curvature * (1 + 1e-6)
        assert curvature > 0.8 * loss.curvature

    def test_extreme_logits_stay_finite(self, loss):
        Z = np.array([[800.0] * loss.n_outputs, [-800.0] * loss.n_outputs])
        Z[0, -1] = -800
        y = np.array([0, 1])
        assert np.isfinite(loss.values(Z.copy(), y)).all()
        assert np.isfinite(loss.residuals(Z.copy(), y)).all()

    def test_sum_to_zero_is_stated_where_it_is_true(self, loss):
        R = loss.residuals(rng.normal(size=(50, loss.n_outputs)), rng.integers(2, size=50))
        assert loss.sum_to_zero == bool(np.allclose(R.sum(axis=1), 0, atol=1e-12))

    def test_dtype_is_kept(self, loss):
        Z = rng.normal(size=(4, loss.n_outputs)).astype(np.float32)
        assert loss.residuals(Z, np.zeros(4, int)).dtype == np.float32


def test_the_loss_of_several_labels_is_the_sum_of_those_of_each():
    loss, one = MultilabelLoss(3), LogisticLoss()
    Z, y = 5 * rng.normal(size=(40, 3)), rng.integers(2, size=(40, 3), dtype=np.int8)
    assert_close(loss.values(Z, y), sum(one.values(Z[:, [j]], y[:, j]) for j in range(3)))
    for dtype in ("float32", "float64"):
        own = Z.astype(dtype)
        apart = [one.residuals(own[:, [j]].copy(), y[:, j]) for j in range(3)]
        found = loss.residuals(own.copy(), y)
        assert found.dtype == dtype
        np.testing.assert_array_equal(found, np.hstack(apart))
    assert loss.curvature == one.curvature and not loss.has_classes and not loss.sum_to_zero


@pytest.mark.parametrize("k", [2, 5, 100])
def test_the_residuals_of_several_labels_reach_the_root_of_their_number(k):
    loss = MultilabelLoss(k)
    Z = rng.choice([-800.0, -30.0, 0.0, 2.0, 30.0, 800.0], size=(500, k))
    Z[0] = 800.0
    y = rng.integers(2, size=(500, k), dtype=np.int8)
    y[0] = 0
    lengths = row_norms(loss.residuals(Z, y))
    assert lengths[0] == pytest.approx(loss.lipschitz) == pytest.approx(np.sqrt(k))
    assert np.isfinite(lengths).all() and lengths.max() <= loss.lipschitz * (1 + 1e-12)


def test_two_classes_share_one_output_and_equal_a_softmax_of_two():
    loss = classification_loss(2)
    assert loss.n_outputs == 1
    assert classification_loss(3).n_outputs == 3
    z, y = rng.normal(size=(20, 1)), rng.integers(2, size=20)
    both = np.hstack([np.zeros_like(z), z])
    assert_close(loss.values(z, y), SoftmaxLoss(2).values(both, y))


def test_norms_of_float32_rows_are_accumulated_in_float64():
    X = np.full((1, 100_000), 0.1, dtype=np.float32)
    exact = np.sqrt(100_000) * float(np.float32(0.1))
    assert row_norms(X)[0] == pytest.approx(exact, rel=1e-12)


def test_removing_the_mean_output_is_an_orthogonal_projection():
    G, H = rng.normal(size=(2, 5, 3))
    P = remove_mean_output(G)
    np.testing.assert_allclose(P.sum(axis=0), 0, atol=1e-14)
    assert_close(remove_mean_output(P), P)
    assert np.vdot(P, H) == pytest.approx(np.vdot(G, remove_mean_output(H)))


class TestOrthonormalColumns:
    def test_it_spans_the_first_independent_directions(self):
        candidates = rng.normal(size=(6, 9))
        candidates /= np.linalg.norm(candidates, axis=1, keepdims=True)
        U = orthonormal_columns(candidates, 4)
        np.testing.assert_allclose(U.T @ U, np.eye(4), atol=1e-12)
        np.testing.assert_allclose(candidates[:4] @ U @ U.T, candidates[:4], atol=1e-12)
        assert np.linalg.norm(candidates[4] @ U) < 0.99

    def test_dependent_directions_are_passed_over_wherever_they_stand(self):
        e = np.eye(7)
        mixed = (e[0] + e[1]) / np.sqrt(2)
        U = orthonormal_columns(np.array([e[0], e[1], mixed, e[2], e[0], e[3]]), 4)
        np.testing.assert_allclose(U @ U.T, np.diag([1, 1, 1, 1, 0, 0, 0]), atol=1e-12)

    def test_it_stops_at_the_rank_that_is_reached(self):
        low = rng.normal(size=(10, 3)) @ rng.normal(size=(3, 8))
        low /= np.linalg.norm(low, axis=1, keepdims=True)
        assert orthonormal_columns(low, 8).shape == (8, 3)
        assert orthonormal_columns(np.empty((0, 8)), 5).shape == (8, 0)

    def test_more_candidates_than_dimensions(self):
        candidates = rng.normal(size=(20, 5))
        candidates /= np.linalg.norm(candidates, axis=1, keepdims=True)
        assert orthonormal_columns(candidates, 5).shape == (5, 5)


class TestRowMap:
    def test_it_centres_scales_and_appends(self):
        X, mean = rng.normal(size=(9000, 4)), rng.normal(size=4)
        rows = RowMap(mean, True, 0.3)(X, np.float64)
        centred = X - mean
        assert_close(rows[:, :4], centred / np.linalg.norm(centred, axis=1, keepdims=True))
        np.testing.assert_array_equal(rows[:, 4], 0.3)

    def test_it_acts_on_each_row_alone(self):
        X = rng.normal(size=(9000, 4))
        row_map = RowMap(X[0], True, None)
        order = rng.permutation(len(X))
        np.testing.assert_array_equal(row_map(X, np.float32)[order], row_map(X[order], np.float32))
        np.testing.assert_array_equal(row_map(X[7:8], np.float32), row_map(X, np.float32)[7:8])

    def test_features_are_not_overwritten(self):
        X = rng.normal(size=(5, 3))
        before = X.copy()
        RowMap(X[0], True, 1.0)(X, np.float64)
        np.testing.assert_array_equal(X, before)

    @pytest.mark.parametrize("value", [None, 0.5])
    def test_split_gives_the_same_outputs(self, value):
        X = rng.normal(size=(6, 4))
        row_map = RowMap(None, False, value)
        rows = row_map(X, np.float64)
        W = rng.normal(size=(3, rows.shape[1]))
        coef, intercept = row_map.split(W)
        assert_close(X @ coef.T + intercept, rows @ W.T)


class TestSquaredLoss:
    def test_residuals_are_the_gradient_of_the_values(self):
        loss, y = SquaredLoss(3), rng.normal(size=(1, 3))
        error = check_grad(
            lambda z: loss.values(z[None], y)[0],
            lambda z: loss.residuals(z[None].copy(), y)[0],
            rng.normal(size=3),
        )
        assert error < 1e-6

    def test_dtype_is_kept(self):
        assert SquaredLoss(2).residuals(np.zeros((4, 2), np.float32), np.ones((4, 2))).dtype == np.float32


class TestTargetMap:
    def test_it_is_undone_on_heads(self):
        y, X = 7 + 3 * rng.normal(size=(20, 2)), rng.normal(size=(20, 4))
        targets = TargetMap.of(y)
        unit = targets(y, np.float64)
        np.testing.assert_allclose(unit.mean(axis=0), 0, atol=1e-12)
        assert_close(unit.std(axis=0), 1)
        coef, intercept = rng.normal(size=(2, 4)), rng.normal(size=2)
        in_units = targets.to_units(coef, intercept)
        assert_close(targets(X @ in_units[0].T + in_units[1], np.float64), X @ coef.T + intercept)

    @pytest.mark.parametrize("value", [0.0, 0.1, -3.0, 1e300])
    def test_constant_targets_have_scale_one(self, value):
        targets = TargetMap.of(np.full((7, 1), value))
        assert targets.scale == 1
        assert targets.center == pytest.approx(value)

    @pytest.mark.parametrize("size", [1e-250, 1e250])
    def test_tiny_and_huge_targets(self, size):
        y = rng.normal(size=(9, 1))
        assert_close(TargetMap.of(size * y).scale / size, y.std(axis=0))

    def test_far_targets_stay_within_float32(self):
        far = TargetMap(np.zeros(1), np.array([1e-300]))(np.array([[1e300], [-1e300]]), np.float32)
        np.testing.assert_array_equal(far, [[np.float32(1e15)], [np.float32(-1e15)]])


class TestScaledRows:
    def test_rows_are_multiplied_in_place(self):
        C = rng.normal(size=(4, 3))
        before, factors = C.copy(), np.array([0.0, 0.5, 1.0, 2.0])
        np.testing.assert_array_equal(scale_rows(C, factors), factors)
        np.testing.assert_array_equal(C, before * factors[:, None])

    def test_what_a_dtype_cannot_hold_becomes_zero(self):
        C = np.array([[np.nan, 1], [1e38, 1], [1, 1], [1, 1]], dtype=np.float32)
        with np.errstate(over="ignore"):
            used = scale_rows(C, np.array([0.0, 100.0, 1e-40, 0.5]))
        np.testing.assert_array_equal(used, [0, 0, 0, 0.5])
        np.testing.assert_array_equal(C[:3], 0)


@pytest.mark.parametrize("order", ["C", "F"])
@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("shape", [(0, 3), (1, 3), (700, 3), (700, 1), (50, 40)])
class TestShortenedRows:
    @pytest.mark.covering
    def test_long_rows_are_scaled_to_the_bound_and_short_ones_stay(self, shape, dtype, order):
        C = np.asarray(rng.normal(size=shape), dtype=dtype, order=order)
        lengths = rng.uniform(0.1, 2, size=len(C)).astype(dtype)
        longest = 0.8 * shape[1] ** 0.5
        before = row_norms(C) * lengths
        expected = C * (longest / np.maximum(before, longest))[:, None]
        assert len(shorten_rows(C, lengths, longest)) == 0
        eps = float(np.finfo(dtype).eps)
        np.testing.assert_allclose(C, expected, rtol=(shape[1] + 20) * eps, atol=0)
        lengths = lengths.astype(np.longdouble)
        after = np.linalg.norm(C.astype(np.longdouble), axis=1) * lengths
        assert np.all(after <= longest * (1 + 2 * eps))
        if len(C) > 1:
            assert 0 < np.mean(before > longest) < 1

    @pytest.mark.covering
    def test_what_is_out_of_reach_is_left_and_changes_no_other_row(self, shape, dtype, order):
        if shape[0] < 50:
            return
        C = np.asarray(rng.normal(size=shape), dtype=dtype, order=order)
        near, lengths = C.copy(order="K"), np.ones(len(C), dtype)
        extreme = [np.nan, np.inf, -np.inf, 1e17, -3e30]
        C[: len(extreme), 0] = extreme
        before = C.copy()
        with np.errstate(over="ignore", invalid="ignore"):
            far = shorten_rows(C, lengths, 0.5)
        shorten_rows(near, lengths, 0.5)
        np.testing.assert_array_equal(far, np.arange(len(extreme)))
        np.testing.assert_array_equal(C[far], before[far])
        np.testing.assert_array_equal(C[len(far) :], near[len(far) :])


@pytest.mark.parametrize("order", ["C", "F"])
@pytest.mark.parametrize("shape", [(0, 40), (1, 40_000), (3, 20_000), (5000, 9), (5001, 40)])
def test_squares_are_added_in_double_precision_block_by_block(shape, order):
    X = np.asarray(1 + 1e-3 * rng.normal(size=shape), dtype=np.float32, order=order)
    exact = (X.astype(np.longdouble) ** 2).sum(axis=1)
    found = row_dots(X, X, np.float64)
    assert found.dtype == np.float64
    assert_relative(found, exact, 1e-13)
    # In single precision it would be seen.
    if shape[0]:
        assert np.abs(row_dots(X, X, np.float32) / exact - 1).max() > 1e-9


@pytest.mark.covering
@pytest.mark.parametrize("order", ["C", "F"])
@pytest.mark.parametrize("k", [2, 3, 10, 11])
@pytest.mark.parametrize("n", [0, 1, 500, 5000])
@pytest.mark.parametrize("special", [None, np.nan, np.inf, -np.inf])
def test_the_predicted_class_is_the_first_of_the_largest_outputs(n, k, order, special):
    # Whole numbers, so that many outputs are equal.
    Z = np.asarray(rng.integers(3, size=(n, k)).astype(np.float32), order=order)
    if special is not None:
        Z[rng.random(Z.shape) < 0.05] = special
    found = predicted_classes(Z)
    assert found.dtype == np.intp
    np.testing.assert_array_equal(found, Z.argmax(axis=1))


def test_lengths_of_rows_do_not_depend_on_how_many_others_overflow():
    many = (np.random.default_rng(0).normal(size=(2000, 40)) * 1e25).astype(np.float32)
    few = many.copy()
    few[10:] = 1
    np.testing.assert_array_equal(row_norm_bounds(many)[:10], row_norm_bounds(few)[:10])
