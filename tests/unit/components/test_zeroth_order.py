"""Zeroth-order estimates against what they estimate, and against dense formulas."""

import numpy as np
import pytest

from skmixdp import MixedDPLogisticRegression
from skmixdp.algorithms import PAZO, DPZero
from skmixdp.components import PoissonBatch
from skmixdp.components.clipping import clipped
from skmixdp.components.protocols import StepContext
from skmixdp.privacy import NoiseSource
from tests.conftest import make_problem
from tests.private_names import Block, PublicDirections, RandomDirections, TwoPointQuery, public_gradients
from tests.rounding import assert_close, assert_relative

FLOAT = np.dtype("float64")
NO_CLIP = 1e9


def context(problem, *, seed=0, a=0.0, rate=0.3, l2=0.0, view=None):
    W, batch_size = problem.info.view.W, float(len(problem.X))
    view = view or problem.info.view.data.view(W + 0.1)  # away from the public optimum
    return StepContext(1, 1, view, batch_size, a, rate, l2, 0 * W, FLOAT, NoiseSource(seed), 1.0)


def answer(problem, query, block):
    """The exact sums of a query over all private rows."""
    _, S = query.contribute(problem.X @ query.points.T, block)
    return (S.sum(axis=0),)


def direction(problem, query, ctx, block=None):
    block = block or Block(problem.X, problem.y, np.linalg.norm(problem.X, axis=1))
    rounds = query.step(ctx)
    query = next(rounds)
    while True:
        try:
            query = rounds.send(answer(problem, query, block))
        except StopIteration as end:
            return end.value


def private_gradient(problem, W):
    R = problem.info.view.data.loss.residuals(problem.X @ W.T, problem.y)
    return R.T @ problem.X / len(problem.X)


@pytest.mark.parametrize("exponent", [0.25, 0.5])
def test_directions_lie_on_the_stated_sphere_and_point_everywhere_alike(problem, exponent):
    ctx = context(problem)
    p = ctx.view.W.size
    U = RandomDirections(exponent, sphere=True).draw(ctx, 4000).reshape(4000, -1)
    assert_relative(np.linalg.norm(U, axis=1), p**exponent)
    second_moment = U.T @ U / len(U) * p / p ** (2 * exponent)
    np.testing.assert_allclose(second_moment, np.eye(p), atol=6 / np.sqrt(4000))
    assert np.abs(U.mean(axis=0)).max() < 6 * p ** (exponent - 0.5) / np.sqrt(4000)
    gaussian = RandomDirections(exponent, sphere=False).draw(ctx, 4000).reshape(4000, -1)
    lengths = np.linalg.norm(gaussian, axis=1)
    assert np.sqrt(np.mean(lengths**2)) == pytest.approx(p**exponent, rel=0.05)
    assert lengths.std() > 0.01 * p**exponent


@pytest.mark.parametrize("orthonormal", [True, False])
def test_public_directions_combine_public_gradients(problem, orthonormal):
    rule = PublicDirections(3, 6, orthonormal, sphere=True)
    ctx, twin = context(problem), context(problem)
    U = rule.draw(ctx, 50)
    gradients = public_gradients(twin, 3, 6).reshape(3, -1)
    coefficients, residual, rank, _ = np.linalg.lstsq(gradients.T, np.reshape(U, (50, -1)).T)
    assert rank == 3 and np.all(residual < 1e-20)
    lengths = np.linalg.norm(np.reshape(U, (50, -1)), axis=1)
    if orthonormal:
        assert_relative(lengths, np.sqrt(3))
    else:
        scaled = coefficients * np.linalg.norm(gradients, axis=1)[:, np.newaxis]
        assert_relative(np.linalg.norm(scaled, axis=0), np.sqrt(3))
        assert lengths.std() > 0.01


def test_public_batches_are_disjoint_and_of_the_stated_size():
    problem = make_problem(n_pub=24)
    view = problem.info.view
    asked = []
    ctx = context(problem)
    ctx.view = type("Spy", (), {"data": view.data, "batch_gradients": lambda self, b: asked.extend(b)})()
    public_gradients(ctx, 3, 5)
    public_gradients(ctx, 3, None)
    assert [len(batch) for batch in asked] == [5, 5, 5, 8, 8, 8]
    assert len(np.unique(np.concatenate(asked[:3]))) == 15
    np.testing.assert_array_equal(np.sort(np.concatenate(asked[3:])), np.arange(24))
    (whole,) = view.batch_gradients([np.arange(24)])
    assert_close(whole, view.gradient)


def estimates(problem, query, count):
    view, block = context(problem).view, Block(problem.X, problem.y, np.linalg.norm(problem.X, axis=1))
    return np.array(
        [direction(problem, query, context(problem, seed=seed, view=view), block) for seed in range(count)]
    )


def test_dpzero_estimates_average_to_the_gradient():
    problem = make_problem(n_rows=60)
    query = TwoPointQuery(RandomDirections(0.5, True), 40, 1e-4, NO_CLIP)
    gradient = private_gradient(problem, problem.info.view.W + 0.1)
    found = estimates(problem, query, 100)
    error = found.mean(axis=0) - gradient
    spread = found.std(axis=0) / np.sqrt(len(found))
    assert np.abs(error / spread).max() < 5
    # 10% is expected of 4,000 directions; a wrong factor of 2/3 or 3/2 would be far beyond.
    assert np.linalg.norm(error) < 0.2 * np.linalg.norm(gradient)


def test_the_estimate_of_pazo_m_is_as_long_as_the_gradient():
    """Appendix A.1: the mean squared length is the gradient's; the standard error here is 6%."""
    problem = make_problem(n_rows=60)
    query = TwoPointQuery(RandomDirections(0.25, True), 1, 1e-4, NO_CLIP)
    gradient = private_gradient(problem, problem.info.view.W + 0.1)
    found = estimates(problem, query, 600).reshape(600, -1)
    ratio = np.mean(np.sum(found**2, axis=1)) / np.sum(gradient**2)
    assert ratio == pytest.approx(1, abs=0.2)
    # Its mean is the gradient over sqrt(p), as it must be for that length.
    cosine = found.mean(axis=0) @ gradient.ravel() / np.sum(gradient**2)
    assert cosine == pytest.approx(gradient.size**-0.5, rel=0.2)


@pytest.mark.parametrize("orthonormal", [True, False])
def test_pazo_p_estimates_average_to_the_projection(orthonormal):
    """Orthonormal public gradients project; unit ones give ``G G^T g``, which is longer."""
    problem = make_problem(n_rows=60)
    query = TwoPointQuery(PublicDirections(3, 8, orthonormal, True), 40, 1e-4, NO_CLIP)
    gradient = private_gradient(problem, problem.info.view.W + 0.1).ravel()
    errors, expected = [], []
    for seed in range(40):
        found = direction(problem, query, context(problem, seed=seed)).ravel()
        G = public_gradients(context(problem, seed=seed), 3, 8).reshape(3, -1).T
        G /= np.linalg.norm(G, axis=0)
        if orthonormal:
            G = np.linalg.qr(G)[0]
        expected.append(G @ (G.T @ gradient))
        errors.append(found - expected[-1])
    bias = np.linalg.norm(np.mean(errors, axis=0)) / np.linalg.norm(np.mean(expected, axis=0))
    assert bias < 0.12  # 4% is expected
    if orthonormal:
        assert max(np.linalg.norm(e) for e in expected) <= np.linalg.norm(gradient)


def test_a_step_equals_the_dense_formula(problem):
    q, smoothing, loss_clip, a, l2 = 3, 1e-2, 0.05, 0.3, 0.02
    query = TwoPointQuery(RandomDirections(0.25, True), q, smoothing, loss_clip)
    found = direction(problem, query, context(problem, a=a, l2=l2))
    ctx = context(problem, a=a, l2=l2)
    U = RandomDirections(0.25, True).draw(ctx, q)
    p, W, loss = ctx.view.W.size, ctx.view.W, problem.info.view.data.loss
    bound = loss_clip * p**0.25 / np.sqrt(p)
    assert query.bound(ctx.view) == pytest.approx(bound)
    estimate = 0
    for u in U:
        up, down = (loss.values(problem.X @ (W + sign * smoothing * u).T, problem.y) for sign in (1, -1))
        s = np.clip((up - down) / (2 * smoothing), -bound, bound)
        assert 0.05 < np.mean(np.abs(s) == bound) < 0.95
        estimate = estimate + s.mean() * u / q
    expected = a * ctx.view.gradient + (1 - a) * estimate + l2 * W
    assert_close(found, expected, 1e-9)


def test_pazo_s_takes_the_candidate_after_which_private_losses_are_smallest(problem):
    rate, l2, C = 0.7, 0.01, 1.5
    loss, further_won = problem.info.view.data.loss, []
    for seed in range(30):
        algorithm = PAZO("s", loss_clip=C, candidate_noise=0.05)
        query = problem.recipe(algorithm, l2=l2).query
        found = direction(problem, query, context(problem, seed=seed, rate=rate, l2=l2))
        ctx = context(problem, seed=seed, rate=rate, l2=l2)
        G = public_gradients(ctx, 3, None) + l2 * ctx.view.W
        step = ctx.noise.normal((1, ctx.view.W.size)).reshape(ctx.view.W.shape) * 0.05

        def mean_loss(g, ctx=ctx):
            values = loss.values(problem.X @ (ctx.view.W - rate * g).T, problem.y)
            return np.clip(values, -C, C).mean()

        best = min(G, key=mean_loss)
        candidates = [best, best + step]
        expected = min(candidates, key=mean_loss)
        further_won.append(expected is candidates[1])
        np.testing.assert_allclose(found, expected, rtol=1e-9, atol=1e-12)
    assert 2 < sum(further_won) < 28  # both ends of the choice were seen


def test_values_that_are_not_numbers_count_as_nothing():
    values = np.array([[np.nan, np.inf, -np.inf, 0.3, -7.0]], dtype=np.float32)
    assert_close(clipped(values, 0.5), [[0.0, 0.5, -0.5, 0.3, -0.5]], 1e-7)


def test_a_candidate_whose_losses_are_not_numbers_does_not_win():
    """A loss of 0 would make it the best."""
    values = np.array([[np.nan, 0.2]])
    np.testing.assert_array_equal(clipped(values, 0.5, 0.5), [[0.5, 0.2]])


@pytest.mark.parametrize("name", ["pazo-m", "pazo-p", "pazo-s", "dpzero"])
def test_sampled_batches_and_exact_sums_are_possible(name):
    problem = make_problem()
    algorithm = DPZero() if name == "dpzero" else PAZO(name[-1])
    recipe = problem.recipe(algorithm, sampling=PoissonBatch(50))
    W, _ = problem.trained(recipe, noise=NoiseSource(0), n_steps=5)
    assert np.isfinite(W).all()
    rng = np.random.default_rng(0)
    X = rng.normal(size=(200, 6))
    y = (X[:, 0] > 0).astype(int)
    clf = MixedDPLogisticRegression(algorithm, noise="discrete", n_steps=3)
    clf.fit(X[50:], y[50:], X_pub=X[:50], y_pub=y[:50])
    assert clf.privacy_.noise == "discrete"
