"""Starts made of class names: their form, their match with the classes, and what they bring."""

import numpy as np
import pytest
from sklearn.base import clone

from skmixdp import MixedDPLogisticRegression, MixedDPRidge
from skmixdp.algorithms import PDADPMD, AdaMix, Coupling
from skmixdp.components.public import PublicData
from skmixdp.features import ZeroShotHead
from tests.private_names import RowMap, classification_loss
from tests.rounding import assert_close

NAMES = ["cat", "dog", "owl"]


class Letters:
    """Counts the letters of a text, and keeps the texts."""

    def __init__(self):
        self.seen = []

    def encode_texts(self, texts):
        self.seen += texts
        return np.array([[text.count(letter) for letter in "abcdefghijklmnopqrstuvwxyz"] for text in texts])


def widen(coef):
    return np.column_stack([coef, np.zeros(len(coef))])


def public_rows(n=0, d=8, k=3, seed=0, spread=0.3):
    rng = np.random.default_rng(seed)
    y = np.arange(n) % k
    X = np.eye(k, d)[y] + spread * rng.normal(size=(n, d))
    row_map = RowMap.of(X, True, True, True)
    return PublicData(row_map(X, np.float64), y, classification_loss(k))


def test_rows_are_beta_times_unit_encodings():
    table = np.random.default_rng(0).normal(size=(3, 8))
    head = ZeroShotHead(NAMES, embeddings=table, beta=7).start(np.array(NAMES), public_rows(), widen)
    expected = 7 * table / np.linalg.norm(table, axis=1, keepdims=True)
    assert_close(head, widen(expected))


def test_templates_are_averaged_as_unit_encodings():
    encoder = Letters()
    found = ZeroShotHead(NAMES, encoder=encoder, templates=["{}", "a {}!"])._directions(NAMES)
    assert encoder.seen == ["cat", "dog", "owl", "a cat!", "a dog!", "a owl!"]
    units = [
        v / np.linalg.norm(v)
        for v in (Letters().encode_texts(["cat"])[0], Letters().encode_texts(["a cat"])[0])
    ]
    mean = units[0] + units[1]
    assert_close(found[0], mean / np.linalg.norm(mean))


def test_two_classes_have_one_output():
    table = np.eye(2, 5)
    data = public_rows(d=5, k=2)
    head = ZeroShotHead(["no", "yes"], embeddings=table, beta=3).start(np.array([0, 1]), data, widen)
    assert_close(head, widen(3 * (table[1:] - table[:1])))


def test_names_find_their_classes():
    table = np.eye(3)
    by_name = ZeroShotHead(["owl", "cat", "dog"], embeddings=table)
    np.testing.assert_array_equal(by_name._directions(np.array(["cat", "dog", "owl"])), table[[1, 2, 0]])
    by_place = ZeroShotHead(["owl", "cat", "dog"], embeddings=table)
    np.testing.assert_array_equal(by_place._directions(np.arange(3)), table)
    for names in (NAMES, np.array(NAMES)):  # the distinct labels of an array
        np.testing.assert_array_equal(
            ZeroShotHead(names, embeddings=table)._directions(np.array(NAMES)), table
        )
    given = ZeroShotHead({7: "owl", -1: "cat", 3: "dog"}, embeddings=table)
    np.testing.assert_array_equal(given._directions(np.array([-1, 3, 7])), table[[1, 2, 0]])


@pytest.mark.parametrize(
    ("names", "classes"),
    [
        (["cat", "dog"], [0, 1, 2]),
        (["cat", "dog", "owl"], [1, 2, 3]),
        (["cat", "dog", "fox"], ["cat", "dog", "owl"]),
        ({0: "cat", 1: "dog"}, [0, 1, 2]),
        (["cat", "cat", "dog"], ["cat", "dog"]),
    ],
)
def test_names_that_do_not_match_are_refused(names, classes):
    with pytest.raises(ValueError, match=r"do not match .* classes .*; pass a dict from each class"):
        ZeroShotHead(names, embeddings=np.eye(3))._directions(np.array(classes))


@pytest.mark.parametrize(
    ("parameters", "error", "message"),
    [
        ({}, ValueError, "neither of encoder and embeddings"),
        ({"encoder": Letters(), "embeddings": np.eye(3, 8)}, ValueError, "both of encoder and embeddings"),
        ({"encoder": "clip"}, TypeError, "has no method encode_texts"),
        ({"embeddings": np.eye(2, 8)}, ValueError, r"embeddings of shape \(2, 8\) must have one row"),
        ({"embeddings": np.zeros((3, 8))}, ValueError, "embeddings must hold finite rows that are not zero"),
        ({"encoder": Letters(), "templates": "a cat"}, ValueError, "templates='a cat' must be"),
        ({"encoder": Letters(), "templates": []}, ValueError, "templates="),
        ({"embeddings": np.eye(3, 8), "beta": 0}, ValueError, "beta=0 of ZeroShotHead must be a positive"),
        ({"embeddings": np.eye(3, 8), "beta": "best"}, ValueError, "beta='best'"),
        ({"embeddings": np.eye(3, 8), "few_shot": 1}, ValueError, "few_shot=1 of ZeroShotHead"),
        ({"class_names": "cat", "embeddings": np.eye(3, 8)}, TypeError, "is one str"),
        (
            {"class_names": ["cat", "dog", 3], "embeddings": np.eye(3, 8)},
            TypeError,
            "holds 3, which is not a name",
        ),
        ({"embeddings": np.eye(3, 9)}, ValueError, "init has encodings of 9 features, but X has 8"),
    ],
)
def test_bad_parameters_are_refused_by_the_estimator(parameters, error, message):
    X, y = np.random.default_rng(0).normal(size=(60, 8)), np.arange(60) % 3
    head = ZeroShotHead(**{"class_names": NAMES, **parameters})
    with pytest.raises(error, match=message):
        MixedDPLogisticRegression(init=head, classes=[0, 1, 2], delta=1e-3).fit(X, y)


def test_regression_has_no_classes_to_name():
    X = np.random.default_rng(0).normal(size=(60, 8))
    with pytest.raises(
        ValueError, match="is not a valid start of MixedDPRidge; pass 'public', 'zeros' or an array"
    ):
        MixedDPRidge(init=ZeroShotHead(NAMES, embeddings=np.eye(3, 8)), delta=1e-3).fit(
            X, X[:, 0], X, X[:, 0]
        )


def test_the_few_shot_fit_is_anchored_at_the_names():
    data, table = public_rows(12), np.eye(3, 8)
    head = ZeroShotHead(NAMES, embeddings=table, beta=4)
    text = clone(head).set_params(few_shot=False).start(np.arange(3), data, widen)
    both = head.start(np.arange(3), data, widen)
    # Stationary point of the public sum of losses plus l2 / 2 |W - text|^2.
    gradient = data.view(both).gradient * data.n_rows + data.l2 * (both - text)
    np.testing.assert_allclose(gradient, 0, atol=1e-3 * data.l2)
    # A stiff penalty leaves the names' head as it is, and not zero.
    np.testing.assert_allclose(data.fit(1e6, text), text, atol=1e-4)


def test_beta_is_chosen_by_held_out_rows():
    names = np.eye(3, 8)
    right = ZeroShotHead(NAMES, embeddings=names, beta="auto")
    wrong = ZeroShotHead(NAMES, embeddings=names[[1, 2, 0]], beta="auto")
    data = public_rows(18, spread=0.6)
    scales = {}
    for name, head in (("right", right), ("wrong", wrong)):
        start = head.set_params(few_shot=False).start(np.arange(3), data, widen)
        scales[name] = float(np.linalg.norm(start[0]))
    # Names that mislead get the smallest weight.
    assert scales["wrong"] == pytest.approx(1)
    assert scales["right"] > 1


@pytest.mark.parametrize(
    "algorithm", ["adamix", "noisy-gd", Coupling(), "gep", "dope-sgd", "modelmix", PDADPMD()]
)
def test_every_algorithm_takes_it(algorithm):
    rng = np.random.default_rng(0)
    y = rng.integers(3, size=90)
    X = np.eye(3, 8)[y] + 0.3 * rng.normal(size=(90, 8))
    head = ZeroShotHead(NAMES, embeddings=np.eye(3, 8), beta=5)
    clf = MixedDPLogisticRegression(algorithm, init=head, delta=1e-3, n_steps=2)
    clf.fit(X[12:], y[12:], X_pub=X[:12], y_pub=y[:12])
    assert np.all(np.isfinite(clf.coef_))


def test_text_alone_is_start_and_centre():
    """Without public rows a strong regulariser holds the head at the names' one."""
    rng = np.random.default_rng(0)
    y = rng.integers(3, size=300)
    X = np.eye(3, 8)[y] + 0.3 * rng.normal(size=(300, 8))
    head = ZeroShotHead(NAMES, embeddings=np.eye(3, 8), beta=5)
    clf = MixedDPLogisticRegression(
        AdaMix(center="public"), init=head, classes=[0, 1, 2], l2=1e4, epsilon=0.1, delta=1e-3, random_state=0
    )
    held = clone(clf).fit(X, y)
    np.testing.assert_allclose(held.coef_, 5 * np.eye(3, 8), atol=0.5)
    pulled = clone(clf).set_params(algorithm=AdaMix(center="zero")).fit(X, y)
    assert np.linalg.norm(pulled.coef_) < 0.5 * np.linalg.norm(held.coef_)
    assert held.score(X, y) > 0.9
    assert held.privacy_.n_public == 0


def test_a_grid_reaches_into_the_head():
    clf = MixedDPLogisticRegression(init=ZeroShotHead(NAMES, embeddings=np.eye(3, 8)))
    assert clone(clf).set_params(init__beta=3.0).init.beta == 3.0
    assert clf.init.beta == "auto"
