"""The penalised loss and the inverse of its gradient map against dense references."""

import numpy as np
import pytest

from tests.private_names import (
    LogisticLoss,
    MultilabelLoss,
    PenalizedLoss,
    SoftmaxLoss,
    SquaredLoss,
    WeightedLoss,
    mirror,
    with_weights,
)
from tests.rounding import assert_close

D = 6
LOSSES = {
    "squared": SquaredLoss(2),
    "logistic": LogisticLoss(),
    "softmax": SoftmaxLoss(4),
    "labels": MultilabelLoss(3),
}


def make(name, n, l2=0.03, seed=0):
    loss = LOSSES[name]
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, D)) * np.linspace(0.2, 2, D)
    y = labels_of(name, n, rng)
    return PenalizedLoss(X, y, loss, l2), X, y, rng


def labels_of(name, n, rng):
    if name == "squared":
        return rng.normal(size=(n, 2))
    k = LOSSES[name].n_outputs
    return rng.integers(2, size=(n, k)) if name == "labels" else rng.integers(max(k, 2), size=n)


def dense_hessian(psi, X, W, l2):
    k = len(W)
    H = l2 * np.eye(k * D)
    for x, z in zip(X, X @ W.T, strict=True):
        inner = np.stack([psi.hessian_product(z[None], e[None])[0] for e in np.eye(k)])
        H += np.kron(inner, np.outer(x, x)) / len(X)
    return H


@pytest.mark.parametrize("name", LOSSES)
def test_output_hessians_are_the_derivatives_of_the_residuals(name):
    loss, (psi, _, _, rng) = LOSSES[name], make(name, 3, seed=1)
    Z, V = rng.normal(size=(2, 7, loss.n_outputs))
    y = labels_of(name, 7, rng)
    step = 1e-5
    numeric = (loss.residuals(Z + step * V, y) - loss.residuals(Z - step * V, y)) / (2 * step)
    np.testing.assert_allclose(psi.hessian_product(Z, V), numeric, atol=1e-8)
    units = [psi.hessian_product(Z, np.tile(e, (7, 1)))[:, i] for i, e in enumerate(np.eye(loss.n_outputs))]
    np.testing.assert_allclose(psi._hessian_diagonal(Z), np.stack(units, axis=1), atol=1e-14)


@pytest.mark.covering
@pytest.mark.parametrize("name", LOSSES)
@pytest.mark.parametrize("n", [3, 6, 40])
def test_the_gradient_is_that_of_the_formula(name, n):
    psi, X, y, rng = make(name, n)
    W = rng.normal(size=(LOSSES[name].n_outputs, D))
    expected = LOSSES[name].residuals(X @ W.T, y).T @ X / n + 0.03 * W
    np.testing.assert_allclose(psi.gradient(W), expected, atol=1e-13)


@pytest.mark.covering
@pytest.mark.parametrize("name", LOSSES)
@pytest.mark.parametrize("n", [0, 3, 6, 40])
def test_heads_are_found_by_their_gradient(name, n):
    psi, _, _, rng = make(name, n)
    for size in (0.1, 3.0, 300.0):
        W = size * rng.normal(size=(LOSSES[name].n_outputs, D))
        found = psi.with_gradient(psi.gradient(W), np.zeros_like(W))
        np.testing.assert_allclose(found, W, atol=1e-9 * max(1, size), err_msg=f"heads of size {size}")


@pytest.mark.parametrize("name", LOSSES)
def test_any_gradient_is_reached_where_there_is_a_penalty(name):
    psi, _, _, rng = make(name, 12, l2=1e-4)
    G = rng.normal(size=(LOSSES[name].n_outputs, D))  # far outside the range of the bare loss's gradient
    W = psi.with_gradient(G, 0 * G)
    np.testing.assert_allclose(psi.gradient(W), G, atol=1e-12 * np.linalg.norm(G))


@pytest.mark.parametrize("name", LOSSES)
def test_weighted_rows_count_as_often_as_their_weights(name, monkeypatch):
    """The Hessians of Newton's method have the weights too, or 60 steps would not be enough."""
    monkeypatch.setattr(mirror, "_NEWTON_STEPS", 12)
    _, X, y, rng = make(name, 30)
    times = np.array([1, 2, 12])[np.arange(30) % 3]
    repeated = PenalizedLoss(np.repeat(X, times, axis=0), np.repeat(y, times, axis=0), LOSSES[name], 0.03)
    psi = PenalizedLoss(X, with_weights(y, times / times.mean()), WeightedLoss(LOSSES[name]), 0.03)
    W = rng.normal(size=(LOSSES[name].n_outputs, D))
    assert_close(psi.gradient(W), repeated.gradient(W))
    np.testing.assert_allclose(psi.moments, repeated.moments, atol=1e-12)
    np.testing.assert_allclose(psi.with_gradient(psi.gradient(W), 0 * W), W, atol=1e-9)


@pytest.mark.parametrize("l2", [1e-20, 1e-300, 5e-324])
@pytest.mark.parametrize("name", LOSSES)
def test_terms_that_cancel_leave_their_rounding(name, l2):
    """Nothing but rounding is left of a mean of long terms at its minimum, however small the penalty."""
    psi, X, _, _ = make(name, 300, l2)
    W = psi.with_gradient(np.zeros((LOSSES[name].n_outputs, D)), np.zeros((LOSSES[name].n_outputs, D)))
    longest = 2 * np.linalg.norm(X, axis=1).max()
    assert np.linalg.norm(psi.gradient(W)) <= 100 * np.finfo(float).eps * longest


@pytest.mark.parametrize("far", [np.nan, np.inf, -np.inf, 1e200, 1.7e308])
@pytest.mark.parametrize("name", LOSSES)
def test_a_gradient_of_no_finite_length_has_no_head(name, far):
    psi, _, _, _ = make(name, 12, 1.0)
    G = np.zeros((LOSSES[name].n_outputs, D))
    G[0, 0] = far
    with np.errstate(all="ignore"):
        found = psi.with_gradient(G, np.zeros_like(G))
    if name != "squared":
        assert np.isnan(found).all()
    elif not np.isfinite(far):
        assert not np.isfinite(found).all()


def test_a_solver_that_does_not_arrive_says_so(monkeypatch):
    psi, _, _, rng = make("softmax", 12)
    monkeypatch.setattr(mirror, "_NEWTON_STEPS", 1)
    with pytest.raises(
        RuntimeError, match=r"did not converge: after 1 Newton steps .* smaller learning_rate"
    ):
        psi.with_gradient(rng.normal(size=(4, D)), np.zeros((4, D)))


@pytest.mark.parametrize("n", [3, 40])
def test_the_smallest_curvature_bounds_the_hessian(n):
    for name, loss in LOSSES.items():
        psi, X, _, rng = make(name, n)
        values = np.linalg.eigvalsh(dense_hessian(psi, X, rng.normal(size=(loss.n_outputs, D)), 0.03))
        assert values[0] >= psi.smallest_curvature * (1 - 1e-9)
        if loss.quadratic:
            assert values[0] == pytest.approx(psi.smallest_curvature)


def test_noise_gain_equals_leaving_each_row_out():
    psi, X, _, _ = make("squared", 15)
    W = np.zeros((2, D))
    H = X.T @ X / 15 + 0.03 * np.eye(D)
    moved = [np.linalg.norm(np.linalg.solve(H - np.outer(x, x) / 15, x)) for x in X]
    expected = psi.smallest_curvature * np.sqrt(np.mean(np.square(moved)) / np.mean(np.sum(X**2, axis=1)))
    assert psi.noise_gain(W) == pytest.approx(expected)


def test_relative_curvature_estimates_that_of_the_rows_law():
    rng = np.random.default_rng(3)
    X = rng.normal(size=(90, 30)) * np.linspace(0.1, 3, 30)
    psi = PenalizedLoss(X, rng.normal(size=(90, 1)), SquaredLoss(1), 1e-3)
    H = X.T @ X / 90 + 1e-3 * np.eye(30)
    true = np.linalg.eigvals(np.linalg.solve(H, np.diag(np.linspace(0.1, 3, 30) ** 2))).real.max()
    estimate = psi.relative_curvature(np.zeros((1, 30))) / psi.smallest_curvature
    assert 0.5 < estimate / true < 2


def test_without_rows_the_geometry_is_flat():
    psi = PenalizedLoss(np.empty((0, D)), np.empty(0, int), SoftmaxLoss(3), 0.2)
    W = np.ones((3, D))
    assert psi.noise_gain(W) == 1.0
    assert psi.relative_curvature(W) == np.inf
    assert_close(psi.gradient(W), 0.2 * W)
    zero = PenalizedLoss(np.zeros((4, D)), np.zeros(4, int), SoftmaxLoss(3), 0.2)
    assert zero.noise_gain(W) == 1.0
