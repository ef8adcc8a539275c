"""Several labels per row in the logistic regression: shapes, names, refusals, searches, sources of rows."""

import re
import warnings

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.utils import get_tags

import skmixdp
from skmixdp import MixedDPLogisticRegression, fit_many
from skmixdp.algorithms import BY_NAME, PAZO
from skmixdp.audit import audit_epsilon, membership_attack
from skmixdp.features import ZeroShotHead
from skmixdp.inspection import model_card
from skmixdp.model_selection import PrivateSearchCV, public_cross_val_score, public_params
from skmixdp.privacy import PrivacyLedger
from tests.private_names import MultilabelLoss, recorded_releases
from tests.rounding import assert_close
from tests.unit.rows.conftest import HELD

pytestmark = pytest.mark.filterwarnings("ignore::skmixdp.exceptions.NotPrivateWarning")

N, D, K, N_PUB = 1200, 8, 4, 60
rng = np.random.default_rng(0)
COEF = 4 * rng.normal(size=(K, D)) / np.sqrt(D)
X = rng.normal(size=(N + N_PUB, D))
Y = ((X @ COEF.T + rng.logistic(size=(len(X), K))) > np.arange(K) - 1).astype(int)
X_PUB, Y_PUB, X, Y = X[:N_PUB], Y[:N_PUB], X[N_PUB:], Y[N_PUB:]
PUBLIC = {"X_pub": X_PUB, "y_pub": Y_PUB}
NAMES = ["red", "blue", "old", "new"]


def head(algorithm="auto", **parameters):
    return MixedDPLogisticRegression(algorithm, **{"epsilon": 3.0, "random_state": 0, **parameters})


@pytest.mark.parametrize("public", [{}, PUBLIC], ids=["no public rows", "public rows"])
def test_predictions_have_a_column_for_each_label(public):
    clf = head().fit(X, Y, **public)
    assert clf.multilabel_ and clf.coef_.shape == (K, D) and clf.intercept_.shape == (K,)
    np.testing.assert_array_equal(clf.classes_, np.arange(K))
    Z, P, predicted = clf.decision_function(X), clf.predict_proba(X), clf.predict(X)
    assert Z.shape == P.shape == predicted.shape == Y.shape and predicted.dtype == Y.dtype
    assert_close(P, 1 / (1 + np.exp(-Z)))
    assert_close(clf.predict_log_proba(X), np.log(P))
    np.testing.assert_array_equal(predicted, (P > 0.5).astype(int))
    right = np.mean(predicted == Y)
    assert right > 0.75 > max(np.mean(Y == 0), np.mean(Y == 1)) - 0.25
    assert clf.score(X, Y) == np.mean((predicted == Y).all(axis=1))


def test_a_label_that_no_row_has_keeps_its_column():
    """Whether a label occurs is private."""
    labels = Y.copy()
    labels[:, 1] = 0
    clf = head().fit(X, labels)
    assert clf.coef_.shape == (K, D) and np.mean(clf.predict(X)[:, 1]) < 0.05
    labels[:, 1] = 1
    assert np.mean(head().fit(X, labels).predict(X)[:, 1]) > 0.95


def test_two_labels_keep_two_columns_and_a_fit_to_one_label_per_row_follows():
    clf = head(classes=[0, 1]).fit(X, Y[:, :2])
    assert clf.coef_.shape == (2, D)
    assert clf.decision_function(X).shape == clf.predict_proba(X).shape == clf.predict(X).shape == (N, 2)
    clf.fit(X, Y[:, 0])
    assert not clf.multilabel_ and clf.predict(X).shape == (N,) and clf.predict_proba(X).shape == (N, 2)


@pytest.mark.parametrize("algorithm", BY_NAME)
def test_every_algorithm_of_gradients_trains_several_labels(algorithm):
    clf = head(algorithm).fit(X, Y, **PUBLIC)
    assert np.mean(clf.predict(X) == Y) > 0.7


@pytest.mark.parametrize(
    "given",
    [Y.tolist(), list(Y), Y == 1, Y.astype(float), pd.DataFrame(Y), Y.astype(object), np.asfortranarray(Y)],
    ids=["lists", "arrays", "bools", "floats", "frame", "objects", "column by column"],
)
def test_zeros_and_ones_may_come_in_any_form(given):
    np.testing.assert_array_equal(head().fit(X, given).coef_, head().fit(X, Y).coef_)


def test_labels_are_named_by_classes_or_by_columns():
    assert head(classes=NAMES).fit(X, Y).classes_.tolist() == NAMES
    frames = pd.DataFrame(Y, columns=NAMES), pd.DataFrame(Y_PUB, columns=NAMES)
    clf = head().fit(X, frames[0], X_PUB, frames[1])
    assert clf.classes_.tolist() == NAMES
    assert "the number and the names of the labels (columns of y)" in clf.privacy_.treated_as_public
    assert not clf.privacy_.leaks
    assert "red, blue, old, new" in str(model_card(clf))
    with pytest.raises(ValueError, match="y and y_pub differ in their columns"):
        head().fit(X, frames[0], X_PUB, frames[1][NAMES[::-1]])


def refused(clf, *rows, **more):
    """The message of a fit that is refused before it charges its ledger or releases anything."""
    account = PrivacyLedger(":memory:").add_dataset("rows", epsilon=50, delta=1e-3)
    clf.set_params(ledger=account)
    with recorded_releases() as releases, pytest.raises((ValueError, TypeError)) as error:
        clf.fit(*rows, **more)
    assert not releases and not account.charges()
    message = str(error.value)
    assert message.endswith(".") and ". " not in message
    return message


WITH_TWO, MISSING = Y.copy(), Y.astype(float)
WITH_TWO[7, 1], MISSING[7, 1] = 2, np.nan


@pytest.mark.parametrize(
    ("rows", "what"),
    [
        ((X, WITH_TWO), "y should be a 1d array of labels, got an array of shape"),
        ((X, MISSING), "y should be a 1d array of labels"),
        ((X, np.array([*"abcd"])[Y]), "y should be a 1d array of labels"),
        ((X, np.stack([Y, Y], axis=2)), "y should be a 1d array of labels"),
        ((X, sp.csr_array(Y)), r"y is a sparse matrix; pass y.toarray\(\)"),
        ((X, Y, X_PUB, sp.csr_array(Y_PUB)), "y_pub is a sparse matrix"),
        ((X, Y[:-1]), "y has 1199 rows of labels and X 1200 rows"),
        ((X, Y, X_PUB, Y_PUB[:, 0]), "y_pub has one label per row and y has several"),
        ((X, Y, X_PUB, Y_PUB[:, :3]), "y_pub has 3 labels per row and y has 4"),
        ((X, Y[:, 0], X_PUB, Y_PUB), "y_pub should be a 1d array"),
    ],
)
def test_labels_that_are_no_table_of_zeros_and_ones_are_refused(rows, what):
    message = refused(head(), *rows)
    assert re.search(what, message)
    assert "7" not in message.replace("1d", "")  # neither row nor entry is quoted


@pytest.mark.parametrize(
    ("parameters", "what"),
    [
        ({"classes": NAMES[:3]}, "must name the 4 columns of y in their order, each once"),
        ({"classes": ["red"] * 4}, "must name the 4 columns of y in their order, each once"),
        ({"classes": [*"abc", 4.0 + 0j, 7]}, "must"),
        ({"classes": [1, None, 2, 3]}, "must be a flat list of labels of one type"),
        ({"class_weight": "balanced"}, "class_weight='balanced' needs one class per row"),
        ({"class_weight": {0: 1.0}}, "class_weight={0: 1.0} needs one class per row"),
        ({"logit_adjustment": 1.0}, "logit_adjustment=1.0 needs one class per row"),
        ({"init": ZeroShotHead(NAMES, embeddings=np.eye(K, D))}, "needs one class per row"),
        ({"init": np.ones((3, D))}, "init"),
    ],
)
def test_what_needs_one_class_per_row_is_refused(parameters, what):
    assert what in refused(head(**parameters), X, Y, **PUBLIC)


def test_algorithms_of_losses_take_several_labels():
    clf = MixedDPLogisticRegression(PAZO("m"), epsilon=3.0, n_steps=5, random_state=0).fit(X, Y, **PUBLIC)
    assert clf.predict(X).shape == Y.shape and get_tags(head()).classifier_tags.multi_label


def test_counts_of_private_rows():
    clf = head().fit(X, Y)
    right = (clf.predict(X) == Y).all(axis=1).sum()
    seeded = (clf.set_params(random_state=seed) for seed in range(200))
    scores = [each.private_score(X, Y, noise_multiplier=3.0) for each in seeded]
    off = (N * np.array(scores) - right) / 3.0
    assert abs(off.mean()) < 5 / np.sqrt(200) and 0.7 < off.std() < 1.3
    with pytest.raises(ValueError, match="private_confusion needs one class per row"):
        clf.private_confusion(X, Y, noise_multiplier=3.0)
    with pytest.raises(ValueError, match="y has 3 labels per row and this classifier was fitted to 4"):
        clf.private_score(X, Y[:, :3], noise_multiplier=3.0)
    with pytest.raises(ValueError, match="one label per row"):
        clf.private_score(X, Y[:, 0], noise_multiplier=3.0)


@pytest.mark.parametrize("scoring", ["public", "private", "f1_macro"])
def test_searches_try_heads_of_several_labels(scoring):
    grid = {"learning_rate": [1e-6, 2.0]}
    base = MixedDPLogisticRegression("noisy-gd", n_steps=10, init="zeros")
    search = PrivateSearchCV(base, grid, epsilon=8.0, scoring=scoring, strategy="grid", random_state=0)
    search.fit(X, Y, **PUBLIC)
    assert search.best_params_ == {"learning_rate": 2.0}
    assert search.predict(X).shape == Y.shape and search.classes_.tolist() == [0, 1, 2, 3]


@pytest.mark.filterwarnings("ignore::skmixdp.exceptions.PrivacyLeakWarning")
def test_scikit_learn_s_model_selection():
    public = public_params(X_PUB, Y_PUB)
    found = GridSearchCV(head(), {"l2": [0.0, 1.0]}, cv=2, scoring="roc_auc").fit(X, Y, **public)
    assert found.best_params_ == {"l2": 0.0}
    scores = cross_val_score(head(), X, Y, cv=2, scoring="f1_micro", params=public)
    assert scores.min() > 0.7
    assert public_cross_val_score(head(), X, Y, X_PUB, Y_PUB, cv=2, scoring="f1_micro").min() > 0.7


def test_heads_side_by_side_are_those_of_single_fits():
    folds = [np.arange(N) % 3 != j for j in range(3)]
    heads = [head(name, random_state=j, dtype="float64") for j, name in enumerate(("auto", "adamix", "gep"))]
    for public in ({}, PUBLIC):
        use = heads[:1] if not public else heads
        fit_many(use, X, Y, **public, rows=folds[: len(use)])
        for clf, fold in zip(use, folds, strict=False):
            alone = skmixdp.MixedDPLogisticRegression(**clf.get_params()).fit(X[fold], Y[fold], **public)
            np.testing.assert_allclose(clf.coef_, alone.coef_, rtol=1e-6, atol=1e-6)


@pytest.mark.covering
@pytest.mark.parametrize("held", ["torch", "dask", "npy files", "sparse"])
@pytest.mark.parametrize("public", [{}, PUBLIC], ids=["no public rows", "public rows"])
def test_rows_of_every_source_train_the_same_head(tmp_path, held, public):
    clf, expected = (head(dtype="float64", scale=False) for _ in range(2))
    rows, _ = HELD[held](tmp_path, X, Y)
    clf.fit(rows, Y, **public)
    expected.fit(X, Y, **public)
    np.testing.assert_allclose(clf.coef_, expected.coef_, rtol=1e-5, atol=1e-5)
    for method in ("predict", "predict_proba", "decision_function"):
        found = getattr(clf, method)(rows)
        assert found.shape == Y.shape
        np.testing.assert_allclose(np.asarray(found), getattr(clf, method)(X), atol=1e-9)


def test_labels_may_be_tensors_and_public_rows_come_in_parts():
    torch = pytest.importorskip("torch", reason="tensors need skmixdp[features]")
    parts = {"X_pub": (X_PUB[:20], X_PUB[20:]), "y_pub": (Y_PUB[:20], Y_PUB[20:])}
    found = head().fit(X, torch.from_numpy(Y), **parts)
    np.testing.assert_array_equal(found.coef_, head().fit(X, Y, **PUBLIC).coef_)


def test_public_rows_with_other_labels_are_left_out():
    with pytest.warns(UserWarning, match="same labels in the same columns"):
        clf = head().fit(X, Y, X_PUB, 1 - Y_PUB)
    assert clf.privacy_.n_public == 0
    with warnings.catch_warnings(action="error"):
        assert head(random_state=None).fit(X, Y, **PUBLIC).privacy_.n_public == N_PUB


def test_weights_of_rows_count():
    kept = np.arange(N) % 2 == 0
    other = np.where(kept[:, np.newaxis], Y, 1 - Y)
    clf = head("noisy-gd", epsilon=50.0).fit(X, other, sample_weight=kept.astype(float))
    assert np.mean(clf.predict(X) == Y) > 0.8


def test_all_labels_share_one_clip():
    """The gradient of all labels is one release of sensitivity ``clip``, whatever their number."""
    for k in (2, 3, 4):
        with recorded_releases() as releases:
            head("noisy-gd", n_steps=3).fit(X, Y[:, :k])
        stated = {part.sensitivity for each in releases for part in each.query.releases}
        assert len(releases) == 3 and max(stated) < 0.5 * 1.01


def test_the_default_clip_does_not_exceed_the_longest_gradient():
    clf = head(epsilon=1e5).fit(X, Y)
    with recorded_releases() as releases:
        clf.fit(X, Y)
    steps = [each for each in releases if each.arrays[0].shape == (K, D + 1)]
    longest = MultilabelLoss(K).lipschitz * clf._row_map.norm_bound
    assert 0.3 < steps[0].query.releases[0].sensitivity < longest * 1.01


def test_audits_know_several_labels():
    clf = head().fit(X[:600], Y[:600])
    assert membership_attack(clf, X[:600], Y[:600], X[600:], Y[600:]).auc < 0.6
    some = {"n_canaries": 40, "random_state": 0, **PUBLIC}
    result = audit_epsilon(lambda: MixedDPLogisticRegression(epsilon=30.0), X[:400], Y[:400], **some)
    assert result.epsilon <= 30.0 and result.claimed_mu / 3 < result.measured_mu < 2 * result.claimed_mu
