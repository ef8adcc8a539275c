"""The zeroth-order classifier as scikit-learn and its users see it (linear heads)."""

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.model_selection import GridSearchCV, cross_val_score

from skmixdp import MixedDPLogisticRegression, ZerothOrderDPClassifier, ZerothOrderDPModuleClassifier
from skmixdp.algorithms import PAZO, AdaMix, DPZero
from skmixdp.model_selection import public_params

NAMES = ["pazo-m", "pazo-p", "pazo-s", "dpzero"]


@pytest.fixture
def blobs():
    rng = np.random.default_rng(0)
    centres = rng.normal(size=(3, 6))
    y = np.arange(460) % 3
    X = centres[y] + 0.7 * rng.normal(size=(460, 6))
    return X, y


@pytest.mark.parametrize("name", NAMES)
def test_names_stand_for_the_defaults_of_objects(blobs, name):
    X, y = blobs
    parameters = {
        "dpzero": {"n_directions": 2, "smoothing": 0.05, "loss_clip": 0.4},
        "pazo-m": {"n_directions": 2, "public_weight": 0.3, "public_batch_size": 5, "directions": "gaussian"},
        "pazo-p": {"n_public_batches": 4, "orthonormal": False, "loss_clip": 0.4},
        "pazo-s": {"n_candidates": 4, "candidate_noise": None, "loss_clip": 2.0},
    }[name]
    default = DPZero() if name == "dpzero" else PAZO(name[-1])
    data = {"X": X[60:], "y": y[60:], "X_pub": X[:60], "y_pub": y[:60]}
    named = ZerothOrderDPClassifier(name, random_state=3, n_steps=8).fit(**data)
    given = ZerothOrderDPClassifier(default, random_state=3, n_steps=8).fit(**data)
    by_gradients = MixedDPLogisticRegression(given.algorithm, random_state=3, n_steps=8).fit(**data)
    np.testing.assert_array_equal(named.coef_, given.coef_)
    np.testing.assert_array_equal(named.coef_, by_gradients.coef_)
    assert named.privacy_ == given.privacy_
    assert named.privacy_.epsilon <= 1.0 and named.privacy_.sampling_rate == 1
    other = clone(default).set_params(**parameters)
    other = ZerothOrderDPClassifier(other, random_state=3, n_steps=8).fit(**data)
    assert np.abs(other.coef_ - named.coef_).max() > 1e-6


def test_the_start_is_the_public_solution_unless_told_otherwise(blobs):
    X, y = blobs
    rows, still = (X[60:], y[60:], X[:60], y[:60]), {"n_steps": 1, "learning_rate": 1e-12, "epsilon": 1.0}
    warm = ZerothOrderDPClassifier("dpzero", **still).fit(*rows)
    cold = ZerothOrderDPClassifier("dpzero", init="zeros", **still).fit(*rows)
    public = MixedDPLogisticRegression("noisy-gd", **still).fit(*rows)
    np.testing.assert_allclose(warm.coef_, public.coef_, atol=1e-6)
    np.testing.assert_allclose(cold.coef_, 0, atol=1e-6)


@pytest.mark.parametrize("algorithm", [DPZero(5), PAZO("m", n_directions=5, public_weight=0.0)])
@pytest.mark.filterwarnings("ignore:no public row has a label in:UserWarning")
def test_private_losses_teach_what_public_rows_lack(blobs, algorithm):
    """Public rows of two classes only: what the third looks like, private rows alone can say."""
    X, y = blobs
    kept = y[:60] != 2
    clf = ZerothOrderDPClassifier(algorithm, epsilon=50.0, n_steps=300, classes=[0, 1, 2], random_state=0)
    clf.fit(X[60:], y[60:], X[:60][kept], y[:60][kept])
    before = clone(clf).set_params(n_steps=1, learning_rate=1e-12)
    before.fit(X[60:], y[60:], X[:60][kept], y[:60][kept])
    assert before.score(X, y) < 0.7
    assert clf.score(X, y) > before.score(X, y) + 0.1


@pytest.mark.filterwarnings("ignore::skmixdp.exceptions.PrivacyLeakWarning")
def test_it_composes_with_search_and_routing(routing, blobs):
    X, y = blobs
    public = public_params(X[:60], y[:60])
    clf = ZerothOrderDPClassifier(PAZO("p"), n_steps=5, random_state=0)
    search = GridSearchCV(clf, {"algorithm__n_public_batches": [2, 5]}, cv=2).fit(X[60:], y[60:], **public)
    scores = cross_val_score(clf, X[60:], y[60:], params=public, cv=3)
    assert search.best_params_["algorithm__n_public_batches"] in (2, 5)
    assert scores.min() > 0.7
    with pytest.raises(ValueError, match=r"pass algorithm=skmixdp.algorithms.DPZero\(\)"):
        ZerothOrderDPClassifier("dpzero").set_params(algorithm__smoothing=1.0)


def too_many(*args, **parameters):
    return {"algorithm": PAZO(*args, **parameters)}


@pytest.mark.parametrize(
    ("parameters", "match"),
    [
        ({"algorithm": "pazo-x"}, "algorithm='pazo-x' must be 'auto', 'pazo-m'"),
        ({"algorithm": "adamix"}, "algorithm='adamix' must be 'auto', 'pazo-m'"),
        ({"algorithm": AdaMix()}, "need gradients of private rows work with MixedDPLogisticRegression"),
        (too_many(public_batch_size=61), "=61 of PAZO asks for 1 disjoint public batches of 61"),
        (too_many("s", n_candidates=61), r"n_candidates=61 .* for 61 .* of 1 row\(s\) and X_pub has 60"),
        (too_many("p", n_public_batches=7, public_batch_size=9), "batches=7 of PAZO .* for 7 .* of 9"),
        ({"epsilon": -1.0}, "epsilon=-1.0 must be a positive finite number"),
    ],
)
def test_bad_parameters_are_refused_before_any_noise_is_drawn(no_noise, blobs, parameters, match):
    X, y = blobs
    clf = ZerothOrderDPClassifier(**parameters)
    with pytest.raises(ValueError, match=match) as caught:
        clf.fit(X[60:], y[60:], X[:60], y[:60])
    message = str(caught.value)
    assert ". " not in message and "\n" not in message and message.endswith(".")
    assert not hasattr(clf, "coef_")


@pytest.mark.parametrize("name", NAMES[:3])
def test_pazo_without_public_rows_offers_dpzero(blobs, name):
    X, y = blobs
    told = r"needs public rows .* or use DPZero \('dpzero'\), which needs none\.$"
    with pytest.raises(ValueError, match=told):
        ZerothOrderDPClassifier(name, classes=[0, 1, 2]).fit(X, y)
    assert ZerothOrderDPClassifier("dpzero", classes=[0, 1, 2], n_steps=2).fit(X, y).n_iter_ == 2


def test_a_module_has_no_private_score(blobs):
    X, y = blobs
    linear = ZerothOrderDPClassifier("dpzero", classes=[0, 1, 2], n_steps=2).fit(X, y)
    assert 0 <= linear.private_score(X, y, noise_multiplier=1e-6) <= 1
    assert not hasattr(ZerothOrderDPModuleClassifier(object(), "dpzero"), "private_score")
