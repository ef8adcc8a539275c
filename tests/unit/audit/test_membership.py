"""The loss-threshold attack: its area, its interval, and what it refuses."""

import numpy as np
import pytest
from scipy.stats import mannwhitneyu, norm
from sklearn.dummy import DummyClassifier
from sklearn.exceptions import NotFittedError
from sklearn.linear_model import LinearRegression, LogisticRegression
from sklearn.neighbors import KNeighborsRegressor
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import LinearSVC
from sklearn.tree import DecisionTreeClassifier

from skmixdp import MixedDPLogisticRegression
from skmixdp.audit import membership_attack
from tests.private_names import area_under_curve, auc_interval


def noise_rows(n, seed=0, d=20):
    rng = np.random.default_rng(seed)
    return rng.normal(size=(n, d)), rng.integers(3, size=n)


def test_the_area_is_that_of_mann_and_whitney():
    rng = np.random.default_rng(0)
    included, excluded = rng.integers(5, size=30), rng.integers(7, size=40)  # with ties
    expected = mannwhitneyu(included, excluded).statistic / (30 * 40)
    assert area_under_curve(included, excluded) == pytest.approx(expected)


@pytest.mark.parametrize(("shift", "sizes"), [(0.0, (60, 40)), (0.5, (40, 200)), (2.0, (50, 50))])
def test_the_interval_covers_the_true_area(shift, sizes):
    rng = np.random.default_rng(0)
    area, covered = norm.cdf(shift / np.sqrt(2)), 0
    for _ in range(400):
        found = area_under_curve(rng.normal(shift, 1, sizes[0]), rng.normal(0, 1, sizes[1]))
        low, high = auc_interval(found, *sizes, 0.9)
        covered += low <= area <= high
    assert 340 < covered < 397  # 360 are expected, with a standard deviation of 6


def test_the_interval_is_not_degenerate_at_the_ends():
    assert auc_interval(1.0, 40, 60, 0.95)[0] == pytest.approx(0.9587, abs=1e-3)
    assert auc_interval(1.0, 40, 60, 0.95)[1] == 1
    assert auc_interval(0.0, 40, 60, 0.95)[0] == 0
    assert auc_interval(0.0, 40, 60, 0.95)[1] == pytest.approx(0.0413, abs=1e-3)


def test_a_model_that_remembers_is_attacked_through_a_pipeline():
    X, y = noise_rows(120)
    pipe = make_pipeline(StandardScaler(), DecisionTreeClassifier(random_state=0)).fit(X[:60], y[:60])
    result = membership_attack(pipe, X[:60], y[:60], X[60:], y[60:])
    assert result.auc > 0.75 and result.auc_interval[0] > 0.7
    assert (result.n_in, result.n_out, result.confidence) == (60, 60, 0.95)
    assert "AUC" in str(result) and "60 rows in" in str(result)


def test_a_model_that_ignores_its_rows_is_not():
    X, y = noise_rows(100)
    result = membership_attack(DummyClassifier().fit(X, y), X[:50], y[:50], X[50:], y[50:])
    assert result.auc_interval[0] < 0.5 < result.auc_interval[1]


def test_a_private_head_leaks_less_than_one_without_noise():
    X, y = noise_rows(400, d=400)
    split = X[:200], y[:200], X[200:], y[200:]
    private = MixedDPLogisticRegression(epsilon=0.5, delta=1e-4, classes=[0, 1, 2]).fit(X[:200], y[:200])
    open_book = LogisticRegression(C=1e3, max_iter=5000).fit(X[:200], y[:200])
    # The private area lies within 0.2 of one half in all but one draw in millions.
    assert membership_attack(private, *split).auc < 0.7
    assert membership_attack(open_book, *split).auc_interval[0] > 0.9


@pytest.mark.parametrize("n_targets", [None, 2])
def test_regressors_are_attacked_by_their_squared_errors(n_targets):
    X, _ = noise_rows(80)
    y = np.random.default_rng(1).normal(size=80 if n_targets is None else (80, n_targets))
    memory = KNeighborsRegressor(weights="distance").fit(X[:40], y[:40])
    assert membership_attack(memory, X[:40], y[:40], X[40:], y[40:]).auc == 1
    line = LinearRegression().fit(X[:40], y[:40])
    by_hand = [
        np.sum((line.predict(part) - t).reshape(40, -1) ** 2, axis=1)
        for part, t in ((X[:40], y[:40]), (X[40:], y[40:]))
    ]
    assert membership_attack(line, X[:40], y[:40], X[40:], y[40:]).auc == area_under_curve(
        -by_hand[0], -by_hand[1]
    )


def test_text_labels_and_certain_wrong_predictions():
    X, y = noise_rows(60)
    names = np.array(["red", "green", "blue"])[y]
    tree = DecisionTreeClassifier(random_state=0).fit(X[:30], names[:30])
    result = membership_attack(tree, X[:30], names[:30], X[30:], names[30:])
    assert 0.5 < result.auc < 1


def test_bad_input_is_refused_in_one_sentence():
    X, y = noise_rows(60)
    fitted = LogisticRegression().fit(X, y)
    with pytest.raises(ValueError, match=r"confidence=1.5 must be a number strictly between 0 and 1"):
        membership_attack(fitted, X, y, X, y, confidence=1.5)
    with pytest.raises(NotFittedError):
        membership_attack(LogisticRegression(), X, y, X, y)
    with pytest.raises(ValueError, match=r"y_out has 59 entries and its rows are 60"):
        membership_attack(fitted, X, y, X, y[1:])
    with pytest.raises(ValueError, match=r"y_in has no length"):
        membership_attack(fitted, X, 3, X, y)
    with pytest.raises(ValueError, match=r"X_in has 1 row\(s\)"):
        membership_attack(fitted, X[:1], y[:1], X, y)
    with pytest.raises(ValueError, match="y_out has a label that is none") as error:
        membership_attack(fitted, X, y, X, np.where(y == 2, 77, y))
    assert "77" not in str(error.value)
    with pytest.raises(TypeError, match="LinearSVC has no predict_proba"):
        membership_attack(LinearSVC().fit(X, y), X, y, X, y)
