"""Plain scikit-learn pipelines agree with the estimators that they were made from."""

import subprocess
import sys

import joblib
import numpy as np
import pytest
from sklearn.exceptions import NotFittedError
from sklearn.utils.validation import check_is_fitted

from skmixdp import MixedDPLogisticRegression

from .conftest import methods_of, model_and_rows


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


def test_odd_rows_agree_too(model_and_odd_rows):
    model, odd = model_and_odd_rows
    found = model.to_sklearn().predict_proba(odd)
    np.testing.assert_allclose(found, model.predict_proba(odd), rtol=1e-9, atol=1e-12)


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


def test_column_names_are_checked(named_columns):
    model, X = named_columns
    plain = model.to_sklearn()
    np.testing.assert_array_equal(plain.predict(X), model.predict(X))
    with pytest.raises(ValueError, match="feature names"):
        plain.predict(X[[*"dcba"]])


def test_bad_rows_and_estimators_that_are_not_fitted_are_refused(digits):
    plain = digits[0].to_sklearn()
    with pytest.raises(NotFittedError):
        MixedDPLogisticRegression().to_sklearn()
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
