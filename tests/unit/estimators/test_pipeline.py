"""Private pipelines pass public rows on by themselves, and state what all their steps read."""

import warnings

import numpy as np
import pandas as pd
import pytest
import sklearn
from sklearn.base import clone
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.pipeline import Pipeline
from sklearn.preprocessing import StandardScaler

from skmixdp import MixedDPLogisticRegression, MixedDPRidge, PrivatePipeline, private_pipeline
from skmixdp.algorithms import PAZO
from skmixdp.exceptions import BudgetExceededError, PrivacyLeakWarning
from skmixdp.inspection import ensemble_report, model_card
from skmixdp.model_selection import PrivateSearchCV, WithPublicRows, public_cross_val_score, public_params
from skmixdp.preprocessing import NoisyScaler, PublicOnly, TableEncoder, check_pipeline
from skmixdp.privacy import PrivacyLedger

N_PUBLIC = 150
HEAD = "mixeddplogisticregression"


@pytest.fixture(scope="module")
def table():
    rng = np.random.default_rng(0)
    n = 900
    X = pd.DataFrame({"age": rng.uniform(18, 80, n).round(3), "job": rng.choice(["none", "part", "full"], n)})
    X.loc[::9, "age"] = np.nan
    y = ((X["age"].fillna(50) > 45) & (X["job"] != "none")).to_numpy().astype(int)
    return X[N_PUBLIC:], y[N_PUBLIC:], X[:N_PUBLIC], y[:N_PUBLIC]


@pytest.fixture(params=[False, True], ids=["routing off", "routing on"])
def routing(request):
    with sklearn.config_context(enable_metadata_routing=request.param):
        yield


def model_of(*steps, **parameters):
    return private_pipeline(*steps, MixedDPLogisticRegression(epsilon=3.0, random_state=0, **parameters))


def test_two_lines(table, routing):
    X, y, X_pub, y_pub = table
    model = private_pipeline(TableEncoder(), MixedDPLogisticRegression(epsilon=3.0))
    with warnings.catch_warnings(action="error"):
        model.fit(X, y, X_pub=X_pub, y_pub=y_pub)
    assert model.score(X, y) > 0.9 and model.privacy_.n_public == N_PUBLIC
    assert model.privacy_.leaks == ()
    assert "the number and the names of the columns before preprocessing" in model.privacy_.treated_as_public
    assert model[-1].privacy_ == model.privacy_
    assert len(check_pipeline(model)) == 0
    assert model.feature_names_in_.tolist() == ["age", "job"]


def test_it_equals_a_pipeline_made_by_hand(table):
    X, y, X_pub, y_pub = table
    mine = model_of(TableEncoder()).fit(X, y, X_pub=X_pub, y_pub=y_pub)
    encoder = TableEncoder().fit(X, X_pub=X_pub)
    head = MixedDPLogisticRegression(epsilon=3.0, random_state=0)
    head.fit(encoder.transform(X), y, X_pub=encoder.transform(X_pub), y_pub=y_pub)
    np.testing.assert_array_equal(mine.predict_proba(X), head.predict_proba(encoder.transform(X)))


def test_without_public_rows(table, routing):
    X, y, *_ = table
    encoder = TableEncoder({"age": (18, 80), "job": ["none", "part", "full"]})
    for given in ({}, {"X_pub": None, "y_pub": None}):
        model = model_of(encoder, classes=[0, 1]).fit(X, y, **given)
        assert model.privacy_.n_public == 0 and model.privacy_.leaks == () and model.score(X, y) > 0.75


def test_in_cross_validation_and_searches(table, routing):
    X, y, X_pub, y_pub = table
    params = public_params(X_pub, y_pub)
    model = model_of(TableEncoder())
    with warnings.catch_warnings(action="ignore", category=PrivacyLeakWarning):
        assert cross_val_score(model, X, y, cv=3, params=params).mean() > 0.85
        search = GridSearchCV(model, {f"{HEAD}__epsilon": [1.0, 3.0], "tableencoder__n_hashed": [4]}, cv=2)
        search.fit(X, y, **params)
    assert isinstance(search.best_estimator_, PrivatePipeline) and search.score(X, y) > 0.85
    private = PrivateSearchCV(model, {f"{HEAD}__n_steps": [10, 20]}, epsilon=5.0, strategy="grid")
    private.set_params(estimator=clone(model).set_params(**{f"{HEAD}__random_state": None}))
    assert private.fit(X, y, X_pub=X_pub, y_pub=y_pub).score(X, y) > 0.8
    words = private.privacy_.treated_as_public
    assert "the number and the names of the columns before preprocessing" in words
    assert public_cross_val_score(model, X, y, **params).mean() > 0.8
    carried = WithPublicRows(model, X_pub, y_pub).fit(X, y)
    assert carried.score(X, y) > 0.9 and carried.privacy_.n_public == N_PUBLIC


def test_public_rows_as_many_as_private_ones(table, routing):
    X, y, *_ = table
    half = len(X) // 2
    with warnings.catch_warnings(action="ignore", category=PrivacyLeakWarning):
        params = public_params(X[:half], y[:half])
        scores = cross_val_score(model_of(TableEncoder()), X[half:], y[half:], cv=2, params=params)
    assert scores.mean() > 0.85


def test_weights_and_persons_reach_the_head(table, routing):
    X, y, X_pub, y_pub = table
    weights = np.where(y == 1, 1.0, 0.1)
    model = model_of(TableEncoder()).fit(X, y, X_pub=X_pub, y_pub=y_pub, sample_weight=weights)
    rows = [model[0].transform(frame) for frame in (X, X_pub)]
    head = MixedDPLogisticRegression(epsilon=3.0, random_state=0)
    head.fit(rows[0], y, X_pub=rows[1], y_pub=y_pub, sample_weight=weights)
    np.testing.assert_array_equal(model.predict_proba(X), head.predict_proba(rows[0]))
    people = clone(model).fit(X, y, X_pub=X_pub, y_pub=y_pub, groups=np.arange(len(X)) // 2)
    assert people.privacy_.n_private == len(X) // 2
    zeroth = private_pipeline(TableEncoder(), MixedDPLogisticRegression(PAZO("m"), n_steps=5, random_state=0))
    zeroth.fit(X, y, X_pub=X_pub, y_pub=y_pub)


def test_other_steps_and_a_regression(table):
    X, y, X_pub, y_pub = table
    numbers = [frame[["age"]].fillna(50).to_numpy() for frame in (X, X_pub)]
    model = private_pipeline(PublicOnly(StandardScaler()), MixedDPRidge(epsilon=3.0))
    model.fit(numbers[0], y, X_pub=numbers[1], y_pub=y_pub)
    assert model.predict(numbers[0]).shape == (len(X),)


def test_several_budgets_add_up(table):
    X, y, *_ = table
    rows = X[["age"]].fillna(50).to_numpy()
    model = model_of(NoisyScaler(epsilon=1.0, bounds=(18, 80)), classes=[0, 1]).fit(rows, y)
    assert not hasattr(model, "privacy_")
    assert model[-1].privacy_.epsilon < ensemble_report(model).epsilon
    assert len(ensemble_report(model).members) == 2
    assert "epsilon" in str(model_card(model).to_markdown())


def test_a_leaking_step_is_named(table):
    X, y, X_pub, y_pub = table
    rows = [frame[["age"]].fillna(50).to_numpy() for frame in (X, X_pub)]
    model = model_of(StandardScaler())
    with pytest.warns(PrivacyLeakWarning, match="standardscaler"):
        model.fit(rows[0], y, X_pub=rows[1], y_pub=y_pub)
    assert not model.privacy_.private and "StandardScaler" in model.privacy_.no_guarantee
    assert "NO GUARANTEE" in model._repr_html_()


def test_a_refused_fit_charges_nothing(table):
    X, y, X_pub, y_pub = table
    ledger = PrivacyLedger(":memory:").add_dataset("people", epsilon=0.7, delta=1e-4)
    model = model_of(TableEncoder(), ledger=ledger)
    model.set_params(**{f"{HEAD}__random_state": None, f"{HEAD}__epsilon": 0.6})
    with pytest.raises(ValueError, match=r"X_pub lacks 1 column\(s\) of X"):
        model.fit(X, y, X_pub=X_pub[["job"]], y_pub=y_pub)
    assert ledger.account.n_charges == 0
    model.fit(X, y, X_pub=X_pub, y_pub=y_pub)
    assert ledger.account.n_charges == 1
    with pytest.raises(BudgetExceededError):
        model.fit(X, y, X_pub=X_pub, y_pub=y_pub)


def test_columns_that_are_missing_or_new_at_prediction(table):
    X, y, X_pub, y_pub = table
    model = model_of(TableEncoder()).fit(X, y, X_pub=X_pub, y_pub=y_pub)
    with pytest.raises(ValueError, match=r"X lacks the columns \['job'\] of the table of fit"):
        model.predict(X[["age"]])
    with pytest.raises(ValueError, match=r"X has 1 column\(s\) that the table of fit has not"):
        model.predict(X.assign(more=1))
    np.testing.assert_array_equal(model.predict(X[["job", "age"]]), model.predict(X))


def test_a_diagram_shows_the_guarantee(table):
    X, y, X_pub, y_pub = table
    model = private_pipeline(TableEncoder(), MixedDPLogisticRegression(epsilon=3.0, delta=1e-5))
    assert "A fit will be (3.0, 1e-05)-differentially private" in model._repr_html_()
    model.fit(X, y, X_pub=X_pub, y_pub=y_pub)
    text = model._repr_html_()
    assert "Privacy report" in text and "TableEncoder" in text and "NO GUARANTEE" not in text


@pytest.mark.parametrize("steps", [(), (TableEncoder(),), (TableEncoder(), LogisticRegression())])
def test_the_last_step_is_private(steps):
    with pytest.raises(TypeError, match=r"the last step, .*, must be a private estimator of this library"):
        private_pipeline(*steps)


def test_other_pipelines_are_told_of_it(table):
    X, y, X_pub, y_pub = table
    plain = Pipeline([("encode", TableEncoder()), ("head", MixedDPLogisticRegression())])
    with pytest.raises(ValueError, match=r"make it by skmixdp.private_pipeline\(...\), or call sklearn"):
        WithPublicRows(plain, X_pub, y_pub).fit(X, y)
    found = check_pipeline(plain)
    assert [finding.fix for finding in found] == ["transform_input=['X_pub']"]
