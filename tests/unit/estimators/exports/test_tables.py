"""Exports of tables read cells as the encoder does, or refuse them."""

import pickle
import warnings
from datetime import UTC, date, datetime, timedelta, timezone
from decimal import Decimal

import numpy as np
import onnxruntime
import pandas as pd
import pytest

from skmixdp import MixedDPLogisticRegression, MixedDPRidge, private_pipeline
from skmixdp.preprocessing import TableEncoder
from tests.private_names import plain_step

ROME = timezone(timedelta(hours=1))

#: Cells of all classes, and texts of all kinds.
CELLS = [
    *(0, 1, 7, -3, 2.0, 0.5, -0.0, 1e16, 1e300, np.inf, 20200229, 20200229.0, 2020.0, 10**400, 2**64 + 1),
    *(True, False, np.True_, np.float32(0.1), np.int8(4), Decimal("1.50"), Decimal("NaN"), np.float64("nan")),
    *(None, pd.NA, pd.NaT, float("nan"), "", " ", "nan", " NaN ", "-nan", "NaT", "None", "NA", "<NA>"),
    *("1", "01", "1.0", " 2 ", "1e2", "1_12", "1,5", "$3", "True", "false ", "inf", "-Infinity", "0x10", "٣"),
    *("2020-01-01", "2020-01-01T06:30", "2020-01-01 06:30:01.5+01:00", "20200101", "2020-W01-1", "2020-01"),
    *("2020-01-01 ", "2020-02-30", "0001-01-01", "9999-12-31", "2020", "+20200101", "12:30", "1 days", "-1"),
    *(
        *("Ulm", "int 1", "NoneType x", "x\ny", "word one two", "2020-01-01 was cold", "3 words", "a\0b"),
        "True x",
    ),
    *(date(2020, 1, 1), datetime(2020, 1, 1, 6, 30), datetime(2020, 6, 1, tzinfo=ROME), date(1700, 1, 1)),
    *(pd.Timestamp("2020-01-01 01:02:03.000004005"), pd.Timestamp("2020-01-01", tz="Asia/Tokyo")),
    *(np.datetime64("2020-01-01"), np.datetime64("NaT", "s"), datetime(2, 1, 1, tzinfo=UTC), date(1, 1, 1)),
    *(timedelta(1), timedelta(seconds=-3.5), pd.Timedelta(3, "s"), np.timedelta64(5, "s")),
    *(1 + 0j, 1j, b"1", [1, 2], {"a": 1}, (1,), object(), pd.Interval(0, 1), "\ud800"),
]
TOLD = [
    *("number", (0, 9), "boolean", "date", "datetime", "text", [1, 0, 2.5], ["True", "Ulm", "0.5", "-3"]),
    *(["Ulm", "int 1", "NoneType x", " x"], ["2020-W", "1,5"], ("2000-01-01", "2030-01-01")),
]


def encoder_of(told, indicators=True):
    return TableEncoder({"c": told}, indicators=indicators).fit(pd.DataFrame(columns=["c"]))


@pytest.mark.slow
@pytest.mark.parametrize("told", TOLD, ids=repr)
def test_each_cell_is_read_as_the_encoder_reads_it_or_refused(told):
    encoder = encoder_of(told)
    plain = plain_step(encoder, "step")
    read = 0
    for cell in CELLS:
        X = pd.DataFrame({"c": pd.Series([cell], dtype=object)})
        try:
            with warnings.catch_warnings(action="ignore"):
                found = plain.transform(X)
        except (TypeError, ValueError, OverflowError):
            continue
        read += 1
        np.testing.assert_allclose(found, encoder.transform(X), rtol=1e-12, atol=1e-9, err_msg=repr(cell))
    assert read > 30


def test_odd_cells_among_others():
    for told in ("number", "text", ["Ulm", "0.5", 2]):
        known = [
            *("1_12", " 2 ", "true", None, "", "Ulm", "word one", True, 0.0, 2, Decimal(2), pd.NA, "NaT"),
            "x\ny",
        ]
        X = pd.DataFrame({"c": pd.Series(known, dtype=object)})
        encoder = encoder_of(told)
        found = plain_step(encoder, "step").transform(X)
        np.testing.assert_allclose(found, encoder.transform(X), rtol=1e-12, atol=1e-9)
        with pytest.raises(ValueError, match="could not convert string to float: 'complex 1j'"):
            plain_step(encoder, "step").transform(pd.DataFrame({"c": [1j]}))


COLUMNS = {
    "nullable truth values": (pd.array([True, None, False], dtype="boolean"), ["boolean", [0, 1], "number"]),
    "nullable integers": (pd.array([1, None, 0], dtype="Int64"), ["boolean", [0, 1], "number", "text"]),
    "integers": (np.array([0, 1, 5]), ["boolean", [0, 1], "number", "text"]),
    "numbers": (np.array([0.5, np.nan, 2.0]), ["number", (0, 1), [0.5]]),
    "durations": (pd.to_timedelta([1, None, -3.5], unit="h"), ["number", (0, 86400)]),
    "moments": (pd.to_datetime(["2020-01-01", "1970-01-01 06:00", None], format="ISO8601"), ["datetime"]),
    "zones": (pd.to_datetime(["2020-01-01", "2021-06-01"]).tz_localize("Asia/Tokyo"), ["date", "datetime"]),
    "texts of dates": (["2020-01-01", "2021-06-01", None, "?"], ["date", "datetime"]),
    "dates": ([date(2020, 1, 1), date(1700, 2, 3), None], ["date"]),
    "texts": (["Ulm and x", None, "Rome"], ["text", ["Rome"]]),
    "categories": (pd.Categorical(["a", None, "b"]), [["a", "b"], "text"]),
    "numbers of categories": (pd.Categorical([1, 2, None]), [["1", 2], "number"]),
    "arrow": (pd.array([1, None, 3], dtype="int64[pyarrow]"), ["number", [1, "3"]]),
    "odd numbers": (["1", "?", "1,234", "$5", None, " 7 "], ["number", ["?", 1, 7]]),
}


@pytest.mark.parametrize("name", COLUMNS)
def test_columns_of_many_types(name):
    cells, told = COLUMNS[name]
    X = pd.DataFrame({"c": cells})
    for each in told:
        for indicators in (True, False):
            encoder = encoder_of(each, indicators)
            found = pickle.loads(pickle.dumps(plain_step(encoder, "step"))).transform(X)
            np.testing.assert_allclose(found, encoder.transform(X), rtol=1e-12, atol=1e-9)


def fitted(X, told=None, head=MixedDPLogisticRegression, **options):
    y = np.arange(len(X)) % 2
    with warnings.catch_warnings(action="ignore"):
        model = private_pipeline(TableEncoder(told, **options), head(epsilon=3.0, random_state=0))
        return model.fit(X[60:], y[60:], X_pub=X[:60], y_pub=y[:60])


RNG = np.random.default_rng(0)


@pytest.mark.parametrize("rows", ["array", "objects", "integer names", "mixed names", "names of arrays"])
def test_columns_without_names(rows):
    numbers = RNG.random((120, 3))
    names = {"integer names": [3, 1, 2], "mixed names": ["a", 1, 2.5], "names of arrays": ["x0", "x1", "x2"]}
    objects = numbers.astype(object)
    objects[:, 1] = RNG.choice(["a", "b", None], 120)
    X = {"array": numbers, "objects": objects}.get(rows)
    X = pd.DataFrame(numbers, columns=names[rows]) if X is None else X
    model = fitted(X)
    np.testing.assert_allclose(model.to_sklearn().predict_proba(X), model.predict_proba(X), atol=1e-12)


def test_categories_that_are_dates_are_refused():
    with pytest.raises(
        TypeError, match=r"no form of categories that are dates, as of the column 'c'; .*lett"
    ):
        plain_step(encoder_of(["2020-01-01", "x"]), "step")


ODD_NAMES = ["coef", "label", "probabilities", "classes", "intercept", "add_43", "constant_0", "mean", "X"]
ODD_NAMES += ["label_", "predictions", "matmul_1", "column_centers", "é", "a b", "whitening_0", "1"]


@pytest.mark.parametrize("head", [MixedDPLogisticRegression, MixedDPRidge])
@pytest.mark.parametrize("n", [3, len(ODD_NAMES)])
def test_names_of_columns_in_onnx(head, n):
    X = pd.DataFrame(RNG.random((120, n)), columns=ODD_NAMES[:n])
    model = fitted(X, head=head)
    session = onnxruntime.InferenceSession(model.to_onnx().SerializeToString())
    assert [one.name for one in session.get_inputs()] == ODD_NAMES[:n]
    outputs = [one.name for one in session.get_outputs()]
    if head is MixedDPRidge:
        assert outputs == ["predictions_" if n > 3 else "predictions"]
    else:
        assert outputs == ["label__" if n > 3 else "label_", "probabilities_"]
    feed = {name: X[[name]].to_numpy() for name in X}
    expected = model.predict_proba(X) if hasattr(model, "predict_proba") else model.predict(X)
    np.testing.assert_allclose(session.run(None, feed)[-1], expected, atol=1e-9)
    np.testing.assert_allclose(session.run(None, feed)[0], model.predict(X), atol=1e-9)


@pytest.mark.parametrize("name", ["", "skmixdp/add_1"])
def test_names_that_onnx_cannot_have(name):
    model = fitted(pd.DataFrame({name: RNG.random(120), "b": 1.0 * np.arange(120)}))
    with pytest.raises(TypeError, match=r"cannot name an input after the column .*; rename it before fit\.$"):
        model.to_onnx()


def test_numbers_that_are_no_truth_values_are_missing_in_onnx():
    X = pd.DataFrame({"a": RNG.random(120), "b": RNG.integers(0, 2, 120)})
    model = fitted(X, {"b": "boolean"}, indicators=["b"])
    session = onnxruntime.InferenceSession(model.to_onnx().SerializeToString())
    odd = pd.DataFrame({"a": 0.5, "b": [0, 1, 2, -1, 0.5, np.nan, np.inf]})
    found = session.run(None, {name: odd[[name]].to_numpy() for name in odd})[1]
    np.testing.assert_allclose(found, model.predict_proba(odd), atol=1e-9)
