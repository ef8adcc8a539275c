"""The estimator as a scikit-learn user meets it: parameters, labels, shapes, reports."""

import re

import numpy as np
import pytest
from scipy.special import softmax

from skmixdp import MixedDPLogisticRegression, RowMapping
from skmixdp.algorithms import AdaMix
from skmixdp.exceptions import PrivacyLeakWarning
from tests.rounding import assert_close


def fitted(rows, /, **parameters):
    return MixedDPLogisticRegression(**parameters).fit(*rows)


class TestParameters:
    def test_repr_shows_what_was_changed(self):
        clf = MixedDPLogisticRegression(AdaMix(quantile=0.7), epsilon=2.0)
        assert repr(clf) == "MixedDPLogisticRegression(algorithm=AdaMix(quantile=0.7), epsilon=2.0)"
        assert repr(MixedDPLogisticRegression()) == "MixedDPLogisticRegression()"
        assert "MixedDPLogisticRegression" in clf._repr_html_()


class TestLabels:
    @pytest.mark.parametrize(
        "names",
        [np.array(["cat", "dog", "eel"]), np.array([7, -3, 40]), np.array(["b", "a", "c"], dtype=object)],
    )
    def test_labels_come_back(self, rows, names):
        named = rows._replace(y=names[rows.y], y_pub=names[rows.y_pub])
        clf = fitted(named, epsilon=10.0, random_state=0)
        np.testing.assert_array_equal(clf.classes_, np.sort(names))
        assert clf.classes_.dtype == names.dtype
        plain = fitted(rows, epsilon=10.0, random_state=0)
        assert clf.score(rows.X, names[rows.y]) == pytest.approx(plain.score(rows.X, rows.y), abs=0.1)
        assert clf.score(rows.X, names[rows.y]) > 0.7

    def test_bool_labels(self, rows):
        y, y_pub = rows.y == 0, rows.y_pub == 0
        clf = fitted(rows._replace(y=y, y_pub=y_pub), epsilon=10.0, random_state=0)
        assert clf.classes_.tolist() == [False, True]
        assert clf.predict(rows.X).dtype == bool
        assert clf.score(rows.X, y) > 0.7

    def test_declared_classes_may_go_beyond_the_labels(self, rows):
        clf = fitted(rows._replace(X_pub=None, y_pub=None), classes=[3, 2, 1, 0])
        assert clf.classes_.tolist() == [0, 1, 2, 3]
        assert clf.coef_.shape == (4, 5)
        assert any("declared" in fact for fact in clf.privacy_.treated_as_public)

    def test_private_labels_are_read_only_with_a_warning(self, rows):
        with pytest.warns(PrivacyLeakWarning, match="classes were read from the private labels y"):
            clf = MixedDPLogisticRegression().fit(rows.X, rows.y)
        assert any("PRIVATE LABELS" in fact for fact in clf.privacy_.treated_as_public)

    def test_the_classes_do_not_depend_on_private_labels(self, rows):
        """A data set without class 2 gives the same classes, or its absence would be published."""
        without = np.where(rows.y == 2, 0, rows.y)
        clf = MixedDPLogisticRegression().fit(rows.X, without, X_pub=rows.X_pub, y_pub=rows.y_pub)
        assert clf.classes_.tolist() == [0, 1, 2]


class TestOutputs:
    @pytest.mark.parametrize("k", [2, 3])
    def test_of_classes(self, rows, k):
        clf = fitted(rows._replace(y=rows.y % k, y_pub=rows.y_pub % k), epsilon=5.0)
        n_outputs = 1 if k == 2 else k
        assert clf.coef_.shape == (n_outputs, 5) and clf.intercept_.shape == (n_outputs,)
        logits, proba = clf.decision_function(rows.X), clf.predict_proba(rows.X)
        assert logits.shape == ((60,) if k == 2 else (60, 3))
        logits = np.column_stack([np.zeros(60), logits]) if k == 2 else logits
        assert_close(proba, softmax(logits, axis=1))
        np.testing.assert_array_equal(clf.predict(rows.X), logits.argmax(axis=1))
        assert_close(clf.predict_log_proba(rows.X), np.log(proba))

    def test_the_head_acts_on_the_centred_and_scaled_row(self, rows):
        clf = fitted(rows, rows=RowMapping(whiten=False), scale=False)
        centred = rows.X - rows.X_pub.mean(axis=0)
        unit = centred / np.linalg.norm(centred, axis=1, keepdims=True)
        assert_close(clf.decision_function(rows.X), unit @ clf.coef_.T + clf.intercept_)

    def test_extreme_logits_give_probabilities(self, rows):
        clf = fitted(rows)
        clf.coef_ = clf.coef_ * 1e6
        proba = clf.predict_proba(rows.X)
        assert np.all(np.isfinite(proba)) and np.allclose(proba.sum(axis=1), 1)


class TestFrames:
    def test_other_public_columns_are_refused(self, frames):
        frames = frames._replace(X_pub=frames.X_pub[["b", "a", "c", "d", "e"]])
        told = r"X_pub has the columns \['b', 'a'.*X has \['a', 'b'.*same order"
        with pytest.raises(ValueError, match=told):
            fitted(frames)


class TestSourcesAndSeeds:
    def test_several_sources_are_their_concatenation(self, rows):
        whole = fitted(rows, random_state=0)
        halves = [(part[:20], part[20:]) for part in (rows.X_pub, rows.y_pub)]
        rows = rows._replace(X_pub=halves[0], y_pub=halves[1])
        parts = fitted(rows, random_state=0)
        np.testing.assert_array_equal(parts.coef_, whole.coef_)
        assert parts.privacy_.n_public == 60

    def test_a_random_state_moves_on(self, rows):
        state = np.random.RandomState(7)
        first, second = (fitted(rows, algorithm="adamix", random_state=state) for _ in range(2))
        assert np.any(first.coef_ != second.coef_)
        again = fitted(rows, algorithm="adamix", random_state=np.random.RandomState(7))
        np.testing.assert_array_equal(first.coef_, again.coef_)
        assert not first.privacy_.private


class TestReport:
    def test_text(self, rows):
        text = str(fitted(rows, epsilon=2.0, delta=1e-4).privacy_)
        assert text.startswith("Privacy report")
        assert re.search("the numbers? of private rows", text)
        assert "60 private, 60 public" in text
        assert "(2, 0.0001)-differential privacy" in text

    def test_a_new_fit_replaces_it(self, rows):
        clf = fitted(rows)
        first = clf.privacy_
        clf.set_params(epsilon=3.0).fit(rows.X[:40], rows.y[:40], X_pub=rows.X_pub, y_pub=rows.y_pub)
        assert first.n_private == 60 and clf.privacy_.n_private == 40
        assert clf.privacy_.epsilon == pytest.approx(3.0)
