"""PublicOnly learns from public rows and from nothing else."""

import pickle

import numpy as np
import pandas as pd
import pytest
from scipy import sparse
from sklearn.base import BaseEstimator, clone
from sklearn.compose import ColumnTransformer
from sklearn.feature_selection import SelectKBest
from sklearn.pipeline import Pipeline
from sklearn.preprocessing import MaxAbsScaler, Normalizer, OneHotEncoder, StandardScaler, TargetEncoder

from skmixdp import MixedDPLogisticRegression
from skmixdp.model_selection import public_params
from skmixdp.preprocessing import PublicOnly
from tests.rounding import assert_close


@pytest.fixture
def mixed_frames():
    """Frames with a numeric and a text column; a category that only private rows have."""
    X = pd.DataFrame({"age": [30.0, 40.0, 50.0], "city": ["ulm", "bonn", "secret"]})
    X_pub = pd.DataFrame({"age": [20.0, 40.0], "city": ["ulm", "bonn"]})
    return X, X_pub


def by_column():
    return ColumnTransformer(
        [
            ("scale", StandardScaler(), ["age"]),
            ("encode", OneHotEncoder(handle_unknown="ignore", sparse_output=False), ["city"]),
        ]
    )


def test_the_given_transformer_stays_unfitted(rows):
    scaler = StandardScaler()
    fitted = PublicOnly(scaler).fit(rows.X, X_pub=rows.X_pub)
    assert fitted.transformer is scaler and not hasattr(scaler, "mean_")


def test_transform_and_back(rows):
    fitted = PublicOnly(StandardScaler()).fit(rows.X, X_pub=rows.X_pub)
    scaled = fitted.transform(rows.X)
    np.testing.assert_array_equal(scaled, StandardScaler().fit(rows.X_pub).transform(rows.X))
    assert_close(fitted.inverse_transform(scaled), rows.X)
    assert not hasattr(PublicOnly(Normalizer()), "inverse_transform")


def test_sparse_sources_are_joined(rows):
    X_pub = sparse.csr_array(rows.X_pub)
    fitted = PublicOnly(MaxAbsScaler()).fit(sparse.csr_array(rows.X), X_pub=(X_pub[:7], X_pub[7:]))
    assert_close(fitted.transformer_.scale_, np.abs(rows.X_pub).max(axis=0))


def test_labels_go_to_transformers_that_use_them(rows):
    fitted = PublicOnly(SelectKBest(k=2)).fit(rows.X, X_pub=rows.X_pub, y_pub=rows.y_pub)
    expected = SelectKBest(k=2).fit(rows.X_pub, rows.y_pub)
    np.testing.assert_array_equal(fitted.transformer_.scores_, expected.scores_)
    parts = {"X_pub": (rows.X_pub[:7], rows.X_pub[7:]), "y_pub": (rows.y_pub[:7], rows.y_pub[7:])}
    apart = PublicOnly(SelectKBest(k=2)).fit(rows.X, **parts)
    assert_close(apart.transformer_.scores_, expected.scores_)


def test_labels_stay_away_from_transformers_that_take_none(rows):
    class Doubler(BaseEstimator):
        def fit(self, X):
            return self

        def transform(self, X):
            return 2 * X

    fitted = PublicOnly(Doubler()).fit(rows.X, X_pub=rows.X_pub, y_pub=rows.y_pub)
    np.testing.assert_array_equal(fitted.transform(rows.X), 2 * rows.X)
    assert not hasattr(fitted, "set_output") and not hasattr(fitted, "get_feature_names_out")


def test_column_transformer_on_frames(mixed_frames):
    X, X_pub = mixed_frames
    fitted = PublicOnly(by_column()).fit(X, X_pub=X_pub)
    np.testing.assert_array_equal(fitted.feature_names_in_, ["age", "city"])
    names = ["scale__age", "encode__city_bonn", "encode__city_ulm"]
    assert fitted.get_feature_names_out().tolist() == names
    assert_close(fitted.transform(X), [[0, 0, 1], [1, 1, 0], [2, 0, 0]])


@pytest.mark.parametrize("when", ["before", "after"])
def test_set_output(mixed_frames, when):
    X, X_pub = mixed_frames
    transformer = PublicOnly(by_column())
    if when == "before":
        transformer = clone(transformer.set_output(transform="pandas"))
    transformer.fit(X, X_pub=X_pub)
    if when == "after":
        transformer.set_output(transform="pandas")
    out = transformer.transform(X)
    assert isinstance(out, pd.DataFrame)
    assert out.columns.tolist() == transformer.get_feature_names_out().tolist()


def test_pipeline_from_frame_to_head(routing, mixed_frames):
    X, X_pub = (pd.concat([frame] * 20, ignore_index=True) for frame in mixed_frames)
    rng = np.random.default_rng(0)
    X["age"] += rng.normal(size=len(X))
    y, y_pub = (X["age"] > 35).to_numpy(), (X_pub["age"] > 35).to_numpy()
    head = MixedDPLogisticRegression(epsilon=5.0)
    pipe = Pipeline([("columns", PublicOnly(by_column())), ("clf", head)], transform_input=["X_pub"])
    pipe.fit(X, y, **public_params(X_pub, y_pub))
    assert pipe["clf"].coef_.shape == (1, 3)
    assert pipe.score(X, y) > 0.8


def test_parameters_clone_and_pickle(rows):
    transformer = PublicOnly(StandardScaler()).set_params(transformer__with_mean=False)
    copy = clone(transformer)
    assert copy.get_params()["transformer__with_mean"] is False
    fitted = copy.fit(rows.X, X_pub=rows.X_pub)
    again = pickle.loads(pickle.dumps(fitted))
    np.testing.assert_array_equal(again.transform(rows.X), fitted.transform(rows.X))
    assert "StandardScaler(with_mean=False)" in repr(fitted)
    assert "StandardScaler" in fitted._repr_html_()


def test_no_labels_for_a_transformer_that_needs_them(rows):
    with pytest.raises(ValueError, match=r"y_pub=None .*TargetEncoder[^\n]*\.$"):
        PublicOnly(TargetEncoder()).fit(rows.X, rows.y, X_pub=rows.X_pub)


@pytest.mark.parametrize("value", ["scale", StandardScaler, MixedDPLogisticRegression(), None])
def test_no_transformer(rows, value):
    with pytest.raises(TypeError, match=r"transformer=.* transformer object[^\n]*\.$"):
        PublicOnly(value).fit(rows.X, rows.y, X_pub=rows.X_pub)
