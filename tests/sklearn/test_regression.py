"""The regressor as a scikit-learn user meets it: units, shapes, clones, frames, routing, bad input."""

import math

import numpy as np
import pytest
from sklearn.datasets import make_regression
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.pipeline import Pipeline
from sklearn.preprocessing import StandardScaler

from skmixdp import MixedDPRidge
from skmixdp.algorithms import AdaMix, NoisyGD
from skmixdp.model_selection import public_params
from skmixdp.preprocessing import PublicOnly
from tests.rounding import assert_close

NAN, INF = math.nan, math.inf
X, Y = make_regression(1300, 8, n_targets=2, noise=10.0, random_state=0)
Y = Y * [1.0, 50.0] + [1000.0, -3.0]
X_PUB, Y_PUB, X_PRIV, Y_PRIV, X_TEST, Y_TEST = X[:100], Y[:100], X[100:1000], Y[100:1000], X[1000:], Y[1000:]


def fitted(target=slice(None), **parameters):
    reg = MixedDPRidge(**{"random_state": 0, **parameters})
    return reg.fit(X_PRIV, Y_PRIV[:, target], X_pub=X_PUB, y_pub=Y_PUB[:, target])


def told(reg):
    return " ".join(str(reg.privacy_).split())


class TestShapes:
    @pytest.mark.parametrize(
        "parameters", [{}, {"noise": "discrete", "random_state": None}, {"batch_size": 300}]
    )
    def test_one_target(self, parameters):
        reg = fitted(0, epsilon=3.0, **parameters)
        assert reg.coef_.shape == (8,) and isinstance(reg.intercept_, float)
        assert reg.predict(X_TEST).shape == (300,)
        assert reg.score(X_TEST, Y_TEST[:, 0]) > (0.7 if parameters else 0.8)
        assert (reg.privacy_.noise == "discrete") == ("noise" in parameters)
        assert reg.privacy_.sampling_rate == pytest.approx(1 / 3 if "batch_size" in parameters else 1)

    def test_one_column_of_targets(self):
        column, flat = fitted([0]), fitted(0)
        assert column.coef_.shape == (1, 8) and column.intercept_.shape == (1,)
        assert column.predict(X_TEST).shape == (300, 1)
        np.testing.assert_array_equal(column.predict(X_TEST)[:, 0], flat.predict(X_TEST))

    def test_several_targets(self):
        reg = fitted(epsilon=3.0)
        assert reg.coef_.shape == (2, 8) and reg.intercept_.shape == (2,)
        assert reg.predict(X_TEST).shape == (300, 2)
        assert reg.score(X_TEST, Y_TEST) > 0.75


class TestUnits:
    def test_predictions_follow_the_targets_units(self):
        reg = fitted(dtype="float64")
        moved = MixedDPRidge(dtype="float64", random_state=0)
        moved.fit(X_PRIV, 64 * Y_PRIV - 7, X_pub=X_PUB, y_pub=64 * Y_PUB - 7)
        assert_close(moved.predict(X_TEST), 64 * reg.predict(X_TEST) - 7, 1e-6)

    def test_they_come_from_public_targets_alone(self):
        reg = fitted()
        assert_close(reg._target_map.center, Y_PUB.mean(axis=0))
        assert_close(reg._target_map.scale, Y_PUB.std(axis=0))
        assert "centre and scale of the targets (those of the public targets)" in told(reg)

    def test_declared_ones_come_first(self):
        reg = fitted(target_center=[900.0, 0.0], target_scale=100)
        np.testing.assert_array_equal(reg._target_map.center, [900, 0])
        np.testing.assert_array_equal(reg._target_map.scale, [100, 100])
        assert "(centre declared, scale declared)" in told(reg)
        for parameters, words in (
            ({"target_scale": 100.0}, "(centre of the public targets, scale declared)"),
            ({"target_center": 1.0}, "(centre declared, scale of the public targets)"),
            ({"target_scale": 100.0, "fit_intercept": False}, "(centre 0, scale declared)"),
        ):
            assert words in " ".join(str(fitted(**parameters).privacy_).split())

    def test_without_public_rows_they_are_declared_or_released(self):
        reg = MixedDPRidge(epsilon=3.0, target_center=1000.0, target_scale=150.0, random_state=0)
        assert reg.fit(X_PRIV, Y_PRIV[:, 0]).score(X_TEST, Y_TEST[:, 0]) > 0.7
        reg.set_params(target_scale=None, target_center=None).fit(X_PRIV, Y_PRIV[:, 0])
        assert reg.score(X_TEST, Y_TEST[:, 0]) > 0.7
        assert "centre and scale of the targets (noisy)" in told(reg)
        assert dict(reg.privacy_.shares)["scale of the targets"] > 0

    def test_noise_may_hide_them(self):
        """By public facts before the charge."""
        reg = MixedDPRidge(epsilon=0.01, random_state=0)
        with pytest.warns(UserWarning, match=r"the scale of the targets y is unknown.*pass target_scale"):
            reg.fit(X_PRIV, Y_PRIV[:, 0])
        assert reg._target_map.scale == 1 and "0 and 1, since nothing else is known" in told(reg)

    @pytest.mark.parametrize("value", [0.0, 5.0, 0.1, 1e200])
    def test_constant_public_targets_need_a_declared_scale(self, value):
        reg = MixedDPRidge(target_scale=3.0, random_state=0)  # by chance, 2% of starts are left out
        reg.fit(X_PRIV, np.full(900, value), X_pub=X_PUB, y_pub=np.full(100, value))
        assert reg._target_map.scale == 3
        assert reg._target_map.center == pytest.approx(value, rel=1e-12)
        assert np.all(np.isfinite(reg.predict(X_TEST)))

    def test_one_public_row_tells_no_scale(self):
        reg = MixedDPRidge(epsilon=3.0).fit(X_PRIV, Y_PRIV[:, 0], X_pub=X_PUB[:1], y_pub=Y_PUB[:1, 0])
        assert "scale of the targets" in dict(reg.privacy_.shares)
        with pytest.warns(UserWarning, match="the scale of the targets y is unknown"):
            reg = MixedDPRidge(n_steps=30).fit(X_PRIV, Y_PRIV[:, 0], X_pub=X_PUB[:1], y_pub=Y_PUB[:1, 0])
        assert reg._target_map.scale == 1 and reg._target_map.center == Y_PUB[0, 0]

    @pytest.mark.parametrize("scale", [1e-200, 1e200])
    def test_tiny_and_huge_targets(self, scale):
        reg = MixedDPRidge(epsilon=3.0, random_state=0)
        reg.fit(X_PRIV, scale * Y_PRIV[:, 0], X_pub=X_PUB, y_pub=scale * Y_PUB[:, 0])
        assert_close(reg.predict(X_TEST) / scale, fitted(0, epsilon=3.0).predict(X_TEST), 1e-4)

    @pytest.mark.covering
    @pytest.mark.parametrize("dtype", ["float32", "float64"])
    @pytest.mark.parametrize("far", [1e12, -1e40, 1e300])
    def test_a_private_target_however_far_out_moves_little(self, dtype, far):
        y = Y_PRIV[:, 0].copy()
        y[3] = far
        reg = MixedDPRidge(dtype=dtype, random_state=0).fit(X_PRIV, y, X_pub=X_PUB, y_pub=Y_PUB[:, 0])
        assert reg.score(X_TEST, Y_TEST[:, 0]) > 0.7

    def test_no_intercept_adds_nothing(self):
        reg = fitted(fit_intercept=False)
        np.testing.assert_array_equal(reg.intercept_, 0)

    @pytest.mark.filterwarnings("ignore:the trained head fits the public rows worse")  # random coefficients
    def test_coefficients_as_a_start(self):
        still = {"learning_rate": 1e-300, "n_steps": 1}
        given = np.random.default_rng(0).normal(size=(2, 9))
        reg = fitted(init=given, **still)
        assert_close(reg.coef_, given[:, :8])
        assert_close(reg.intercept_, given[:, 8])
        bare = fitted(init=given[:, :8], **still)
        assert_close(bare.coef_, given[:, :8])
        assert_close(bare.intercept_, Y_PUB.mean(axis=0))
        flat = fitted(1, init=given[1], **still)
        assert_close([*flat.coef_, flat.intercept_], given[1])
        zeros = fitted(init="zeros", **still)
        assert_close(zeros.predict(X_TEST), np.tile(Y_PUB.mean(axis=0), (300, 1)))


@pytest.mark.filterwarnings("ignore::skmixdp.exceptions.PrivacyLeakWarning")
def test_public_rows_are_routed_through_pipelines_and_searches(routing):
    steps = [("scale", PublicOnly(StandardScaler())), ("reg", MixedDPRidge(AdaMix(), epsilon=3.0))]
    pipe = Pipeline(steps, transform_input=["X_pub"])
    params = public_params(X_PUB, Y_PUB)
    assert np.all(cross_val_score(pipe, X_PRIV, Y_PRIV, cv=2, params=params) > 0.5)
    search = GridSearchCV(pipe, {"reg__algorithm__quantile": [0.5, 0.9]}, cv=2)
    search.fit(X_PRIV, Y_PRIV, **params)
    assert search.best_estimator_["reg"].privacy_.n_public == 100


@pytest.fixture
def good():
    return MixedDPRidge, {}, {"X": X_PRIV, "y": Y_PRIV, "X_pub": X_PUB, "y_pub": Y_PUB}


class TestRefusals:
    @pytest.mark.parametrize("value", [0, -1.0, NAN, INF, "a", True, [1.0, 2.0, 3.0], [1.0, 0.0], [[1.0]]])
    def test_target_scale(self, refuse, value):
        refuse(r"^target_scale=.* must be None, a positive finite number, or", {"target_scale": value})

    @pytest.mark.parametrize("value", [0.0, -5.0, 0.1, 1e200])
    def test_public_targets_that_are_all_the_same(self, refuse, value):
        y_pub = Y_PUB.copy()
        y_pub[:, 1] = value
        words = r"^target_scale=None takes .* y_pub, which is .* in all 100 rows for target 1; "
        told = refuse(words, y_pub=y_pub)
        assert f" {value:g} in all" in told
        flat = {"y": Y_PRIV[:, 0], "y_pub": np.full(2, value), "X_pub": X_PUB[:2]}
        refuse(r"in all 2 rows; pass public rows with different targets, or a target_scale", **flat)

    @pytest.mark.parametrize("value", [NAN, INF, "a", False, [1.0, 2.0, 3.0], [1.0, NAN]])
    def test_target_center(self, refuse, value):
        refuse(r"^target_center=.* must be None, a finite number, or", {"target_center": value})

    def test_a_centre_without_an_intercept(self, refuse):
        given = {"target_center": 1.0, "fit_intercept": False}
        refuse(r"^target_center=1\.0 cannot be combined with fit_intercept", given)

    @pytest.mark.parametrize("name", ["y", "y_pub"])
    @pytest.mark.parametrize("value", [NAN, INF, -INF])
    def test_targets_that_are_not_finite(self, refuse, name, value):
        y = {"y": Y_PRIV, "y_pub": Y_PUB}[name].copy()
        y[2, 1] = value
        refuse(rf"^{name} contains NaN or infinity", **{name: y})

    @pytest.mark.parametrize("name", ["y", "y_pub"])
    def test_targets_that_are_not_numbers(self, refuse, name):
        y = {"y": Y_PRIV, "y_pub": Y_PUB}[name]
        text = y.astype(object)
        text[2, 1] = "secret"
        assert "secret" not in refuse(rf"^{name} must hold real numbers", **{name: text})
        refuse(rf"^{name} must hold real numbers", **{name: y.astype(str)})
        refuse(rf"^{name} must hold real numbers", **{name: y + 1j})

    @pytest.mark.parametrize("name", ["y", "y_pub"])
    def test_shapes(self, refuse, name):
        y = {"y": Y_PRIV, "y_pub": Y_PUB}[name]
        refuse(rf"^{name} has shape .*, not \(n_samples,\)", **{name: y[:, :, None]})
        refuse(rf"^{name} has shape .*, not \(n_samples,\)", **{name: y[:, :0]})
        refuse(rf"^{name} has {len(y) - 1} targets and .* {len(y)} rows", **{name: y[:-1]})
        refuse("^fit requires y to be passed", y=None)

    def test_numbers_of_targets_that_differ(self, refuse):
        refuse("^y_pub has 1 targets per row and y has 2", y_pub=Y_PUB[:, 0])
        sources = (X_PUB[:50], X_PUB[50:]), (Y_PUB[:50], Y_PUB[50:, 0])
        refuse("^the sources of y_pub differ", X_pub=sources[0], y_pub=sources[1])

    def test_a_clip_that_needs_bounded_residuals(self, refuse):
        refuse("^NoisyGD cannot train squared loss: .*pass a number", {"algorithm": NoisyGD("lipschitz")})
