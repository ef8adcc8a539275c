"""Zeroth-order algorithms of linear heads, as scikit-learn and users see them."""

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.model_selection import GridSearchCV, cross_val_score

from skmixdp import MixedDPLogisticRegression, ZerothOrderDPModuleClassifier
from skmixdp.algorithms import PAZO, DPZero
from skmixdp.model_selection import public_params


@pytest.fixture
def blobs():
    rng = np.random.default_rng(0)
    centres = rng.normal(size=(3, 6))
    y = np.arange(460) % 3
    X = centres[y] + 0.7 * rng.normal(size=(460, 6))
    return X, y


@pytest.mark.parametrize(
    ("algorithm", "parameters"),
    [
        (DPZero(), {"n_directions": 2, "smoothing": 0.05, "loss_clip": 0.4}),
        (
            PAZO("m"),
            {"n_directions": 2, "public_weight": 0.3, "public_batch_size": 5, "directions": "gaussian"},
        ),
        (PAZO("p"), {"n_public_batches": 4, "orthonormal": False, "loss_clip": 0.4}),
        (PAZO("s"), {"n_candidates": 4, "candidate_noise": None, "loss_clip": 2.0}),
    ],
    ids=str,
)
def test_parameters_change_the_head(blobs, algorithm, parameters):
    X, y = blobs
    data = {"X": X[60:], "y": y[60:], "X_pub": X[:60], "y_pub": y[:60]}
    default = MixedDPLogisticRegression(algorithm, random_state=3, n_steps=8).fit(**data)
    assert default.privacy_.epsilon <= 1.0 and default.privacy_.sampling_rate == 1
    changed = clone(algorithm).set_params(**parameters)
    changed = MixedDPLogisticRegression(changed, random_state=3, n_steps=8).fit(**data)
    assert np.abs(changed.coef_ - default.coef_).max() > 1e-6


def test_the_start_is_the_public_solution_unless_told_otherwise(blobs):
    X, y = blobs
    rows, still = (X[60:], y[60:], X[:60], y[:60]), {"n_steps": 1, "learning_rate": 1e-12, "epsilon": 1.0}
    warm = MixedDPLogisticRegression(DPZero(), **still).fit(*rows)
    cold = MixedDPLogisticRegression(DPZero(), init="zeros", **still).fit(*rows)
    public = MixedDPLogisticRegression("noisy-gd", **still).fit(*rows)
    np.testing.assert_allclose(warm.coef_, public.coef_, atol=1e-6)
    np.testing.assert_allclose(cold.coef_, 0, atol=1e-6)


@pytest.mark.parametrize("algorithm", [DPZero(5), PAZO("m", n_directions=5, public_weight=0.0)])
@pytest.mark.filterwarnings("ignore:no public row has a label in:UserWarning")
def test_private_losses_teach_what_public_rows_lack(blobs, algorithm):
    """Public rows of two classes only: what the third looks like, private rows alone can say."""
    X, y = blobs
    kept = y[:60] != 2
    clf = MixedDPLogisticRegression(algorithm, epsilon=50.0, n_steps=300, classes=[0, 1, 2], random_state=0)
    clf.fit(X[60:], y[60:], X[:60][kept], y[:60][kept])
    before = clone(clf).set_params(n_steps=1, learning_rate=1e-12)
    before.fit(X[60:], y[60:], X[:60][kept], y[:60][kept])
    assert before.score(X, y) < 0.7
    assert clf.score(X, y) > before.score(X, y) + 0.1


@pytest.mark.filterwarnings("ignore::skmixdp.exceptions.PrivacyLeakWarning")
def test_it_composes_with_search_and_routing(routing, blobs):
    X, y = blobs
    public = public_params(X[:60], y[:60])
    clf = MixedDPLogisticRegression(PAZO("p"), n_steps=5, random_state=0)
    search = GridSearchCV(clf, {"algorithm__n_public_batches": [2, 5]}, cv=2).fit(X[60:], y[60:], **public)
    scores = cross_val_score(clf, X[60:], y[60:], params=public, cv=3)
    assert search.best_params_["algorithm__n_public_batches"] in (2, 5)
    assert scores.min() > 0.7


@pytest.mark.parametrize(
    ("algorithm", "match"),
    [
        (PAZO(public_batch_size=61), "=61 of PAZO asks for 1 disjoint public batches of 61"),
        (PAZO("s", n_candidates=61), r"n_candidates=61 .* for 61 .* of 1 row\(s\) and X_pub has 60"),
        (PAZO("p", n_public_batches=7, public_batch_size=9), "batches=7 of PAZO .* for 7 .* of 9"),
    ],
)
def test_bad_parameters_are_refused_before_any_noise_is_drawn(no_noise, blobs, algorithm, match):
    X, y = blobs
    clf = MixedDPLogisticRegression(algorithm)
    with pytest.raises(ValueError, match=match) as caught:
        clf.fit(X[60:], y[60:], X[:60], y[:60])
    message = str(caught.value)
    assert ". " not in message and "\n" not in message and message.endswith(".")
    assert not hasattr(clf, "coef_")


@pytest.mark.parametrize("name", ["m", "p", "s"])
def test_pazo_without_public_rows_offers_dpzero(blobs, name):
    X, y = blobs
    refusal = r"needs public rows .* or use DPZero\(\), which needs none\.$"
    with pytest.raises(ValueError, match=refusal):
        MixedDPLogisticRegression(PAZO(name), classes=[0, 1, 2]).fit(X, y)
    assert MixedDPLogisticRegression(DPZero(), classes=[0, 1, 2], n_steps=2).fit(X, y).n_iter_ == 2


def test_a_module_has_no_private_score(blobs):
    X, y = blobs
    linear = MixedDPLogisticRegression(DPZero(), classes=[0, 1, 2], n_steps=2).fit(X, y)
    assert 0 <= linear.private_score(X, y, noise_multiplier=1e-6) <= 1
    assert not hasattr(ZerothOrderDPModuleClassifier(object(), "dpzero"), "private_score")
