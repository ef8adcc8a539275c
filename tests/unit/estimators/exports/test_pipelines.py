"""Whole pipelines come back from files, and as objects of other libraries, with the same predictions."""

import json
import pickle
import subprocess
import sys
from datetime import date, datetime, timedelta, timezone
from functools import cache

import numpy as np
import onnxruntime
import pandas as pd
import pytest
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.compose import make_column_selector, make_column_transformer
from sklearn.datasets import load_breast_cancer, load_diabetes, load_iris, load_wine
from sklearn.decomposition import PCA
from sklearn.exceptions import InconsistentVersionWarning, NotFittedError
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.impute import SimpleImputer
from sklearn.pipeline import make_pipeline, make_union
from sklearn.preprocessing import (
    FunctionTransformer,
    KBinsDiscretizer,
    MaxAbsScaler,
    MinMaxScaler,
    OneHotEncoder,
    OrdinalEncoder,
    PolynomialFeatures,
    PowerTransformer,
    QuantileTransformer,
    RobustScaler,
    StandardScaler,
)

import skmixdp
from skmixdp import MixedDPLogisticRegression, MixedDPRidge, private_pipeline
from skmixdp.exceptions import PrivacyLeakWarning
from skmixdp.inspection import model_card
from skmixdp.preprocessing import NoisyScaler, PublicOnly, PublicWhitener, RowNormalizer, TableEncoder

from .conftest import there_and_back
from .test_saving import parts, rewritten

BUNDLED = {"iris": load_iris, "wine": load_wine, "cancer": load_breast_cancer, "diabetes": load_diabetes}


@cache
def table_of(name):
    """A frame with mixed columns, its labels or targets, and the number of public rows."""
    rng = np.random.default_rng(0)
    if name in BUNDLED:
        X, y = BUNDLED[name](return_X_y=True, as_frame=True)
        order = rng.permutation(len(X))
        X, y = X.iloc[order, :9].reset_index(drop=True), y.to_numpy()[order]
        X["size"] = pd.cut(X.iloc[:, 0], 3, labels=["small", "middle", "large"]).astype(object)
        X = X.mask(rng.random(X.shape) < 0.03)
        return X, y, len(X) // 4
    n = 600
    X = pd.DataFrame(
        {
            "age": np.where(rng.random(n) < 0.1, np.nan, rng.integers(18, 80, n)),
            "income": rng.lognormal(10, 1, n),
            "job": rng.choice(np.array(["none", "part", "full", None], object), n),
            "code": rng.integers(8, 13, n),
            "member": rng.random(n) < 0.5,
            "born": pd.Timestamp("1960-01-01") + pd.to_timedelta(rng.integers(0, 20000, n), "D"),
            "seen": pd.Timestamp("2020-01-01") + pd.to_timedelta(rng.integers(0, 20000, n), "h"),
        }
    )
    X.loc[::9, "born"] = pd.NaT
    return X, ((X["age"].fillna(50) > 45) & (X["job"] != "none")).to_numpy().astype(int), 150


TABLES = (*BUNDLED, "mixed")


def fitted(steps, X, y, n_public, **parameters):
    kind = MixedDPRidge if len(np.unique(y)) > 10 else MixedDPLogisticRegression
    model = private_pipeline(*steps, kind(epsilon=3.0, random_state=0, **parameters))
    return model.fit(X[n_public:], y[n_public:], X_pub=X[:n_public], y_pub=y[:n_public])


@cache
def of_table(name):
    X, y, n_public = table_of(name)
    return fitted([TableEncoder({"code": "category"} if name == "mixed" else None)], X, y, n_public), X


def shuffled(load):
    """Rows and labels of a data set of scikit-learn in a fixed random order."""
    X, y = load(return_X_y=True)
    order = np.random.default_rng(0).permutation(len(X))
    return X[order], y[order]


def outputs(model, X):
    return model.predict_proba(X) if hasattr(model, "predict_proba") else model.predict(X)


def close(found, expected, atol):
    np.testing.assert_allclose(found, expected, rtol=0, atol=atol * max(1, np.abs(expected).max()))


def fed(model, X, dtype):
    """The inputs of an ONNX model for the rows of a frame or array."""
    if model.graph.input[0].name == "X":
        return {"X": np.asarray(X, dtype)}
    feed = {}
    for each in model.graph.input:
        column = X[each.name]
        if each.type.tensor_type.elem_type == 8:
            feed[each.name] = np.array([["" if pd.isna(cell) else str(cell)] for cell in column], object)
        elif column.dtype.kind == "M":
            feed[each.name] = ((column - pd.Timestamp(0)) / pd.Timedelta(days=1)).to_numpy(dtype)[:, None]
        else:
            feed[each.name] = column.to_numpy(dtype)[:, None]
    return feed


def run(model, X, dtype):
    session = onnxruntime.InferenceSession(model.SerializeToString())
    name = "probabilities" if len(session.get_outputs()) == 2 else "predictions"
    return session.run([name], fed(model, X, dtype))[0]


@pytest.mark.parametrize("name", TABLES)
def test_five_tables(name, tmp_path):
    model, X = of_table(name)
    check_everywhere(model, X, tmp_path)
    loaded = skmixdp.load(tmp_path / "model.safetensors")
    assert loaded.privacy_ == model.privacy_ and repr(loaded) == repr(model)
    assert str(model_card(loaded)) == str(model_card(model))


@pytest.mark.parametrize("name", BUNDLED)
def test_single_precision(name):
    model, X = of_table(name)
    close(run(model.to_onnx(dtype="float32"), X, np.float32), outputs(model, X), 2e-5)


def numbers():
    return make_pipeline(SimpleImputer(add_indicator=True), StandardScaler()), make_column_selector(
        dtype_include="number"
    )


def one_hot(**options):
    return OneHotEncoder(handle_unknown="ignore", sparse_output=False, **options)


#: Steps for columns of the mixed table; and whether ONNX has them.
OF_COLUMNS = {
    "usual": ([PublicOnly(make_column_transformer(numbers(), (one_hot(), ["job"])))], True),
    "scalers": (
        [
            PublicOnly(
                make_column_transformer(
                    (make_pipeline(SimpleImputer(), RobustScaler()), ["age", "income"]),
                    (MinMaxScaler(clip=True), ["code"]),
                    (MaxAbsScaler(), ["income"]),
                    (one_hot(), ["code"]),
                    ("passthrough", ["code"]),
                    ("drop", ["job"]),
                )
            )
        ],
        True,
    ),
    "others": (
        [
            PublicOnly(
                make_column_transformer(
                    (make_pipeline(SimpleImputer(), PowerTransformer()), ["age"]),
                    (QuantileTransformer(n_quantiles=20), ["income"]),
                    (KBinsDiscretizer(3, quantile_method="averaged_inverted_cdf"), ["income"]),
                    (
                        OrdinalEncoder(
                            handle_unknown="use_encoded_value", unknown_value=-1, encoded_missing_value=-2
                        ),
                        ["job"],
                    ),
                    (one_hot(min_frequency=3), ["job"]),
                    sparse_threshold=0,
                )
            )
        ],
        False,
    ),
    "words": (
        [
            PublicOnly(
                make_column_transformer(
                    (make_pipeline(SimpleImputer(strategy="constant", fill_value="?"), one_hot()), ["job"]),
                    ("passthrough", ["income"]),
                )
            )
        ],
        False,
    ),
}
#: Steps for rows of numbers.
OF_NUMBERS = {
    "own": [PublicOnly(StandardScaler(with_std=False)), PublicWhitener(n_components=3), RowNormalizer()],
    "norms": [RowNormalizer("max"), RowNormalizer("l1")],
    "noisy": [NoisyScaler(epsilon=1.0, bounds=(0, 10), random_state=0)],
    "noisy mean": [NoisyScaler(epsilon=1.0, bounds=(0, 10), with_std=False, random_state=0)],
    "components": [PublicOnly(make_pipeline(MinMaxScaler(), PCA(3)))],
    "union": [PublicOnly(make_union(StandardScaler(with_std=False), make_pipeline(MaxAbsScaler(), PCA(2))))],
    "nothing": ["passthrough"],
}


def check_everywhere(model, X, tmp_path, *, onnx=True):
    expected = outputs(model, X)
    loaded = there_and_back(model, tmp_path)
    np.testing.assert_array_equal(outputs(loaded, X), expected)
    close(outputs(model.to_sklearn(), X), expected, 1e-12)
    if onnx:
        close(run(model.to_onnx(), X, np.float64), expected, 1e-12)
    else:
        with pytest.raises(TypeError, match="to_onnx has no form of the step"):
            model.to_onnx()


@pytest.mark.parametrize("name", OF_COLUMNS)
def test_columns_of_scikit_learn(name, tmp_path):
    steps, onnx = OF_COLUMNS[name]
    X, y, n_public = table_of("mixed")
    check_everywhere(fitted(steps, X.drop(columns=["born", "seen"]), y, n_public), X, tmp_path, onnx=onnx)


@pytest.mark.parametrize("name", OF_NUMBERS)
def test_rows_of_numbers(name, tmp_path):
    X, y = shuffled(load_wine)
    check_everywhere(fitted(OF_NUMBERS[name], X, y, 60), X, tmp_path)


def test_onnx_models_have_the_reports_of_all_steps():
    X, y = shuffled(load_wine)
    for steps, keys in (
        ([RowNormalizer()], {"privacy"}),
        (OF_NUMBERS["noisy"], {"privacy of noisyscaler", "privacy of mixeddplogisticregression"}),
    ):
        model = fitted(steps, X, y, 60)
        reports = {prop.key: json.loads(prop.value) for prop in model.to_onnx().metadata_props}
        assert reports.keys() == keys and all(report["epsilon"] > 0 for report in reports.values())


def test_leaks_go_with_every_copy(tmp_path):
    X, y = shuffled(load_wine)
    with pytest.warns(PrivacyLeakWarning, match="standardscaler"):
        model = fitted([StandardScaler()], X, y, 60)
    loaded = there_and_back(model, tmp_path)
    (entry,) = model.to_onnx().metadata_props
    for text in (str(loaded.privacy_), str(model_card(loaded)), loaded._repr_html_(), entry.value):
        assert "NO GUARANTEE: StandardScaler" in text[:5000]


def test_functions_of_numbers_need_another_form(tmp_path):
    X, y = shuffled(load_iris)
    steps = [PolynomialFeatures(2), PublicOnly(StandardScaler())]
    check_everywhere(fitted(steps, X, y, 60), X, tmp_path, onnx=False)


def test_texts(tmp_path):
    rng = np.random.default_rng(0)
    X = pd.DataFrame({"note": [f"word{i} and {j}" for i, j in rng.integers(0, 99, (300, 2))]})
    X.loc[::7, "note"] = None
    y = np.arange(300) % 2
    model = fitted([TableEncoder()], X, y, 100)
    np.testing.assert_array_equal(outputs(there_and_back(model, tmp_path), X), outputs(model, X))
    close(outputs(model.to_sklearn(), X), outputs(model, X), 1e-12)
    with pytest.raises(
        TypeError, match="no form of hashed words, as of the column 'note' in the step 'tablee"
    ):
        model.to_onnx()
    words = make_column_transformer((TfidfVectorizer(max_features=9), "note"), sparse_threshold=0)
    X = X.fillna("")
    model = fitted([PublicOnly(words)], X, y, 100)
    np.testing.assert_array_equal(outputs(there_and_back(model, tmp_path), X), outputs(model, X))


def test_a_loaded_pipeline_is_fitted_and_saved_again(tmp_path):
    model, X = of_table("iris")
    loaded = there_and_back(model, tmp_path)
    before = parts(tmp_path / "model.safetensors")[1]
    loaded.save(tmp_path / "again.safetensors")
    assert parts(tmp_path / "again.safetensors")[1] == before
    _, y, n_public = table_of("iris")
    loaded.fit(X[n_public:], y[n_public:], X_pub=X[:n_public], y_pub=y[:n_public])
    np.testing.assert_array_equal(outputs(loaded, X), outputs(model, X))


def test_dates_that_were_told_are_saved_as_texts(tmp_path):
    day, zone = pd.Timestamp("2020-01-01"), timezone(timedelta(hours=1))
    told = {
        "a": (day, pd.Timestamp("2021-01-01 06:00")),
        "b": (date(2020, 1, 1), datetime(2021, 1, 1, tzinfo=zone)),
        "c": [day, date(2020, 1, 2)],
        2: (0, 300),
    }
    days = [day + pd.Timedelta(days=k) for k in range(300)]
    X = pd.DataFrame({"a": days, "b": [one.date() for one in days], "c": days, 2: range(300)})
    model = private_pipeline(TableEncoder(told), MixedDPLogisticRegression(classes=[0, 1], random_state=0))
    model.fit(X, X[2] > 150).save(tmp_path / "model")
    loaded = skmixdp.load(tmp_path / "model")
    assert loaded[0].columns["a"] == ("2020-01-01 00:00:00", "2021-01-01 06:00:00")
    assert TableEncoder(loaded[0].columns).fit(X).columns_ == model[0].columns_ == loaded[0].columns_
    np.testing.assert_array_equal(loaded.predict_proba(X), model.predict_proba(X))
    assert model[0].columns == told


@pytest.mark.usefixtures("no_pickle")
def test_nothing_is_unpickled(tmp_path):
    model, X = of_table("wine")
    np.testing.assert_array_equal(outputs(there_and_back(model, tmp_path), X), outputs(model, X))


def test_a_plain_pipeline_is_read_without_this_library(tmp_path):
    model, X = of_table("mixed")
    content = pickle.dumps((model.to_sklearn(), X[:20]))
    (tmp_path / "plain.pkl").write_bytes(content)
    assert b"skmixdp" not in content
    code = (
        "import pickle, sys; sys.modules['skmixdp'] = None; "
        f"model, X = pickle.load(open({str(tmp_path / 'plain.pkl')!r}, 'rb')); "
        "import json; print(json.dumps(model.predict_proba(X).tolist()))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    close(np.array(json.loads(done.stdout)), outputs(model, X[:20]), 1e-12)


class OwnStep(TransformerMixin, BaseEstimator):
    """A transformer of a user."""

    def fit(self, X, y=None):
        return self

    def transform(self, X):
        return X


def test_what_cannot_be_saved_is_named(tmp_path):
    X, y = shuffled(load_iris)
    path = tmp_path / "model.safetensors"
    with pytest.raises(NotFittedError):
        private_pipeline(RowNormalizer(), MixedDPLogisticRegression()).save(path)
    model = fitted([FunctionTransformer(np.log1p)], X, y, 60)
    with pytest.raises(
        TypeError, match=r"steps\['functiontransformer'\]\[1\]\.func is a ufunc, which a saved mod"
    ):
        model.save(path)
    assert np.array_equal(model.to_sklearn().predict(X), model.predict(X))
    with pytest.raises(
        TypeError, match="no form of the step 'functiontransformer', a FunctionTransformer with func=<u"
    ):
        model.to_onnx()
    model = fitted([PublicOnly(OwnStep())], X, y, 60)
    with pytest.raises(
        TypeError, match=r"steps\['publiconly'\].*is a OwnStep, which a saved model cannot hold; s"
    ):
        model.save(path)
    with pytest.raises(TypeError, match="no form of the step 'publiconly', a OwnStep"):
        model.to_onnx()
    nested = PublicOnly(make_pipeline(RowNormalizer(), StandardScaler()))
    with pytest.raises(
        TypeError, match="to_sklearn has no form of a RowNormalizer, in the step 'publiconly'; s"
    ):
        fitted([nested], X, y, 60).to_sklearn()
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (lambda model: model["parameters"]["steps"].clear(), "steps is not a list of named steps"),
        (lambda model: model["parameters"].update(steps=3), "steps is not a list of named steps"),
        (lambda model: model["parameters"]["steps"].pop(), "steps is not a list of named steps"),
        (lambda model: model["attributes"].update(predict=1), "attributes .* are unknown"),
        (lambda model: encoder_of(model)["attributes"].update(columns_=[1]), "columns_ is not a dict"),
        (lambda model: column_of(model).update(kind="pickle"), "kind='pickle'"),
        (lambda model: column_of(model).update(scale=0.0), "scale=0.0"),
        (lambda model: column_of(model).update(n_hashed=10**15), "n_hashed=1000000000000000"),
        (lambda model: encoder_of(model).update(fitted="Popen"), "the class 'Popen' is unknown"),
        (lambda model: model["parameters"]["steps"][-1]["tuple"][1]["attributes"].pop("coef_"), "coef_"),
    ],
)
def test_forged_files_are_refused(tmp_path, change, words):
    model, _ = of_table("iris")
    model.save(tmp_path / "model.safetensors")
    rewritten(tmp_path / "model.safetensors", lambda content, arrays: change(content))
    with pytest.raises(ValueError, match=words):
        skmixdp.load(tmp_path / "model.safetensors")


def encoder_of(model):
    return model["parameters"]["steps"][0]["tuple"][1]


def column_of(model):
    return encoder_of(model)["attributes"]["columns_"]["dict"][0][1]["values"]


def test_another_version_of_scikit_learn_warns(tmp_path):
    X, y = shuffled(load_iris)
    path = tmp_path / "model.safetensors"
    fitted([PublicOnly(StandardScaler())], X, y, 60).save(path)
    rewritten(path, lambda content, arrays: content["written_with"].update({"scikit-learn": "1.2.3"}))
    with pytest.warns(InconsistentVersionWarning, match=r"StandardScaler from version 1\.2\.3"):
        skmixdp.load(path)
