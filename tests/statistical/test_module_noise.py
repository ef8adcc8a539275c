"""The noise of a module's steps has the stated scale: C sigma sqrt(q) for each of q numbers."""

import numpy as np
import pytest

from skmixdp.algorithms import PAZO, DPZero
from skmixdp.privacy import NoiseSource
from tests.conftest import train
from tests.module_problems import module_problem, module_rows, two_layers
from tests.noise import watch
from tests.private_names import training
from tests.statistical.test_noise_scale import assert_standard_normal

P = 102  # parameters of the module
#: An algorithm, the standard deviation of each number's noise for a noise multiplier of 1, and the numbers of
#: a step.
SCALES = {
    "dpzero": (DPZero(9, loss_clip=0.3), 0.3 * np.sqrt(9), 9),
    "pazo-m": (PAZO("m", n_directions=9, loss_clip=0.3), 0.3 * P**-0.25 * np.sqrt(9), 9),
    "pazo-p": (PAZO("p", n_public_batches=4, n_directions=9, loss_clip=0.3), 0.3 * np.sqrt(9), 9),
    # Three candidates and a further one: each loss has variance (3 + 1) C^2 sigma^2.
    "pazo-s": (PAZO("s", loss_clip=0.3), 0.3 * np.sqrt(4), 4),
}


@pytest.mark.parametrize("name", SCALES)
def test_every_number_has_the_stated_noise(monkeypatch, name):
    algorithm, scale, numbers = SCALES[name]
    problem = module_problem(two_layers(), n_rows=20)
    assert problem.info.view.n_parameters == P
    recipe = problem.recipe(algorithm, learning_rate=1e-6)
    plan = problem.plan(recipe, n_steps=405 // numbers)
    log = watch(monkeypatch)
    train([training(plan, NoiseSource(11))], module_rows(problem))
    stated = scale * plan.noise_multiplier
    assert [release.scale for release in log] == pytest.approx([stated] * len(log), rel=1e-6)
    assert_standard_normal(np.concatenate([release.noisy - release.exact for release in log]) / stated)
