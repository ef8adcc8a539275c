"""Weights of rows and of classes, and the logit adjustment, as users meet them."""

import numpy as np
import pytest
from sklearn import clone, config_context
from sklearn.ensemble import AdaBoostClassifier, StackingClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import balanced_accuracy_score
from sklearn.model_selection import cross_val_score

from skmixdp import MixedDPLogisticRegression, MixedDPRidge, RowMapping, fit_many
from skmixdp.algorithms import PAZO, NoisyGD
from skmixdp.datasets import open_rows
from skmixdp.model_selection import public_params
from skmixdp.privacy import NoiseSource
from tests.conftest import Silent
from tests.rounding import assert_close
from tests.unit.rows.conftest import HELD

SHARES = np.array([0.72, 0.2, 0.06, 0.02])
K, D, N = 4, 12, 6000
CENTRES = np.random.default_rng(1).normal(size=(K, D))


def long_tail(n, seed, shares=SHARES):
    """Rows of classes that overlap, with the given shares."""
    rng = np.random.default_rng(seed)
    y = rng.choice(K, size=n, p=shares)
    return 0.7 * CENTRES[y] + rng.normal(size=(n, D)), y


X, Y = long_tail(N, 0)
X_TEST, Y_TEST = long_tail(4000, 2, np.full(K, 0.25))
X_PUB, Y_PUB = 0.7 * np.repeat(CENTRES, 5, axis=0), np.repeat(np.arange(K), 5)
X_PUB = X_PUB + np.random.default_rng(3).normal(size=X_PUB.shape)


def classifier(**parameters):
    return MixedDPLogisticRegression(**{"epsilon": 2.0, "classes": range(K), "random_state": 0, **parameters})


def unadjusted(**parameters):
    return classifier(logit_adjustment=0, **parameters)


def balanced(estimator):
    return balanced_accuracy_score(Y_TEST, estimator.predict(X_TEST))


# -- weights of rows ---------------------------------------------------------------------------


@pytest.mark.parametrize("kind", [MixedDPLogisticRegression, MixedDPRidge])
def test_the_report_says_that_weights_were_checked(kind):
    model = kind(n_steps=2, max_sample_weight=1.0, random_state=0)
    for weights, expected in ((None, False), (np.ones(len(X)), True)):
        (checks,) = (
            fact
            for fact in model.fit(X, Y, X_PUB, Y_PUB, sample_weight=weights).privacy_.treated_as_public
            if "passed validation" in fact
        )
        assert ("weights" in checks) == expected


@pytest.mark.covering
@pytest.mark.parametrize("public", [{}, {"X_pub": X_PUB, "y_pub": Y_PUB}])
@pytest.mark.parametrize(
    "algorithm", ["auto", "adamix", "coupling", "pda-dpmd", "dope-sgd", "gep", "modelmix"]
)
def test_weights_of_one_change_nothing(algorithm, public):
    if not public and algorithm in ("dope-sgd", "gep"):
        pytest.skip("needs public rows")
    plain, ones = (
        unadjusted(algorithm=algorithm, dtype="float64", n_steps=6, max_sample_weight=1.0) for _ in range(2)
    )
    plain.fit(X[:400], Y[:400], **public)
    ones.fit(X[:400], Y[:400], sample_weight=np.ones(400), **public)
    assert_close(ones.coef_, plain.coef_, 1e-12)


def test_a_row_of_weight_zero_adds_nothing():
    weights = (np.arange(400) >= 20).astype(float)
    head = unadjusted(rows=RowMapping(geometry=False), dtype="float64", max_sample_weight=1.0)
    one = head.fit(X[:400], Y[:400], sample_weight=weights).coef_
    labels = np.where(weights == 0, 3 - Y[:400], Y[:400])
    assert_close(head.fit(X[:400], labels, sample_weight=weights).coef_, one, 1e-12)
    assert np.abs(head.fit(X[:400], labels).coef_ - one).max() > 1e-3


def test_without_a_released_mean_weight_the_number_of_rows_stays_the_divisor():
    # No clip acts at the first step from zeros if weights are small: half the weight, half the gradient.
    def first_step(weight):
        head = MixedDPLogisticRegression(
            NoisyGD(clip=50.0, momentum=0.0),
            epsilon=None,
            noise_multiplier=1e-9,
            n_steps=1,
            max_sample_weight=1.0,
            learning_rate=1.0,
            classes=range(K),
            random_state=0,
            dtype="float64",
        )
        return head.fit(X[:400], Y[:400], sample_weight=np.full(400, weight)).coef_

    np.testing.assert_allclose(first_step(0.5), 0.5 * first_step(1.0), atol=1e-7)


@pytest.mark.parametrize("kind", ["sparse", "memory map", "parquet", "dask", "torch"])
def test_weights_act_in_the_same_way_on_every_source(kind, tmp_path):
    if kind == "torch":
        pytest.importorskip("torch", reason="tensors need skmixdp[features]")
    weights = np.random.default_rng(0).exponential(size=300)
    held, _ = HELD[kind](tmp_path, X[:300].astype(np.float32), np.zeros(300))
    terms = {"rows": RowMapping(geometry=False), "max_sample_weight": 2.0, "epsilon": 20.0}
    expected = unadjusted(**terms).fit(X[:300], Y[:300], sample_weight=weights)
    plain = unadjusted(**terms).fit(X[:300], Y[:300])
    found = unadjusted(**terms).fit(held, Y[:300], sample_weight=weights)
    np.testing.assert_allclose(found.coef_, expected.coef_, atol=0.05)
    assert np.abs(plain.coef_ - expected.coef_).max() > 0.2


def test_heads_fitted_together_share_weights():
    weights = np.random.default_rng(0).exponential(size=400)
    folds = [np.arange(400) < 200, np.arange(400) >= 200]
    terms = {"rows": RowMapping(geometry=False), "dtype": "float64", "max_sample_weight": 2.0}
    heads = [unadjusted(**terms) for _ in folds]
    fit_many(heads, X[:400], Y[:400], X_PUB, Y_PUB, rows=folds, sample_weight=weights)
    for head, fold in zip(heads, folds, strict=True):
        alone = unadjusted(**terms).fit(
            X[:400][fold], Y[:400][fold], X_PUB, Y_PUB, sample_weight=weights[fold]
        )
        np.testing.assert_allclose(head.coef_, alone.coef_, rtol=1e-9, atol=1e-9)


@pytest.mark.filterwarnings("ignore::skmixdp.exceptions.PrivacyLeakWarning")
def test_ensembles_that_weight_rows_fit():
    boosted = AdaBoostClassifier(unadjusted(epsilon=50.0), n_estimators=2).fit(X[:500], Y[:500])
    assert boosted.score(X[:500], Y[:500]) > 0.7
    with config_context(enable_metadata_routing=True):
        stack = StackingClassifier(
            [("private", classifier().set_fit_request(sample_weight=True, X_pub=False, y_pub=False))],
            LogisticRegression(max_iter=1000).set_fit_request(sample_weight=True),
            cv=2,
        )
        stack.fit(X[:900], Y[:900], sample_weight=np.ones(900))
        scores = cross_val_score(
            classifier().set_fit_request(sample_weight=True).set_score_request(sample_weight=True),
            X[:900],
            Y[:900],
            params={"sample_weight": np.ones(900), **public_params(X_PUB, Y_PUB)},
            cv=2,
        )
    assert stack.score(X[:900], Y[:900]) > 0.6 and scores.min() > 0.6


def test_labels_in_files_take_weights(tmp_path):
    np.savez(tmp_path / "a.npz", X=X[:300].astype(np.float32), y=Y[:300])
    weights = np.random.default_rng(0).exponential(size=300)
    head = unadjusted(rows=RowMapping(geometry=False), max_sample_weight=2.0)
    files = clone(head).fit(open_rows(tmp_path), sample_weight=weights)
    memory = head.fit(X[:300].astype(np.float32), Y[:300], sample_weight=weights)
    np.testing.assert_allclose(files.coef_, memory.coef_, atol=1e-3)


def test_clipped_losses_are_weighted(monkeypatch):
    """A weight scales what a row adds after the clip, so rows of weight 0 add nothing."""
    monkeypatch.setattr(NoiseSource, "add_noise", Silent.add_noise)
    fixed = {
        "max_sample_weight": 1.0,
        "n_steps": 5,
        "noise_multiplier": 1.0,
        "epsilon": None,
        "random_state": 0,
    }
    weights = np.where(np.arange(N) < N // 2, 1.0, 0.0)
    head = MixedDPLogisticRegression(PAZO("m"), classes=range(K), **fixed)
    moved = np.where(weights[:, np.newaxis] > 0, X, -X)
    first, second = (clone(head).fit(rows, Y, X_PUB, Y_PUB, sample_weight=weights) for rows in (X, moved))
    np.testing.assert_allclose(second.coef_, first.coef_, atol=1e-6)
    other = clone(head).fit(moved, Y, X_PUB, Y_PUB)
    assert np.abs(other.coef_ - first.coef_).max() > 1e-4


def test_a_bound_of_the_loss_bounds_gradients_before_they_are_weighted():
    head = unadjusted(algorithm=NoisyGD(clip="lipschitz"), rows=RowMapping(geometry=False))
    assert head.fit(X, Y, sample_weight=np.full(N, 1e6)).score(X, Y) > 0.75


# -- weights of classes ------------------------------------------------------------------------


def test_class_weights_are_weights_of_rows():
    by_class = {0: 0.3, 3: 2.0}
    weights = np.random.default_rng(0).exponential(size=N)
    factors = np.array([0.3, 1.0, 1.0, 2.0])[Y]
    terms = {"algorithm": "noisy-gd", "n_steps": 9}
    one = unadjusted(class_weight=by_class, max_sample_weight=5.0, **terms)
    other = unadjusted(max_sample_weight=10.0, **terms)
    one.fit(X, Y, sample_weight=np.minimum(weights, 5.0))
    other.fit(X, Y, sample_weight=factors * np.minimum(weights, 5.0))
    np.testing.assert_allclose(one.coef_, other.coef_, rtol=1e-5, atol=1e-5)


# -- the logit adjustment ----------------------------------------------------------------------


@pytest.mark.parametrize("public", [{}, {"X_pub": X_PUB, "y_pub": Y_PUB}])
def test_the_default_helps_rare_classes_and_costs_little(public):
    plain, default = unadjusted().fit(X, Y, **public), classifier().fit(X, Y, **public)
    # Next to a public start, even the weakest adjustment would cost more than a point here.
    assert balanced(default) > balanced(plain) + (-0.005 if public else 0.02)
    fresh, labels = long_tail(6000, 4)
    assert default.score(fresh, labels) > plain.score(fresh, labels) - 0.015
    spent = dict(default.privacy_.shares)
    assert sum(spent.values()) == pytest.approx(1)
    np.testing.assert_allclose(default.class_shares_, SHARES, atol=0.03)
    # Without public rows, the start has counted the classes.
    assert 0.005 <= spent["class shares" if public else "class counts"] <= 0.02
    assert hasattr(plain, "class_shares_") == (not public)
    assert "class shares" not in dict(plain.privacy_.shares)


def test_a_strength_of_one_is_the_classifier_for_equal_classes():
    # Five draws: noise in the temperature scales the adjustment.
    full, usual = (
        np.mean([balanced(classifier(**strength, random_state=seed).fit(X, Y)) for seed in range(5)])
        for strength in ({"logit_adjustment": 1.0}, {})
    )
    assert full > usual + 0.02


@pytest.mark.parametrize("noise", ["float", "discrete"])
def test_only_the_intercepts_change(noise):
    # Discrete noise has no seed. Shares have a standard deviation of 0.004 at this epsilon.
    head = classifier(algorithm="noisy-gd", logit_adjustment=0.7, dtype="float64", noise=noise, epsilon=30.0)
    if noise == "discrete":
        pytest.importorskip("opendp", reason="discrete noise needs skmixdp[discrete]")
        head.set_params(random_state=None)
    head.fit(X[:900], Y[:900])
    np.testing.assert_allclose(head.class_shares_, np.bincount(Y[:900]) / 900, atol=0.03)
    if noise == "float":
        logs = np.log(head.class_shares_)
        # The same steps with the same noise; only the last release differs.
        head.set_params(logit_adjustment=0.2)
        before, intercept = head.coef_.copy(), head.intercept_.copy()
        head.fit(X[:900], Y[:900])
        np.testing.assert_array_equal(head.coef_, before)
        np.testing.assert_allclose(head.intercept_ - intercept, 0.5 * (logs - logs.mean()), atol=1e-9)


def test_two_classes_are_adjusted_only_if_asked():
    y = (Y > 0).astype(int)
    head = MixedDPLogisticRegression(epsilon=2.0, classes=[0, 1], random_state=0)
    before = head.fit(X, y).predict(X_TEST).mean()
    assert "class shares" not in dict(head.privacy_.shares)
    assert head.set_params(logit_adjustment=1.0).fit(X, y).predict(X_TEST).mean() > before


@pytest.mark.parametrize(
    ("parameters", "weights"),
    [
        *(({"algorithm": "adamix"}, None), ({"fit_intercept": False}, None), ({"n_steps": 5}, None)),
        *(({"batch_size": 1000}, None), ({"class_weight": {0: 0.5}}, None), ({"epsilon": 0.001}, None)),
    ],
)
def test_the_default_leaves_other_fits_alone(parameters, weights):
    head = classifier(**parameters).fit(X, Y, X_PUB, Y_PUB, sample_weight=weights)
    assert not hasattr(head, "class_shares_")


def test_rare_classes_get_back_what_the_start_knew():
    start = np.hstack([3.0 * CENTRES, np.zeros((K, 1))])
    plain, half, whole, more = (
        classifier(logit_adjustment=tau, init=start, algorithm="noisy-gd", epsilon=50.0, dtype="float64")
        .fit(X, Y)
        .coef_
        for tau in (1e-12, 0.5, 1.0, 1.5)
    )
    np.testing.assert_allclose(half[0], plain[0], atol=1e-9)  # the class with most rows is not rare
    np.testing.assert_allclose(whole - plain, 2 * (half - plain), atol=1e-6)
    np.testing.assert_allclose(more, whole, atol=1e-6)
    added = (whole - plain)[2:] / start[2:, :-1]
    assert_close(added, np.broadcast_to(added[:, :1], added.shape), 1e-6)
    assert 1 >= added[1, 0] > added[0, 0] > 0


def test_an_adjustment_needs_intercepts():
    with pytest.raises(ValueError, match="fit_intercept=False leaves no intercepts to adjust"):
        classifier(logit_adjustment=1.0, fit_intercept=False).fit(X, Y)


@pytest.mark.filterwarnings("ignore:the head of the public rows:UserWarning")  # a fold of one class
def test_folds_count_their_own_rows():
    folds = [Y == 0, Y != 0]
    heads = [classifier(epsilon=20.0), classifier(epsilon=20.0)]
    fit_many(heads, X, Y, X_PUB, Y_PUB, rows=folds)
    assert heads[0].class_shares_[0] > 0.9 and heads[1].class_shares_[0] < 0.05
