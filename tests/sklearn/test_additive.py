"""Additive models take what heads take: every source of rows, and all that is done with a fitted head."""

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone
from sklearn.metrics import roc_auc_score

from skmixdp import (
    AdditiveDPClassifier,
    AdditiveDPRegressor,
    MixedDPLogisticRegression,
    fit_many,
    load,
    private_pipeline,
)
from skmixdp.model_selection import PrivateSearchCV, private_evaluation
from skmixdp.preprocessing import TableEncoder
from skmixdp.privacy import PrivacyLedger
from tests.private_names import _estimators
from tests.unit.rows.conftest import HELD

RNG = np.random.default_rng(0)
N = 3000
X = np.column_stack([RNG.normal(size=N), RNG.lognormal(size=N), np.arange(N) % 2])
Y = ((np.abs(X[:, 0]) > 0.7) ^ (X[:, 1] > 4)).astype(int)
TARGETS = np.abs(X[:, 0]) + 5
MISSING = np.where(RNG.random(X.shape) < [0.3, 0.0, 0.0], np.nan, X)
ODD = np.array([[np.nan, np.inf, 0.0], [-np.inf, np.nan, 1.0], [1e308, -1e308, np.nan]])
TERMS = {"epsilon": 8.0, "delta": 1e-4}

pytestmark = [
    pytest.mark.filterwarnings("ignore:random_state"),
    pytest.mark.filterwarnings("ignore:X does not have valid feature names"),
]


SOURCES = ["memory map", "npy files", "dask", "torch", "sparse"]


def classifier(**parameters):
    return AdditiveDPClassifier(**{"classes": [0, 1], **TERMS, **parameters})


@pytest.mark.parametrize("held", SOURCES)
def test_sources_of_rows_give_the_same_fit(tmp_path, held):
    values = X if held == "sparse" else MISSING
    wanted = classifier(random_state=0).fit(values, Y)
    rows, _ = HELD[held](tmp_path, values, Y)
    found = classifier(random_state=0).fit(rows, Y)
    assert found.privacy_.shares == wanted.privacy_.shares
    for one, other in zip(found._row_map.basis.knots, wanted._row_map.basis.knots, strict=True):
        np.testing.assert_array_equal(one, other)
    # Sources that map rows in single precision state up to 1% more rounding, and add as much more noise.
    np.testing.assert_allclose(found.coef_, wanted.coef_, rtol=0, atol=0.01 * np.abs(wanted.coef_).max())
    predicted = np.asarray(found.predict_proba(rows))
    np.testing.assert_allclose(predicted, found.predict_proba(values), atol=1e-12)
    assert found.private_score(rows, Y, noise_multiplier=0.01) == pytest.approx(
        found.score(values, Y), abs=0.02
    )


def test_several_classes_labels_and_targets():
    y = np.digitize(X[:, 0], [-0.7, 0.7])
    assert classifier(classes=[0, 1, 2]).fit(X, y).score(X, y) > 0.85
    labels = np.column_stack([Y, X[:, 0] > 0])
    assert np.mean(classifier(classes=None).fit(X, labels).predict(X) == labels) > 0.85
    targets = np.column_stack([TARGETS, X[:, 0]])
    reg = AdditiveDPRegressor(**TERMS).fit(X, targets)
    assert reg.score(X, targets) > 0.85
    assert reg.coef_.shape == (2, reg._row_map.basis.width)


def test_persons_and_weights():
    persons = np.repeat(np.arange(N // 3), 3)
    clf = classifier().fit(MISSING, Y, groups=persons)
    assert clf.privacy_.unit != "row"
    assert "knots" in dict(clf.privacy_.shares)
    weighted = classifier(class_weight="balanced", max_sample_weight=1.0).fit(X, Y, sample_weight=np.ones(N))
    assert {"knots", "class counts"} <= set(dict(weighted.privacy_.shares))
    assert sum(dict(weighted.privacy_.shares).values()) == pytest.approx(1)
    assert weighted.score(X, Y) > 0.8


def test_public_rows_with_and_without_labels():
    public = {"X_pub": MISSING[:60], "y_pub": Y[:60]}
    for known in (public, {"X_unlabeled": MISSING[:60]}):
        clf = AdditiveDPClassifier(classes=[0, 1], epsilon=1.0, delta=1e-4).fit(MISSING[60:], Y[60:], **known)
        assert "knots" not in dict(clf.privacy_.shares)
        assert any("knots" in fact for fact in clf.privacy_.treated_as_public)
        assert clf.score(MISSING, Y) > 0.75
    few = classifier().fit(X[9:], Y[9:], X_pub=X[:9], y_pub=Y[:9])
    assert "knots" in dict(few.privacy_.shares)


def test_fits_together_are_those_of_each_alone():
    def heads():
        return [
            MixedDPLogisticRegression(classes=[0, 1], random_state=1, **TERMS),
            classifier(random_state=2),
            classifier(random_state=3, n_knots=4),
        ]

    for one, other in zip(fit_many(heads(), X, Y), [head.fit(X, Y) for head in heads()], strict=True):
        np.testing.assert_allclose(one.coef_, other.coef_, atol=1e-4)
    folds = [np.arange(N) % 2 == fold for fold in range(2)]
    found = fit_many([classifier(), classifier()], X, Y, rows=folds)
    assert [head.privacy_.n_private for head in found] == [N // 2, N // 2]


def test_searches_and_evaluation():
    search = PrivateSearchCV(classifier(), {"n_knots": [4, 8]}, epsilon=20.0, delta=1e-4, n_trials=2)
    assert search.fit(X, Y).best_params_["n_knots"] in (4, 8)
    clf = classifier().fit(MISSING[::2], Y[::2])
    result = private_evaluation(clf, MISSING[1::2], Y[1::2], epsilon=5.0, delta=1e-4)
    area = roc_auc_score(Y[1::2], clf.decision_function(MISSING[1::2]))
    assert result.roc_auc().value == pytest.approx(area, abs=0.05)


def test_a_forged_basis_is_refused(tmp_path):
    from tests.private_names import check_loaded

    clf = classifier().fit(X, Y)
    check_loaded(clf)
    basis = clf._row_map.basis
    for name, value in (
        ("knots", (*basis.knots[:-1], np.array([1.0, 1.0, 2.0]))),
        ("mean", basis.mean[:-1]),
        ("missing", np.zeros(5, bool)),
        ("center", np.full(3, np.nan)),
        ("cut", -1.0),
        ("pairs", ((0, 3),)),
        ("pairs", [(0, 1)]),
        ("pairs", ((0, 1, 2),)),
    ):
        forged = clone(clf)
        forged.__dict__.update(vars(clf))
        forged._row_map = replace(clf._row_map, basis=replace(basis, **{name: value}))
        with pytest.raises(ValueError, match=r"basis|knots|cut|finite"):
            check_loaded(forged)


def test_columns_of_an_encoder_that_are_no_numbers_are_not_asked_for():
    table = pd.DataFrame({"x": X[:, 0], "city": np.where(X[:, 2] > 0, "Bonn", "Ulm"), "ok": X[:, 2] > 0})
    encoder = TableEncoder({"x": (-5, 5), "city": ["Bonn", "Ulm"], "ok": "boolean"})
    model = private_pipeline(encoder, classifier()).fit(table, Y)
    alone = classifier(linear=[1, 2, 3]).fit(encoder.fit_transform(table), Y)
    lines = 0.01  # without an encoder, nothing tells that they are no numbers
    assert dict(model.privacy_.shares)["knots"] == pytest.approx(dict(alone.privacy_.shares)["knots"] - lines)
    assert [len(knots) > 0 for knots in model[-1]._row_map.basis.knots] == [True, False, False, False]


def test_a_plan_that_was_not_charged_does_not_run(monkeypatch):
    """The basis is learned after the charge, and the training is then planned."""
    prepared = _estimators.prepared

    def with_another_budget(fit):
        fit = prepared(fit)
        fit.transaction.budget = replace(fit.budget, epsilon=5.0)
        return fit

    monkeypatch.setattr(_estimators, "prepared", with_another_budget)
    with pytest.raises(RuntimeError, match="not the one that was charged"):
        classifier(epsilon=1.0).fit(X, Y)


SIDES = ((X[:, 0] > 0) ^ (X[:, 1] > 1)).astype(int)
PAIR = {"interactions": [(0, 1)], "epsilon": 3.0}


def test_a_pair_finds_what_no_sum_of_curves_can():
    alone = classifier(epsilon=3.0).fit(X[::2], SIDES[::2])
    paired = classifier(**PAIR).fit(X[::2], SIDES[::2])
    assert alone.score(X[1::2], SIDES[1::2]) < 0.75
    assert paired.score(X[1::2], SIDES[1::2]) > 0.8
    assert (alone.interactions_, paired.interactions_) == ([], [(0, 1)])
    assert any("interactions" in fact for fact in paired.privacy_.treated_as_public)
    assert not any("interactions" in fact for fact in alone.privacy_.treated_as_public)
    targets = np.where(SIDES, 1.0, -1.0) * np.abs(X[:, 0])
    reg = AdditiveDPRegressor(**{**TERMS, **PAIR}).fit(X, targets)
    assert reg.score(X, targets) > AdditiveDPRegressor(**TERMS).fit(X, targets).score(X, targets) + 0.3


def test_a_column_of_two_values_can_be_in_a_pair():
    y = ((X[:, 0] > 0) ^ (X[:, 2] > 0)).astype(int)
    frame = pd.DataFrame(X, columns=["a", "b", "c"])
    for linear in ("auto", ["c"]):
        clf = classifier(interactions=[["a", "c"]], linear=linear, epsilon=3.0).fit(frame, y)
        assert clf.score(frame, y) > 0.9
        assert clf.interactions_ == [(0, 2)]


@pytest.mark.parametrize("held", SOURCES)
def test_sources_of_rows_take_pairs(tmp_path, held):
    rows, _ = HELD[held](tmp_path, X, SIDES)
    clf = classifier(**PAIR).fit(rows, SIDES)
    np.testing.assert_allclose(np.asarray(clf.predict_proba(rows)), clf.predict_proba(X), atol=1e-12)
    assert clf.score(X, SIDES) > 0.85


@pytest.mark.parametrize("known", [{}, {"X_unlabeled": MISSING[:60]}])
@pytest.mark.parametrize("pairs", [False, [(0, 1), (2, 0)]], ids=["curves", "pairs"])
def test_saved_exported_and_explained_models_agree(tmp_path, known, pairs):
    onnxruntime = pytest.importorskip("onnxruntime")
    reg = AdditiveDPRegressor(**TERMS, interactions=pairs).fit(MISSING, TARGETS, **known)
    clf = classifier(interactions=pairs).fit(MISSING, SIDES if pairs else Y, **known)
    linear = classifier(epsilon=0.3).fit(MISSING[:60], Y[:60])
    rows = np.concatenate([MISSING[:200], ODD])
    for model, found in ((clf, pairs or []), (reg, pairs or []), (linear, [])):
        outputs = model.predict if model is reg else model.decision_function
        parts = model.explain(rows)
        assert parts.shape == (len(rows), 3 + len(found), 1)
        sums = parts.sum(axis=(1, 2)) + model.intercept_
        np.testing.assert_allclose(sums, np.ravel(outputs(rows)), atol=1e-10)
        if model is not linear:  # whose columns nobody knows
            assert len(model.effects_) == len(model.importances_) == 3
        model.save(tmp_path / "model.safetensors")
        loaded = load(tmp_path / "model.safetensors")
        assert loaded.interactions_ == model.interactions_ == found
        np.testing.assert_array_equal(loaded.explain(rows), parts)
        wanted = model.predict(rows)
        np.testing.assert_array_equal(loaded.predict(rows), wanted)
        np.testing.assert_allclose(model.to_sklearn().predict(rows), wanted, atol=1e-10)
        session = onnxruntime.InferenceSession(model.to_onnx().SerializeToString())
        np.testing.assert_allclose(session.run(None, {"X": rows})[0].reshape(-1), wanted, atol=1e-10)


def test_a_linear_model_has_no_products():
    small = classifier(epsilon=0.3, interactions=[(0, 1)]).fit(MISSING[:60], Y[:60])
    assert small.interactions_ == []
    assert small.explain(X[:2]).shape == (2, 3, 1)
    assert not any("interactions" in fact for fact in small.privacy_.treated_as_public)


BAD = {
    "linear=": {"linear": ["x", ["nothing"], [3], [-1], [True], [1.5]]},
    "n_knots=": {"n_knots": [1, 65, "many", 2.5]},
    "interactions=.* must be False, 'auto', or a list of distinct pairs": {
        "interactions": [
            *("Auto", True, None, 3, (0, 1), [0, 1], ["ab"], [(0,)], [(0, 1, 2)], [(0, 3)], [(-1, 0)]),
            *([(0, 0)], [("a", 1)], [(0, True)], [(0, 1.0)], [(0, 1), (1, 0)], [(0, 1), (0, 1)], [(0, None)]),
            {(0, 1): 1},
        ]
    },
}


@pytest.mark.parametrize("match", BAD)
def test_bad_parameters_are_refused_before_the_charge(match):
    rows = PrivacyLedger(":memory:").add_dataset("rows", epsilon=20.0, delta=1e-3)
    for name, values in BAD[match].items():
        for value in values:
            with pytest.raises(ValueError, match=match):
                classifier(**{"ledger": rows, name: value}).fit(X, Y)
    assert not rows.charges()
