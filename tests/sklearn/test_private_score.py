"""Private scores by budget, and those of regressions."""

import numpy as np
import pytest
from sklearn.datasets import make_regression

from skmixdp import MixedDPLogisticRegression, MixedDPRidge
from skmixdp.model_selection import PrivateSearchCV
from skmixdp.privacy import NoiseSource, PrivacyLedger, noise_multiplier_for

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
        assert model.private_score(X, np.full(len(X), far), noise_multiplier=1e-6) == pytest.approx(
            0, abs=1e-6
        )
    assert model.private_score(X, model.predict(X), noise_multiplier=1e-6) == pytest.approx(1, abs=1e-5)


@pytest.mark.covering
@pytest.mark.parametrize("neighboring", ["add_or_remove_one", "replace_one"])
@pytest.mark.parametrize("kind", ["classes", "targets", "confusion"])
def test_a_budget_is_charged_as_stated(kind, neighboring):
    head = MixedDPRidge if kind == "targets" else MixedDPLogisticRegression
    labels = Y if kind == "targets" else (Y > 0).astype(int)
    public = labels[:100]
    model = head(epsilon=1.0, neighboring=neighboring, delta=1e-5)
    model.fit(X, labels, X_pub=X[:100], y_pub=public)
    entry = PrivacyLedger(":memory:").add_dataset("rows", epsilon=5.0, delta=1e-4, neighboring=neighboring)
    model.set_params(ledger=entry)
    method = model.private_confusion if kind == "confusion" else model.private_score
    method(X, labels, epsilon=0.5)
    method(X, labels, epsilon=0.5, delta=1e-4)
    expected = [
        noise_multiplier_for(0.5, delta, n_steps=1, neighboring=neighboring) for delta in (1e-5, 1e-4)
    ]
    assert [charge.event.noise_multiplier for charge in entry.charges()] == expected


@pytest.mark.parametrize(
    ("terms", "match"),
    [
        ({}, "noise_multiplier=None and epsilon=None must be one number and one None"),
        ({"epsilon": 1.0, "noise_multiplier": 2.0}, "must be one number and one None"),
        ({"epsilon": -1.0}, "epsilon=-1.0"),
        ({"epsilon": 1.0, "delta": 0}, "delta=0"),
        ({"noise_multiplier": 2.0, "delta": 1e-5}, "delta=1e-05 must be None; it goes with epsilon"),
        ({"noise_multiplier": 0}, "noise_multiplier=0"),
    ],
)
def test_bad_budgets_are_refused_before_any_noise(terms, match, monkeypatch):
    model = MixedDPRidge(epsilon=1.0).fit(X, Y, **PUBLIC)
    monkeypatch.setattr(NoiseSource, "add_noise", lambda *args: pytest.fail("noise was drawn"))
    with pytest.raises(ValueError, match=match) as caught:
        model.private_score(X, Y, **terms)
    assert str(caught.value).endswith(".")


def test_the_noise_of_a_regression_score_is_the_stated_one():
    model = MixedDPRidge(epsilon=1.0).fit(X, Y, **PUBLIC)
    exact = closeness(model, X, Y)
    draws = [(model.private_score(X, Y, noise_multiplier=20.0) - exact) * len(X) / 20 for _ in range(400)]
    # A standard deviation from 400 draws is off by 3.5% of it.
    assert 0.82 < np.std(draws) < 1.18 and abs(np.mean(draws)) < 0.25


def test_a_search_over_regressions_needs_no_public_score():
    grid = {"algorithm": ["adamix", "noisy-gd"], "row_norm": ["clip"]}
    entry = PrivacyLedger(":memory:").add_dataset("rows", epsilon=3.0, delta=1e-5)
    search = PrivateSearchCV(MixedDPRidge(), grid, epsilon=2.0, ledger=entry).fit(X, Y, **PUBLIC)
    assert search.privacy_.scoring == "private" and search.privacy_.n_held_out == 0
    assert 0.5 < search.best_score_ < 1.2 and search.score(X, Y) > 0.5
    assert len(entry.charges()) == 1 and entry.spent <= 2.0
    alone = PrivateSearchCV(MixedDPRidge(target_scale=100.0), grid, epsilon=2.0).fit(X, Y)
    assert alone.privacy_.n_public == 0
