"""Public rows without labels: what they replace, what is refused, and how they reach fit."""

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
import sklearn
from sklearn.model_selection import GridSearchCV, KFold, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer, StandardScaler

from skmixdp import MixedDPLogisticRegression, MixedDPRidge, RowMapping, private_pipeline
from skmixdp.inspection import model_card
from skmixdp.model_selection import PrivateSearchCV, public_params
from skmixdp.preprocessing import PublicOnly
from skmixdp.privacy import PrivacyLedger

pytestmark = pytest.mark.filterwarnings("ignore::UserWarning")

N, D, K = 1500, 12, 3
rng = np.random.default_rng(0)
ALIKE = rng.normal(size=(K, D))[np.arange(N) % K] * 2 + rng.normal(size=(N, D)) * np.linspace(1, 3, D)
Y = np.arange(N) % K
#: Columns in their own units.
TABLE = ALIKE * np.where(np.arange(D) < 2, 1e3, 1.0) + np.where(np.arange(D) < 1, 5e3, 0.0)
WIDE = np.random.default_rng(1).normal(size=(N, 40))
OTHERS = slice(1000, 1300)
STATED = "300 rows known to be public without labels"


def head(**parameters):
    return MixedDPLogisticRegression(**{"epsilon": 3.0, "classes": range(K), "random_state": 0} | parameters)


def fitted(X=ALIKE, n_pub=0, estimator=None, y=Y, **told):
    public = {"X_pub": X[1300 : 1300 + n_pub], "y_pub": y[1300 : 1300 + n_pub]} if n_pub else {}
    return (estimator or head()).fit(X[:1000], y[:1000], **public, **told)


def same(one, other):
    np.testing.assert_array_equal(one.coef_, other.coef_)
    np.testing.assert_array_equal(one.intercept_, other.intercept_)


class TestReleases:
    @pytest.mark.parametrize(
        ("X", "n_pub", "estimator", "y", "saved"),
        [
            (ALIKE, 0, head(), Y, {"mean", "directions"}),
            (TABLE, 0, head(), Y, {"columns"}),
            (TABLE, 6, head(), Y, {"columns"}),
            (WIDE, 0, MixedDPRidge(target_scale=1.0, random_state=0), WIDE[:, 0], {"length of the rows"}),
        ],
        ids=["centre", "columns", "columns, public rows", "length"],
    )
    def test_what_they_tell_costs_no_budget(self, X, n_pub, estimator, y, saved):
        spent, left = (
            dict(
                fitted(X, n_pub, sklearn.clone(estimator).set_params(epsilon=3.0), y, **told).privacy_.shares
            )
            for told in ({}, {"X_unlabeled": X[OTHERS]})
        )
        assert saved <= set(spent) and not saved & set(left)
        if X is ALIKE:
            assert set(left) == set(spent) - {"mean", "directions", "columns"}
            assert left["training"] > spent["training"]

    def test_few_rows_replace_nothing(self):
        few = fitted(TABLE, X_unlabeled=TABLE[1000:1005])
        assert "columns" in dict(few.privacy_.shares)

    def test_the_guarantee_is_as_it_was(self):
        one, other = fitted().privacy_, fitted(X_unlabeled=ALIKE[OTHERS]).privacy_
        assert one.epsilon == pytest.approx(other.epsilon, abs=1e-9) and one.delta == other.delta

    def test_useless_public_rows_take_them_along(self):
        wrong = (Y + 1) % K
        clf = head().fit(ALIKE[:1000], Y[:1000], ALIKE[1300:], wrong[1300:], X_unlabeled=ALIKE[OTHERS])
        assert clf.privacy_.n_public == 0 and "mean" in dict(clf.privacy_.shares)


@pytest.mark.covering
@pytest.mark.parametrize("n_pub", [0, 60])
@pytest.mark.parametrize("X", [ALIKE, TABLE], ids=["alike", "table"])
def test_the_map_is_that_of_known_rows_whatever_the_private_ones_are(X, n_pub):
    # A start from zeros is not checked, so no public row is left out.
    other = X[:1000][::-1] * 3.0 + 1.0
    one = fitted(X, n_pub, head(init="zeros"), X_unlabeled=X[OTHERS])
    public = (X[1300 : 1300 + n_pub], Y[1300 : 1300 + n_pub]) if n_pub else ()
    with_others = head(init="zeros").fit(other, Y[:1000], *public, X_unlabeled=X[OTHERS])
    assert one._row_map.same_as(with_others._row_map)


def test_all_known_rows_tell_the_map():
    row_map = fitted(TABLE, 30, X_unlabeled=TABLE[OTHERS])._row_map
    known = np.concatenate([TABLE[1300:1330], TABLE[OTHERS]])
    np.testing.assert_allclose(row_map.columns.center, known.mean(axis=0), atol=1e-9)


@pytest.mark.parametrize("n_pub", [0, 60])
def test_a_rare_flag_is_not_scaled_to_spread_1(n_pub):
    X = np.column_stack([TABLE, 3.0 * (np.arange(N) % 100 == 0)])
    row_map = fitted(X, n_pub, X_unlabeled=X[OTHERS])._row_map
    np.testing.assert_allclose(row_map.columns.factor[-1], 2 / 3, atol=1e-12)


@pytest.mark.parametrize(("n_pub", "by_labels"), [(6, False), (60, True)])
def test_labels_of_few_public_rows_do_not_whiten_but_all_known_rows_do(n_pub, by_labels):
    public = slice(1300, 1300 + n_pub)
    found = [
        head(algorithm="adamix", rows=RowMapping(whiten=True)).fit(
            ALIKE[:1000], Y[:1000], ALIKE[public], labels, X_unlabeled=ALIKE[OTHERS]
        )
        for labels in (Y[public], rng.permutation(Y[public]))
    ]
    one, other = (clf._row_map.whitening.factors for clf in found)
    assert (not np.array_equal(one, other)) == by_labels


class TestReport:
    def test_report_and_card_list_them(self):
        clf = fitted(X_unlabeled=ALIKE[OTHERS])
        assert STATED in clf.privacy_.treated_as_public and clf.privacy_.n_public == 0
        assert STATED in " ".join(str(clf.privacy_).split()) and STATED in str(model_card(clf))
        assert STATED not in str(fitted().privacy_)

    @pytest.mark.parametrize("none", [None, (), np.empty((0, D)), []], ids=["None", "()", "no rows", "[]"])
    def test_no_rows_are_as_none(self, none):
        one, other = fitted(n_pub=30), fitted(n_pub=30, X_unlabeled=none)
        same(one, other)
        assert one.privacy_ == other.privacy_


class TestForms:
    def test_several_sources_frames_and_sparse_rows(self):
        plain = fitted(X_unlabeled=ALIKE[OTHERS])
        same(plain, fitted(X_unlabeled=(ALIKE[1000:1100], ALIKE[1100:1300])))
        same(plain, fitted(X_unlabeled=sp.csr_array(ALIKE[OTHERS])))
        frame = pd.DataFrame(ALIKE, columns=[f"c{j}" for j in range(D)])
        same(plain, head().fit(frame[:1000], Y[:1000], X_unlabeled=frame[1000:1300]))

    @pytest.mark.parametrize(
        ("X", "y", "more"),
        [
            (sp.csr_array(ALIKE[:1000]), Y[:1000], {}),
            (ALIKE[:1000], Y[:1000], {"groups": np.arange(1000) // 2}),
            (ALIKE[:1000], (ALIKE[:1000, :2] > 0).astype(int), {}),
        ],
        ids=["sparse", "persons", "labels"],
    )
    def test_other_private_rows(self, X, y, more):
        clf = head(classes=None if y.ndim == 2 else range(K)).fit(X, y, X_unlabeled=ALIKE[OTHERS], **more)
        assert STATED in clf.privacy_.treated_as_public and "mean" not in dict(clf.privacy_.shares)

    @pytest.mark.covering
    @pytest.mark.parametrize(
        "parameters",
        [
            {"algorithm": "adamix"},
            {"algorithm": "noisy-gd", "rows": RowMapping(whiten=True)},
            {"rows": RowMapping(norm="clip")},
            {"rows": RowMapping(norm=None), "learning_rate": 0.1},
            {"scale": False},
            {"rows": RowMapping(geometry=True)},
            {"rows": RowMapping(geometry=False)},
            {"rows": RowMapping(center=False)},
            {"fit_intercept": False},
            {"epsilon": None, "n_steps": 20, "noise_multiplier": 5.0},
            {"batch_size": 100},
        ],
        ids=str,
    )
    @pytest.mark.parametrize("n_pub", [0, 30])
    def test_every_option(self, parameters, n_pub):
        clf = fitted(ALIKE, n_pub, head(**parameters), X_unlabeled=ALIKE[OTHERS])
        assert np.all(np.isfinite(clf.coef_))

    def test_a_regression(self):
        y = TABLE[:, 3] + TABLE[:, 5]
        ridge = MixedDPRidge(epsilon=1.0, target_scale=4.0, random_state=0)
        assert fitted(TABLE, 0, ridge, y, X_unlabeled=TABLE[OTHERS]).score(TABLE[1300:], y[1300:]) > 0.5


class TestRefusals:
    @pytest.mark.parametrize(
        ("bad", "message"),
        [
            (ALIKE[OTHERS, :3], "X_unlabeled has 3 features and X has 12"),
            (np.full((5, D), np.nan), "X_unlabeled contains NaN"),
            (np.zeros(D), "X_unlabeled"),
            (np.full((5, D), "text"), "X_unlabeled"),
            (np.full((5, D), 1e308), "public rows have entries so large"),
        ],
        ids=["width", "NaN", "flat", "text", "huge"],
    )
    def test_bad_rows_are_refused_before_the_charge(self, bad, message):
        ledger = PrivacyLedger(":memory:").add_dataset("rows", epsilon=4.0, delta=1e-4)
        with pytest.raises(ValueError, match=message):
            fitted(estimator=head(ledger=ledger, scale=False), X_unlabeled=bad)
        assert ledger.spent == 0

    def test_names_of_columns(self):
        frame = pd.DataFrame(ALIKE, columns=[f"c{j}" for j in range(D)])
        with pytest.raises(ValueError, match="X_unlabeled has the columns"):
            head().fit(frame[:1000], Y[:1000], X_unlabeled=frame[1000:][frame.columns[::-1]])

    def test_rows_too_long_for_products(self):
        clf = head(rows=RowMapping(norm=None), learning_rate=0.1)
        with pytest.raises(ValueError, match="X_unlabeled holds a row that is too large"):
            fitted(estimator=clf, X_unlabeled=np.full((5, D), 1e200))


class TestRouting:
    def test_a_private_pipeline_transforms_them(self):
        half = FunctionTransformer(lambda X: X / 2)
        pipe = private_pipeline(half, head()).fit(ALIKE[:1000], Y[:1000], X_unlabeled=ALIKE[OTHERS])
        same(pipe[-1], fitted(ALIKE / 2, X_unlabeled=ALIKE[OTHERS] / 2))

    def test_pipelines_and_searches_pass_them_on_whole(self):
        told = public_params(ALIKE[1300:], Y[1300:]) | {"X_unlabeled": (ALIKE[OTHERS],)}
        seen = []

        class Spy(MixedDPLogisticRegression):
            def fit(self, X, y, X_pub=None, y_pub=None, X_unlabeled=None):
                seen.append(sum(len(part) for part in X_unlabeled))
                return super().fit(X, y, X_pub=X_pub, y_pub=y_pub, X_unlabeled=X_unlabeled)

        spy = Spy(epsilon=3.0, classes=range(K), random_state=0)
        with sklearn.config_context(enable_metadata_routing=True):
            steps = PublicOnly(StandardScaler()), spy
            pipe = make_pipeline(*steps, transform_input=["X_pub", "X_unlabeled"])
            cross_val_score(pipe, ALIKE[:900], Y[:900], cv=3, params=told)
            grid = GridSearchCV(spy, {"epsilon": [1.0, 3.0]}, cv=KFold(2))
            grid.fit(ALIKE[:900], Y[:900], **told)
        assert seen == [300] * (3 + 2 * 2 + 1)

    def test_rows_cut_to_a_fold_are_said_to_be(self):
        with (
            sklearn.config_context(enable_metadata_routing=True),
            pytest.warns(UserWarning, match=r"cut X_unlabeled to .*the tuple \(X_unlabeled,\)"),
        ):
            cross_val_score(
                head(), ALIKE[:300], Y[:300], cv=2, params={"X_unlabeled": ALIKE[OTHERS]}, error_score="raise"
            )

    def test_a_private_search(self):
        search = PrivateSearchCV(
            head(random_state=None), {"l2": [0.0, 0.1]}, epsilon=3.0, strategy="grid", random_state=0
        )
        search.fit(ALIKE[:1000], Y[:1000], X_unlabeled=ALIKE[OTHERS])
        assert STATED in search.best_estimator_.privacy_.treated_as_public
        assert STATED in search.privacy_.treated_as_public


class TestSpreadOut:
    """Variance over more than 25 directions, without labelled rows."""

    WIDTH, CLASSES = 60, 4
    Y = np.arange(4000) % CLASSES
    X = np.random.default_rng(5).normal(size=(4000, WIDTH))
    X[np.arange(4000), Y] += 3.0

    def fitted(self, n_unlabeled=1000, n_rows=1000, X=X, Y=Y, **parameters):
        settings = {"epsilon": 1.0, "classes": np.unique(Y), "random_state": 0} | parameters
        others = X[3000 : 3000 + n_unlabeled] if n_unlabeled else None
        return MixedDPLogisticRegression(**settings).fit(X[:n_rows], Y[:n_rows], X_unlabeled=others)

    def test_rows_are_projected_on_the_directions_of_largest_variance(self):
        clf = self.fitted(epsilon=0.3)
        row_map = clf._row_map
        assert row_map.whitening.rest == 0 and row_map.mean is not None and not row_map.unit_first
        assert self.CLASSES <= len(row_map.whitening.factors) < self.WIDTH
        # Classes differ along three directions of the first four columns.
        assert np.all(np.sum(row_map.whitening.directions[:, :4] ** 2, axis=0) > 0.6)
        rows = row_map(self.X[:100], np.float64)[:, :-1]
        np.testing.assert_allclose(np.linalg.norm(rows, axis=1), 1.0, atol=1e-12)
        assert np.linalg.matrix_rank(rows, tol=1e-9) == len(row_map.whitening.factors)
        X_test, y_test = self.X[2000:3000], self.Y[2000:3000]
        assert clf.score(X_test, y_test) > self.fitted(0, epsilon=0.3).score(X_test, y_test) + 0.05
        assert not {"mean", "directions"} & set(dict(clf.privacy_.shares))

    def test_private_rows_do_not_tell_the_projection(self):
        one = self.fitted(epsilon=0.5)
        other = self.fitted(epsilon=0.5)
        moved = MixedDPLogisticRegression(epsilon=0.5, classes=range(self.CLASSES), random_state=0)
        moved.fit(self.X[:1000][::-1] * 3.0 + 1.0, self.Y[:1000], X_unlabeled=self.X[3000:])
        assert one._row_map.same_as(other._row_map) and one._row_map.same_as(moved._row_map)

    def test_a_larger_budget_keeps_more_directions(self):
        few, many = (len(self.fitted(epsilon=each)._row_map.whitening.factors) for each in (0.3, 1.0))
        assert few < many

    @pytest.mark.parametrize(
        "parameters",
        [
            {"rows": RowMapping(whiten=True)},
            {"rows": RowMapping(whiten=False)},
            {"algorithm": "adamix"},
            {"rows": RowMapping(center=False)},
            {"rows": RowMapping(geometry=True)},
        ],
        ids=str,
    )
    def test_other_settings_do_not_project(self, parameters):
        whitening = self.fitted(**parameters)._row_map.whitening
        assert whitening is None or whitening.rest == 1

    def test_rows_of_two_classes_are_only_centred(self):
        row_map = self.fitted(Y=(self.Y < 2).astype(int))._row_map
        assert row_map.whitening is None and row_map.mean is not None and not row_map.unit_first

    def test_where_private_directions_are_better_the_rows_are_left_out(self):
        without, others = self.fitted(0, 3000, epsilon=20.0), self.fitted(80, 3000, epsilon=20.0)
        same(without, others)
        assert without.privacy_.shares == others.privacy_.shares
        public = self.fitted(80, 3000, epsilon=20.0, rows=RowMapping(geometry=False))
        assert len(public._row_map.whitening.factors) <= self.WIDTH

    def test_few_directions_whiten(self):
        X = self.X * np.where(np.arange(self.WIDTH) < 6, 1.0, 0.02)
        assert self.fitted(X=X)._row_map.whitening.rest == 1

    @pytest.mark.parametrize("rows", [np.asarray, sp.csr_array], ids=["dense", "sparse"])
    def test_exports_project(self, rows):
        clf = self.fitted().fit(rows(self.X[:1000]), self.Y[:1000], X_unlabeled=self.X[3000:])
        expected = clf.predict_proba(self.X[:20])
        np.testing.assert_allclose(clf.predict_proba(rows(self.X[:20])), expected, atol=1e-9)
        np.testing.assert_allclose(clf.to_sklearn().predict_proba(self.X[:20]), expected, atol=1e-9)
