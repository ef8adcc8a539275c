"""NoisyScaler with bounds, and what holds with and without them: its charge, report and refusals."""

import math
import pickle
import tracemalloc

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from skmixdp import MixedDPLogisticRegression
from skmixdp.preprocessing import NoisyScaler
from skmixdp.privacy import PrivacyLedger, epsilon_of, noise_multiplier_for
from tests.conftest import Silent
from tests.private_names import dotted_path
from tests.rounding import assert_close, assert_relative

RNG = np.random.default_rng(0)
X = RNG.normal(size=(4000, 3)) * [1.0, 2.0, 30.0] + [0.0, 5.0, -100.0]
BOUNDS = [-10, -10, -300], [10, 20, 100]


either = pytest.mark.parametrize("bounds", [BOUNDS, None], ids=["bounds", "no bounds"])


def fitted(rows=X, **parameters):
    return NoisyScaler(**({"epsilon": 1.0, "bounds": BOUNDS, "random_state": 0} | parameters)).fit(rows)


@pytest.fixture
def silent(monkeypatch):
    monkeypatch.setattr(dotted_path("transaction.NoiseSource"), Silent)


@pytest.mark.parametrize(("with_mean", "with_std"), [(True, True), (True, False), (False, True)])
def test_without_noise_it_is_a_standard_scaler(silent, with_mean, with_std):
    # So large a budget that the floor under the variances is none.
    scaler = fitted(with_mean=with_mean, with_std=with_std, epsilon=1e6)
    expected = StandardScaler(with_mean=with_mean, with_std=with_std).fit(X)
    np.testing.assert_allclose(scaler.transform(X), expected.transform(X), rtol=1e-9, atol=1e-12)
    assert_close(scaler.inverse_transform(scaler.transform(X)), X)
    assert (scaler.mean_ is None) == (not with_mean) and (scaler.scale_ is None) == (not with_std)


def test_entries_beyond_the_bounds_count_as_the_bounds(silent):
    out = np.vstack([X, np.full((1, 3), 1e300), np.full((1, 3), -1e300)])
    clipped = np.clip(out, *map(np.array, BOUNDS))
    scaler = NoisyScaler(1e6, bounds=BOUNDS).fit(out)
    assert_close(scaler.mean_, clipped.mean(axis=0))
    assert_close(scaler.scale_, clipped.std(axis=0))


def test_a_column_without_variance_is_not_blown_up():
    flat = np.column_stack([X, np.full(len(X), 0.5)])
    scaler = NoisyScaler(1.0, bounds=([*BOUNDS[0], 0], [*BOUNDS[1], 1]), random_state=0).fit(flat)
    multiplier = scaler.privacy_.noise_multiplier * math.sqrt(4) / len(X)
    assert scaler.scale_[3] >= 0.5 * math.sqrt(multiplier * math.sqrt(0.5))
    assert np.abs(scaler.transform(flat)[:, 3]).max() < 10


def test_a_hopeless_budget_still_gives_finite_numbers():
    scaler = fitted(epsilon=1e-4)
    assert np.isfinite(scaler.transform(X)).all()
    assert np.all(scaler.scale_ <= (np.array(BOUNDS[1]) - BOUNDS[0]) / 2)
    assert np.all((np.array(BOUNDS[0]) <= scaler.mean_) & (scaler.mean_ <= BOUNDS[1]))


@either
def test_the_report(bounds):
    report = fitted(bounds=bounds, random_state=None).privacy_
    assert report.private and report.noise == "cryptographic"
    assert 0.999 < report.epsilon <= 1.0 and report.n_steps == 1 and report.n_private == 4000
    assert report.noise_multiplier == noise_multiplier_for(1.0, 1e-5, n_steps=1)
    assert ("the bounds (declared)" in report.treated_as_public) == (bounds is not None)
    assert bounds is not None or not any("bounds" in fact for fact in report.treated_as_public)
    assert any("low-order bits" in warning for warning in report.warnings)
    twice = fitted(bounds=bounds, neighboring="replace_one").privacy_
    assert twice.noise_multiplier == pytest.approx(2 * report.noise_multiplier)


@pytest.mark.parametrize(("with_std", "part"), [(False, 1.0), (True, math.sqrt(2 * math.sqrt(2) - 2))])
def test_the_noise_of_means_is_stated(with_std, part):
    """By definition: noise of the multiplier times the root of 3 columns, in sums that have this part."""
    scaler = fitted(with_std=with_std)
    half = np.subtract(*BOUNDS[::-1]) / 2
    noise = half * scaler.privacy_.noise_multiplier * math.sqrt(3) / len(X) / part
    assert_close(scaler.mean_noise_, noise)


@either
def test_frames_float32_clone_and_pickle(bounds):
    frame = pd.DataFrame(X.astype("float32"), columns=["a", "b", "c"])
    scaler = NoisyScaler(1.0, bounds=bounds).set_output(transform="pandas").fit(frame)
    out = scaler.transform(frame)
    assert out.columns.tolist() == ["a", "b", "c"] and set(out.dtypes) == {np.dtype("float64")}
    assert NoisyScaler(1.0, bounds=bounds).fit_transform(frame.to_numpy()).dtype == np.float32
    np.testing.assert_array_equal(pickle.loads(pickle.dumps(scaler)).transform(frame), out)
    assert clone(scaler).bounds == bounds and not hasattr(clone(scaler), "mean_")


@either
def test_in_a_pipeline_it_is_no_leak_and_the_two_budgets_add_up(bounds):
    y = (X[:, 0] > 0).astype(int)
    head = MixedDPLogisticRegression(epsilon=1.0, classes=[0, 1])
    pipe = make_pipeline(NoisyScaler(0.5, bounds=bounds), head).fit(X, y)  # a warning would be an error
    assert pipe.score(X, y) > 0.8
    total = math.hypot(pipe[0].privacy_.mu, pipe[1].privacy_.mu)
    assert 1.0 < epsilon_of(1 / total, 1, delta=1e-5) < 1.5


@pytest.fixture
def ledger():
    return PrivacyLedger(":memory:").add_dataset("rows", epsilon=2.0, delta=1e-5)


@pytest.mark.usefixtures("no_noise")
class TestRefusals:
    @pytest.mark.parametrize(
        ("match", "parameters"),
        [
            ("noise='discrete' needs bounds", {"bounds": None, "noise": "discrete", "random_state": None}),
            ("bounds=3 must be a pair", {"bounds": 3}),
            ("bounds=.* for each of the 3 features", {"bounds": ([0, 1], [2, 3])}),
            ("bounds of feature 1 are", {"bounds": ([0, 5, 0], [1, 5, 1])}),
            ("bounds of feature 0 are", {"bounds": (1, 0)}),
            ("bounds of feature 0 are", {"bounds": (0, math.inf)}),
            ("bounds of feature 0 are", {"bounds": (math.nan, 1)}),
            ("bounds of feature 0 are", {"bounds": (0, 5e-324)}),
            ("with_mean=False and with_std=False", {"with_mean": False, "with_std": False}),
            ("with_std='yes' must be", {"with_std": "yes"}),
            ("epsilon=None does not determine", {"epsilon": None}),
            ("random_state=0 cannot seed", {"noise": "discrete"}),
        ],
    )
    def test_parameters(self, ledger, match, parameters):
        with pytest.raises(ValueError, match=match) as caught:
            fitted(**{"ledger": ledger, **parameters})
        message = str(caught.value)
        assert "\n" not in message and ". " not in message.replace("= ", "") and message.endswith(".")
        assert not ledger.charges()


# -- without bounds, histograms find centre and spread -----------------------------------------

#: 999 of 1,000 entries of the last column are 0, which tells nothing of the others.
RARE = np.column_stack([X, np.where(np.arange(4000) % 1000 == 0, 70.0, 0.0)])


def without_bounds(rows=X, **parameters):
    return fitted(rows, bounds=None, **parameters)


@pytest.mark.parametrize("unit", [1e-6, 1.0, 1e6])
def test_columns_end_near_mean_0_and_spread_1_in_any_unit(unit):
    Z = without_bounds(unit * X).transform(unit * X)
    assert np.all(np.abs(Z.mean(axis=0)) < 0.5)
    assert np.all((Z.std(axis=0) > 0.7) & (Z.std(axis=0) < 1.5))


@pytest.mark.parametrize(("with_mean", "with_std"), [(True, True), (True, False), (False, True)])
def test_transform_and_its_inverse(with_mean, with_std):
    scaler = without_bounds(with_mean=with_mean, with_std=with_std)
    assert (scaler.mean_ is None) == (not with_mean) and (scaler.scale_ is None) == (not with_std)
    mean = scaler.mean_ if with_mean else 0.0
    scale = scaler.scale_ if with_std else 1.0
    assert_close(scaler.transform(X), (X - mean) / scale)
    assert_close(scaler.inverse_transform(scaler.transform(X)), X)
    assert scaler.mean_noise_ is None


def test_a_column_that_noise_hides_keeps_its_unit_and_is_named():
    with pytest.warns(UserWarning, match=r"hides the spread of 1 of the 4 columns, such as column 3, so"):
        scaler = without_bounds(RARE)
    assert scaler.mean_[3] == 0 and scaler.scale_[3] == 1
    assert np.all(scaler.scale_[:3] > 0)
    assert_close(scaler.transform(RARE)[:, 3], RARE[:, 3])


def test_a_hopeless_budget_without_bounds_leaves_rows_as_they_are():
    with pytest.warns(UserWarning, match="hides the spread of 3 of the 3 columns"):
        scaler = without_bounds(epsilon=1e-4)
    np.testing.assert_array_equal(scaler.transform(X), X)


def test_rows_of_any_size_stay_finite():
    far = np.vstack([X, np.full((1, 3), np.finfo("f8").max), np.full((1, 3), 5e-324)])
    scaler, plain = without_bounds(far), without_bounds()
    assert np.all(np.isfinite(scaler.transform(X)))
    assert_relative(scaler.scale_, plain.scale_, 0.1)


def test_the_rows_of_persons_take_about_two_and_a_half_times_their_memory():
    """Contributions are twice as wide as rows; a second copy of them would exceed the bound."""
    X = np.random.default_rng(0).normal(size=(40_000, 25))
    tracemalloc.start()
    NoisyScaler(epsilon=1.0, bounds=(-5, 5), random_state=0).fit(X, groups=np.arange(len(X)) // 4)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 3.5 * X.nbytes
