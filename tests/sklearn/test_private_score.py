"""Private scores and confusion matrices: values, noise, charges, and what is refused."""

import math

import numpy as np
import pytest
from sklearn.datasets import make_regression
from sklearn.metrics import confusion_matrix

from skmixdp import MixedDPLogisticRegression, MixedDPRidge, RowMapping
from skmixdp.model_selection import PrivateSearchCV
from skmixdp.privacy import PrivacyLedger, noise_multiplier_for

pytestmark = pytest.mark.filterwarnings("ignore:random_state", "ignore:delta", "ignore:many private")

X, Y = make_regression(1500, 6, noise=30.0, random_state=0)
X_PUB, Y_PUB, X, Y = X[:100], Y[:100], X[100:], Y[100:]
PUBLIC = {"X_pub": X_PUB, "y_pub": Y_PUB}


def closeness(model, X, y):
    scale = 2 * model._target_map.scale
    off = np.abs(model.predict(X).reshape(len(X), -1) - y.reshape(len(X), -1)) / scale
    return np.mean(1 - np.minimum(off, 1))


@pytest.mark.parametrize(
    "parameters",
    [{}, {"fit_intercept": False}, {"dtype": "float64"}, {"target_scale": 50.0}, {"target_center": 400.0}],
    ids=str,
)
def test_the_score_is_that_of_the_predictions(parameters):
    model = MixedDPRidge(epsilon=3.0, **parameters).fit(X, Y, **PUBLIC)
    score = model.private_score(X, Y, noise_multiplier=1e-6)
    assert score == pytest.approx(closeness(model, X, Y), abs=1e-5)


def test_several_targets_are_averaged():
    both = np.column_stack([Y, np.roll(Y, 1)])
    model = MixedDPRidge(epsilon=3.0).fit(X, both, X_pub=X_PUB, y_pub=np.column_stack([Y_PUB, Y_PUB[::-1]]))
    score = model.private_score(X, both, noise_multiplier=1e-6)
    assert score == pytest.approx(closeness(model, X, both), abs=1e-5)
    with pytest.raises(ValueError, match=r"y has 1 targets per row and the fit had 2; pass the same ones\.$"):
        model.private_score(X, Y, epsilon=1.0)


def test_no_row_counts_for_more_than_one_or_less_than_nothing():
    model = MixedDPRidge(epsilon=3.0).fit(X, Y, **PUBLIC)
    for far in (1e300, -1e300):
        score = model.private_score(X, np.full(len(X), far), noise_multiplier=1e-6)
        assert score == pytest.approx(0, abs=1e-6)
    assert model.private_score(X, model.predict(X), noise_multiplier=1e-6) == pytest.approx(1, abs=1e-5)


def measure_of(kind, **parameters):
    """A measure of a head, the labels that it takes, and the data set that it charges."""
    head = MixedDPRidge if kind == "targets" else MixedDPLogisticRegression
    labels = Y if kind == "targets" else (Y > 0).astype(int)
    model = head(epsilon=1.0, delta=1e-5, **parameters)
    model.fit(X, labels, X_pub=X[:100], y_pub=labels[:100])
    entry = PrivacyLedger(":memory:").add_dataset("rows", epsilon=5.0, delta=1e-4, **parameters)
    model.set_params(ledger=entry)
    return model.private_confusion if kind == "confusion" else model.private_score, labels, entry


@pytest.mark.covering
@pytest.mark.parametrize("neighboring", ["add_or_remove_one", "replace_one"])
@pytest.mark.parametrize("kind", ["classes", "targets", "confusion"])
def test_a_budget_is_charged_as_stated(kind, neighboring):
    measure, labels, entry = measure_of(kind, neighboring=neighboring)
    measure(X, labels, epsilon=0.5)
    measure(X, labels, epsilon=0.5, delta=1e-4)
    terms = {"n_steps": 1, "neighboring": neighboring}
    expected = [noise_multiplier_for(0.5, delta, **terms) for delta in (1e-5, 1e-4)]
    assert [charge.event.noise_multiplier for charge in entry.charges()] == expected


BAD = [
    ({}, "noise_multiplier=None and epsilon=None must be one number and one None"),
    ({"epsilon": 1.0, "noise_multiplier": 2.0}, "must be one number and one None"),
    ({"noise_multiplier": 2.0, "delta": 1e-5}, "delta=1e-05 must be None; it goes with epsilon"),
    *(
        ({"noise_multiplier": bad}, f"noise_multiplier={bad!r} must")
        for bad in (0, -1.0, math.nan, True, "1")
    ),
]


@pytest.mark.parametrize(("terms", "match"), BAD)
def test_a_multiplier_is_a_number_and_goes_alone(terms, match, request):
    measure, labels, entry = measure_of("classes")
    request.getfixturevalue("no_noise")
    with pytest.raises(ValueError, match=match):
        measure(X, labels, **terms)
    assert not entry.charges()


def test_the_noise_of_a_regression_score_is_the_stated_one():
    model = MixedDPRidge(epsilon=1.0).fit(X, Y, **PUBLIC)
    exact = closeness(model, X, Y)
    draws = [(model.private_score(X, Y, noise_multiplier=20.0) - exact) * len(X) / 20 for _ in range(400)]
    # A standard deviation from 400 draws is off by 3.5% of it.
    assert 0.82 < np.std(draws) < 1.18 and abs(np.mean(draws)) < 0.25


def test_a_search_over_regressions_needs_no_public_score():
    grid = {"algorithm": ["adamix", "noisy-gd"], "rows": [RowMapping(norm="clip")]}
    entry = PrivacyLedger(":memory:").add_dataset("rows", epsilon=3.0, delta=1e-5)
    search = PrivateSearchCV(MixedDPRidge(), grid, epsilon=2.0, ledger=entry).fit(X, Y, **PUBLIC)
    assert search.privacy_.scoring == "private" and search.privacy_.n_held_out == 0
    assert 0.5 < search.best_score_ < 1.2 and search.score(X, Y) > 0.5
    assert len(entry.charges()) == 1 and entry.spent <= 2.0
    alone = PrivateSearchCV(MixedDPRidge(target_scale=100.0), grid, epsilon=2.0).fit(X, Y)
    assert alone.privacy_.n_public == 0


class TestClasses:
    @pytest.mark.covering
    @pytest.mark.parametrize("noise", ["float", "discrete"])
    @pytest.mark.parametrize("n_classes", [2, 3])
    @pytest.mark.parametrize("fit_intercept", [True, False])
    def test_with_next_to_no_noise_it_is_the_accuracy(self, draw, noise, n_classes, fit_intercept):
        X, y = draw(61, n_classes=n_classes)
        terms = {"delta": 1e-3, "classes": range(n_classes), "noise": noise, "n_steps": 3}
        clf = MixedDPLogisticRegression(fit_intercept=fit_intercept, **terms).fit(X, y)
        assert clf.private_score(X, y, noise_multiplier=1e-6) == pytest.approx(clf.score(X, y), abs=1e-6)

    def test_labels_in_words_and_frames(self, frames):
        y = np.array(["x", "y", "z"])[frames.y]
        clf = MixedDPLogisticRegression(delta=1e-3, classes=["x", "y", "z"]).fit(frames.X, y)
        found = clf.private_score(frames.X, y, noise_multiplier=1e-6)
        assert found == pytest.approx(clf.score(frames.X, y), abs=1e-6)


@pytest.fixture(scope="module", params=[{}, {"fit_intercept": False}], ids=["intercept", "no intercept"])
def clf(request, digits):
    X, y, X_pub, y_pub = digits
    model = MixedDPLogisticRegression("noisy-gd", n_steps=3, random_state=0, **request.param)
    return model.fit(X, y, X_pub=X_pub, y_pub=y_pub)


@pytest.mark.filterwarnings("ignore")
class TestConfusion:
    def test_counts_are_those_of_the_predictions(self, clf, digits):
        X, y, *_ = digits
        noisy = clf.private_confusion(X, y, noise_multiplier=1e-6)
        np.testing.assert_allclose(noisy, confusion_matrix(y, clf.predict(X)), atol=1e-4)

    def test_two_classes_have_a_matrix_too(self, digits):
        X, y, X_pub, y_pub = digits
        model = MixedDPLogisticRegression("noisy-gd", n_steps=3)
        model.fit(X, y % 2, X_pub=X_pub, y_pub=y_pub % 2)
        noisy = model.private_confusion(X, y % 2, noise_multiplier=1e-6)
        np.testing.assert_allclose(noisy, confusion_matrix(y % 2, model.predict(X)), atol=1e-4)

    def test_twenty_classes_have_four_hundred_cells(self):
        X = np.repeat(np.eye(20), 9, axis=0) + 0.01 * np.arange(180)[:, None]
        y = np.repeat(np.arange(20), 9)
        model = MixedDPLogisticRegression("noisy-gd", n_steps=3, random_state=0).fit(X, y, X_pub=X, y_pub=y)
        noisy = model.private_confusion(X, y, noise_multiplier=1e-6)
        np.testing.assert_allclose(noisy, confusion_matrix(y, model.predict(X)), atol=1e-4)
        assert np.trace(noisy) > 100
