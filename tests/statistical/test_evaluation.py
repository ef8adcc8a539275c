"""The noise in an evaluation has the scale of its budget and layout."""

import math

import numpy as np
import pytest

from skmixdp.model_selection import private_evaluation
from skmixdp.privacy import noise_multiplier_for
from tests.given_models import GivenPredictions, GivenScores
from tests.statistical.test_noise_scale import assert_standard_normal

N = 300
rng = np.random.default_rng(0)
P = rng.dirichlet(np.ones(4), N)
Y = rng.integers(0, 4, N)
TWO = P[:, :2] / P[:, :2].sum(axis=1, keepdims=True)

#: By layout: model, rows, labels, parameters and number of histograms.
LAYOUTS = {
    "two classes": (GivenScores(2), TWO, Y // 2, {}, 1),
    "top": (GivenScores(4), P, Y, {"layout": "top"}, 1),
    "one-versus-rest": (GivenScores(4), P, Y, {"layout": "one_vs_rest"}, 4),
    "labels": (GivenScores(4), P, (P > 0.3) * 1, {}, 4),
    "regression": (GivenPredictions(), P, P[:, 0] + P[:, 1], {"target_bounds": (0.0, 2.0)}, 2),
}


def draws(layout, noise, neighboring, factor=1.0):
    """Noise of 12,800 cells, over the scale that follows from the definition times a factor."""
    model, X, y, parameters, n_histograms = LAYOUTS[layout]
    terms = {"n_bins": 3200 // n_histograms, "neighboring": neighboring, "noise": noise}
    found = []
    for seed in range(2 if noise == "float" else 1):
        exact, noisy = (
            private_evaluation(
                model,
                X,
                y,
                epsilon=epsilon,
                delta=1e-4,
                random_state=None if noise == "discrete" else seed,
                **terms,
                **parameters,
            ).counts
            for epsilon in (1e9, 2.0)
        )
        found.append(np.ravel(noisy - np.round(exact)))
    multiplier = noise_multiplier_for(2.0, 1e-4, n_steps=1, neighboring=neighboring, noise=noise)
    return np.concatenate(found) / (factor * multiplier * math.sqrt(n_histograms))


@pytest.mark.covering
@pytest.mark.filterwarnings("ignore:random_state", "ignore:delta")
@pytest.mark.parametrize("noise", ["float", "discrete"])
@pytest.mark.parametrize("neighboring", ["add_or_remove_one", "replace_one"])
@pytest.mark.parametrize("layout", LAYOUTS)
def test_each_layout_has_the_noise_of_its_sensitivity(layout, neighboring, noise):
    if noise == "discrete":
        pytest.importorskip("opendp", reason="needs skmixdp[discrete]")
    assert_standard_normal(draws(layout, noise, neighboring))


@pytest.mark.filterwarnings("ignore:random_state", "ignore:delta")
@pytest.mark.parametrize("factor", [2 / 3, 3 / 2])
def test_another_scale_is_found(factor):
    with pytest.raises(AssertionError):
        assert_standard_normal(draws("one-versus-rest", "float", "add_or_remove_one", factor))
