"""Scores on public rows, and accuracy on private ones that is accounted for."""

import pickle

import numpy as np
import pandas as pd
import pytest
from joblib import parallel_config
from scipy import sparse
from sklearn.dummy import DummyClassifier
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import Pipeline
from sklearn.preprocessing import StandardScaler

from skmixdp import MixedDPLogisticRegression
from skmixdp.algorithms import AdaMix
from skmixdp.model_selection import public_cross_val_score, public_params, public_score
from skmixdp.preprocessing import PublicOnly
from skmixdp.privacy import PrivacyLedger
from tests.private_names import hold_out

DELTA = 1e-3


class Counting(MixedDPLogisticRegression):
    """Keeps the rows of every fit and of every score."""

    fits, scores = [], []

    def fit(self, X, y, X_pub=None, y_pub=None):
        self.fits.append((X, X_pub))
        return super().fit(X, y, X_pub=X_pub, y_pub=y_pub)

    def score(self, X, y):
        self.scores.append(X)
        return super().score(X, y)


@pytest.fixture
def counting(monkeypatch):
    monkeypatch.setattr(Counting, "fits", [])
    monkeypatch.setattr(Counting, "scores", [])
    return Counting


class TestPublicScore:
    @pytest.mark.parametrize("enabled", [True, False])
    def test_a_grid_search_scores_no_private_row(self, rows, counting, enabled, request):
        if enabled:
            request.getfixturevalue("routing")
        X_pub, y_pub, X_held, y_held = rows.X_pub[:45], rows.y_pub[:45], rows.X_pub[45:], rows.y_pub[45:]
        options = {"scoring": public_score(X_held, y_held), "cv": [(range(len(rows.X)), [0])]}
        search = GridSearchCV(counting(delta=DELTA), {"n_steps": [2, 4]}, **options)
        search.fit(rows.X, rows.y, **public_params(X_pub, y_pub))
        assert len(counting.scores) == 2
        assert all(scored is X_held for scored in counting.scores)
        assert [len(X) for X, _ in counting.fits] == [60, 60, 60]
        found = search.best_estimator_.__class__.__mro__[1].score(search.best_estimator_, X_held, y_held)
        assert 0 <= search.best_score_ <= 1 and 0 <= found <= 1

    def test_the_score_does_not_depend_on_what_it_is_called_with(self, rows):
        clf = MixedDPLogisticRegression(delta=DELTA).fit(*rows)
        scorer = public_score(rows.X_pub, rows.y_pub)
        assert scorer(clf) == scorer(clf, rows.X, rows.y) == clf.score(rows.X_pub, rows.y_pub)
        loss = public_score(rows.X_pub, rows.y_pub, scoring="neg_log_loss")
        assert loss(clf) < 0
        assert pickle.loads(pickle.dumps(loss))(clf) == loss(clf)
        assert repr(loss) == "public_score(<60 public rows>, scoring='neg_log_loss')"

    @pytest.mark.parametrize(
        "make", [list, pd.DataFrame, sparse.csr_array, lambda X: X], ids=["list", "frame", "sparse", "array"]
    )
    def test_sources_of_all_kinds_are_joined(self, make):
        X = np.arange(8.0).reshape(4, 2)
        clf = DummyClassifier(strategy="constant", constant=1).fit(X, [0, 1, 1, 1])
        assert public_score((make(X[:2]), make(X[2:])), ([0, 1], [1, 1]))(clf) == 0.75

    def test_rows_and_labels_must_agree(self, rows):
        with pytest.raises(ValueError, match="y_pub has 3 labels and X_pub 60 rows"):
            public_score(rows.X_pub, [0, 1, 2])
        with pytest.raises(ValueError, match="y_pub=None must be given too"):
            public_score(rows.X_pub, None)


class TestPublicCrossValidation:
    def test_every_fold_is_scored_by_a_fit_on_all_private_rows_and_the_other_folds(self, rows, counting):
        scores = public_cross_val_score(counting(delta=DELTA), *rows, cv=3)
        assert scores.shape == (3,) and np.all(scores > 0.3)
        assert all(X is rows.X for X, _ in counting.fits)
        for (_, (X_pub,)), held_out in zip(counting.fits, counting.scores, strict=True):
            assert len(X_pub) == 40 and len(held_out) == 20
            assert len(np.unique(np.concatenate([X_pub, held_out]), axis=0)) == 60
        assert len(np.unique(np.concatenate(counting.scores), axis=0)) == 60

    def test_it_is_charged_for_each_fold(self, rows, tmp_path):
        ledger = PrivacyLedger(tmp_path / "l.sqlite").add_dataset("p", epsilon=9, delta=DELTA)
        clf = MixedDPLogisticRegression(delta=DELTA, ledger=ledger)
        with parallel_config("threading"):
            public_cross_val_score(clf, *rows, cv=4, n_jobs=2)
        assert len(ledger.charges()) == 4

    def test_a_pipeline_and_another_metric(self, routing, rows):
        head = MixedDPLogisticRegression(AdaMix(), delta=DELTA)
        pipe = Pipeline([("s", PublicOnly(StandardScaler())), ("clf", head)], transform_input=["X_pub"])
        scores = public_cross_val_score(pipe, *rows, scoring="neg_log_loss", cv=2)
        assert np.all(scores < 0)


class TestHoldOut:
    @pytest.mark.parametrize("fraction", [0.01, 0.2, 0.5, 0.99])
    def test_each_class_is_split_and_keeps_a_row(self, fraction):
        y = np.array(list("aaaaabbbbbbbbbbccd"))
        train, test = hold_out(y, fraction, stratify=True)
        np.testing.assert_array_equal(np.sort(np.concatenate([train, test])), np.arange(18))
        for label, n in (("a", 5), ("b", 10), ("c", 2)):
            held = np.sum(y[test] == label)
            assert 1 <= held <= n - 1 and abs(held - fraction * n) <= 1
        assert set(y[train]) == set("abcd") and "d" not in y[test]

    def test_targets_are_one_class(self):
        train, test = hold_out(np.linspace(0, 1, 10), 0.2, stratify=False)
        assert len(train) == 8 and test.tolist() == [2, 7]
