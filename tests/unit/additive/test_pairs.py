"""Pairs of columns with products, chosen by noisy scores of private rows."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from sklearn.base import clone

from skmixdp import AdditiveDPClassifier, AdditiveDPRegressor, fit_many, private_pipeline
from skmixdp.preprocessing import TableEncoder
from tests.private_names import (
    Block,
    LogisticLoss,
    MultilabelLoss,
    SoftmaxLoss,
    SquaredLoss,
    WeightedLoss,
    scores_query,
    with_weights,
)

RNG = np.random.default_rng(0)
N, D = 5_000, 5
X = RNG.normal(size=(N, D)) * [1, 10, 0.1, 1, 1] + [0, 5, 0, 0, 3]
UNIT = (X - X.mean(axis=0)) / X.std(axis=0)
#: The classes rest on the product of the columns 1 and 3, and a little on each column.
SCORES = 3 * np.sign(UNIT[:, 1] * UNIT[:, 3]) + UNIT.sum(axis=1) / 2
Y = (RNG.normal(size=N) < SCORES).astype(int)
TERMS = {"epsilon": 3.0, "random_state": 0, "interactions": "auto"}
PAIRS = np.array([[0, 1], [0, 2], [1, 2]])


@pytest.mark.parametrize("known", [0, 200])
def test_the_pair_that_matters_is_chosen_and_paid_for(known):
    public = {"X_pub": X[:known], "y_pub": Y[:known]} if known else {}
    clf = AdditiveDPClassifier(classes=[0, 1], **TERMS).fit(X[1000:], Y[1000:], **public)
    without = AdditiveDPClassifier(classes=[0, 1], **{**TERMS, "interactions": False})
    plain = without.fit(X[1000:], Y[1000:], **public)
    assert (1, 3) in clf.interactions_ and len(clf.interactions_) <= 4
    assert clf.score(X[:1000], Y[:1000]) > plain.score(X[:1000], Y[:1000]) + 0.1
    shares = dict(clf.privacy_.shares)
    assert 0 < shares["pairs of columns"] < shares["first curves"] < 0.2
    assert ("length for first curves" in shares) == (not known)
    assert sum(shares.values()) == pytest.approx(1)
    assert not any("interactions" in fact for fact in clf.privacy_.treated_as_public)


def test_targets_persons_weights_and_several_fits_choose_it_too():
    reg = AdditiveDPRegressor(**{**TERMS, "epsilon": 8.0})
    assert (1, 3) in reg.fit(X, SCORES, groups=np.arange(N) // 2).interactions_
    assert (1, 3) in reg.fit(X, SCORES, sample_weight=RNG.random(N)).interactions_
    half = np.arange(N) % 2 == 0
    for fitted in fit_many([clone(reg), clone(reg)], X, SCORES, rows=[half, ~half]):
        assert (1, 3) in fitted.interactions_


def test_classes_and_labels_choose_it_too():
    three = np.where(X[:, 4] > 4, 2, Y)
    assert (1, 3) in AdditiveDPClassifier(classes=range(3), **TERMS).fit(X, three).interactions_
    labels = np.column_stack([Y, X[:, 4] > 3]).astype(int)
    clf = AdditiveDPClassifier(classes=["a", "b"], **TERMS)
    assert (1, 3) in clf.fit(X, labels).interactions_


def test_discrete_noise_chooses_it_too():
    secret = {**TERMS, "random_state": None, "epsilon": 8.0}
    public = {"X_pub": X[:200], "y_pub": Y[:200]}
    clf = AdditiveDPClassifier(classes=[0, 1], noise="discrete", **secret)
    assert (1, 3) in clf.fit(X[200:4200], Y[200:4200], **public).interactions_


def test_a_record_counts_what_each_row_adds_to_the_scores():
    head = AdditiveDPClassifier(classes=[0, 1], record_per_instance=True, **TERMS)
    clf = head.fit(X, Y)
    assert (1, 3) in clf.interactions_
    losses = clf.per_instance_.mu
    assert losses.shape == (N,) and 0 < losses.min() < losses.max() <= clf.privacy_.mu * (1 + 1e-9)


def test_scores_that_are_not_clear_choose_nothing():
    reg = AdditiveDPRegressor(**TERMS, target_center=0.0, target_scale=1.0)
    assert reg.fit(X, 0.2 * RNG.normal(size=N)).interactions_ == []


def test_few_rows_and_a_single_column_ask_nothing():
    for rows, labels in ((X[:900], Y[:900]), (X[:, :1], Y)):
        clf = AdditiveDPClassifier(classes=[0, 1], **TERMS).fit(rows, labels)
        assert clf.interactions_ == []
        assert "pairs of columns" not in dict(clf.privacy_.shares)


def test_columns_of_one_category_make_no_pair():
    pd = pytest.importorskip("pandas")
    town = RNG.choice(["x", "y", "z"], N)
    y = ((X[:, 1] > 5) ^ (town == "x")).astype(int)
    frame = pd.DataFrame({"p": X[:, 1], "town": town, "q": X[:, 3]})
    encoder = TableEncoder()
    pipe = private_pipeline(encoder, AdditiveDPClassifier(classes=[0, 1], **TERMS))
    pipe.fit(frame[100:], y[100:], X_pub=frame[:100], y_pub=y[:100])
    names = [name for name, each in encoder.columns_.items() for _ in each.names(name)]
    owners = [{names[j] for j in pair} for pair in pipe[-1].interactions_]
    assert {"p", "town"} in owners and all(len(each) == 2 for each in owners)


LOSSES = {
    "two classes": (LogisticLoss(), RNG.integers(0, 2, 6)),
    "classes": (SoftmaxLoss(3), RNG.integers(0, 3, 6)),
    "labels": (MultilabelLoss(3), RNG.integers(0, 2, (6, 3)).astype(float)),
    "targets": (SquaredLoss(2), np.array([[0.0, 1e15], [1, -1], [-1e15, 2], [0, 0], [3, 1], [1e15, -1e15]])),
}


@pytest.mark.parametrize("kind", LOSSES)
@given(entries=hnp.arrays(np.float64, (6, 6), elements=st.floats(allow_nan=True, allow_infinity=True)))
def test_a_row_moves_the_scores_by_no_more_than_stated(kind, entries):
    """For any products, which a row with entries of any size may have."""
    loss, y = LOSSES[kind]
    k = loss.n_outputs
    query = scores_query(np.zeros((k, 7)), np.zeros((3, 7)), PAIRS, loss)
    Z = entries[:, : k + 3]
    with np.errstate(all="ignore"):
        C, terms = query.contribute(Z.copy(), Block(None, y, np.ones(6)))
        weighted = with_weights(y, np.full(6, 0.5))
        same = scores_query(np.zeros((k, 7)), np.zeros((3, 7)), PAIRS, WeightedLoss(loss))
        _, others = same.contribute(Z.copy(), Block(None, weighted, np.ones(6)))
    terms = np.asarray(terms)
    assert C is None and terms.shape == (6, 4 * k)
    assert np.linalg.norm(terms, axis=1).max() <= query.releases[0].sensitivity
    np.testing.assert_array_equal(terms, np.asarray(others))  # weights do not count here


def test_a_row_with_a_large_residual_moves_them_by_as_much():
    query = scores_query(np.zeros((1, 7)), np.zeros((3, 7)), PAIRS, SquaredLoss(1))
    _, terms = query.contribute(np.array([[9.0, 1.0, -1.0, 2.0]]), Block(None, np.zeros((1, 1)), np.ones(1)))
    length = np.linalg.norm(np.asarray(terms))
    assert length == pytest.approx(query.releases[0].sensitivity, rel=1e-5)
    assert length == pytest.approx(0.5 * np.sqrt(4))
