"""A head that is fitted behind a step which learned from private rows says so, and how to fix it."""

import warnings

import numpy as np
import pytest
from joblib import parallel_config
from sklearn.base import BaseEstimator
from sklearn.ensemble import BaggingClassifier, StackingClassifier, VotingClassifier
from sklearn.experimental import enable_halving_search_cv  # noqa: F401
from sklearn.model_selection import (
    GridSearchCV,
    HalvingGridSearchCV,
    KFold,
    RandomizedSearchCV,
    TunedThresholdClassifierCV,
    cross_val_predict,
    cross_val_score,
    cross_validate,
    learning_curve,
)
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import StandardScaler

from skmixdp import MixedDPLogisticRegression, MixedDPRidge
from skmixdp.algorithms import DPZero
from skmixdp.exceptions import PrivacyLeakWarning
from skmixdp.model_selection import PrivateSearchCV, WithPublicRows, public_score
from skmixdp.preprocessing import NoisyScaler, PublicOnly, RowNormalizer
from tests.private_names import _enclosing

LEAK = "scale .StandardScaler.: the mean and standard deviation.*fix: PublicOnly"
NEAR = {"delta": 1e-3}


def leaking(head=None, **options):
    head = head or MixedDPLogisticRegression(classes=[0, 1, 2], **NEAR)
    return Pipeline([("scale", StandardScaler()), ("clf", head)], **options)


@pytest.mark.parametrize(
    "head",
    [
        MixedDPLogisticRegression(classes=[0, 1, 2], **NEAR),
        MixedDPRidge(target_center=1, target_scale=1, **NEAR),
        MixedDPLogisticRegression(DPZero(), classes=[0, 1, 2], **NEAR),
    ],
    ids=lambda head: type(head).__name__,
)
def test_every_head_warns_once_per_fit_and_points_at_the_call(rows, head):
    with pytest.warns(PrivacyLeakWarning, match=LEAK) as caught:
        leaking(head).fit(rows.X, rows.y)
    (leak,) = [warning for warning in caught if warning.category is PrivacyLeakWarning]
    assert leak.filename == __file__


def test_it_is_an_error_where_the_user_says_so_and_nothing_is_kept(rows):
    pipe = leaking()
    with warnings.catch_warnings(action="error"), pytest.raises(PrivacyLeakWarning):
        pipe.fit(rows.X, rows.y)
    assert not hasattr(pipe["clf"], "privacy_")


@pytest.mark.parametrize("n_jobs", [1, 2])
def test_a_grid_search(rows, n_jobs):
    search = GridSearchCV(leaking(), {"clf__epsilon": [1.0]}, cv=2, n_jobs=n_jobs)
    with parallel_config("threading"), pytest.warns(PrivacyLeakWarning, match=LEAK):
        search.fit(rows.X, rows.y)


def test_a_noisy_scaler_behind_a_leak_knows_it(rows):
    with pytest.warns(PrivacyLeakWarning, match=r"standardscaler \(StandardScaler\)") as caught:
        pipe = make_pipeline(StandardScaler(), NoisyScaler(bounds=(-3, 3), **NEAR), HEAD).fit(rows.X, rows.y)
    assert len(caught) == 1
    for step in pipe[1:]:
        assert step.privacy_.leaks == ("StandardScaler: the mean and standard deviation of each column",)


def test_a_nested_pipeline_is_judged_as_a_whole(rows):
    head = MixedDPLogisticRegression(classes=[0, 1, 2], **NEAR)
    with pytest.warns(PrivacyLeakWarning, match=r"scale \(StandardScaler\)"):
        Pipeline([("scale", StandardScaler()), ("inner", make_pipeline(head))]).fit(rows.X, rows.y)
    outer = Pipeline([("unit", RowNormalizer()), ("inner", leaking())])
    with pytest.warns(PrivacyLeakWarning, match=r"inner__scale \(StandardScaler\)"):
        outer.fit(rows.X, rows.y)


def test_a_head_in_a_vote(rows):
    vote = VotingClassifier([("a", MixedDPLogisticRegression(classes=[0, 1, 2], **NEAR))])
    with pytest.warns(PrivacyLeakWarning, match=r"scale \(StandardScaler\)"):
        make_pipeline(leaking(vote)).fit(rows.X, rows.y)


class TestSilence:
    """A warning would be an error in these tests."""

    @pytest.mark.parametrize("step", [RowNormalizer(), NoisyScaler(bounds=(-99, 99), **NEAR), "passthrough"])
    def test_safe_steps(self, rows, step):
        make_pipeline(step, HEAD).fit(rows.X, rows.y)

    @pytest.mark.parametrize("n_jobs", [1, 2])
    def test_public_steps_and_public_scores(self, routing, rows, n_jobs):
        head = MixedDPLogisticRegression(**NEAR)
        pipe = make_pipeline(PublicOnly(StandardScaler()), head, transform_input=["X_pub"])
        params = rows.public
        pipe.fit(rows.X, rows.y, **params)
        shared = {"scoring": public_score(rows.X_pub, rows.y_pub), "n_jobs": n_jobs, "cv": KFold(2)}
        with parallel_config("threading"):
            cross_val_score(pipe, rows.X, rows.y, params=params, **shared)
            GridSearchCV(head, GRID, **shared).fit(rows.X, rows.y, **params)

    @pytest.mark.parametrize("n_jobs", [1, 2])
    def test_what_is_private_as_a_whole(self, rows, n_jobs):
        with parallel_config("threading"):
            PrivateSearchCV(HEAD, GRID, delta=1e-3, n_jobs=n_jobs).fit(rows.X, rows.y)
            stack = StackingClassifier([("a", HEAD)], HEAD, cv=KFold(2), n_jobs=n_jobs)
            assert stack.fit(rows.X, rows.y).final_estimator_.privacy_.private


def search(strategy="auto"):
    return PrivateSearchCV(HEAD, GRID, delta=1e-3, strategy=strategy)


HALVING = {"min_resources": "smallest", "factor": 2}
HEAD = MixedDPLogisticRegression(classes=[0, 1, 2], **NEAR)
BINARY = MixedDPLogisticRegression(classes=[False, True], **NEAR)
GRID = {"l2": [0.0, 0.1]}
CHOICE = "the scores of candidates on private rows, and the choice made by them"
SCORES = "scores or predictions for private rows, without noise"
#: What calls scikit-learn for many fits, and what it should be told.
CALLS = {
    "GridSearchCV": (lambda X, y: GridSearchCV(HEAD, GRID, cv=3).fit(X, y), CHOICE),
    "RandomizedSearchCV": (lambda X, y: RandomizedSearchCV(HEAD, GRID, n_iter=2, cv=2).fit(X, y), CHOICE),
    "HalvingGridSearchCV": (lambda X, y: HalvingGridSearchCV(HEAD, GRID, cv=2, **HALVING).fit(X, y), CHOICE),
    "cross_val_score": (lambda X, y: cross_val_score(HEAD, X, y, cv=3), SCORES),
    "cross_validate": (lambda X, y: cross_validate(GridSearchCV(HEAD, GRID, cv=2), X, y, cv=2), SCORES),
    "cross_val_predict": (lambda X, y: cross_val_predict(HEAD, X, y, cv=3), SCORES),
    "learning_curve": (lambda X, y: learning_curve(HEAD, X, y, cv=2, train_sizes=[0.7, 1.0]), SCORES),
    "TunedThresholdClassifierCV": (
        lambda X, y: TunedThresholdClassifierCV(BINARY, cv=3).fit(X, y == 0),
        "a threshold tuned on private rows",
    ),
    "private searches in folds": (lambda X, y: cross_val_score(search(), X, y, cv=2), SCORES),
    "random private searches in folds": (lambda X, y: cross_val_score(search("random"), X, y, cv=2), SCORES),
    "a pipeline in a search": (lambda X, y: GridSearchCV(leaking(), {}, cv=2).fit(X, y), LEAK),
    "two heads": (
        lambda X, y: make_pipeline(StandardScaler(), VotingClassifier([("a", HEAD), ("b", HEAD)])).fit(X, y),
        "the mean and standard deviation",
    ),
    "a bootstrap": (
        lambda X, y: BaggingClassifier(WithPublicRows(HEAD), 2, random_state=1).fit(X, y),
        "repeats private rows in one fit",
    ),
}


@pytest.mark.parametrize("name", CALLS)
def test_every_call_of_scikit_learn_warns_once_and_the_next_call_again(rows, name):
    call, words = CALLS[name]
    for _ in range(2):
        with pytest.warns(PrivacyLeakWarning, match=words) as caught:
            call(rows.X, rows.y)
        (leak,) = [warning for warning in caught if warning.category is PrivacyLeakWarning]
        assert leak.filename == __file__ or "private" in name  # searches show it later


@pytest.mark.parametrize("name", ["GridSearchCV", "cross_val_score", "TunedThresholdClassifierCV"])
def test_an_error_of_it_fails_every_fit(rows, name):
    refusal = pytest.raises((ValueError, PrivacyLeakWarning), match="private rows without a budget")
    with warnings.catch_warnings(action="error", category=PrivacyLeakWarning), refusal:
        CALLS[name][0](rows.X, rows.y)


@pytest.mark.parametrize("kind", [GridSearchCV, cross_validate])
def test_workers_warn_as_often_as_they_fit_since_they_do_not_see_the_call(rows, kind):
    """The limit that the documentation states: threads and processes know only their own fold."""
    options, n_fits = {"cv": 2, "n_jobs": 2}, 2
    if kind is GridSearchCV:
        kind, n_fits = lambda head, X, y, **options: GridSearchCV(head, GRID, **options).fit(X, y), 2 * 2 + 1
    with parallel_config("threading"), pytest.warns(PrivacyLeakWarning, match="without a budget") as caught:
        kind(HEAD, rows.X, rows.y, **options)
    assert len(caught) == n_fits


def test_reports_of_all_fits_remember_what_one_warned_of(rows):
    with pytest.warns(PrivacyLeakWarning):
        found = cross_validate(leaking(), rows.X, rows.y, cv=3, return_estimator=True)
    reports = [pipe["clf"].privacy_ for pipe in found["estimator"]]
    assert {report.leaks for report in reports} == {
        (f"cross_validate: {SCORES}", "StandardScaler: the mean and standard deviation of each column")
    }


class Unfitted(BaseEstimator):
    def fit(self, X, y=None):
        return self

    def transform(self, X):
        return X


class TestAnAid:
    """Looking for a pipeline never stands in the way of a fit."""

    def test_objects_that_break_are_leaks_and_stop_nothing(self, rows):
        class Broken(Unfitted):
            def get_params(self, deep=True):
                raise RuntimeError

            def __repr__(self):
                raise RuntimeError

        head = MixedDPLogisticRegression(classes=[0, 1, 2], random_state=0, **NEAR)
        pipe = Pipeline([("broken", Broken()), ("clf", head)])
        with pytest.warns(PrivacyLeakWarning, match=r"broken \(Broken\): whatever its fit stores"):
            pipe.fit(rows.X, rows.y)
        np.testing.assert_array_equal(pipe["clf"].coef_, head.fit(rows.X, rows.y).coef_)

    def test_objects_that_contain_themselves_are_leaks_and_stop_nothing(self, rows):
        class Loop(Unfitted):
            def __init__(self, one=None, other=None):
                self.one, self.other = one, other

        loop = Loop()
        loop.one = loop.other = loop
        with pytest.warns(PrivacyLeakWarning, match=r"Pipeline: whatever its fit stores"):
            pipe = Pipeline([("loop", loop), ("clf", HEAD)]).fit(rows.X, rows.y)
        assert not pipe["clf"].privacy_.private

    def test_a_check_that_fails_stops_nothing(self, rows, monkeypatch):
        def broken(*args, **kwargs):
            raise RecursionError

        monkeypatch.setattr(_enclosing, "check_pipeline", broken)
        assert hasattr(leaking().fit(rows.X, rows.y)["clf"], "privacy_")

    def test_functions_of_the_same_name_are_no_pipelines(self):
        def fit(self):
            return _enclosing._outermost_fit()

        assert fit(object())[0] is None and fit(np.eye(2))[0] is None
