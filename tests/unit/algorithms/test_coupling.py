"""Automatic clipping and public weights in algorithms."""

from dataclasses import replace

import numpy as np
import pytest

from skmixdp import MixedDPLogisticRegression
from skmixdp.algorithms import AdaMix, Coupling, NoisyGD
from skmixdp.components import AutomaticClip, ConstantWeight, CosineWeight
from skmixdp.components.protocols import ReleaseFacts
from skmixdp.privacy import epsilon_of_event
from tests.conftest import Watched, make_problem

FLOAT = np.dtype("float64")


def trained(problem, algorithm, *, l2=0.01, rate=0.7, noise=None):
    return problem.trained(problem.recipe(algorithm, l2=l2, learning_rate=rate), noise=noise, n_steps=10)


@pytest.mark.covering
@pytest.mark.parametrize("momentum", [0.0, 0.9])
@pytest.mark.parametrize("gamma", [0.01, 1.0])
def test_without_noise_it_is_descent_on_rescaled_gradients(problem, gamma, momentum):
    view = problem.info.view
    W = start = view.W
    velocity = 0 * W
    for _ in range(10):
        R = problem.info.view.data.loss.residuals(problem.X @ W.T, problem.y)
        dense = R[:, :, None] * problem.X[:, None, :]
        norms = np.sqrt((dense**2).sum(axis=(1, 2)))
        private = (dense / (norms + gamma)[:, None, None]).mean(axis=0)
        direction = 0.3 * view.data.view(W).gradient + 0.7 * private + 0.01 * (W - start)
        velocity = momentum * velocity + (1 - momentum) * direction
        W = W - 0.7 * velocity
    algorithm = Coupling(gamma, public_weight=0.3, momentum=momentum, center="public")
    np.testing.assert_allclose(trained(problem, algorithm)[0], W, atol=1e-10)


def test_a_public_weight_of_one_releases_nothing_and_is_charged_all_the_same(problem):
    noise = Watched(0)
    W, plan = trained(problem, NoisyGD(public_weight=1.0, momentum=0.0), l2=0.0, noise=noise)
    assert noise.sums == []
    assert epsilon_of_event(plan.event, 1e-5, "add_or_remove_one") == pytest.approx(1.0)
    expected = problem.info.view.W
    for _ in range(10):
        expected = expected - 0.7 * problem.info.view.data.view(expected).gradient
    np.testing.assert_allclose(W, expected, atol=1e-12)


def test_steps_at_weight_one_are_skipped_and_the_others_are_not(problem):
    noise = Watched(0)
    trained(problem, NoisyGD(public_weight=CosineWeight(4)), noise=noise)
    assert len(noise.sums) == 3


@pytest.mark.covering
@pytest.mark.parametrize("make", [NoisyGD, AdaMix, Coupling])
@pytest.mark.parametrize("rule", ["sample", "coupling", "convex", "cosine", 0, 0.5, 1, CosineWeight(7)])
def test_every_rule_works_with_every_algorithm(problem, make, rule):
    W, plan = trained(problem, make(public_weight=rule), rate="auto")
    assert np.isfinite(W).all()
    for t in (1, 10):
        assert 0 <= plan.public_weight(t, problem.info.view) <= 1


@pytest.mark.parametrize("weight", [0.0, 0.5, 0.9])
def test_balanced_steps_count_the_noise_that_reaches_the_head(problem, weight):
    plans = [
        trained(problem, NoisyGD(public_weight=a, momentum=0.99), rate="auto", l2=0.0)[1] for a in (weight, 0)
    ]
    diluted, plain = (plan.step_size(1) for plan in plans)
    assert diluted == pytest.approx(plain / (1 - weight))


def test_the_weight_that_steps_are_told_is_a_root_mean_square(problem):
    seen = []

    class Remember:
        def count(self, info, sensitivity):
            return 4

        def bind(self, info, facts):
            seen.append(facts)
            return lambda t: 1.0

    recipe = replace(problem.recipe(NoisyGD(public_weight=CosineWeight(2))), steps=Remember())
    problem.plan(recipe, n_steps=4)
    assert seen[0].private_weight == pytest.approx(np.sqrt(np.cos(np.pi / 4) ** 2 / 4))
    assert ReleaseFacts(1.0, 1, 1.0).private_weight == 1.0


def test_automatic_clipping_keeps_the_order_of_lengths_and_drops_what_is_not_finite():
    norms = np.array([0.0, 1e-9, 0.5, 3.0, 1e12, np.inf, np.nan])
    lengths = norms[:5] * AutomaticClip(0.2).weights(norms, lambda: norms)[:5]
    assert np.all(np.diff(lengths) > 0)
    assert lengths[-1] < AutomaticClip(0.2).sensitivity(FLOAT)
    np.testing.assert_array_equal(AutomaticClip(0.2).weights(norms, lambda: norms)[5:], 0)


def test_a_small_gamma_takes_smaller_steps_more_often():
    problem = make_problem()
    sharp, blunt = (problem.recipe(Coupling(gamma)).steps for gamma in (0.01, 1.0))
    assert sharp.count(problem.info, 1.0) >= blunt.count(problem.info, 1.0)
    assert sharp.curvature == pytest.approx(100 * blunt.curvature)


@pytest.mark.parametrize("algorithm", ["coupling", "pda-dpmd", Coupling(public_weight=ConstantWeight(0.2))])
def test_estimators_take_it(algorithm):
    rng = np.random.default_rng(0)
    y = np.arange(300) % 3
    X = np.eye(3)[y] + 0.3 * rng.normal(size=(300, 3))
    clf = MixedDPLogisticRegression(algorithm, epsilon=3, delta=1e-3, random_state=0)
    clf.fit(X[30:], y[30:], X_pub=X[:30], y_pub=y[:30])
    assert clf.score(X, y) > 0.8
