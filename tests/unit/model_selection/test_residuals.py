"""Metrics of residuals agree with scikit-learn's."""

import numpy as np
import pytest
from sklearn.metrics import mean_absolute_error, r2_score

from skmixdp.model_selection import private_evaluation
from tests.given_models import GivenPredictions

pytestmark = pytest.mark.filterwarnings("ignore:random_state", "ignore:delta")

N = 4000
rng = np.random.default_rng(0)
PREDICTED = rng.normal(50, 10, N)
Y = PREDICTED + rng.normal(0.5, 4, N)


def evaluation(predicted=PREDICTED, y=Y, epsilon=1e6, **parameters):
    terms = {"target_bounds": (0, 100), "random_state": 0} | parameters
    return private_evaluation(GivenPredictions(), np.column_stack([predicted]), y, epsilon=epsilon, **terms)


@pytest.fixture(scope="module")
def found():
    return evaluation()


def test_errors(found):
    assert found.mean_absolute_error().value == pytest.approx(mean_absolute_error(Y, PREDICTED), abs=0.02)
    assert found.mean_residual().value == pytest.approx(np.mean(Y - PREDICTED), abs=0.02)
    rmse = np.sqrt(np.mean((Y - PREDICTED) ** 2))
    assert found.root_mean_squared_error().value == pytest.approx(rmse, abs=0.02)
    assert found.r2_score().value == pytest.approx(r2_score(Y, PREDICTED), abs=0.005)
    assert found.r2_score().low < found.r2_score().value < found.r2_score().high


def test_coverage(found):
    width = found.half_width(0.9)
    assert np.mean(np.abs(Y - PREDICTED) <= width) == pytest.approx(0.9, abs=0.02)
    assert found.coverage(width).value == pytest.approx(np.mean(np.abs(Y - PREDICTED) <= width), abs=1e-3)
    assert found.half_width(0.9999) > width
    assert f"share within {width:.3g}" in found.summary()


def test_what_is_beyond_the_bounds_is_cut():
    far = Y.copy()
    far[:400] = 1e9
    found = evaluation(y=far, residual_bound=20.0)
    cut = np.clip(far - PREDICTED, -20, 20)
    assert found.mean_absolute_error().value == pytest.approx(np.abs(cut).mean(), abs=0.15)
    assert found.residual_edges[-1] == pytest.approx(20)


def test_a_constant_has_no_r2(found):
    constant = evaluation(predicted=np.full(N, 50.0))
    assert constant.r2_score().value == pytest.approx(0, abs=0.02)
    assert np.isnan(evaluation(y=Y, epsilon=0.01).r2_score().value)


@pytest.mark.parametrize("bad", [0, -1.0, 60.0, None, "all"])
def test_bad_widths_are_refused(found, bad):
    with pytest.raises(ValueError, match=r"^half_width=.*\.$"):
        found.coverage(bad)


@pytest.mark.parametrize("bad", [0, 1.0, "most"])
def test_bad_shares_are_refused(found, bad):
    with pytest.raises(ValueError, match=r"^coverage=.*\.$"):
        found.half_width(bad)
