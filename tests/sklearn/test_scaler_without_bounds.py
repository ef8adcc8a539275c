"""NoisyScaler without bounds: histograms find centre and spread, within the budget and after its charge."""

import math
import pickle

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone
from sklearn.pipeline import make_pipeline

from skmixdp import MixedDPLogisticRegression
from skmixdp.exceptions import BudgetExceededError
from skmixdp.preprocessing import NoisyScaler
from skmixdp.privacy import NoiseSource, PrivacyLedger, noise_multiplier_for
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


def test_the_report():
    report = fitted(random_state=None).privacy_
    assert report.private and report.noise == "cryptographic" and report.n_private == 4000
    assert 0.999 < report.epsilon <= 1.0
    assert report.noise_multiplier == noise_multiplier_for(1.0, 1e-5, n_steps=1)
    assert not any("bounds" in fact for fact in report.treated_as_public)
    twice = fitted(neighboring="replace_one").privacy_
    assert twice.noise_multiplier == pytest.approx(2 * report.noise_multiplier)


def test_a_seed_is_reproducible_and_said_to_be_not_private():
    np.testing.assert_array_equal(fitted().mean_, fitted().mean_)
    assert not fitted().privacy_.private and "NOT PRIVATE" in str(fitted().privacy_)
    assert np.any(fitted(random_state=None).scale_ != fitted(random_state=None).scale_)


def test_frames_float32_clone_and_pickle():
    frame = pd.DataFrame(X.astype("float32"), columns=["a", "b", "c"])
    scaler = NoisyScaler(1.0).set_output(transform="pandas").fit(frame)
    out = scaler.transform(frame)
    assert out.columns.tolist() == ["a", "b", "c"] and set(out.dtypes) == {np.dtype("float64")}
    assert NoisyScaler(1.0).fit_transform(frame.to_numpy()).dtype == np.float32
    np.testing.assert_array_equal(pickle.loads(pickle.dumps(scaler)).transform(frame), out)
    again = clone(scaler)
    assert again.bounds is None and not hasattr(again, "mean_")


def test_in_a_pipeline_it_is_no_leak():
    y = (X[:, 2] > -100).astype(int)
    pipe = make_pipeline(NoisyScaler(1.0), MixedDPLogisticRegression(epsilon=1.0, classes=[0, 1])).fit(X, y)
    assert pipe.score(X, y) > 0.9


class TestLedger:
    def test_each_fit_is_charged_once(self):
        ledger = PrivacyLedger(":memory:").add_dataset("rows", epsilon=2.0, delta=1e-5)
        scaler = fitted(ledger=ledger)
        (charge,) = ledger.charges()
        assert charge.description == "NoisyScaler, 4000 rows; the noise comes from a seed"
        assert charge.event.noise_multiplier == scaler.privacy_.noise_multiplier
        assert charge.event.n_steps == 1 and scaler.privacy_.dataset == "rows"

    def test_the_charge_comes_before_the_release(self, monkeypatch):
        ledger = PrivacyLedger(":memory:").add_dataset("rows", epsilon=2.0, delta=1e-5)
        n_charges = []

        def crash(*args, **kwargs):
            n_charges.append(len(ledger.charges()))
            raise KeyboardInterrupt

        monkeypatch.setattr(NoiseSource, "add_noise", crash)
        with pytest.raises(KeyboardInterrupt):
            fitted(ledger=ledger)
        assert n_charges == [1] and len(ledger.charges()) == 1

    def test_over_budget_nothing_is_drawn_and_nothing_kept(self, monkeypatch):
        monkeypatch.setattr(NoiseSource, "add_noise", lambda *args: pytest.fail("noise was drawn"))
        ledger = PrivacyLedger(":memory:").add_dataset("rows", epsilon=0.5, delta=1e-5)
        scaler = NoisyScaler(1.0, ledger=ledger)
        with pytest.raises(BudgetExceededError):
            scaler.fit(X)
        assert not hasattr(scaler, "privacy_") and not hasattr(scaler, "scale_") and not ledger.charges()


def test_discrete_noise_is_refused_before_any_charge(monkeypatch):
    pytest.importorskip("opendp", reason="needs skmixdp[discrete]")
    monkeypatch.setattr(NoiseSource, "add_noise", lambda *args: pytest.fail("noise was drawn"))
    ledger = PrivacyLedger(":memory:").add_dataset("rows", epsilon=2.0, delta=1e-5)
    with pytest.raises(ValueError, match="noise='discrete' needs bounds") as caught:
        NoisyScaler(1.0, noise="discrete", ledger=ledger).fit(X)
    assert str(caught.value).endswith(".") and not ledger.charges()


@pytest.mark.parametrize("bad", [np.full((9, 3), np.nan), np.ones((1, 3)), np.ones(3), [["a"] * 3] * 4])
def test_bad_rows_are_refused_before_any_charge(bad):
    ledger = PrivacyLedger(":memory:").add_dataset("rows", epsilon=2.0, delta=1e-5)
    with pytest.raises(ValueError, match=r"^X "):
        NoisyScaler(1.0, ledger=ledger).fit(bad)
    assert not ledger.charges()


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
