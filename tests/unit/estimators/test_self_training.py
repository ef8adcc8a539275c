"""A student of the released head."""

import numpy as np
import pytest
import sklearn
from scipy.special import softmax
from sklearn.metrics import log_loss

from skmixdp import MixedDPLogisticRegression, RowMapping, fit_many, load
from tests.private_names import with_student

pytestmark = pytest.mark.filterwarnings("ignore::UserWarning")

K, D, N = 4, 60, 4000
Y = np.arange(N) % K
X = np.random.default_rng(5).normal(size=(N, D))
X[np.arange(N), Y] += 3.0
PRIVATE, OTHERS, TEST = slice(0, 300), slice(1000, 3000), slice(3000, N)


def head(**parameters):
    return MixedDPLogisticRegression(
        **{"epsilon": 0.5, "classes": range(K), "random_state": 0, "rows": RowMapping(whiten=False)}
        | parameters
    )


def fitted(n_pub=0, **parameters):
    public = {"X_pub": X[300 : 300 + n_pub], "y_pub": Y[300 : 300 + n_pub]} if n_pub else {}
    return head(**parameters).fit(X[PRIVATE], Y[PRIVATE], X_unlabeled=X[OTHERS], **public)


@pytest.mark.parametrize("n_pub", [0, 20])
def test_clusters_that_are_classes_correct_the_head(n_pub):
    teacher, student = fitted(n_pub), fitted(n_pub, self_training=True)
    assert student.score(X[TEST], Y[TEST]) > teacher.score(X[TEST], Y[TEST]) + 0.01
    losses = [log_loss(Y[TEST], clf.predict_proba(X[TEST])) for clf in (teacher, student)]
    assert losses[1] < losses[0]
    assert student.privacy_.shares == teacher.privacy_.shares
    assert student.privacy_.epsilon == teacher.privacy_.epsilon


def test_it_is_a_function_of_the_released_head_and_of_public_rows():
    teacher, student = fitted(20), fitted(20, self_training=True)
    mapped = [student._row_map(X[rows], np.float64) for rows in (OTHERS, slice(300, 320))]
    W = np.column_stack([teacher.coef_, teacher.intercept_ / teacher._row_map.intercept_value])
    wanted = with_student(W, *mapped, np.eye(K)[Y[300:320]])
    np.testing.assert_allclose(student.coef_, wanted[:, :-1], rtol=0, atol=1e-8 * np.abs(wanted).max())


def test_it_is_as_sure_as_the_head():
    sure = [clf.predict_proba(X[OTHERS]).max(axis=1).mean() for clf in (fitted(), fitted(self_training=True))]
    assert sure[0] == pytest.approx(sure[1], abs=1e-6)


def test_it_is_the_discriminant_of_the_probabilities():
    # By hand, with one round less of everything: as sure of all rows, equal classes, spherical clusters.
    rng = np.random.default_rng(0)
    places = np.eye(3)[np.arange(3000) % 3] - 1 / 3
    U = np.column_stack([places + 0.05 * rng.normal(size=(3000, 3)), np.ones(3000)])
    W = np.column_stack([2 * np.eye(3), np.zeros(3)])
    student = with_student(W, U, U[:0], np.zeros((0, 3)))
    # The discriminant points to the class means, as the head does, so that directions stay.
    off = student[:, :3] - student[:, :3].mean(axis=0)
    cosines = np.sum(off * (np.eye(3) - 1 / 3), axis=1) / np.linalg.norm(off, axis=1) / np.sqrt(2 / 3)
    assert np.all(cosines > 0.99)
    sure = [softmax(U @ each.T, axis=1).max(axis=1).mean() for each in (W, student)]
    assert sure[0] == pytest.approx(sure[1], abs=1e-9)


def test_many_columns_and_few_rows():
    rng = np.random.default_rng(1)
    wide = rng.normal(size=(60, 500))
    rows = np.column_stack([wide, np.full(60, 0.2)])
    assert np.all(np.isfinite(with_student(rng.normal(size=(3, 501)), rows, rows[:0], np.zeros((0, 3)))))
    assert np.all(np.isfinite(with_student(np.zeros((3, 501)), rows, rows[:0], np.zeros((0, 3)))))


@pytest.mark.parametrize(
    ("parameters", "y", "others", "message"),
    [
        ({"classes": [0, 1]}, Y % 2, X[OTHERS], "needs three classes or more"),
        ({}, Y, None, "needs 10 rows of X_unlabeled for each of the 4 classes, and got 0"),
        ({}, Y, X[:39], "and got 39 in all"),
        ({"fit_intercept": False}, Y, X[OTHERS], "needs fit_intercept=True"),
        ({"classes": None}, np.eye(K, dtype=int)[Y], X[OTHERS], "self_training=True needs one class per row"),
        ({"self_training": 1}, Y, X[OTHERS], "self_training=1 must be"),
    ],
)
def test_what_cannot_have_a_student_is_refused(parameters, y, others, message):
    with pytest.raises(ValueError, match=message):
        head(**{"self_training": True} | parameters).fit(X[PRIVATE], y[PRIVATE], X_unlabeled=others)


def test_a_fit_that_leaves_public_rows_out_has_none():
    public = X[300:340], (Y[300:340] + 1) % K  # wrong labels
    clf, student = (
        head(self_training=each, epsilon=5.0).fit(X[PRIVATE], Y[PRIVATE], *public, X_unlabeled=X[OTHERS])
        for each in (False, True)
    )
    assert student.privacy_.n_public == 0
    np.testing.assert_array_equal(clf.coef_, student.coef_)


def test_fit_many_persons_files_and_exports(tmp_path):
    groups = np.arange(300) // 2
    one, other = fit_many(
        [head(self_training=True), head(self_training=True, epsilon=2.0)],
        X[PRIVATE],
        Y[PRIVATE],
        X_unlabeled=X[OTHERS],
        groups=groups,
    )
    alone = head(self_training=True).fit(X[PRIVATE], Y[PRIVATE], X_unlabeled=X[OTHERS], groups=groups)
    np.testing.assert_array_equal(one.coef_, alone.coef_)
    other.save(tmp_path / "head")
    wanted = other.predict_proba(X[TEST])
    np.testing.assert_array_equal(load(tmp_path / "head").predict_proba(X[TEST]), wanted)
    np.testing.assert_allclose(other.to_sklearn().predict_proba(X[TEST]), wanted, rtol=0, atol=1e-9)
    assert sklearn.clone(other).self_training is True


@pytest.mark.parametrize("whiten", [False, "auto"])
def test_onnx_models_of_students_agree(whiten):
    """Of rows as they are, and of rows projected on the directions that training reaches."""
    onnxruntime = pytest.importorskip("onnxruntime", reason="needs onnxruntime, an extra of the tests")
    pytest.importorskip("onnx", reason="needs skmixdp[onnx]")
    student = fitted(self_training=True, rows=RowMapping(whiten=whiten))
    whitening = student._row_map.whitening
    assert (whitening is not None and whitening.rest == 0) == (whiten == "auto")
    session = onnxruntime.InferenceSession(
        student.to_onnx().SerializeToString(), providers=["CPUExecutionProvider"]
    )
    label, probabilities = session.run(["label", "probabilities"], {"X": X[TEST]})
    np.testing.assert_array_equal(label, student.predict(X[TEST]))
    np.testing.assert_allclose(probabilities, student.predict_proba(X[TEST]), rtol=0, atol=1e-9)
