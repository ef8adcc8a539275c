"""Noisy confusion matrices of private rows: counts, noise, charges, and what is refused."""

import numpy as np
import pytest
from sklearn.metrics import confusion_matrix

from skmixdp import MixedDPLogisticRegression
from skmixdp.privacy import PrivacyLedger, epsilon_of

pytestmark = pytest.mark.filterwarnings("ignore")


@pytest.fixture(scope="module", params=[{}, {"fit_intercept": False}], ids=["intercept", "no intercept"])
def clf(request, digits):
    X, y, X_pub, y_pub = digits
    model = MixedDPLogisticRegression("noisy-gd", n_steps=3, random_state=0, **request.param)
    return model.fit(X, y, X_pub=X_pub, y_pub=y_pub)


def test_counts_are_those_of_the_predictions(clf, digits):
    X, y, *_ = digits
    noisy = clf.private_confusion(X, y, noise_multiplier=1e-6)
    np.testing.assert_allclose(noisy, confusion_matrix(y, clf.predict(X)), atol=1e-4)


def test_the_noise_is_the_stated_one_in_each_cell(clf, digits):
    X, y, *_ = digits
    away = clf.private_confusion(X, y, noise_multiplier=50.0) - confusion_matrix(y, clf.predict(X))
    # A standard deviation from 100 draws is off by 7% of it.
    assert 50 * 0.7 < away.std() < 50 * 1.3
    assert abs(away.mean()) < 4 * 50 / 10


def test_two_classes_have_a_matrix_too(digits):
    X, y, X_pub, y_pub = digits
    model = MixedDPLogisticRegression("noisy-gd", n_steps=3)
    model.fit(X, y % 2, X_pub=X_pub, y_pub=y_pub % 2)
    noisy = model.private_confusion(X, y % 2, noise_multiplier=1e-6)
    np.testing.assert_allclose(noisy, confusion_matrix(y % 2, model.predict(X)), atol=1e-4)


def test_twenty_classes_have_four_hundred_cells():
    X = np.repeat(np.eye(20), 9, axis=0) + 0.01 * np.arange(180)[:, None]
    y = np.repeat(np.arange(20), 9)
    model = MixedDPLogisticRegression("noisy-gd", n_steps=3, random_state=0).fit(X, y, X_pub=X, y_pub=y)
    noisy = model.private_confusion(X, y, noise_multiplier=1e-6)
    np.testing.assert_allclose(noisy, confusion_matrix(y, model.predict(X)), atol=1e-4)
    assert np.trace(noisy) > 100


def test_the_whole_matrix_is_charged_as_one_release(digits):
    X, y, X_pub, y_pub = digits
    entry = PrivacyLedger(":memory:").add_dataset("digits", epsilon=3.0, delta=1e-5)
    model = MixedDPLogisticRegression("noisy-gd", n_steps=3, epsilon=1.0)
    model.fit(X, y, X_pub=X_pub, y_pub=y_pub).set_params(ledger=entry)
    model.private_confusion(X, y, noise_multiplier=10.0)
    assert entry.spent == pytest.approx(epsilon_of(10.0, 1, delta=1e-5), rel=1e-6)


@pytest.mark.parametrize("bad", [0, -1.0, "ten", None])
def test_a_bad_multiplier_is_refused(bad, clf, digits):
    X, y, *_ = digits
    with pytest.raises((ValueError, TypeError), match="noise_multiplier"):
        clf.private_confusion(X, y, noise_multiplier=bad)
