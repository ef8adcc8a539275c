"""Regressions of targets as people have them: in any units, skewed, rare, constant, with values far out."""

import warnings

import numpy as np
import pytest
from sklearn.linear_model import LinearRegression

from skmixdp import AdditiveDPRegressor, MixedDPRidge, RowMapping

N = 6000
RNG = np.random.default_rng(0)
X = RNG.normal(size=(2 * N, 4))
SIGNAL = X @ [0.7, 0.4, 0.0, -0.2]
Y = SIGNAL + 0.6 * RNG.normal(size=2 * N)


def fitted(y, features=X, y_rows=slice(N), **parameters):
    with warnings.catch_warnings(action="ignore"):
        return MixedDPRidge(**{"epsilon": 1.0, "random_state": 0, **parameters}).fit(features[:N], y[y_rows])


UNITS = {
    "dollars": (10_000.0, 50_000.0),
    "micrometres": (1e-6, 0.0),
    "molecules": (1e6, 0.0),
    "Julian dates": (40.0, 2_460_000.0),
    "negative degrees": (-5.0, -80.0),
    "unit scale": (1.0, 0.0),
    "large and far": (1e12, 1e13),
    "tiny and far": (1e-9, 1e-7),
    "years": (15.0, 1990.0),
}


@pytest.mark.parametrize("unit", UNITS)
def test_targets_in_any_units(unit):
    scale, shift = UNITS[unit]
    y = scale * Y + shift
    unknown = fitted(y).score(X[N:], y[N:])
    known = fitted(y, target_scale=abs(scale), target_center=shift).score(X[N:], y[N:])
    assert unknown > known - 0.03 and unknown > 0.5


OTHERS = [
    *({"noise": "discrete", "random_state": None}, {"batch_size": 500}, {"n_steps": 40}),
    {"epsilon": None, "noise_multiplier": 20.0, "n_steps": 40},
    *({"algorithm": name} for name in ("adamix", "noisy-gd", "pda-dpmd", "modelmix")),
    {"fit_intercept": False, "rows": RowMapping(norm="clip")},
]


@pytest.mark.parametrize("parameters", OTHERS, ids=str)
def test_dollars_with_other_parameters(parameters):
    if parameters.get("noise") == "discrete":
        pytest.importorskip("opendp", reason="discrete noise needs skmixdp[opendp]")
    shift = 0.0 if "fit_intercept" in parameters else 50_000.0
    y = 10_000 * Y + shift
    reg = fitted(y, **parameters)
    assert reg.score(X[N:], y[N:]) > 0.45
    assert dict(reg.privacy_.shares)["scale of the targets"] > 0
    if reg.n_steps is not None:
        assert reg.n_iter_ == 37 and reg.privacy_.n_steps == 37


def test_mixed_steps_release_no_scale_before_them():
    """Their amplification is for mixed releases alone."""
    with pytest.warns(UserWarning, match="the scale of the targets y is unknown"):
        reg = MixedDPRidge("modelmix", n_steps=40, random_state=0).fit(X[:N], Y[:N])
    assert "scale of the targets" not in dict(reg.privacy_.shares) and reg.n_iter_ == 40


def test_several_targets_in_several_units():
    y = np.stack([1e-3 * Y, 1e5 * Y + 1e6, np.exp(Y)], axis=1)
    scores = fitted(y, epsilon=3.0).score(X[N:], y[N:])
    assert scores > 0.4


def test_weights_and_persons():
    y = 10_000 * Y + 50_000
    with warnings.catch_warnings(action="ignore"):
        weighted = MixedDPRidge(epsilon=1.0, random_state=0).fit(X[:N], y[:N], sample_weight=np.ones(N))
        groups = np.arange(N) // 2
        persons = MixedDPRidge(epsilon=3.0, random_state=0).fit(X[:N], y[:N], groups=groups)
    assert weighted.score(X[N:], y[N:]) > 0.5 and persons.score(X[N:], y[N:]) > 0.5


@pytest.mark.parametrize("epsilon", [1.0, 8.0])
def test_a_few_values_a_million_times_larger(epsilon):
    far = np.arange(2 * N) % 100 == 0
    y = np.where(far, 1e6 * Y, Y)
    reg = fitted(y, epsilon=epsilon)
    assert 0.5 < reg._target_map.scale[0] < 2
    if epsilon == 1.0:
        assert reg.score(X[N:][~far[N:]], y[N:][~far[N:]]) > 0.5


@pytest.mark.parametrize("value", [0.0, 5.0, -1e6, 1e-7])
def test_constant_targets(value):
    predicted = fitted(np.full(2 * N, value)).predict(X)
    np.testing.assert_allclose(predicted, value, rtol=1e-4, atol=1e-9)


def test_hidden_rare_events_are_warned_of():
    y = (np.arange(2 * N) % 1000 == 0).astype(float)
    with pytest.warns(UserWarning, match="nearly all targets y are 0 and noise hides the others"):
        reg = MixedDPRidge(epsilon=1.0).fit(X[:N], y[:N])
    assert np.abs(reg.predict(X)).max() < 1e-6


def test_too_few_steps_for_the_scale_are_refused_before_any_noise():
    with pytest.raises(ValueError, match=r"the budget is enough for 1 releases.*pass target_scale"):
        MixedDPRidge(epsilon=0.2, noise_multiplier=20.0).fit(X[:N], Y[:N])


#: Skewed targets with their signal, by what they count.
SKEWED = {
    "rare events": lambda u: u < 0.05 + 0.03 * np.tanh(SIGNAL),
    "visits": lambda u: np.floor(-np.log(u) * np.exp(0.6 * SIGNAL)),
    "costs": lambda u: np.exp(0.6 * SIGNAL) * u**-0.35,
    "delays": lambda u: np.where(u < 0.8, 0.0, 5 + 3 * SIGNAL - 10 * np.log((1 - u) / 0.2 + 1e-9)),
    "times": lambda u: -np.log(u) * np.exp(1 + 0.5 * SIGNAL),
    "churn": lambda u: u < 0.2 + 0.1 * np.tanh(SIGNAL),
    "purchases": lambda u: np.where(u < 0.9, 0.0, 20 + 10 * SIGNAL),
}


@pytest.mark.parametrize("known", [0, 200], ids=lambda n: f"{n} public rows")
@pytest.mark.parametrize("name", SKEWED)
def test_skewed_targets_have_the_right_mean(name, known):
    y = np.asarray(SKEWED[name](np.random.default_rng(1).uniform(size=2 * N)), np.float64)
    public = {"X_pub": X[:known], "y_pub": y[:known]} if known else {}
    squares = LinearRegression().fit(X[known:], y[known:]).score(X, y)
    # What is rare has a mean far below its deviation, which is the unit of the noise.
    for epsilon, mean, of_deviation, r2 in ((8.0, 0.05, 0.03, 0.02), (1e6, 0.02, 0.0, 0.005)):
        with warnings.catch_warnings(action="ignore"):
            reg = MixedDPRidge(epsilon=epsilon, random_state=0).fit(X[known:], y[known:], **public)
        assert reg.predict(X).mean() == pytest.approx(y.mean(), mean, abs=of_deviation * y.std())
        assert reg.score(X, y) > squares - r2


#: Skewed targets of curved signals.
CURVED = {
    "costs": lambda rng, signal: np.exp(3 + signal + 1.2 * rng.normal(size=len(signal))),
    "few costs": lambda rng, signal: (
        (rng.random(len(signal)) < 1 / (1 + np.exp(1.5 - signal))) * rng.gamma(0.7, np.exp(2 + signal))
    ),
    "visits": lambda rng, signal: rng.poisson(np.exp(signal - 0.5) * rng.gamma(0.4, 2.5, len(signal))) * 1.0,
}


@pytest.mark.filterwarnings("ignore::UserWarning")
@pytest.mark.parametrize("name", CURVED)
def test_skewed_targets_of_additive_models_have_the_right_mean(name):
    """Before, the mean was .5 to .9 of the true one at epsilon 3: gradients of wide rows are clipped."""
    rng = np.random.default_rng(0)
    rows = rng.normal(size=(24_000, 6))
    y = CURVED[name](rng, 0.6 * np.sin(1.5 * rows[:, 0]) + 0.4 * rows[:, 1])
    train, test = slice(20_000), slice(20_000, None)
    most = 0.05 * y[train].mean() + 2 * y[train].std() / np.sqrt(20_000)
    for epsilon in (3.0, 8.0):
        ridge, additive = (
            kind(epsilon=epsilon, delta=1e-6, random_state=0).fit(rows[train], y[train])
            for kind in (MixedDPRidge, AdditiveDPRegressor)
        )
        for model in (ridge, additive):
            assert model.predict(rows).mean() == pytest.approx(y[train].mean(), abs=most)
            assert "residuals" in dict(model.privacy_.shares)
        assert additive.score(rows[test], y[test]) > ridge.score(rows[test], y[test])


@pytest.mark.parametrize("seed", [5, 40, 56, 100, 141, 309, 333, 396])
def test_noise_in_an_empty_bin_spoils_no_fit(seed):
    """With these seeds, noise passed for targets of -1e13, a column of width 3,000, or long gradients."""
    rows = np.random.default_rng(0).normal(size=(20_000, 3))
    y = 3 + rows[:, 0]
    assert MixedDPRidge(epsilon=1.0, delta=1e-6, random_state=seed).fit(rows, y).score(rows, y) > 0.98


def turned(power, d, n_rows, seed=0):
    """Columns turned at random, with deviations ``i^-power`` along the axes, and a target."""
    rng = np.random.default_rng(seed)
    axes = np.linalg.qr(rng.normal(size=(d, d)))[0] / np.arange(1, d + 1)[:, np.newaxis] ** power
    rows = rng.normal(size=(n_rows + 3000, d)) @ axes
    return rows, rows @ rng.normal(size=d) * 3 + rng.normal(size=len(rows))


@pytest.mark.parametrize(
    ("epsilon", "parameters", "most"),
    [
        (1.0, {}, 0.003),
        (1.0, {"fit_intercept": False}, 0.003),
        (1.0, {"rows": RowMapping(center=False)}, 0.003),
        (1e6, {}, 0.001),
    ],
)
def test_correlated_columns_reach_least_squares(epsilon, parameters, most):
    """Before, a hundred steps did not reach the small eigenvalues: 0.009 to 0.034 below at any budget."""
    rows, y = turned(0.7, 60, 20_000)
    train, test = slice(20_000), slice(20_000, None)
    plain = LinearRegression().fit(rows[train], y[train]).score(rows[test], y[test])
    with warnings.catch_warnings(action="ignore"):
        reg = MixedDPRidge(epsilon=epsilon, random_state=0, **parameters).fit(rows[train], y[train])
    assert reg.score(rows[test], y[test]) > plain - most
    assert "second moment" in dict(reg.privacy_.shares)


def test_few_public_rows_leave_the_second_moment_to_private_ones():
    rows, y = turned(1.0, 30, 20_000)
    test = slice(20_000, None)
    plain = LinearRegression().fit(rows[:20_000], y[:20_000]).score(rows[test], y[test])
    with warnings.catch_warnings(action="ignore"):
        reg = MixedDPRidge(epsilon=1.0, random_state=0)
        reg.fit(rows[20:20_000], y[20:20_000], X_pub=rows[:20], y_pub=y[:20])
    assert reg.score(rows[test], y[test]) > plain - 0.005


def test_rare_targets_of_a_narrow_table_are_not_cut():
    """Three columns, 3% positives, epsilon 1: the mean prediction was a fifth of the share."""
    rng = np.random.default_rng(0)
    rows = rng.normal(size=(8000, 3))
    y = (rng.random(8000) < np.minimum(0.1, np.exp(1.2 * rows[:, 0] - 4.2))).astype(float)
    with warnings.catch_warnings(action="ignore"):
        predicted = MixedDPRidge(epsilon=1.0, random_state=0).fit(rows, y).predict(rows)
    assert 0.7 < predicted.mean() / y.mean() < 1.3
