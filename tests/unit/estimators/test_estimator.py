"""What the estimator adds to the engine: rows, start, noise, report."""

import numpy as np
import pandas as pd
import pytest
from sklearn.datasets import load_digits

from skmixdp import MixedDPLogisticRegression, MixedDPRidge, RowMapping
from skmixdp.algorithms import AdaMix, NoisyGD
from skmixdp.privacy import NoiseSource, epsilon_of, noise_multiplier_for
from tests.conftest import Silent
from tests.rounding import assert_close

X, y = load_digits(return_X_y=True)
X_PUB, Y_PUB, X_PRIV, Y_PRIV, X_TEST, Y_TEST = X[:100], y[:100], X[100:1000], y[100:1000], X[1000:], y[1000:]


def fit(algorithm="adamix", **parameters):
    clf = MixedDPLogisticRegression(algorithm, **{"random_state": 0, "n_steps": 20, **parameters})
    return clf.fit(X_PRIV, Y_PRIV, X_PUB, Y_PUB)


def test_zeroing_out_is_reported_by_its_name_with_the_numbers_of_adding_or_removing():
    zeroed, added = (fit(neighboring=name).privacy_ for name in ("zero_out", "add_or_remove_one"))
    assert (zeroed.neighboring, zeroed.epsilon, zeroed.noise_multiplier) == (
        "zero_out",
        added.epsilon,
        added.noise_multiplier,
    )
    assert "one private row zeroed out (n is public)" in str(zeroed)


def test_a_fit_leaves_no_counts_and_no_record_of_an_earlier_one():
    clf = fit("auto", n_steps=None, epsilon=3.0, record_per_instance=True)
    assert {"class_shares_", "per_instance_"} <= vars(clf).keys()
    clf.set_params(logit_adjustment=0, record_per_instance=False).fit(X_PRIV, Y_PRIV, X_PUB, Y_PUB)
    assert not {"class_shares_", "per_instance_"} & vars(clf).keys()


class TestDiscrete:
    def test_it_is_accounted_for_as_what_it_is(self):
        clf = fit(noise="discrete", random_state=None, n_steps=3)
        report = clf.privacy_
        assert (report.noise, report.private, report.mu) == ("discrete", True, None)
        assert "zero-concentrated" in report.accountant
        assert not any("floating-point" in warning for warning in report.warnings)
        assert report.noise_multiplier == noise_multiplier_for(1.0, 1e-5, n_steps=3, noise="discrete")
        assert report.epsilon == epsilon_of(report.noise_multiplier, 3, delta=1e-5, noise="discrete")

    @pytest.mark.parametrize("algorithm", ["adamix", "noisy-gd", AdaMix(n_components=8)])
    def test_it_learns_as_well(self, algorithm):
        clf = fit(algorithm, noise="discrete", random_state=None, epsilon=3.0, n_steps=15)
        assert clf.score(X_TEST, Y_TEST) > 0.8

    def test_it_takes_no_batches(self):
        with pytest.raises(ValueError, match=r"^batch_size=20 cannot be accounted for with noise='discrete'"):
            fit(noise="discrete", random_state=None, batch_size=20)


class TestStart:
    def test_coefficients_with_and_without_intercepts(self):
        given = np.random.default_rng(0).normal(size=(10, 65))
        for init in (given, given[:, :64]):
            clf = fit(init=init, learning_rate=1e-300, n_steps=1)
            assert_close(clf.coef_, init[:, :64])
            expected = init[:, 64] if init.shape[1] == 65 else np.zeros(10)
            np.testing.assert_allclose(clf.intercept_, expected, atol=1e-12)
        clf = fit(init=given[:, :64], fit_intercept=False, learning_rate=1e-300, n_steps=1)
        assert_close(clf.coef_, given[:, :64])
        np.testing.assert_array_equal(clf.intercept_, 0)

    @pytest.mark.parametrize(
        "head",
        [
            MixedDPLogisticRegression(rows=RowMapping(norm="clip"), classes=range(10)),
            MixedDPLogisticRegression(class_weight="balanced", classes=range(10)),
            MixedDPRidge(target_center=np.zeros(10), target_scale=1.0),
        ],
    )
    def test_intercepts_of_a_start_are_taken_where_private_rows_tell_more_first(self, head):
        start = np.zeros((10, 65))
        start[3, -1] = 50.0
        targets = Y_PRIV if hasattr(head, "classes") else np.eye(10)[Y_PRIV]
        fitted = head.set_params(init=start, epsilon=2.0, random_state=0).fit(X_PRIV, targets)
        assert len(fitted.privacy_.shares) >= 2
        assert fitted.intercept_.argmax() == 3

    def test_zeros_and_the_public_fit(self):
        still = {"learning_rate": 1e-300, "n_steps": 1}
        np.testing.assert_allclose(fit(init="zeros", **still).coef_, 0, atol=1e-200)
        public = fit(**still)
        assert public.score(X_TEST, Y_TEST) > 0.8
        weak, strong = (np.linalg.norm(fit(public_l2=l2, **still).coef_) for l2 in (1e-5, 1.0))
        assert weak > 10 * strong

    def test_the_automatic_penalty_does_not_depend_on_the_rows_scale(self):
        still = {"learning_rate": 1e-300, "n_steps": 1, "rows": RowMapping(norm=None), "fit_intercept": False}
        one = MixedDPLogisticRegression("adamix", **still).fit(X_PRIV, Y_PRIV, X_PUB, Y_PUB)
        other = MixedDPLogisticRegression("adamix", **still).fit(8 * X_PRIV, Y_PRIV, 8 * X_PUB, Y_PUB)
        np.testing.assert_allclose(one.coef_, 8 * other.coef_, atol=1e-4 * np.abs(one.coef_).max())


@pytest.mark.parametrize("n_steps", ["many", "auto"])
def test_none_alone_leaves_steps_to_the_rule(n_steps):
    with pytest.raises(
        ValueError, match=rf"^n_steps='{n_steps}' must be a whole number of at least 1 or None\.$"
    ):
        fit(n_steps=n_steps)


def test_the_step_size_that_was_taken_is_told():
    told = fit().learning_rate_
    again = fit(learning_rate=told)
    assert again.learning_rate_ == told
    np.testing.assert_array_equal(again.coef_, fit().coef_)


class TestRows:
    def test_normalised_rows_make_the_scale_irrelevant(self):
        one = fit()
        clf = MixedDPLogisticRegression("adamix", n_steps=20, random_state=0).fit(
            16 * X_PRIV, Y_PRIV, 16 * X_PUB, Y_PUB
        )
        np.testing.assert_allclose(clf.coef_, one.coef_, rtol=1e-5, atol=1e-5)

    def test_centred_rows_make_the_origin_irrelevant(self):
        one = fit(dtype="float64")
        clf = MixedDPLogisticRegression("adamix", n_steps=20, random_state=0, dtype="float64")
        clf.fit(X_PRIV + 32, Y_PRIV, X_PUB + 32, Y_PUB)
        np.testing.assert_allclose(clf.coef_, one.coef_, atol=1e-6)
        assert not np.allclose(fit(rows=RowMapping(center=False)).coef_, one.coef_, atol=0.1)

    def test_centring_uses_public_rows_alone(self):
        clf = fit()
        assert_close(clf._row_map.mean, X_PUB.mean(axis=0))
        with pytest.warns(UserWarning, match="classes were read"):
            bare = MixedDPLogisticRegression("adamix", random_state=0).fit(X_PRIV, Y_PRIV)
        assert bare._row_map.mean is None

    def test_both_precisions_agree(self, monkeypatch):
        """But for the noise, which covers the rounding of sums and has a hundredth more of it in float32."""
        monkeypatch.setattr(NoiseSource, "add_noise", Silent.add_noise)
        np.testing.assert_allclose(fit(dtype="float32").coef_, fit(dtype="float64").coef_, atol=1e-3)

    def test_whitening_comes_with_auto_alone_unless_asked_for(self):
        for algorithm, whiten, expected in (
            ("auto", "auto", True),
            ("auto", False, False),
            ("adamix", "auto", False),
            ("adamix", True, True),
        ):
            clf = fit(algorithm, rows=RowMapping(whiten=whiten), n_steps=1)
            assert (clf._row_map.whitening is not None) == expected
        rows = clf._row_map.whitening(X_TEST - X_PUB.mean(axis=0))
        rows /= np.linalg.norm(rows, axis=1, keepdims=True)
        assert_close(clf.decision_function(X_TEST), rows @ clf.coef_.T + clf.intercept_)

    def test_whitening_needs_public_rows(self):
        clf = MixedDPLogisticRegression(
            "adamix", rows=RowMapping(whiten=True), classes=range(10), random_state=0
        )
        with pytest.raises(
            ValueError, match=r"^rows=RowMapping\(whiten=True\) needs public rows; pass X_pub and y_pub"
        ):
            clf.fit(X_PRIV, Y_PRIV)
        with pytest.raises(ValueError, match=r"^whiten='yes' of RowMapping must be True, False or 'auto'\.$"):
            clf.set_params(rows=RowMapping(whiten="yes")).fit(X_PRIV, Y_PRIV)


def test_the_penalty_is_centred_where_it_is_told():
    strong = {"l2": 10.0, "learning_rate": 0.1, "n_steps": 200}
    at_zero = fit(NoisyGD(center="zero"), **strong)
    at_start = fit(NoisyGD(center="public"), **strong)
    start = fit(learning_rate=1e-300, n_steps=1)
    assert np.linalg.norm(at_zero.coef_) < 0.1 * np.linalg.norm(start.coef_)
    assert np.linalg.norm(at_start.coef_ - start.coef_) < 0.1 * np.linalg.norm(start.coef_)


@pytest.mark.parametrize(
    "late", [{"algorithm": AdaMix(quantile=2.0)}, {"epsilon": 0.1, "noise_multiplier": 20}]
)
def test_a_fit_that_fails_leaves_the_earlier_result_or_nothing(late):
    for clf in (fit(), MixedDPLogisticRegression("adamix", n_steps=20)):
        before = dict(vars(clf.set_params(**late)))
        with pytest.raises(ValueError, match=r"quantile|noise_multiplier"):
            clf.fit(X_PRIV[:, :60] + 5, (Y_PRIV + 1) % 10, X_PUB[:, :60], Y_PUB)
        assert vars(clf) == before


class Annotated(MixedDPLogisticRegression):
    """Sets an attribute of its own before it fits."""

    def fit(self, X, y=None, X_pub=None, y_pub=None, **unsupported):
        self.note_ = "mine"
        return super().fit(X, y, X_pub=X_pub, y_pub=y_pub, **unsupported)


def test_a_fit_keeps_what_a_subclass_has_set_and_drops_stale_names_of_features():
    clf = Annotated(n_steps=2)
    frame, frame_pub = (pd.DataFrame(X).add_prefix("x") for X in (X_PRIV, X_PUB))
    clf.fit(frame, Y_PRIV, X_pub=frame_pub, y_pub=Y_PUB)
    assert clf.note_ == "mine" and clf.feature_names_in_[0] == "x0"
    clf.fit(X_PRIV, Y_PRIV, X_pub=X_PUB, y_pub=Y_PUB)
    assert clf.note_ == "mine" and not hasattr(clf, "feature_names_in_")
