"""What additive models show: parts that sum to the output, centred curves, importances, bands."""

from dataclasses import replace

import numpy as np
import pytest
import scipy.sparse
from numpy.testing import assert_allclose

import skmixdp
from skmixdp import AdditiveDPClassifier, AdditiveDPRegressor
from skmixdp.privacy.noise import NoiseSource
from tests.private_names import _effects
from tests.rounding import assert_relative

pytestmark = pytest.mark.filterwarnings("ignore:random_state:UserWarning")

N = 6_000
RNG = np.random.default_rng(0)
X = np.column_stack([RNG.normal(size=N), RNG.exponential(size=N), RNG.integers(0, 2, N), RNG.uniform(size=N)])
CURVE = 2 * np.sin(2 * X[:, 0])
OUTPUT = CURVE + X[:, 2]
LABELS = (RNG.random(N) < 1 / (1 + np.exp(-OUTPUT))).astype(int)


def classifier(y=LABELS, rows=slice(None), epsilon=8.0, classes=(0, 1), **data):
    clf = AdditiveDPClassifier(epsilon=epsilon, classes=list(classes), random_state=0)
    return clf.fit(X[rows], y[rows], **data)


def regressor(y=OUTPUT, rows=X, epsilon=8.0, **parameters):
    parameters = {"target_center": 0.0, "target_scale": 2.0, "random_state": 0} | parameters
    return AdditiveDPRegressor(epsilon=epsilon, **parameters).fit(rows, y)


MODELS = {
    "two classes": classifier,
    "three classes": lambda: classifier(LABELS + (X[:, 3] > 0.6), classes=(0, 1, 2)),
    "labels": lambda: classifier(np.column_stack([LABELS, X[:, 3] > 0.5])),
    "public rows": lambda: classifier(rows=slice(500, N), X_pub=X[:500], y_pub=LABELS[:500]),
    "a line": lambda: classifier(rows=slice(300), epsilon=1.0),
    "a regression": regressor,
    "targets": lambda: regressor(np.column_stack([OUTPUT, X[:, 3]])),
    "columns left alone": lambda: regressor(linear=[2, 3]),
}


@pytest.fixture(scope="module", params=MODELS)
def model(request):
    return MODELS[request.param]()


def outputs(model, rows):
    found = model.decision_function(rows) if hasattr(model, "classes_") else model.predict(rows)
    return np.asarray(found).reshape(len(rows), -1)


def test_parts_and_the_intercept_sum_to_the_output(model):
    parts = model.explain(X[:200])
    assert parts.shape == (200, 4, outputs(model, X[:1]).shape[1])
    assert_allclose(parts.sum(axis=1) + model.intercept_, outputs(model, X[:200]), atol=1e-12)


def test_parts_of_missing_and_infinite_values_sum_too(model):
    rows = X[:4].copy()
    rows[0, 0], rows[1, 1], rows[2, 3] = np.nan, np.inf, -np.inf
    assert_allclose(model.explain(rows).sum(axis=1) + model.intercept_, outputs(model, rows), atol=1e-9)


def test_parts_of_a_row_do_not_depend_on_the_others(model):
    assert_allclose(model.explain(X[5:6])[0], model.explain(X[:50])[5], atol=1e-12)
    np.testing.assert_array_equal(model.explain(scipy.sparse.csr_array(X[:9])), model.explain(X[:9]))


def test_a_curve_is_what_a_column_adds_in_usual_rows(model):
    if not hasattr(model, "effects_"):
        assert model._row_map.columns is None
        return
    effects = model._effects
    parts = effects.contributions(effects.rows)
    for j in np.flatnonzero(model.importances_ > 0.15 * model.importances_.max()):
        curve = effects.curve(j, effects.rows[:, j])
        assert np.corrcoef(curve[:, 0], parts[:, j, 0])[0, 1] > 0.88
        assert curve.std() == pytest.approx(parts[:, j].std(), rel=0.2)


def test_curves_are_centred_over_the_released_distribution(model):
    if not hasattr(model, "effects_"):
        return
    for j, quantiles in enumerate(model._effects.basis.quantiles):
        if len(quantiles):
            curve = model._effects.curve(j, quantiles)
            assert_allclose(curve.mean(axis=0), 0, atol=1e-12 + 0.02 * np.abs(curve).max())
            assert model.importances_[j] == pytest.approx(np.sqrt(np.mean(curve**2)), rel=0.05, abs=1e-9)


def test_saved_models_show_the_same(model, tmp_path):
    model.save(tmp_path / "model")
    loaded = skmixdp.load(tmp_path / "model")
    np.testing.assert_array_equal(loaded.explain(X[:20]), model.explain(X[:20]))
    if hasattr(model, "effects_"):
        for name in ("knots_", "effects_"):
            for one, other in zip(getattr(loaded, name), getattr(model, name), strict=True):
                np.testing.assert_array_equal(one, other)
        np.testing.assert_array_equal(loaded.importances_, model.importances_)
        knots = model.knots_[0]
        np.testing.assert_array_equal(loaded._effects.errors(0, knots), model._effects.errors(0, knots))


def test_known_curves_are_found_in_the_units_of_the_columns():
    scaled = X * [1000, 1, 1, 1] + [5e4, 0, 0, 0]
    reg = regressor(rows=scaled, epsilon=30.0)
    inner = slice(2, -2)
    values = reg.knots_[0][inner]
    wanted = 2 * np.sin(2 * (values - 5e4) / 1000)
    assert_allclose(reg.effects_[0][inner, 0], wanted, atol=0.35)
    assert_allclose(np.ptp(reg.effects_[2]), 1, atol=0.15)
    assert np.argsort(-reg.importances_)[:2].tolist() == [0, 2]
    assert reg.importances_[0] == pytest.approx(CURVE.std(), rel=0.2)
    assert all(len(a) == len(b) for a, b in zip(reg.knots_, reg.effects_, strict=True))


def test_without_a_known_distribution_there_are_parts_and_no_effects():
    with pytest.warns(UserWarning, match="this budget leaves more noise"):
        clf = classifier(rows=slice(100), epsilon=0.1)
    assert clf.explain(X[:5]).shape == (5, 4, 1)
    assert not hasattr(clf, "effects_")
    with pytest.raises(
        AttributeError, match="nothing that was released tells how the columns are distributed"
    ):
        clf.importances_  # noqa: B018


def test_a_linear_model_has_effects_without_bands():
    reg = regressor(OUTPUT[:2000], X[:2000], epsilon=1.0)
    assert reg._row_map.columns is not None
    assert np.isfinite(np.concatenate(reg.effects_)).all()
    assert np.isnan(reg._effects.errors(0, reg.knots_[0])).all()


def test_bands_widen_where_few_stand_in_rows_tell_the_curvature(monkeypatch):
    clf = classifier()
    values = clf.knots_[0]
    many = clf._effects.errors(0, values)
    monkeypatch.setattr(_effects, "_N_ROWS", 31)
    monkeypatch.setattr(_effects, "_ROOT", 3)
    few = clf._effects
    assert few.basis.width > 31
    assert np.isfinite(few.errors(0, values)).all()
    assert few.errors(0, values).mean() > many.mean()


def test_unfitted_models_show_nothing():
    clf = AdditiveDPClassifier()
    assert not hasattr(clf, "effects_")
    with pytest.raises(ValueError, match="not fitted"):
        clf.explain(X)


def test_columns_of_which_nothing_is_known_count_as_0_or_1():
    reg = regressor(linear=[2, 3])
    assert reg.knots_[2].tolist() == [0, 1]
    assert_allclose(reg.effects_[2].sum(), 0, atol=0.05)  # the centre is noisy
    assert reg.importances_[2] == pytest.approx(0.5, rel=0.2)


def covered(make, n_fits):
    """Parts of fits whose band holds the curve of a fit without noise, at quantiles of each column."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(NoiseSource, "add_noise", lambda self, array, scale, grid: array)
        exact = make()
    values = [np.unique(each) for each in exact._effects.basis.quantiles]
    wanted = [exact._effects.curve(j, each) for j, each in enumerate(values)]
    held = [[] for _ in values]
    for _ in range(n_fits):
        found = make()._effects
        for j, each in enumerate(values):
            far = np.abs(found.curve(j, each) - wanted[j])
            held[j].append(far <= 1.96 * found.errors(j, each))
    return np.concatenate([np.mean(each, axis=0).ravel() for each in held])


def private_classifier():
    # Public rows without labels tell the knots, so that curves of several fits can be compared.
    return AdditiveDPClassifier(epsilon=3.0, classes=[0, 1]).fit(X[300:], LABELS[300:], X_unlabeled=X[:300])


def private_regressor():
    reg = AdditiveDPRegressor(epsilon=3.0, target_center=0.0, target_scale=2.0)
    return reg.fit(X[300:], OUTPUT[300:] + X[300:, 1], X_unlabeled=X[:300])


@pytest.mark.parametrize("make", [private_classifier, private_regressor])
def test_bands_hold_the_curve_without_noise_and_are_not_far_too_wide(make):
    found = covered(make, 8)
    assert found.mean() > 0.9
    errors = make()._effects.errors(0, np.linspace(-1.5, 1.5, 9))
    assert errors.max() < 0.5


@pytest.mark.slow
@pytest.mark.parametrize("make", [private_classifier, private_regressor])
def test_bands_hold_the_curve_without_noise_in_95_of_100_fits(make):
    found = covered(make, 200)
    # A share of 0.95 has standard deviation 0.015 in 200 fits; the worst of many points is lower by chance.
    assert found.mean() >= 0.95
    assert found.min() >= 0.95 - 3 * 0.0154


@pytest.mark.parametrize(
    ("quantiles", "message"),
    [
        ((np.zeros(3),), "basis.quantiles is not a tuple of 4 arrays"),
        ((np.array([np.inf]),) * 4, "basis.quantiles of shape"),
        ((np.zeros((2, 2)),) * 4, "basis.quantiles of shape"),
    ],
)
def test_forged_quantiles_are_refused(quantiles, message):
    basis = regressor()._row_map.basis
    basis.check_for(4)
    with pytest.raises(ValueError, match=message):
        replace(basis, quantiles=quantiles).check_for(4)


@pytest.mark.parametrize("name", ["two classes", "three classes", "public rows", "a regression"])
def test_curves_shrink_to_lines_by_what_noise_explains(name):
    effects = MODELS[name]()._effects
    k = len(effects.coef)
    silent = np.append(np.zeros(k), effects.noise[k:])
    assert_allclose(replace(effects, noise=silent).shrunk(), effects.coef, atol=1e-9)
    lines = replace(effects, coef=replace(effects, noise=np.append(np.full(k, 1e3), silent[k:])).shrunk())
    for j, knots in enumerate(effects.basis.knots):
        values = effects.rows[:, j]
        line = effects.basis.of_column(j)(values[:, np.newaxis])[:, 0]
        before, after = effects.curve(j, values), lines.curve(j, values)
        if len(knots):  # the line of least squares
            assert_allclose(after.std(axis=0), np.abs(np.polyfit(line, before, 1)[0]) * line.std(), atol=1e-6)
            assert_allclose(np.polyfit(line, after, 1)[0], np.polyfit(line, before, 1)[0], atol=1e-6)
        else:
            assert_allclose(after, before, atol=1e-9)


@pytest.mark.parametrize("growth", [1e-6, 0.1, 1.0, 8.0, 100.0])
def test_noise_of_averaged_heads(growth):
    """The mean of the last quarter of many short steps, each of which adds noise and damps what is there."""
    n_steps = 40_000
    damped = (1 - growth / n_steps) ** np.arange(n_steps)
    sums = np.append(0, np.cumsum(damped))
    last = n_steps // 4
    ages = np.arange(n_steps, 0, -1)  # noise of this age is in the last heads from its own step on
    weights = (sums[ages] - sums[np.maximum(ages - last, 0)]) / last
    assert_relative(_effects._ratios_of_averages(np.array([growth])), (weights**2).mean(), 3e-3)


def test_a_curve_without_an_effect_is_nearly_a_line(model):
    if not any(map(len, model._effects.basis.knots)):
        return
    effects, rests = model._effects, []
    for j in (0, 1):
        values = effects.rows[:, j]
        line = effects.basis.of_column(j)(values[:, np.newaxis])[:, 0]
        curve = effects.curve(j, values)[:, 0]
        rests.append((curve - np.polyval(np.polyfit(line, curve, 1), line)).std())
    assert rests[1] < 0.25 * rests[0]
