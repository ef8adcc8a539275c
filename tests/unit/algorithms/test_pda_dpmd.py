"""Mirror descent against a dense reference, and its cosine approximation."""

from dataclasses import replace

import numpy as np
import pytest

from skmixdp.algorithms import PDADPMD, NoisyGD
from skmixdp.components import CosineWeight
from skmixdp.components.protocols import PublicInfo
from skmixdp.components.public import PublicData
from skmixdp.privacy import NoiseSource
from tests.conftest import Problem, make_problem
from tests.private_names import InMemoryRows, PenalizedLoss, SquaredLoss

FLOAT = np.dtype("float64")
NO_CLIP = 1e6


def squared_problem(n_pub, d=5, k=2):
    rng = np.random.default_rng(2)
    truth = rng.normal(size=(k, d))
    X, X_pub = rng.normal(size=(200, d)), rng.normal(size=(n_pub, d))
    y, y_pub = X @ truth.T + rng.normal(size=(200, k)), X_pub @ truth.T + rng.normal(size=(n_pub, k))
    data = PublicData(X_pub, y_pub, SquaredLoss(k), l2=0.3)
    return Problem(X, y, PublicInfo(data.view(data.solution), 0.27, 200, 200.0, np.inf))


def trained(problem, algorithm, *, l2=0.0, rate=5.0):
    return problem.trained(problem.recipe(algorithm, l2=l2, learning_rate=rate), n_steps=6)[0]


def private_gradient(problem, W):
    return problem.info.view.data.loss.residuals(problem.X @ W.T, problem.y).T @ problem.X / len(problem.X)


@pytest.mark.parametrize("n_pub", [3, 30])
def test_squared_loss_is_the_dense_closed_form(n_pub):
    """Factorised once, normalised so that the inverse Hessian's largest eigenvalue is 1 (App. E)."""
    problem = squared_problem(n_pub)
    data = problem.info.view.data
    H = data.X.T @ data.X / n_pub + 0.3 / n_pub * np.eye(5)
    W, average = np.linalg.solve(H, data.X.T @ data.y / n_pub).T, 0
    np.testing.assert_allclose(problem.info.view.W, W, atol=1e-12)  # Psi's minimiser
    inverse = np.linalg.inv(H)
    inverse /= np.linalg.eigvalsh(inverse)[-1]
    for _ in range(6):
        W = W - 0.4 * private_gradient(problem, W) @ inverse
        average = average + W / 6
    np.testing.assert_allclose(trained(problem, PDADPMD(clip=NO_CLIP), rate=0.4), average, atol=1e-10)


def dense_mirror_step(data, W, dual, l2):
    """Newton's method with the dense Hessian."""
    (k, d), psi = W.shape, PenalizedLoss.of(data)
    for _ in range(60):
        Z = data.X @ W.T
        error = data.loss.residuals(Z.copy(), data.y).T @ data.X / data.n_rows + l2 * W - dual
        H = l2 * np.eye(k * d)
        for x, z in zip(data.X, Z, strict=True):
            inner = np.stack([psi.hessian_product(z[None], e[None])[0] for e in np.eye(k)])
            H += np.kron(inner, np.outer(x, x)) / data.n_rows
        step = np.linalg.solve(H, error.ravel()).reshape(W.shape)
        W = W - step
        if np.linalg.norm(step) < 1e-13:
            break
    return W


@pytest.mark.covering
@pytest.mark.parametrize("l2", [0.0, 0.02])
def test_logistic_losses_without_noise_are_mirror_descent(problem, l2):
    data, W = problem.info.view.data, problem.info.view.W
    strength = data.l2 / data.n_rows
    dual = data.loss.residuals(data.X @ W.T, data.y).T @ data.X / data.n_rows + strength * W
    average = 0
    for _ in range(6):
        dual = dual - 5.0 * strength * (private_gradient(problem, W) + l2 * W)
        W = dense_mirror_step(data, W, dual, strength)
        average = average + W / 6
    np.testing.assert_allclose(trained(problem, PDADPMD(clip=NO_CLIP), l2=l2), average, atol=1e-10)


def test_without_public_rows_it_is_averaged_gradient_descent():
    problem = make_problem(n_pub=0)
    W, average = problem.info.view.W, 0
    for _ in range(6):
        W = W - 0.7 * private_gradient(problem, W)
        average = average + W / 6
    np.testing.assert_allclose(trained(problem, PDADPMD(clip=NO_CLIP), rate=0.7), average, atol=1e-10)


@pytest.mark.parametrize("second_clip", [None, 0.03])
def test_the_cosine_approximation_is_gradient_descent_with_a_cosine_weight(problem, second_clip):
    W = problem.info.view.W
    for t in range(1, 7):
        private = private_gradient(problem, W)
        if second_clip is not None:
            private *= min(1, second_clip / np.linalg.norm(private))
        share = max(0, np.cos(np.pi * t / 8))
        W = W - 5.0 * (share * private + (1 - share) * problem.info.view.data.view(W).gradient)
    algorithm = NoisyGD(NO_CLIP, momentum=0.0, public_weight=CosineWeight(4), second_clip=second_clip)
    np.testing.assert_allclose(trained(problem, algorithm), W, atol=1e-10)


def test_the_warm_start_is_the_minimiser_of_the_mirror_map(problem):
    data = problem.info.view.data
    psi = PenalizedLoss.of(data)
    assert np.linalg.norm(psi.gradient(data.solution)) / psi.l2 < 1e-3


def test_automatic_steps_balance_the_noise_in_the_mirrors_geometry(problem):
    """Noise alone moves held-out outputs of the returned head by about 0.75, as elsewhere."""
    rows = InMemoryRows(np.zeros_like(problem.X), problem.y)
    recipe = problem.recipe(PDADPMD())
    recipe = replace(recipe, steps=replace(recipe.steps, curvature=1e-9))  # leave the stability limit out
    moves = []
    for seed in range(3):
        W, _ = problem.trained(recipe, noise=NoiseSource(seed), rows=rows, n_steps=30)
        moves.append((W - problem.info.view.W) @ problem.X[:50].T)
    spread = float(np.sqrt(np.mean(np.square(moves)))) / np.sqrt(np.mean(np.sum(problem.X**2, axis=1)))
    assert 0.75 / 3 < spread < 0.75 * 3
