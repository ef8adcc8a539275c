"""The noise of a release in two parts, seen in the head that a step makes."""

import numpy as np
import pytest

from skmixdp.algorithms import DOPE, GEP
from skmixdp.privacy import NoiseSource
from tests.conftest import Silent, make_problem, train
from tests.private_names import InMemoryRows, embedding_of, training
from tests.statistical.test_noise_scale import assert_standard_normal


def noise_in_heads(problem, algorithm, n_draws):
    """What the noise adds to the mean gradient of a step, (n_draws, d_in), times b / sigma."""
    recipe = problem.recipe(algorithm, learning_rate=1.0)
    plan = problem.plan(recipe, n_steps=1)
    rows = InMemoryRows(problem.X, problem.y)
    (quiet,) = train([training(plan, Silent(0))], rows)
    a = problem.info.view.data.n_rows / (problem.info.view.data.n_rows + problem.info.n_private)
    differences = []
    for seed in range(n_draws):
        (W,) = train([training(plan, NoiseSource(seed))], rows)
        differences.append((quiet - W).ravel())
    return np.array(differences) * problem.info.batch_size / ((1 - a) * plan.noise_multiplier)


@pytest.mark.parametrize(("clip", "residual_clip"), [(0.3, 0.3), (0.6, 0.1), (0.1, 0.6)])
def test_each_part_of_gep_carries_noise_of_its_own_clip(clip, residual_clip):
    problem = make_problem(n_classes=2, d=60, n_pub=20)
    noise = noise_in_heads(problem, GEP(clip=clip, residual_clip=residual_clip, momentum=0.0), 60)
    embedding = embedding_of(problem.info.view, None)
    V = np.array([embedding.gradient(e).ravel() for e in np.eye(embedding.n_components)])
    inside = noise @ V.T
    outside = (noise - inside @ V) @ np.linalg.svd(V)[2][len(V) :].T  # independent coordinates
    # Outside the basis there is the residual's noise alone, inside both.
    assert_standard_normal(outside.ravel() / (np.sqrt(2) * residual_clip))
    assert_standard_normal(inside.ravel() / (np.sqrt(2) * np.hypot(clip, residual_clip)))


def test_dope_carries_noise_of_its_clip():
    problem = make_problem(n_classes=2, d=60, n_pub=20)
    noise = noise_in_heads(problem, DOPE(0.3, momentum=0.0), 30)
    assert_standard_normal(noise.ravel() / 0.3)
