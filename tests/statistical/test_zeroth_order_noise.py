"""What zeroth-order steps release: noise of the stated scale, and no row moves it by more."""

import numpy as np
import pytest

from skmixdp.algorithms import PAZO, DPZero
from skmixdp.privacy import NoiseSource
from tests.conftest import make_problem, train
from tests.noise import watch
from tests.private_names import InMemoryRows, training
from tests.statistical.test_noise_scale import assert_standard_normal

LOSS_CLIP = 0.2
#: An algorithm, the numbers that its queries ask for, and the standard deviation of each
#: number's noise in units of ``loss_clip * noise_multiplier`` for a head of p coefficients.
CASES = {
    "dpzero": (DPZero(loss_clip=LOSS_CLIP), [1], lambda p: 1.0),
    "dpzero, four directions": (DPZero(4, loss_clip=LOSS_CLIP), [4], lambda p: 2.0),
    "pazo-m": (PAZO("m", loss_clip=LOSS_CLIP), [1], lambda p: p**-0.25),
    "pazo-m, three directions": (
        PAZO("m", n_directions=3, loss_clip=LOSS_CLIP),
        [3],
        lambda p: np.sqrt(3) * p**-0.25,
    ),
    "pazo-p": (PAZO("p", loss_clip=LOSS_CLIP), [1], lambda p: 1.0),
    "pazo-p, two directions": (PAZO("p", n_directions=2, loss_clip=LOSS_CLIP), [2], lambda p: np.sqrt(2)),
    "pazo-s": (PAZO("s", loss_clip=LOSS_CLIP), [3, 1], lambda p: 2.0),
    "pazo-s, no further candidate": (
        PAZO("s", loss_clip=LOSS_CLIP, candidate_noise=None),
        [3],
        lambda p: np.sqrt(3),
    ),
}


def released(name, X, y, problem, n_steps, seed=0):
    recipe = problem.recipe(CASES[name][0], learning_rate=0.1)
    plan = problem.plan(recipe, n_steps=n_steps)
    with pytest.MonkeyPatch.context() as patch:
        log = watch(patch)
        train([training(plan, NoiseSource(seed))], InMemoryRows(X, y))
    return log, plan.noise_multiplier


@pytest.mark.parametrize("name", CASES)
def test_every_number_carries_the_stated_noise(name):
    problem = make_problem(n_rows=20)
    _, counts, scale = CASES[name]
    log, sigma = released(name, problem.X, problem.y, problem, n_steps=400 // sum(counts))
    assert [release.exact.size for release in log[: len(counts)]] == counts
    stated = LOSS_CLIP * sigma * scale(problem.info.view.W.size)
    assert [release.scale for release in log] == pytest.approx([stated] * len(log), rel=1e-6)
    assert_standard_normal(np.concatenate([release.noisy - release.exact for release in log]) / stated)


def test_the_bound_is_met_by_a_row_that_is_long_and_mislabelled():
    problem = make_problem(n_rows=40)
    for name in CASES:
        p = problem.info.view.W.size
        bound = LOSS_CLIP * (p**-0.25 if name.startswith("pazo-m") else 1.0)
        row = 1e3 * problem.X[0]
        wrong = int(np.argmin(problem.info.view.W @ row))
        X, y = np.vstack([problem.X, row]), np.append(problem.y, wrong)
        more, less = released(name, X, y, problem, 1)[0], released(name, problem.X, problem.y, problem, 1)[0]
        assert np.abs(more[0].exact - less[0].exact).max() > 0.9 * bound
