"""Curves of counts: what they gain, what is shown of them, what they cost, and what is refused."""

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone
from sklearn.linear_model import PoissonRegressor

from skmixdp import (
    AdditiveDPPoissonRegressor,
    MixedDPPoissonRegressor,
    Typical,
    fit_many,
    load,
    private_pipeline,
)
from skmixdp.inspection import EffectsDisplay
from skmixdp.preprocessing import TableEncoder
from skmixdp.privacy import PrivacyLedger

pytestmark = pytest.mark.filterwarnings(
    "ignore:delta:UserWarning", "ignore::skmixdp.exceptions.NotPrivateWarning"
)

N, D = 20_000, 3
kinds = pytest.mark.parametrize("kind", [AdditiveDPPoissonRegressor, MixedDPPoissonRegressor])


def counted(seed=0, n=N):
    """Rows, counts whose rate falls and rises with the first column, and exposures."""
    rng = np.random.default_rng(seed)
    X, years = rng.normal(size=(n, D)), rng.uniform(0.1, 2, n)
    return X, rng.poisson(years * np.exp(0.8 * np.abs(X[:, 0]) - 1)), years


def fitted(seed=0, **parameters):
    X, y, years = counted()
    model = AdditiveDPPoissonRegressor(**{"epsilon": 1.0, "random_state": seed} | parameters)
    return model.fit(X, y, exposure=years)


def test_curves_find_what_lines_miss():
    X, y, years = counted(1)
    model = fitted()
    line = MixedDPPoissonRegressor(epsilon=1.0, random_state=0).fit(*counted()[:2], exposure=counted()[2])
    assert model.score(X, y, exposure=years) > line.score(X, y, exposure=years) + 0.15
    # Noise in the level has a standard deviation of 0.015.
    assert model.predict(X, years).mean() == pytest.approx(y.mean(), rel=0.06)
    assert model.importances_.argmax() == 0
    assert [line for line, _ in model.privacy_.shares] == ["knots", "training"]
    assert sum(share for _, share in model.privacy_.shares) == pytest.approx(1.0, abs=1e-9)


def test_effects_are_logs_of_rates_with_the_noise_of_training():
    known = {"scale": {j: Typical(0, 1) for j in range(D)}, "n_knots": 8}
    X, y, years = counted()
    curves, errors = [], []
    for seed in range(12):
        model = AdditiveDPPoissonRegressor(epsilon=1.0, random_state=seed, **known)
        model.fit(X[300:], y[300:], X[:300], y[:300], exposure=years[300:], exposure_pub=years[:300])
        assert model.privacy_.shares == (("training", 1),)
        curves.append(np.concatenate(model.effects_))
        display = EffectsDisplay.from_estimator(model)
        errors.append(
            np.concatenate([model._effects.errors(j, knots) for j, knots in enumerate(model.knots_)])
        )
    assert display.unit == "log of the rate"
    # A standard deviation of twelve draws, of a mean over 27 knots.
    assert np.std(curves, axis=0).mean() / np.mean(errors) == pytest.approx(1.0, abs=0.35)
    effects = model.explain(X[:50])
    rates = np.exp(effects.sum(axis=1)[:, 0] + model.intercept_)
    np.testing.assert_allclose(rates, model.predict(X[:50]), rtol=1e-9, atol=0)


def test_missing_numbers_pairs_persons_and_weights_take_part():
    X, y, years = counted()
    X[::7, 0] = np.nan
    for parameters, options in (
        ({}, {}),
        ({"interactions": [(0, 1)]}, {}),
        ({}, {"groups": np.arange(N) // 2}),
        ({}, {"sample_weight": np.where(X[:, 1] > 0, 1.0, 0.5)}),
    ):
        model = AdditiveDPPoissonRegressor(epsilon=4.0, random_state=0, **parameters)
        model.fit(X, y, exposure=years, **options)
        assert model.predict(X, years).mean() == pytest.approx(y.mean(), rel=0.1)
        assert model.score(X, y, exposure=years) > 0.12
    assert "mean weight" in dict(model.privacy_.shares)


def test_few_rows_have_no_curves():
    X, y, years = counted(n=2000)
    model = AdditiveDPPoissonRegressor(epsilon=1.0, random_state=0).fit(X, y, exposure=years)
    assert [line for line, _ in model.privacy_.shares] == ["columns", "training"]
    line = MixedDPPoissonRegressor(epsilon=1.0, random_state=0).fit(X, y, exposure=years)
    np.testing.assert_allclose(model.predict(X), line.predict(X), rtol=1e-9, atol=0)
    assert model.explain(X[:4]).shape == (4, D, 1) and np.isnan(model._effects.errors(0, X[:4, 0])).all()


def test_models_are_kept_exported_and_shared(tmp_path):
    X, y, _ = counted()
    model = fitted()
    model.save(tmp_path / "rates.safetensors")
    again = load(tmp_path / "rates.safetensors")
    wanted = model.predict(X[:50])
    np.testing.assert_array_equal(again.predict(X[:50]), wanted)
    np.testing.assert_array_equal(again.importances_, model.importances_)
    plain = model.to_sklearn()
    assert type(plain[-1]) is PoissonRegressor
    np.testing.assert_allclose(plain.predict(X[:50]), wanted, rtol=1e-9, atol=0)
    first, second = fit_many([clone(model), clone(model)], X, y)
    np.testing.assert_allclose(first.predict(X[:50]), second.predict(X[:50]), rtol=1e-9, atol=0)


@kinds
def test_a_pipeline_passes_exposures_on(kind):
    X, y, years = counted()
    frame = pd.DataFrame({"age": X[:, 0], "sex": np.where(X[:, 1] > 0, "f", "m")})
    encoder = TableEncoder({"age": (-3, 3), "sex": ["f", "m"]})
    model = private_pipeline(encoder, kind(epsilon=2.0, random_state=0))
    model.fit(frame, y, exposure=years)
    assert (model.predict(frame) * years).mean() == pytest.approx(y.mean(), rel=0.05)
    if kind is AdditiveDPPoissonRegressor:
        assert [*EffectsDisplay.from_estimator(model).curves] == ["age", "sex"]


@pytest.mark.parametrize(
    ("parameters", "options", "match"),
    [
        ({"interactions": "auto"}, {}, "interactions='auto' is not for counts; pass False, or a list"),
        ({"interactions": [(0, 9)]}, {}, "must be False, .auto., or a list of distinct pairs"),
        ({"n_knots": 1}, {}, "n_knots=1 must be"),
        ({"scale": True}, {}, "scale=True must be 'auto'"),
        ({"linear": ["a"]}, {}, "must be 'auto', or a list of names or numbers"),
        ({}, {"exposure": -np.ones(N)}, "exposure must hold positive numbers"),
    ],
)
def test_bad_input_is_refused_before_the_charge(parameters, options, match, no_noise):
    X, y, years = counted()
    entry = PrivacyLedger(":memory:").add_dataset("claims", epsilon=5.0, delta=1e-5)
    with pytest.raises((TypeError, ValueError), match=match):
        AdditiveDPPoissonRegressor(ledger=entry, **parameters).fit(
            **{"X": X, "y": y, "exposure": years} | options
        )
    assert not entry.charges()
