"""The basis of public gradients against dense references, and its odd cases."""

import numpy as np
import pytest

from tests.private_names import GradientEmbedding, dot_error
from tests.rounding import assert_relative


def anchors(m=10, d=7, k=4, seed=0):
    rng = np.random.default_rng(seed)
    return rng.normal(size=(m, d)), rng.normal(size=(m, k))


def dense(X, R):
    """Gradients as long rows, (m, k d)."""
    return (R[:, :, None] * X[:, None, :]).reshape(len(X), -1)


@pytest.mark.covering
@pytest.mark.parametrize("scale", [1e-12, 1.0, 1e40])
@pytest.mark.parametrize("n_components", [None, 1, 4, 50])
def test_it_spans_the_leading_directions_of_the_gradients(n_components, scale):
    X, R = anchors()
    embedding = GradientEmbedding(scale * X, R, n_components)
    q = embedding.n_components
    assert q == min(n_components or 10, 10)
    directions = np.linalg.svd(dense(X, R))[2][:q]
    basis = np.array([embedding.gradient(row).ravel() for row in np.eye(q)])
    np.testing.assert_allclose(basis @ basis.T, np.eye(q), atol=1e-10)
    np.testing.assert_allclose(basis.T @ basis, directions.T @ directions, atol=1e-9)

    X_new, R_new = anchors(6, seed=1)
    z = embedding.coordinates(R_new, X_new @ embedding.X.T)
    np.testing.assert_allclose(z, dense(X_new, R_new) @ basis.T, atol=1e-9)


@pytest.mark.parametrize("n_components", [None, 19])
def test_all_directions_are_those_of_a_triangular_basis(n_components):
    X, R = anchors(19)
    embedding = GradientEmbedding(3 * X, R, n_components, products=9 * X @ X.T)
    z = embedding.coordinates(R, X @ embedding.X.T)
    np.testing.assert_allclose(z, np.linalg.cholesky((R @ R.T) * (X @ X.T)), atol=1e-12)


def test_the_sign_of_a_direction_is_not_left_to_rounding():
    X, R = anchors(20)
    embedding = GradientEmbedding(X, R, 19)
    z = embedding.coordinates(R, X @ embedding.X.T)
    assert np.all(z.max(axis=0) > -z.min(axis=0))


def test_dependent_gradients_are_dropped():
    X, R = anchors(5)
    twice = GradientEmbedding(np.vstack([X, X]), np.vstack([R, 2 * R]))
    assert twice.n_components == 5
    few = GradientEmbedding(*anchors(30, d=3, k=2))
    assert few.n_components == 6


@pytest.mark.parametrize("m", [0, 3])
def test_without_a_gradient_there_is_no_direction(m):
    X, _ = anchors(m)
    embedding = GradientEmbedding(X, np.zeros((m, 4)))
    assert embedding.n_components == 0
    np.testing.assert_array_equal(embedding.gradient(np.zeros(0)), np.zeros((4, 7)))
    assert embedding.coordinates(np.ones((2, 4)), np.ones((2, m))).shape == (2, 0)
    np.testing.assert_array_equal(embedding.held_out_residuals, np.zeros(m))
    np.testing.assert_array_equal(embedding.held_out_coordinates, np.zeros(m))


@pytest.mark.parametrize("odd", [np.nan, np.inf, -np.inf])
@pytest.mark.parametrize("n_components", [None, 2, 4, 50])
def test_gradients_that_are_not_finite_give_no_direction(n_components, odd):
    X, R = anchors(5)
    odd_ones, zeros = R.copy(), R.copy()
    odd_ones[3], zeros[3] = odd, 0.0
    found, expected = GradientEmbedding(X, odd_ones, n_components), GradientEmbedding(X, zeros, n_components)
    assert found.n_components == expected.n_components <= 4
    z = np.arange(1.0, 1 + found.n_components)
    np.testing.assert_array_equal(found.gradient(z), expected.gradient(z))
    assert GradientEmbedding(X, np.full_like(R, odd), n_components).n_components == 0


def left_out(G, n_components):
    """Lengths of each row within and outside the leading directions of the other rows."""
    inside, outside = [], []
    for j in range(len(G)):
        V = np.linalg.svd(np.delete(G, j, axis=0), full_matrices=False)[2][:n_components]
        inside.append(np.linalg.norm(V @ G[j]))
        outside.append(np.linalg.norm(G[j] - V.T @ (V @ G[j])))
    return np.array(inside), np.array(outside)


def test_held_out_lengths_are_those_of_leaving_one_row_out():
    X, R = anchors()
    found = GradientEmbedding(5 * X, R)
    inside, outside = left_out(5 * dense(X, R), None)
    assert_relative(found.held_out_residuals, outside, 1e-6)
    assert_relative(found.held_out_coordinates, inside, 1e-5)


def test_held_out_lengths_come_close_where_weak_directions_are_left_out():
    rng = np.random.default_rng(3)
    X = rng.normal(size=(60, 5)) @ rng.normal(size=(5, 30)) + 0.3 * rng.normal(size=(60, 30))
    R = rng.normal(size=(60, 3))
    found = GradientEmbedding(X, R, 12)
    inside, outside = left_out(dense(X, R), 12)
    for q in (0.5, 0.9):
        assert np.quantile(found.held_out_residuals, q) == pytest.approx(np.quantile(outside, q), rel=0.15)
        assert np.quantile(found.held_out_coordinates, q) == pytest.approx(np.quantile(inside, q), rel=0.15)
    total = np.linalg.norm(dense(X, R), axis=1)
    assert_relative(np.hypot(found.held_out_residuals, found.held_out_coordinates), total)


def test_the_error_of_a_dot_product_grows_with_its_length():
    single, double = np.dtype("float32"), np.dtype("float64")
    assert dot_error(1, single) == pytest.approx(2**-24)
    assert dot_error(1000, single) == pytest.approx(1000 * 2**-24, rel=1e-4)
    assert dot_error(1000, double) == pytest.approx(1000 * 2**-53)
    assert dot_error(2**24, single) == np.inf
