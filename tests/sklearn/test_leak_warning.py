"""A head that is fitted behind a step which learned from private rows says so, and how to fix it."""

import subprocess
import sys
import textwrap
import warnings

import numpy as np
import pytest
from joblib import parallel_config
from sklearn.base import BaseEstimator
from sklearn.ensemble import VotingClassifier
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import StandardScaler

from skmixdp import MixedDPLogisticRegression, MixedDPRidge, ZerothOrderDPClassifier
from skmixdp.estimators import _enclosing as _enclosing_pipeline
from skmixdp.exceptions import PrivacyLeakWarning
from skmixdp.model_selection import public_params
from skmixdp.preprocessing import NoisyScaler, PublicOnly, RowNormalizer

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
        ZerothOrderDPClassifier("dpzero", classes=[0, 1, 2], **NEAR),
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
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with pytest.raises(PrivacyLeakWarning):
            pipe.fit(rows.X, rows.y)
    assert not hasattr(pipe["clf"], "privacy_")


def test_cross_validation(rows):
    with pytest.warns(PrivacyLeakWarning, match=LEAK):
        cross_val_score(leaking(), rows.X, rows.y, cv=2)


@pytest.mark.parametrize("n_jobs", [1, 2])
def test_a_grid_search(rows, n_jobs):
    search = GridSearchCV(leaking(), {"clf__epsilon": [1.0]}, cv=2, n_jobs=n_jobs)
    with parallel_config("threading"), pytest.warns(PrivacyLeakWarning, match=LEAK):
        search.fit(rows.X, rows.y)


@pytest.mark.slow
def test_workers_see_the_pipeline_that_they_fit():
    """In other processes, where warnings end on their standard error."""
    code = """
        import numpy as np
        from sklearn.model_selection import cross_val_score
        from sklearn.pipeline import make_pipeline
        from sklearn.preprocessing import StandardScaler
        from skmixdp import MixedDPLogisticRegression
        X = np.random.default_rng(0).normal(size=(60, 3))
        pipe = make_pipeline(StandardScaler(), MixedDPLogisticRegression(delta=1e-3, classes=[0, 1]))
        cross_val_score(pipe, X, np.arange(60) % 2, cv=2, n_jobs=2)
    """
    done = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(code)], capture_output=True, text=True, check=True
    )
    assert "PrivacyLeakWarning" in done.stderr and "standardscaler" in done.stderr


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


def test_public_rows_that_stay_untransformed_are_no_leak_but_a_mistake(routing, rows):
    pipe = Pipeline([("unit", RowNormalizer()), ("clf", MixedDPLogisticRegression(**NEAR))])
    with pytest.warns(UserWarning, match=r"transform_input=\['X_pub'\]") as caught:
        pipe.fit(rows.X, rows.y, X_pub=rows.X_pub, y_pub=rows.y_pub)
    assert not any(issubclass(warning.category, PrivacyLeakWarning) for warning in caught)


class TestSilence:
    """A warning would be an error in these tests."""

    def test_outside_of_a_pipeline(self, rows):
        X = StandardScaler().fit(rows.X_pub).transform(rows.X)
        MixedDPLogisticRegression(classes=[0, 1, 2], **NEAR).fit(X, rows.y)

    @pytest.mark.parametrize(
        "step",
        [RowNormalizer(), NoisyScaler(bounds=(-100, 100), delta=1e-3), "passthrough"],
        ids=["row-wise", "paid", "nothing"],
    )
    def test_safe_steps(self, rows, step):
        head = MixedDPLogisticRegression(classes=[0, 1, 2], **NEAR)
        make_pipeline(step, head).fit(rows.X, rows.y)

    @pytest.mark.parametrize("n_jobs", [1, 2])
    def test_public_steps(self, routing, rows, n_jobs):
        head = MixedDPLogisticRegression(**NEAR)
        pipe = make_pipeline(PublicOnly(StandardScaler()), head, transform_input=["X_pub"])
        params = public_params(rows.X_pub, rows.y_pub)
        pipe.fit(rows.X, rows.y, **params)
        with parallel_config("threading"):
            cross_val_score(pipe, rows.X, rows.y, cv=2, params=params, n_jobs=n_jobs)

    def test_predicting(self, rows):
        with pytest.warns(PrivacyLeakWarning):
            pipe = leaking().fit(rows.X, rows.y)
        pipe.predict(rows.X)


class TestAnAid:
    """Looking for a pipeline never stands in the way of a fit."""

    def test_objects_that_break_are_passed_over(self, rows):
        class Broken(BaseEstimator):
            def get_params(self, deep=True):
                raise RuntimeError

            def fit(self, X, y=None):
                return self

            def transform(self, X):
                return X

        head = MixedDPLogisticRegression(classes=[0, 1, 2], **NEAR)
        pipe = Pipeline([("broken", Broken()), ("clf", head)])
        pipe.fit(rows.X, rows.y)
        assert hasattr(pipe["clf"], "privacy_")

    def test_functions_of_the_same_name_are_no_pipelines(self):
        def fit(self):
            return _enclosing_pipeline._find()

        assert fit(object())[0] is None and fit(np.eye(2))[0] is None

    def test_without_pipelines_there_is_nothing_to_find(self, monkeypatch):
        monkeypatch.delitem(sys.modules, "sklearn.pipeline")
        assert _enclosing_pipeline._find() == (None, 0)

    def test_it_is_quick(self):
        from time import perf_counter

        start = perf_counter()
        for _ in range(100):
            _enclosing_pipeline._find()
        assert (perf_counter() - start) / 100 < 500e-6
