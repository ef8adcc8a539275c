"""Plain scikit-learn pipelines agree with the estimators that they were made from."""

import pickle
import pickletools
import subprocess
import sys

import joblib
import numpy as np
import pandas as pd
import pytest
from sklearn.exceptions import NotFittedError
from sklearn.utils.validation import check_is_fitted

from skmixdp import MixedDPLogisticRegression

from .conftest import model_and_rows, rows_of


def methods_of(model):
    return [name for name in ("predict_proba", "decision_function", "predict") if hasattr(model, name)]


def test_predictions_agree_to_rounding(model):
    model, X = model
    plain = model.to_sklearn()
    check_is_fitted(plain)
    for rows in (X, X[:1], X.astype(np.float32)):
        for name in methods_of(model):
            found, expected = getattr(plain, name)(rows), getattr(model, name)(rows)
            assert found.shape == expected.shape
            if name == "predict" and hasattr(model, "classes_"):
                assert found.dtype == expected.dtype
                np.testing.assert_array_equal(found, expected)
            else:
                np.testing.assert_allclose(found, expected, rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("name", ["digits", "clipped rows", "learned geometry", "rows as they are"])
def test_odd_rows_agree_too(name):
    model, X = model_and_rows(name)
    odd = np.concatenate([np.zeros((1, X.shape[1])), X[:1] * 1e-12, X[:1] * 1e12, -X[:1]])
    found = model.to_sklearn().predict_proba(odd)
    np.testing.assert_allclose(found, model.predict_proba(odd), rtol=1e-9, atol=1e-12)


def test_a_pickle_names_nothing_of_this_package(model):
    content = pickle.dumps(model[0].to_sklearn())
    assert b"skmixdp" not in content
    modules = {
        argument.split()[0].split(".")[0]
        for opcode, argument, _ in pickletools.genops(pickle.dumps(model[0].to_sklearn(), protocol=2))
        if opcode.name == "GLOBAL"
    }
    assert modules <= {"sklearn", "numpy", "builtins", "copyreg", "_codecs", "copy_reg", "__builtin__"}


def test_a_pickle_predicts_where_the_package_is_missing(tmp_path):
    expected = {}
    for name in ("digits", "clipped rows", "learned geometry", "class names", "two targets"):
        model, X = model_and_rows(name)
        expected[name] = model.to_sklearn(), X, model.predict(X)
    joblib.dump(expected, tmp_path / "models.joblib")
    code = """
import sys
sys.modules["skmixdp"] = None  # importing it fails
import joblib, numpy as np
for model, X, predictions in joblib.load("models.joblib").values():
    found = model.predict(X)
    assert (found == predictions).all() if found.dtype.kind in "iuU" else np.allclose(found, predictions)
assert not any(name.startswith("skmixdp.") for name in sys.modules)
"""
    subprocess.run([sys.executable, "-W", "error", "-c", code], check=True, cwd=tmp_path)


def test_column_names_are_checked():
    X, y, n_public = rows_of("iris")
    X = pd.DataFrame(X, columns=[*"abcd"])
    model = MixedDPLogisticRegression(epsilon=3.0)
    model.fit(X[n_public:], y[n_public:], X_pub=X[:n_public], y_pub=y[:n_public])
    plain = model.to_sklearn()
    np.testing.assert_array_equal(plain.predict(X), model.predict(X))
    with pytest.raises(ValueError, match="feature names"):
        plain.predict(X[[*"dcba"]])


def test_bad_rows_are_refused(digits):
    plain = digits[0].to_sklearn()
    with pytest.raises(ValueError, match="64 features"):
        plain.predict(np.zeros((1, 63)))
    with pytest.raises(ValueError, match="NaN"):
        plain.predict(np.full((1, 64), np.nan))


def test_the_pipeline_shares_no_arrays_with_the_estimator(digits):
    model, X = digits
    plain, before = model.to_sklearn(), model.predict_proba(X)
    plain["head"].coef_[:] = 0
    plain["center"].mean_[:] = 0
    np.testing.assert_array_equal(model.predict_proba(X), before)


def test_an_estimator_that_is_not_fitted_is_refused():
    with pytest.raises(NotFittedError):
        MixedDPLogisticRegression().to_sklearn()
