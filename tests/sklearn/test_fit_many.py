"""Several heads in one pass: each is what its own fit would have made it."""

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import KFold

from skmixdp import (
    FirstOrderDPModuleClassifier,
    MixedDPLogisticRegression,
    MixedDPRidge,
    RowMapping,
    ZerothOrderDPModuleClassifier,
    fit_many,
)
from skmixdp.algorithms import PAZO
from skmixdp.privacy import PrivacyLedger
from tests.conftest import Watched, heads_of_passes
from tests.private_names import dotted_path
from tests.rounding import assert_close
from tests.unit.rows.conftest import HELD

rng = np.random.default_rng(0)
y = rng.integers(3, size=900)
X = rng.normal(size=(3, 6))[y] + rng.normal(size=(900, 6))
PUBLIC = {"X_pub": X[:90], "y_pub": y[:90]}
X, y = X[90:], y[90:]


def heads():
    return [
        MixedDPLogisticRegression("adamix", epsilon=0.5, random_state=1),
        MixedDPLogisticRegression("noisy-gd", epsilon=2.0, random_state=2),
        MixedDPLogisticRegression("gep", n_steps=4, random_state=3),
        MixedDPLogisticRegression(
            "adamix", batch_size=200, epsilon=None, noise_multiplier=2.0, n_steps=9, random_state=4
        ),
        MixedDPLogisticRegression(epsilon=2.0, random_state=8),
        MixedDPLogisticRegression(epsilon=1.0, n_steps=7, random_state=9),
        MixedDPLogisticRegression(
            "adamix", rows=RowMapping(norm=None), learning_rate=0.5, n_steps=5, random_state=5
        ),
        MixedDPLogisticRegression(dtype="float64", n_steps=5, random_state=6),
        MixedDPLogisticRegression(PAZO("m"), n_steps=5, random_state=7),
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
    # Whitened ones, those in float64, those of their own length and those that are clipped see others.
    passes = heads_of_passes(monkeypatch)
    fit_many(heads(), X, y, **PUBLIC)
    assert max(passes) == 5


@pytest.mark.parametrize("n_rare", [0, 1, 300])
def test_no_label_decides_which_heads_share_a_pass(monkeypatch, n_rare):
    """Weights of a class that no row has, or few, leave labels equal or nearly so; that is private."""
    drawn = np.random.default_rng(1)
    labels = drawn.integers(2, size=3000)
    labels[drawn.permutation(3000)[:n_rare]] = 2
    weights = [{0: 1.0, 1: 1.0, 2: weight} for weight in (1.0, 1.0, 4.0)]
    many = [
        MixedDPLogisticRegression("noisy-gd", n_steps=2, classes=range(3), class_weight=each)
        for each in weights
    ]
    passes = heads_of_passes(monkeypatch)
    fit_many(many, drawn.normal(size=(3000, 4)), labels)
    assert passes == [2, 2, 1, 1]


def test_flat_and_wide_targets_in_their_units():
    targets = 100 + 7 * X[:, 0]
    one = MixedDPRidge(epsilon=3.0, random_state=0, target_center=100, target_scale=7)
    (found,) = fit_many([clone(one)], X, targets)
    one.fit(X, targets)
    assert_close(found.coef_, one.coef_)
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


def test_what_is_no_head_of_ours_and_what_comes_twice_is_refused():
    with pytest.raises(TypeError, match=r"LogisticRegression.* is not one of them; fit it separately"):
        fit_many([LogisticRegression()], X, y)
    head = MixedDPLogisticRegression()
    with pytest.raises(ValueError, match="the same estimator twice"):
        fit_many([head, head], X, y)
    assert fit_many([], X, y) == []


WAYS = ["memory", "data frame", "sparse", "memory map", "npz files", "torch", "dask"]
FOLDS = [train for train, _ in KFold(3, shuffle=True, random_state=0).split(X)]


@pytest.mark.covering
@pytest.mark.parametrize("held", WAYS)
@pytest.mark.parametrize("as_masks", [False, True], ids=["indices", "masks"])
def test_folds_are_fitted_in_one_pass_as_by_themselves(tmp_path, monkeypatch, held, as_masks):
    passes = heads_of_passes(monkeypatch)
    rows, labels = (pd.DataFrame(X), y) if held == "data frame" else HELD[held](tmp_path, X, y)
    own = [np.isin(np.arange(len(X)), fold) for fold in FOLDS] if as_masks else FOLDS
    # In float64, since the sums of dense float32 rows have a little more noise, for their rounding.
    estimators = [MixedDPLogisticRegression(dtype="float64", epsilon=0.3, random_state=i) for i in range(4)]
    # The noise is given, since the budget of sampled batches takes long to solve.
    estimators[1].set_params(batch_size=150, n_steps=6, epsilon=None, noise_multiplier=7.0)
    fitted = fit_many(estimators, rows, labels, **PUBLIC, rows=[*own, None])
    assert passes[0] == max(passes) == 4
    for found, fold in zip(fitted, [*FOLDS, np.arange(len(X))], strict=True):
        alone = clone(found).fit(X[np.sort(fold)], y[np.sort(fold)], **PUBLIC)
        np.testing.assert_allclose(found.coef_, alone.coef_, rtol=1e-3, atol=1e-4)
        assert found.privacy_.n_private == len(fold)
        assert found.privacy_.to_dict() | {"treated_as_public": 0} == alone.privacy_.to_dict() | {
            "treated_as_public": 0
        }


@pytest.mark.parametrize("algorithm", ["noisy-gd", "dope-sgd", "gep", "modelmix"])
def test_a_row_of_another_fold_moves_no_sum_and_an_own_one_no_more_than_its_sensitivity(
    algorithm, monkeypatch
):
    """What is asked of all rows holds nothing of those that a head is not fitted to."""
    own = np.arange(len(X)) % 2 == 0
    moved = {}
    for row in (None, 0, 1):
        noise = Watched(3)
        monkeypatch.setattr(dotted_path("transaction.Transaction.noise"), noise)
        changed = X.copy()
        if row is not None:
            changed[row] *= -1
        head = MixedDPLogisticRegression(algorithm, n_steps=3, epsilon=1.0)
        fit_many([head], changed, y, **PUBLIC, rows=[own])
        moved[row] = noise
    for other, (low, high) in {0: (0.05, 2 + 1e-3), 1: (0.0, 0.0)}.items():
        # Replacing a row takes away one contribution and adds another.
        moves = moved[None].moves(moved[other], head.privacy_.noise_multiplier)
        assert low <= max(moves[: len(moves) // 3]) <= high


def test_exact_sums_of_folds_are_those_of_the_folds():
    pytest.importorskip("opendp")
    # The default algorithm shrinks by the noise, which nobody can seed here.
    heads = [MixedDPLogisticRegression("noisy-gd", noise="discrete", epsilon=200.0, n_steps=2) for _ in FOLDS]
    for found, fold in zip(fit_many(heads, X, y, **PUBLIC, rows=FOLDS), FOLDS, strict=True):
        alone = clone(found).fit(X[fold], y[fold], **PUBLIC)
        np.testing.assert_allclose(found.coef_, alone.coef_, atol=0.1 * np.abs(alone.coef_).max())
        assert found.privacy_.n_private == len(fold)


def test_each_fold_is_charged_by_its_own_event(tmp_path):
    ledger = PrivacyLedger(tmp_path / "ledger.db").add_dataset("rows", epsilon=5.0, delta=1e-4)
    heads = [MixedDPLogisticRegression(epsilon=0.5, ledger=ledger) for _ in FOLDS]
    fit_many(heads, X, y, **PUBLIC, rows=FOLDS)
    assert [charge.description for charge in ledger.charges()] == ["MixedDPLogisticRegression, 540 rows"] * 3


def test_delta_and_batches_are_held_against_the_number_of_own_rows():
    fit_many([MixedDPLogisticRegression(delta=0.01)], X, y, **PUBLIC, rows=[np.arange(50)])  # no warning
    with pytest.warns(UserWarning, match=r"delta=0.02 is not below 1/n = 0.02"):
        fit_many([MixedDPLogisticRegression(delta=0.02)], X, y, **PUBLIC, rows=[np.arange(50)])
    with pytest.raises(ValueError, match="batch_size=60 exceeds the 50 private rows"):
        fit_many([MixedDPLogisticRegression(batch_size=60)], X, y, **PUBLIC, rows=[np.arange(50)])


@pytest.mark.parametrize(
    ("rows", "message"),
    [
        ([None], "rows has 1 entries, but there are 2 estimators"),
        ([None, np.ones(5, bool)], r"rows\[1\] is a mask of 5 rows, but X has 810"),
        ([[0, 1, 810], None], r"rows\[0\] holds a number that is not a row of X, which has rows 0 to 809"),
        ([[0, 1, -1], None], r"rows\[0\] holds a number that is not a row of X, which has rows 0 to 809"),
        ([None, [3, 4, 3]], r"rows\[1\] selects a row twice"),
        ([None, [3]], r"rows\[1\] selects 1 row\(s\), but a fit needs at least 2"),
        ([None, []], r"rows\[1\] selects 0 row\(s\)"),
        ([None, [0.5, 1.5]], r"rows\[1\] of shape \(2,\) and type float64 must be row numbers"),
        ([None, [[1, 2]]], r"rows\[1\] of shape \(1, 2\)"),
        ([None, 7], r"rows\[1\] of shape \(\)"),
    ],
)
def test_rows_that_are_none_are_refused_before_any_charge(tmp_path, rows, message):
    ledger = PrivacyLedger(tmp_path / "ledger.db").add_dataset("rows", epsilon=5.0, delta=1e-4)
    heads = [MixedDPLogisticRegression(epsilon=0.5, ledger=ledger) for _ in range(2)]
    with pytest.raises(ValueError, match=message) as refused:
        fit_many(heads, X, y, **PUBLIC, rows=rows)
    assert str(refused.value).endswith(".") and ". " not in str(refused.value)
    assert ledger.charges() == [] and not hasattr(heads[0], "coef_")
    assert heads[0].fit(X, y, **PUBLIC).privacy_.n_private == 810  # no fold is left behind


@pytest.mark.parametrize(
    ("kind", "algorithm"), [(ZerothOrderDPModuleClassifier, "dpzero"), (FirstOrderDPModuleClassifier, "auto")]
)
def test_a_module_is_fitted_next_to_heads(kind, algorithm):
    torch = pytest.importorskip("torch")
    clf = kind(torch.nn.Linear(6, 3), algorithm, n_steps=2)
    head = MixedDPLogisticRegression(n_steps=2)
    X32, public = X.astype(np.float32), PUBLIC | {"X_pub": PUBLIC["X_pub"].astype(np.float32)}
    fit_many([clf, head], X32, y, **public)
    assert clf.module_ is not clf.module and head.coef_.shape == (3, 6)
    with pytest.raises(ValueError, match=r"rows\[0\] selects rows, which only linear heads support"):
        fit_many([clf], X32, y, **public, rows=[np.arange(50)])
