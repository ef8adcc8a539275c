"""ONNX models agree with the estimators that they were made from."""

import json
import sys

import numpy as np
import pytest
from sklearn.exceptions import NotFittedError

from skmixdp import MixedDPLogisticRegression
from tests.rounding import assert_close

from .conftest import fitted

onnxruntime = pytest.importorskip("onnxruntime", reason="needs onnxruntime, an extra of the tests")
onnx = pytest.importorskip("onnx", reason="needs skmixdp[onnx]")


def outputs_of(model, X):
    session = onnxruntime.InferenceSession(model.SerializeToString(), providers=["CPUExecutionProvider"])
    names = [output.name for output in session.get_outputs()]
    return dict(zip(names, session.run(None, {"X": X}), strict=True))


def expected_of(model, X):
    if hasattr(model, "classes_"):
        return {"label": model.predict(X), "probabilities": model.predict_proba(X)}
    return {"predictions": model.predict(X)}


def test_double_precision_agrees_to_rounding(model):
    model, X = model
    found, expected = outputs_of(model.to_onnx(), X), expected_of(model, X)
    assert found.keys() == expected.keys()
    for name, values in expected.items():
        assert found[name].shape == values.shape
        if name == "label":
            np.testing.assert_array_equal(found[name], values)
        else:
            np.testing.assert_allclose(found[name], values, rtol=1e-10, atol=1e-10)


def test_single_precision_agrees_to_five_digits(model):
    model, X = model
    found = outputs_of(model.to_onnx(dtype="float32"), X.astype(np.float32))
    for name, values in expected_of(model, X).items():
        if name != "label":
            assert found[name].dtype == np.float32
            np.testing.assert_allclose(found[name], values, rtol=1e-5, atol=1e-5)


def test_odd_rows_agree_too(model_and_odd_rows):
    model, odd = model_and_odd_rows
    found = outputs_of(model.to_onnx(), odd)
    np.testing.assert_allclose(found["probabilities"], model.predict_proba(odd), rtol=1e-9, atol=1e-12)


def test_huge_and_tiny_rows_do_not_overflow(digits):
    model, X = digits
    odd = np.concatenate([X[:1] * 1e200, X[:1] * 1e-200])
    found = outputs_of(model.to_onnx(), odd)
    assert_close(found["probabilities"], model.predict_proba(odd), 1e-9)


def test_the_report_is_in_the_metadata(digits):
    model, _ = digits
    (entry,) = model.to_onnx().metadata_props
    assert entry.key == "privacy"
    assert json.loads(entry.value)["epsilon"] == pytest.approx(model.privacy_.epsilon)


def test_the_model_goes_through_a_file(digits, tmp_path):
    model, X = digits
    onnx.save(model.to_onnx(), tmp_path / "model.onnx")
    session = onnxruntime.InferenceSession(str(tmp_path / "model.onnx"))
    (label,) = session.run(["label"], {"X": X[:5]})
    np.testing.assert_array_equal(label, model.predict(X[:5]))


def test_what_is_refused(digits, monkeypatch):
    model, _ = digits
    with pytest.raises(NotFittedError):
        MixedDPLogisticRegression().to_onnx()
    with pytest.raises(ValueError, match=r"dtype='float16' must be 'float32' or 'float64'"):
        model.to_onnx(dtype="float16")
    monkeypatch.setitem(sys.modules, "onnx", None)
    with pytest.raises(ImportError, match=r"install skmixdp\[onnx\]"):
        model.to_onnx()


def test_labels_without_a_type_in_onnx_are_refused():
    dates = np.array(["2020-01-01", "2021-01-01", "2022-01-01"], dtype="datetime64[D]")
    model = fitted(MixedDPLogisticRegression("noisy-gd"), "iris")
    model.classes_ = dates
    with pytest.raises(TypeError, match="classes of type date have no type in ONNX"):
        model.to_onnx()
