"""Rates of counts: what they predict, what they cost, what is refused, and how models are kept."""

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from sklearn.base import clone
from sklearn.linear_model import PoissonRegressor

from skmixdp import MixedDPPoissonRegressor, Typical, fit_many, load
from skmixdp.privacy import PrivacyLedger

pytestmark = pytest.mark.filterwarnings(
    "ignore:delta:UserWarning", "ignore::skmixdp.exceptions.NotPrivateWarning"
)

N, D = 20_000, 3
SLOPES = np.array([0.5, -0.3, 0.0])


def counted(seed=0, n=N, spread=1.0):
    """Rows, clustered counts, and exposures."""
    rng = np.random.default_rng(seed)
    Z, years = rng.normal(size=(n, D)), rng.uniform(0.05, 2, n)
    means = years * np.exp(Z @ SLOPES - 0.5)
    return 5.0 + spread * Z, rng.poisson(means * rng.gamma(2.0, 0.5, n)), years


def test_rates_are_about_those_of_scikit_learn():
    X, y, years = counted()
    usual = PoissonRegressor(alpha=0).fit(X, y / years, sample_weight=years)
    X_test, y_test, years_test = counted(1)
    scores = []
    for seed in range(4):
        model = MixedDPPoissonRegressor(epsilon=1.0, random_state=seed).fit(X, y, exposure=years)
        scores.append(model.score(X_test, y_test, exposure=years_test))
        # Noise in the level has a standard deviation of 0.015.
        assert model.predict(X, years).mean() == pytest.approx(y.mean(), rel=0.06)
    best = usual.score(X_test, y_test / years_test, sample_weight=years_test)
    assert np.mean(scores) > best - 0.01


def test_with_much_budget_they_are_those_of_scikit_learn():
    X, y, years = counted()
    usual = PoissonRegressor(alpha=0).fit(X, y / years, sample_weight=years)
    scale = dict.fromkeys(range(D), Typical(5.0, 1.0))
    model = MixedDPPoissonRegressor(epsilon=1e6, scale=scale).fit(X, y, exposure=years)
    rates = usual.predict(X)
    usual_rows = (np.abs(X - 5) < 2.5).all(axis=1)
    np.testing.assert_allclose(model.predict(X)[usual_rows], rates[usual_rows], rtol=0.05, atol=0)


def test_the_unit_of_exposures_is_that_of_rates():
    X, y, years = counted()
    by_year, by_day = (
        MixedDPPoissonRegressor(epsilon=20.0, random_state=0).fit(X, y, exposure=unit * years)
        for unit in (1.0, 365.0)
    )
    np.testing.assert_allclose(by_day.predict(X) * 365, by_year.predict(X), rtol=0.03, atol=0)


def test_exposures_are_not_weights():
    """A weight counts a row several times, and leaves its rate where it is."""
    X, y, years = counted()
    weights = np.where(X[:, 2] > 5, 1.0, 0.25)
    model = MixedDPPoissonRegressor(epsilon=5.0, random_state=0).fit(
        X, y, exposure=years, sample_weight=weights
    )
    assert model.predict(X, years).mean() == pytest.approx(y.mean(), rel=0.05)
    assert [line for line, _ in model.privacy_.shares] == [
        "scale of weights",
        "mean weight",
        "columns",
        "training",
    ]
    assert sum(share for _, share in model.privacy_.shares) == pytest.approx(1.0, abs=1e-9)


def test_without_rows_that_noise_shows_the_model_is_a_rate():
    X, y, years = counted(n=500)
    model = MixedDPPoissonRegressor(epsilon=0.5, random_state=0).fit(X, y, exposure=years)
    rates = model.predict(X)
    assert np.isfinite(rates).all() and (rates > 0).all()
    assert np.log(rates).std() < 1.5


def test_public_rows_and_persons_take_part():
    X, y, years = counted()
    model = MixedDPPoissonRegressor(epsilon=1.0, random_state=0)
    model.fit(X[500:], y[500:], X[:500], y[:500], exposure=years[500:], exposure_pub=years[:500])
    assert model.privacy_.n_public == 500
    assert "columns" not in dict(model.privacy_.shares)  # which public rows tell
    persons = clone(model).set_params(epsilon=4.0).fit(X, y, exposure=years, groups=np.arange(N) // 2)
    assert persons.privacy_.unit == "person" and persons.privacy_.n_private == N // 2
    assert persons.predict(X, years).mean() == pytest.approx(y.mean(), rel=0.1)


@pytest.mark.parametrize("value", [1e20, 1e160, 1.7e308])
def test_huge_public_counts_end_no_fit(value):
    X, y, years = counted(n=2000)
    y_pub, exposures = y[-30:].astype(np.float64), {"exposure": years, "exposure_pub": years[-30:]}
    y_pub[[3, 4]] = value
    model = MixedDPPoissonRegressor(epsilon=4.0, random_state=0).fit(X, y, X[-30:], y_pub, **exposures)
    assert np.isfinite(model.predict(X)).all()


def test_a_column_that_noise_hides_has_no_effect():
    X, y, _ = counted()
    model = MixedDPPoissonRegressor(epsilon=1.0, random_state=0).fit(np.c_[X, np.zeros(N)], y)
    assert model.coef_[3] == 0 and model.coef_[0] > 0.3


def test_other_forms_of_rows_give_the_same_model():
    X, y, years = counted()
    X = np.round(X)
    models = [
        MixedDPPoissonRegressor(epsilon=1.0, random_state=0).fit(rows, y, exposure=years)
        for rows in (X, sp.csr_array(X), pd.DataFrame(X, columns=list("abc")))
    ]
    for model, rows in zip(models, (X, sp.csr_array(X), pd.DataFrame(X, columns=list("abc"))), strict=True):
        # Sparse rows are in single precision, and steps of noisy sums multiply their rounding.
        np.testing.assert_allclose(model.predict(rows), models[0].predict(X), rtol=1e-4, atol=0)
    first, second = fit_many([clone(models[0]), clone(models[0])], X, y)
    np.testing.assert_allclose(first.coef_, second.coef_, rtol=0, atol=1e-12)


def test_models_are_kept_and_exported(tmp_path):
    X, y, years = counted()
    model = MixedDPPoissonRegressor(epsilon=1.0, random_state=0).fit(X, y, exposure=years)
    model.save(tmp_path / "rates.safetensors")
    wanted = model.predict(X[:50])
    np.testing.assert_array_equal(load(tmp_path / "rates.safetensors").predict(X[:50]), wanted)
    plain = model.to_sklearn()
    assert type(plain[-1]) is PoissonRegressor
    np.testing.assert_allclose(plain.predict(X[:50]), wanted, rtol=1e-9, atol=0)
    runtime = pytest.importorskip("onnxruntime")
    session = runtime.InferenceSession(model.to_onnx().SerializeToString())
    np.testing.assert_allclose(session.run(None, {"X": X[:50]})[0], wanted, rtol=1e-9, atol=0)


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"exposure": np.zeros(N)}, "exposure must hold positive"),
        ({"exposure": [1.0]}, f"exposure has 1 exposures and X {N} rows; pass exposures"),
        ({"exposure": np.ones((N, 2))}, "exposure has 2 exposures per row"),
        ({"exposure": np.r_[np.nan, np.ones(N - 1)]}, "exposure contains NaN or infinity; drop the rows"),
        ({"y": -np.ones(N)}, "y holds a negative number; pass counts, which are 0 or more"),
        ({"exposure_pub": [1.0]}, "exposure_pub needs exposure"),
        ({"y": np.ones((N, 2))}, "y has 2 targets"),
        ({"y": np.full(N, np.nan)}, "finite|NaN"),
        ({"epsilon": None}, "epsilon=None"),
        ({"epsilon": 0.0}, "epsilon=0.0"),
        ({"scale": {9: Typical(0, 1)}}, "names the column 9"),
        ({"n_steps": 5}, "has no parameter 'n_steps'"),
        ({"X_unlabeled": np.ones((5, D))}, "does not accept X_unlabeled"),
    ],
)
def test_bad_input_is_refused_before_the_charge(tmp_path, change, words):
    X, y, _ = counted()
    ledger = PrivacyLedger(tmp_path / "ledger.sqlite")
    ledger.add_dataset("claims", epsilon=10.0, delta=1e-3)
    of_model = {name: value for name, value in change.items() if name in ("epsilon", "scale", "n_steps")}
    of_fit = {"y": y} | {name: value for name, value in change.items() if name not in of_model}
    with pytest.raises((ValueError, TypeError), match=words):
        MixedDPPoissonRegressor(ledger=ledger["claims"], **of_model).fit(X, **of_fit)
    assert not ledger["claims"].charges()


@pytest.mark.parametrize(
    ("options", "match"),
    [
        ({"groups": np.arange(N) // 2}, "noise='discrete' needs exact sums, which means over the rows"),
        ({"X": sp.csr_array((N, D))}, "noise='discrete' needs rows on a grid, which centred sparse rows"),
    ],
)
def test_what_discrete_noise_excludes_is_refused_before_the_charge(options, match, no_noise):
    pytest.importorskip("opendp", reason="needs skmixdp[discrete]")
    X, y, _ = counted()
    entry = PrivacyLedger(":memory:").add_dataset("claims", epsilon=5.0, delta=1e-5)
    with pytest.raises(ValueError, match=match):
        MixedDPPoissonRegressor(noise="discrete", ledger=entry).fit(**{"X": X, "y": y} | options)
    assert not entry.charges()
