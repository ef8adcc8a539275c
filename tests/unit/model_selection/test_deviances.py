"""Deviances of counts: values, noise, sensitivity, charges, and what is refused."""

import math
from unittest.mock import patch

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from sklearn.linear_model import PoissonRegressor
from sklearn.metrics import mean_poisson_deviance

from skmixdp import MixedDPPoissonRegressor
from skmixdp.model_selection import private_evaluation
from skmixdp.privacy import PrivacyLedger, noise_multiplier_for
from tests.given_models import GivenPredictions
from tests.private_names import GaussianMechanism, recorded_releases

pytestmark = pytest.mark.filterwarnings("ignore:random_state", "ignore:delta", "ignore:epsilon=")

N = 20_000
rng = np.random.default_rng(0)
X = rng.normal(size=(N, 3))
YEARS = np.where(rng.random(N) < 0.5, 1.0, rng.uniform(0.1, 1, N))
Y = rng.poisson(YEARS * np.exp(0.5 * X[:, 0]))
MODEL = PoissonRegressor(alpha=0).fit(X, Y / YEARS, sample_weight=YEARS)
COUNTS = st.one_of(st.floats(0, 1e300), st.sampled_from([0.0, 1.0, 2.0, 5e-324, 1e-9]))
MEANS = st.one_of(st.floats(), st.sampled_from([0.0, -1.0, math.nan, math.inf, 1e-320]))


def evaluated(model=MODEL, **terms):
    terms = {"y": Y, "exposure": YEARS, "layout": "deviance", "epsilon": 1.0, "random_state": 0} | terms
    return private_evaluation(model, X, **terms)


@pytest.mark.parametrize(("epsilon", "error"), [(1e5, 0.02), (1.0, 0.05)])
def test_it_is_the_deviance_of_the_predictions(epsilon, error):
    found = evaluated(epsilon=epsilon)
    means, level = MODEL.predict(X) * YEARS, Y.sum() / YEARS.sum()
    deviance, constant = (mean_poisson_deviance(Y, each) for each in (means, level * YEARS))
    assert found.mean_deviance().value == pytest.approx(deviance, rel=error)
    assert found.d2_score().value == pytest.approx(1 - deviance / constant, abs=error)
    assert found.rate == pytest.approx(level, rel=2 * error + 0.03)
    for estimate, exact in ((found.mean_deviance(), deviance), (found.d2_score(), 1 - deviance / constant)):
        assert estimate.low <= exact <= estimate.high
    assert "\nCountEvaluation of 20000 private rows\n  mean Poisson deviance  " in str(found)


def test_it_is_drawn_as_shares_of_rows_with_smaller_deviances():
    axes = evaluated().plot().ax_
    assert [line.get_label() for line in axes.get_lines()] == ["predictions", "a constant rate"]
    assert all(0.9 < line.get_ydata()[-1] < 1.1 for line in axes.get_lines())


def test_persons_count_by_the_means_of_their_rows():
    few = evaluated(groups=np.arange(N) // 2, epsilon=1e5)
    assert few.cells.n_rows == N / 2
    assert few.mean_deviance().value == pytest.approx(evaluated(epsilon=1e5).mean_deviance().value, rel=0.01)


def test_groups_have_deviances_of_their_own():
    by = np.where(X[:, 1] > 1, "old", "young")
    worse = np.where(by == "old", 3 * Y, Y)
    sure = evaluated(y=worse, by=by, by_values=["old", "young"], epsilon=1e4)
    level = worse.sum() / YEARS.sum()
    for group in ("old", "young"):
        rows = by == group
        deviance = mean_poisson_deviance(worse[rows], (MODEL.predict(X) * YEARS)[rows])
        constant = mean_poisson_deviance(worse[rows], level * YEARS[rows])
        assert sure[group].mean_deviance().value == pytest.approx(deviance, rel=0.02)
        assert sure[group].d2_score().value == pytest.approx(1 - deviance / constant, abs=0.03)
    noisy = evaluated(y=worse, by=by, by_values=["old", "young", "none"])
    assert noisy.privacy.epsilon <= 1.0 and noisy.unknown == ("none", "other")
    compared = noisy.compare("mean Poisson deviance", "young").loc["old"]
    exact = sure.compare("mean Poisson deviance", "young").loc["old", "value"]
    assert 0 < compared["low"] < exact < compared["high"] < 2 * exact


def released(predictions, y, exposure, absent=None, **groups):
    """The exact sums before noise, and their sensitivities."""
    sums = []

    def add_noise(self, query, arrays, grid):
        sums.append((np.array(arrays[0]), query.releases[0].sensitivity))
        return tuple(10.0 * (np.arange(array.size) == 81).reshape(array.shape) for array in arrays)

    with patch.object(GaussianMechanism, "add_noise", add_noise), recorded_releases(absent):
        private_evaluation(
            GivenPredictions(),
            predictions[:, np.newaxis],
            y,
            epsilon=1.0,
            layout="deviance",
            exposure=exposure,
            **groups,
        )
    return sums


@given(
    predictions=hnp.arrays(np.float64, 8, elements=MEANS),
    y=hnp.arrays(np.float64, 8, elements=COUNTS),
    exposure=st.none() | hnp.arrays(np.float64, 8, elements=st.floats(1e-300, 1e300)),
)
@pytest.mark.parametrize("groups", [{}, {"by": np.arange(8) % 3, "by_values": [0, 1]}])
def test_no_row_moves_histograms_by_more_than_is_stated(predictions, y, exposure, groups):
    sums = released(predictions, y, exposure, **groups)
    without = released(predictions, y, exposure, np.arange(8) == 0, **groups)
    numbers = [1 if exposure is None else 2, 2]
    assert len(sums) == 2
    for (exact, sensitivity), (other, _), number in zip(sums, without, numbers, strict=True):
        assert math.sqrt(number) <= sensitivity <= math.sqrt(number) * (1 + 1e-6)
        assert np.linalg.norm(exact - other) <= sensitivity and np.all(exact == np.round(exact))
        assert exact.sum() == 8 * number


@pytest.mark.parametrize("factor", [1.0, 2 / 3, 3 / 2])
def test_the_noise_is_that_of_the_shares(factor):
    far = GivenPredictions()
    draws = []
    for seed in range(40):
        found = private_evaluation(
            far, np.ones((3, 1)), np.ones(3), epsilon=1.0, delta=1e-4, layout="deviance", random_state=seed
        )
        draws.append(found.counts[:, 150:] / found.noise_scale)
    multiplier = noise_multiplier_for(1.0, 1e-4, n_steps=1)
    assert found.noise_scale == pytest.approx(multiplier * math.sqrt(2 / 0.8), rel=1e-6)
    # 7,280 draws: the standard deviation is off by 0.8% of it.
    deviation = np.std(draws) / factor
    assert (0.95 < deviation < 1.05) == (factor == 1.0)


def head(**terms):
    return MixedDPPoissonRegressor(epsilon=3.0, **terms).fit(X, Y, exposure=YEARS)


def test_a_score_is_that_of_the_cut_deviances():
    model = head()
    means = model.predict(X, exposure=YEARS)
    each = [min(mean_poisson_deviance([y], [mean]), 8) for y, mean in zip(Y[:500], means[:500], strict=True)]
    score = model.private_score(X[:500], Y[:500], exposure=YEARS[:500], noise_multiplier=1e-6)
    assert score == pytest.approx(1 - np.mean(each) / 8, abs=1e-6)
    far = np.full(N, 1e12)
    assert model.private_score(X, far, noise_multiplier=1e-6) == pytest.approx(0, abs=1e-6)


@pytest.mark.parametrize(
    ("terms", "match"),
    [
        ({"y": -Y}, "y holds a negative number; pass counts, which are 0 or more"),
        ({"y": np.column_stack([Y, Y])}, "y has 2 targets per row; pass one at a time"),
        ({"exposure": -YEARS}, "exposure must hold positive numbers; leave out rows without exposure"),
        ({"exposure": YEARS[:-1]}, "exposure has 19999 exposures and X 20000 rows; pass exposures for each"),
        ({"exposure": np.column_stack([YEARS, YEARS])}, "exposure has 2 exposures per row; pass one at a"),
        ({"target_bounds": (0, 9)}, r"target_bounds=\(0, 9\) must be None; deviances have cells"),
        ({"n_bins": 16}, "n_bins=16 must be 'auto'; deviances have cells"),
        ({"by": YEARS > 0.5}, "by needs by_values"),
        ({"layout": "residuals", "target_bounds": (0, 9)}, "exposure=.* must be None; it is for counts"),
        ({"layout": "top", "exposure": None}, "layout='top' must be one of 'auto', 'residuals', 'deviance'"),
    ],
)
def test_bad_input_is_refused_before_the_charge(terms, match, no_noise):
    entry = PrivacyLedger(":memory:").add_dataset("claims", epsilon=5.0, delta=1e-5)
    with pytest.raises(ValueError, match=match):
        evaluated(ledger=entry, random_state=None, **terms)
    assert not entry.charges()
