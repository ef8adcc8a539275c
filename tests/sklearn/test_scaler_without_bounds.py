"""NoisyScaler without bounds: histograms find centre and spread; see test_noisy_scaler.py too."""

import math

import numpy as np
import pytest
from sklearn.pipeline import make_pipeline

from skmixdp import MixedDPLogisticRegression
from skmixdp.preprocessing import NoisyScaler
from skmixdp.privacy import NoiseSource
from tests.rounding import assert_close, assert_relative

RNG = np.random.default_rng(0)
X = RNG.normal(size=(4000, 3)) * [1.0, 2.0, 30.0] + [0.0, 5.0, -100.0]
#: 999 of 1,000 entries of the last column are 0, which tells nothing of the others.
RARE = np.column_stack([X, np.where(np.arange(4000) % 1000 == 0, 70.0, 0.0)])


def fitted(rows=X, **parameters):
    return NoisyScaler(**({"epsilon": 1.0, "random_state": 0} | parameters)).fit(rows)


@pytest.mark.parametrize("unit", [1e-6, 1.0, 1e6])
def test_columns_end_near_mean_0_and_spread_1_in_any_unit(unit):
    Z = fitted(unit * X).transform(unit * X)
    assert np.all(np.abs(Z.mean(axis=0)) < 0.5)
    assert np.all((Z.std(axis=0) > 0.7) & (Z.std(axis=0) < 1.5))


@pytest.mark.parametrize(("with_mean", "with_std"), [(True, True), (True, False), (False, True)])
def test_transform_and_its_inverse(with_mean, with_std):
    scaler = fitted(with_mean=with_mean, with_std=with_std)
    assert (scaler.mean_ is None) == (not with_mean) and (scaler.scale_ is None) == (not with_std)
    mean = scaler.mean_ if with_mean else 0.0
    scale = scaler.scale_ if with_std else 1.0
    assert_close(scaler.transform(X), (X - mean) / scale)
    assert_close(scaler.inverse_transform(scaler.transform(X)), X)
    assert scaler.mean_noise_ is None


def test_what_is_found_is_the_same_whatever_is_used_of_it():
    both = fitted()
    np.testing.assert_array_equal(fitted(with_std=False).mean_, both.mean_)
    np.testing.assert_array_equal(fitted(with_mean=False).scale_, both.scale_)


def test_a_column_that_noise_hides_keeps_its_unit_and_is_named():
    with pytest.warns(UserWarning, match=r"hides the spread of 1 of the 4 columns, such as column 3, so"):
        scaler = fitted(RARE)
    assert scaler.mean_[3] == 0 and scaler.scale_[3] == 1
    assert np.all(scaler.scale_[:3] > 0)
    assert_close(scaler.transform(RARE)[:, 3], RARE[:, 3])


def test_a_hopeless_budget_leaves_rows_as_they_are():
    with pytest.warns(UserWarning, match="hides the spread of 3 of the 3 columns"):
        scaler = fitted(epsilon=1e-4)
    np.testing.assert_array_equal(scaler.transform(X), X)


def test_rows_of_any_size_stay_finite():
    far = np.vstack([X, np.full((1, 3), np.finfo("f8").max), np.full((1, 3), 5e-324)])
    scaler, plain = fitted(far), fitted()
    assert np.all(np.isfinite(scaler.transform(X)))
    assert_relative(scaler.scale_, plain.scale_, 0.1)


def test_in_a_pipeline_it_is_no_leak():
    y = (X[:, 2] > -100).astype(int)
    pipe = make_pipeline(NoisyScaler(1.0), MixedDPLogisticRegression(epsilon=1.0, classes=[0, 1])).fit(X, y)
    assert pipe.score(X, y) > 0.9


def test_the_noise_is_that_of_three_histograms(monkeypatch):
    asked = []

    def listen(self, array, scale, grid):
        asked.append((array.size, scale))
        return array

    monkeypatch.setattr(NoiseSource, "add_noise", listen)
    scaler = fitted()
    assert [size for size, _ in asked] == [3 * 103, 3 * 64, 3 * 32]
    stated = scaler.privacy_.noise_multiplier * math.sqrt(3 * 3)
    assert_relative([scale for _, scale in asked], stated, 1e-6)
    # Each row is in one bin of each column.
    assert scaler.scale_[0] == pytest.approx(1, rel=0.1)
