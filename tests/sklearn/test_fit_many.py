"""Several heads in one pass: each is what its own fit would have made it."""

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.linear_model import LogisticRegression

import skmixdp._together as together
from skmixdp import MixedDPLogisticRegression, MixedDPRidge, ZerothOrderDPClassifier, fit_many
from skmixdp.exceptions import BudgetExceededError
from skmixdp.privacy import PrivacyLedger

rng = np.random.default_rng(0)
y = rng.integers(3, size=900)
X = rng.normal(size=(3, 6))[y] + rng.normal(size=(900, 6))
PUBLIC = {"X_pub": X[:90], "y_pub": y[:90]}
X, y = X[90:], y[90:]


def heads():
    return [
        MixedDPLogisticRegression(epsilon=0.5, random_state=1),
        MixedDPLogisticRegression("noisy-gd", epsilon=2.0, random_state=2),
        MixedDPLogisticRegression("gep", n_steps=4, random_state=3),
        MixedDPLogisticRegression(batch_size=200, epsilon=2.0, n_steps=9, random_state=4),
        MixedDPLogisticRegression(normalize=False, learning_rate=0.5, n_steps=5, random_state=5),
        MixedDPLogisticRegression(dtype="bfloat16", n_steps=5, random_state=6),
        ZerothOrderDPClassifier(n_steps=5, random_state=7),
    ]


def test_each_head_is_that_of_its_own_fit():
    together_ = fit_many(heads(), X, y, **PUBLIC)
    for found, alone in zip(together_, heads(), strict=True):
        alone.fit(X, y, **PUBLIC)
        np.testing.assert_allclose(found.coef_, alone.coef_, rtol=1e-3, atol=1e-4)
        np.testing.assert_allclose(found.intercept_, alone.intercept_, rtol=1e-3, atol=1e-4)
        assert found.privacy_ == alone.privacy_
        assert found.n_iter_ == alone.n_iter_
        np.testing.assert_array_equal(found.predict(X), found.classes_[found.predict_proba(X).argmax(axis=1)])


def test_heads_that_see_the_same_rows_share_the_passes(monkeypatch):
    trained = []

    def counting(runs, rows):
        trained.append(len(runs))
        return train(runs, rows)

    train = together.train
    monkeypatch.setattr(together, "train", counting)
    fit_many(heads(), X, y, **PUBLIC)
    assert trained == [5, 1, 1]


def test_flat_and_wide_targets_in_their_units():
    targets = 100 + 7 * X[:, 0]
    one = MixedDPRidge(epsilon=3.0, random_state=0, target_center=100, target_scale=7)
    (found,) = fit_many([clone(one)], X, targets)
    one.fit(X, targets)
    np.testing.assert_allclose(found.coef_, one.coef_)
    assert found.coef_.shape == (6,) and found.intercept_ == pytest.approx(one.intercept_)


def test_one_bad_estimator_leaves_all_as_they_were():
    fitted = MixedDPLogisticRegression(random_state=0).fit(X, y, **PUBLIC)
    before = fitted.coef_.copy()
    fresh = MixedDPLogisticRegression(random_state=0)
    with pytest.raises(ValueError, match="n_steps=0"):
        fit_many(
            [fitted.set_params(epsilon=2.0), fresh, MixedDPLogisticRegression(n_steps=0)], X, y, **PUBLIC
        )
    np.testing.assert_array_equal(fitted.coef_, before)
    assert not hasattr(fresh, "coef_")
    fresh.fit(X, y, **PUBLIC)  # nothing is waiting any more
    assert hasattr(fresh, "coef_")


def test_each_pays_and_nothing_is_released_where_one_cannot(tmp_path, monkeypatch):
    ledger = PrivacyLedger(tmp_path / "ledger.db", epsilon=1.2, delta=1e-4)
    both = [
        MixedDPLogisticRegression(epsilon=1.0, random_state=None, ledger=ledger, dataset="rows")
        for _ in range(2)
    ]
    monkeypatch.setattr(together, "train", lambda *_: pytest.fail("something was released"))
    with pytest.raises(BudgetExceededError):
        fit_many(both, X, y, **PUBLIC)
    assert not hasattr(both[0], "coef_")


def test_what_is_no_head_of_ours_and_what_comes_twice_is_refused():
    with pytest.raises(TypeError, match=r"LogisticRegression.* is none; fit it by itself"):
        fit_many([LogisticRegression()], X, y)
    head = MixedDPLogisticRegression()
    with pytest.raises(ValueError, match="an estimator twice"):
        fit_many([head, head], X, y)
    assert fit_many([], X, y) == []
