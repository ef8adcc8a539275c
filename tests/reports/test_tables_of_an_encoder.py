"""Tables as people have them, encoded: odd cells, amounts, dates, row numbers, codes and lists."""

import warnings

import numpy as np
import pandas as pd
import pytest
from sklearn.ensemble import AdaBoostClassifier, BaggingClassifier
from sklearn.multioutput import ClassifierChain

import skmixdp
from skmixdp import MixedDPLogisticRegression, private_pipeline
from skmixdp.preprocessing import TableEncoder

RNG = np.random.default_rng(0)


def learned(cells, told=None, name="v"):
    """The encoder of a public column, and its warnings."""
    X = pd.DataFrame({name: pd.Series(cells, dtype=object)})
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        encoder = TableEncoder(told).fit(X[:0], X_pub=X)
    return encoder, [str(one.message) for one in caught]


NUMBERS = [f"{number:.2f}" for number in RNG.normal(100, 20, 60)]
ODD_NUMBERS = {
    "question marks": ["?", "?"],
    "words": ["unknown", "n.a.", "missing"],
    "a bound": ["<5", ">100"],
    "an underscore": ["1_000", "1_12", "1_000.5"],
    **{odd: [odd] for odd in ("-", "1,234.50", "$84,835.00 ", "10-20", "12 kg", "1\t2", "12,5", "12 13")},
    "half of them": ["?"] * 59,
}


@pytest.mark.parametrize("odd", ODD_NUMBERS)
def test_numbers_with_odd_cells_are_warned_of_and_can_be_forced(odd):
    cells = [*NUMBERS, *ODD_NUMBERS[odd], None]
    encoder, told = learned(cells)
    assert encoder.columns_["v"].kind in ("category", "text")
    assert len(told) == 1 and "most public cells of the column 'v' are numbers" in told[0]
    assert "columns={'v': 'number'}" in told[0]
    forced, told = learned(cells, {"v": "number"})
    n = len(ODD_NUMBERS[odd])
    said = "are no number and count as missing; correct them, or declare another kind."
    assert told == [f"{n} of {60 + n} public cells of the column 'v' {said}"]
    assert forced.columns_["v"].kind == "number" and forced.columns_["v"].indicator
    assert forced.columns_["v"].center == np.mean([float(number) for number in NUMBERS])
    rows = forced.transform(pd.DataFrame({"v": cells}))
    assert rows[60:].tolist() == [[0, 1]] * (n + 1)
    _, told = learned(cells, {"v": "category"})
    assert told == []


@pytest.mark.parametrize(
    "cells", [["yes", "no", "?"] * 20, ["A1", "B2", "C3"] * 20, ["Q1 2020", "Q2 2020"] * 30]
)
def test_categories_are_not_warned_of(cells):
    assert learned(cells)[1] == []


@pytest.mark.parametrize(
    ("kind", "what"),
    [("number", "number"), ("date", "date"), ("amount", "number"), (3, "list of that length")],
)
def test_a_kind_that_no_public_cell_has_is_refused(kind, what):
    told = f"^20 of 20 public cells of the column 'v' are no {what}; declare ano"
    with pytest.raises(ValueError, match=told):
        learned(["x"] * 20, {"v": kind})


AMOUNTS = {
    "$1,234.50": 1234.5,
    " $84,835.00 ": 84835.0,
    "-$5": -5.0,
    "$-5": -5.0,
    "(1,000)": -1000.0,
    "($3.25)": -3.25,
    "1,234,567": 1234567.0,
    "12,34,567.5": 1234567.5,
    "€ 12": 12.0,
    "12 €": 12.0,
    "£1,000": 1000.0,
    "¥5": 5.0,
    "₹1,00,000": 100000.0,
    "USD 1,200": 1200.0,
    "1,200 EUR": 1200.0,
    "50%": 0.5,
    "12.5 %": 0.125,
    "-3%": -0.03,
    "7": 7.0,
    "1.5e3": 1500.0,
    "+4": 4.0,
    "1\u00a0234": 1234.0,
    ".5": 0.5,
}
NO_AMOUNTS = ["", "-", "?", "x", "$", "%", "1,2", "12,5", "1.234,5", "1-2", "10 kg", "1_000", ",123"]
NO_AMOUNTS += ["1,,000", "()"]


def test_amounts():
    encoder = TableEncoder({"v": "amount"}, indicators=True).fit(pd.DataFrame({"v": []}))
    rows = encoder.transform(pd.DataFrame({"v": [*AMOUNTS]}))
    np.testing.assert_array_equal(rows[:, 0], [*AMOUNTS.values()])
    assert rows[:, 1].tolist() == [0] * len(AMOUNTS)
    assert encoder.transform(pd.DataFrame({"v": NO_AMOUNTS})).tolist() == [[0, 1]] * len(NO_AMOUNTS)


@pytest.mark.parametrize("sign", ["${:,.2f}", "{:,.0f}", "{:.1f}%", "{:,.2f} €", "USD {:,.2f}", "({:,.2f})"])
def test_amounts_are_warned_of(sign):
    cells = [sign.format(number) for number in RNG.lognormal(8, 1, 50)]
    encoder, told = learned(cells)
    assert len(told) == 1 and "columns={'v': 'amount'}" in told[0]
    encoder, told = learned(cells, {"v": "amount"})
    assert told == [] and encoder.columns_["v"].kind == "amount"
    assert np.std(encoder.transform(pd.DataFrame({"v": cells}))) == pytest.approx(1)


DAYS = pd.Timestamp("2001-03-14 15:09:26") + pd.to_timedelta(RNG.integers(0, 9000, 60), "D")
FORMATS = """
%d/%m/%Y|%m/%d/%Y|%d.%m.%Y|%d-%m-%Y|%m-%d-%Y|%d.%m.%y|%m/%d/%y|%Y/%m/%d|%Y.%m.%d|%d-%b-%Y|%d-%b-%y|%d %b %Y
%d %B %Y|%b %d, %Y|%B %d, %Y|%a, %d %b %Y|%b %Y|%m/%Y|%d/%m/%Y %H:%M|%m/%d/%Y %I:%M %p|%d.%m.%Y %H:%M:%S
%a %b %d %H:%M:%S %Y
"""
FORMATS = FORMATS.strip().replace("\n", "|").split("|")


@pytest.mark.parametrize("form", FORMATS)
def test_dates_in_other_formats_are_warned_of_and_told(form):
    cells = [*DAYS.strftime(form), "unknown", None]
    encoder, told = learned(cells)
    assert encoder.columns_["v"].kind in ("category", "text")
    assert len(told) == 1 and f"columns={{'v': {form!r}}}" in told[0], told
    encoder, told = learned(cells, {"v": form})
    (said,) = told
    assert said.startswith("1 of 61 public cells of the column 'v' are no date and count")
    column = encoder.columns_["v"]
    assert column.kind == ("datetime" if "%M" in form else "date") and column.format == form
    days = pd.DataFrame({"v": pd.to_datetime(cells[:60], format=form)})
    expected = TableEncoder({"v": column.kind}).fit(days[:0], X_pub=days).transform(days)
    rows = encoder.transform(pd.DataFrame({"v": cells[:60]}))
    np.testing.assert_allclose(rows[:, :-1], expected, atol=1e-9)


def test_iso_dates_with_odd_cells_are_warned_of():
    cells = [*DAYS.strftime("%Y-%m-%d"), "?", "2020-02-30"]
    _, told = learned(cells)
    assert len(told) == 1 and "columns={'v': 'date'}" in told[0]
    encoder, told = learned(cells, {"v": "date"})
    assert encoder.columns_["v"].kind == "date" and told[0].startswith("2 of 62 public cells")


@pytest.mark.parametrize("form", ["%d", "%", "%H:%M", "day %q", "plain"])
def test_formats_that_tell_no_date_are_refused(form):
    with pytest.raises(ValueError, match="a format of dates such as '%d/%m/%Y'"):
        learned(["x"], {"v": form})


ROW_NUMBERS = {
    "PassengerId": RNG.permutation(891)[:100] + 1,
    "id": RNG.permutation(10**6)[:100],
    "customer_id": RNG.permutation(10**6)[:100],
    "userID": RNG.permutation(10**6)[:100],
    "Unnamed: 0": RNG.permutation(5000)[:50],
    "rownames": RNG.permutation(5000)[:50],
    "any": np.arange(1, 61),
    "sorted": np.sort(RNG.permutation(10**5)[:60]),
    "backwards": np.arange(60)[::-1],
    "shuffled": RNG.permutation(300),
}


@pytest.mark.parametrize("name", ROW_NUMBERS)
@pytest.mark.parametrize("kind", ["int64", "float64", object, str])
def test_row_numbers_are_warned_of(name, kind):
    encoder, told = learned(ROW_NUMBERS[name].astype(kind).tolist(), name=name)
    assert encoder.columns_[name].kind == "number"
    assert len(told) == 1 and f"columns={{{name!r}: 'drop'}}" in told[0]
    for how in ("number", "drop"):
        X = pd.DataFrame({name: ROW_NUMBERS[name], "a": 1.0})
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            TableEncoder({name: how}).fit(X, X_pub=X)


NO_ROW_NUMBERS = {
    "income": lambda rng: rng.lognormal(10.5, 0.6, 200).astype(int),
    "salary": lambda rng: rng.integers(20_000, 120_000, 200),
    "fare": lambda rng: rng.lognormal(8, 1, 300).round(),
    "age": lambda rng: rng.integers(18, 90, 200),
    "year": lambda rng: rng.integers(1950, 2020, 60),
    "population": lambda rng: rng.lognormal(12, 2, 150).astype(int),
    "zip": lambda rng: rng.integers(10_000, 99_999, 200),
    "height": lambda rng: rng.normal(1700, 90, 500).astype(int),
    "few_id": lambda rng: rng.permutation(9),
    "paid": lambda rng: rng.lognormal(10, 1, 100).astype(int),
    "measured": lambda rng: np.sort(rng.random(100)),
}


@pytest.mark.parametrize("name", NO_ROW_NUMBERS)
def test_continuous_integers_are_no_row_numbers(name):
    for seed in range(5):
        assert learned(NO_ROW_NUMBERS[name](np.random.default_rng(seed)).tolist(), name=name)[1] == []


CODES = {
    "underscores": (["1_12", "11_2", "112"], 3, False),
    "exponents": (["1E5", "100000", "2A7"], 2, True),
    "zeros in front": (["01", "1", "001", "x"], 2, True),
    "versions": (["1.1", "1.10", "1.0-rc"], 2, True),
    "beyond 2**53": ([str(2**53), str(2**53 + 1), "x"], 2, True),
    "integers beyond 2**53": ([2**53, 2**53 + 1, "x"], 2, True),
    "words": (["a", "A", "b "], 3, False),
    "cases of truth values": (["True", "TRUE", "maybe"], 2, False),
    "truth and numbers": (["True", "1", "maybe"], 2, True),
}


@pytest.mark.parametrize("codes", CODES)
def test_codes_that_are_one_category_are_warned_of(codes):
    cells, n_categories, warned = CODES[codes]
    for told in (None, {"v": "category"}):
        encoder, messages = learned(cells * 5, told)
        assert len(encoder.columns_["v"].categories) == n_categories
        assert any("spell the same numbers as others" in message for message in messages) == warned


# -- lists -----------------------------------------------------------------------------------


def table_of_lists(n=60, library="pandas", kind=None):
    module = pytest.importorskip(library)
    arrow = pytest.importorskip("pyarrow")
    rng = np.random.default_rng(0)
    cells = rng.integers(-100, 100, (n, 4)).astype(float).tolist()
    lists = arrow.array(cells, kind or arrow.list_(arrow.float32()))
    table = arrow.table({"age": rng.integers(18, 80, n), "emb": lists})
    if library == "polars":
        return module.from_arrow(table)
    return table if library == "pyarrow" else table.to_pandas()


@pytest.mark.parametrize("kind", ["list<float>", "large_list", "list<int8>", "fixed size"])
@pytest.mark.parametrize("library", ["pandas", "polars", "pyarrow"])
def test_lists_become_columns_with_one_scale(library, kind, tmp_path):
    arrow = pytest.importorskip("pyarrow")
    kinds = {
        "list<float>": arrow.list_(arrow.float32()),
        "large_list": arrow.large_list(arrow.float64()),
        "list<int8>": arrow.list_(arrow.int8()),
        "fixed size": arrow.list_(arrow.float32(), 4),
    }
    X = table_of_lists(library=library, kind=kinds[kind])
    encoder = TableEncoder().fit(X, X_pub=X)
    assert encoder.get_feature_names_out().tolist() == ["age", *(f"emb[{place}]" for place in range(4))]
    rows = encoder.transform(X)
    lists = np.array(table_of_lists()["emb"].tolist(), dtype=np.float64)
    np.testing.assert_allclose(rows[:, 1:], (lists - lists.mean()) / lists.std(), atol=1e-12)
    told = TableEncoder({"age": (0, 100), "emb": 4}).fit(X)
    np.testing.assert_array_equal(told.transform(X)[:, 1:], lists)
    y = (lists[:, 0] > 0).astype(int)
    model = private_pipeline(TableEncoder(), MixedDPLogisticRegression(epsilon=8, delta=1e-3, random_state=0))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model.fit(X[20:], y[20:], X_pub=X[:20], y_pub=y[:20]).save(tmp_path / "m.safetensors")
    loaded = skmixdp.load(tmp_path / "m.safetensors")
    np.testing.assert_array_equal(loaded.predict_proba(X), model.predict_proba(X))


def test_lists_that_private_rows_lack_or_that_have_other_lengths_count_as_missing():
    X = table_of_lists()
    encoder = TableEncoder(indicators=["emb"]).fit(X, X_pub=X)
    rows = encoder.transform(X)
    for odd in (None, [1.0], [1.0] * 5, "x", 3, float("nan"), [[1]], ["a", "b", "c", "d"]):
        changed = X.copy()
        changed["emb"] = pd.Series([odd, *X["emb"][1:]], dtype=object)
        others = encoder.transform(changed)
        np.testing.assert_array_equal(others[1:], rows[1:])
        assert others[0, 1:].tolist() == [0, 0, 0, 0, 1]
    changed["emb"] = pd.Series([[1.0, None, np.inf, 2], *X["emb"][1:]], dtype=object)
    assert encoder.transform(changed)[0, 2] == 0 and encoder.transform(changed)[0, 3] == 8


def test_public_lists_of_different_lengths_are_refused():
    X = pd.DataFrame({"emb": [[1.0, 2.0], [3.0]] * 10})
    with pytest.raises(ValueError, match=r"^the column 'emb' of public rows must hold lists of.*np.stack"):
        TableEncoder().fit(X, X_pub=X)


def test_lists_of_words_are_words():
    X = pd.DataFrame({"tags": [["a", "b"], ["c"]] * 10, "age": range(20)})
    encoder = TableEncoder({"age": "number"}).fit(X, X_pub=X)
    assert encoder.columns_["tags"].kind == "category"


# -- messages --------------------------------------------------------------------------------


def test_without_public_rows_the_message_has_a_dict_to_fill_in():
    X = pd.DataFrame({"age": [1], "city": ["Ulm"], "born": ["x"]})
    told = r"pass X_pub or X_unlabeled, or columns=\{'age': ..., 'city': ..., 'born'"
    with pytest.raises(ValueError, match=told):
        TableEncoder().fit(X)
    with pytest.raises(ValueError, match=r"columns=\{'city': ..., 'born': ..., ...\} for all columns"):
        TableEncoder({"age": "number"}).fit(X)


@pytest.mark.parametrize("ensemble", [BaggingClassifier, AdaBoostClassifier, ClassifierChain])
def test_ensembles_that_turn_frames_into_arrays(ensemble):
    """They pass X as an array and X_pub as it is; the message says how both are alike."""
    rng = np.random.default_rng(0)
    X = pd.DataFrame(rng.standard_normal((80, 4)), columns=list("abcd"))
    y = (X["a"] > 0).astype(int).to_numpy()
    encoder = TableEncoder()
    with pytest.raises(ValueError, match=r"an array without names.*pass X_pub.to_numpy\(\) to them"):
        encoder.fit(X.to_numpy(), y, X_pub=X[:20])
    encoder.fit(X.to_numpy(), y, X_pub=X[:20].to_numpy())
    assert ensemble.__module__.startswith("sklearn")


def test_missing_values_of_every_type_count_as_missing():
    gaps = {
        "category": pd.Categorical([1, 2, None]),
        "Int64": pd.array([1, 2, None], dtype="Int64"),
        "boolean": pd.array([True, False, None], dtype="boolean"),
        "Float64": pd.array([1.5, 2, None], dtype="Float64"),
        "int64[pyarrow]": pd.Series([1, 2, None]).astype("int64[pyarrow]"),
        "dates": pd.to_datetime(["2020-01-01", "2021-01-01", None]),
        "zones": pd.to_datetime(["2020-01-01", "2021-01-01", None], utc=True),
        "durations": pd.to_timedelta([1, 2, None], unit="D"),
        "string": pd.array(["a", "b", None], dtype="string"),
    }
    for name, column in gaps.items():
        X = pd.DataFrame({"v": column})
        encoder = TableEncoder().fit(X, X_pub=pd.concat([X] * 5))
        rows = encoder.transform(X)
        assert rows[:, -1].tolist() == [0, 0, 1], name
        assert np.all(rows[2, :-1] == 0) and np.all(np.isfinite(rows)) and np.any(rows[0] != rows[1]), name


# -- exports ---------------------------------------------------------------------------------


def fitted(X, told=None, **options):
    y = (X["a"] > 0.5).astype(int).to_numpy()
    head = MixedDPLogisticRegression(epsilon=5, delta=1e-3, random_state=0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model = private_pipeline(TableEncoder(told, **options), head)
        return model.fit(X[60:], y[60:], X_pub=X[:60], y_pub=y[:60])


SPELT = [
    *(["True", "False", "maybe"], ["true", "FALSE", "maybe"], [True, False, "maybe"], [1, 0, "maybe"]),
    *([1.0, 2, "x"], ["1", "2", "x"], ["01", "02", "x"], ["1.0", "2", "x", None], [True, False], [0.5, 2.0]),
]


@pytest.mark.parametrize("cells", SPELT, ids=map(repr, SPELT))
def test_categories_are_found_in_scikit_learn_however_cells_spell_them(cells):
    rng = np.random.default_rng(0)
    column = pd.Series([cells[place] for place in rng.integers(0, len(cells), 120)])
    X = pd.DataFrame({"v": column, "a": rng.random(120)})
    model = fitted(X, {"v": "category"})
    np.testing.assert_allclose(model.to_sklearn().predict_proba(X), model.predict_proba(X), atol=1e-12)


def test_exports_of_lists_amounts_and_formats():
    X = table_of_lists(120).assign(a=np.random.default_rng(0).random(120), d="$1", e="31/12/2020")
    model = fitted(X[["a", "emb"]])
    for name, told in (("emb", 4), ("d", "amount"), ("e", "%d/%m/%Y")):
        refusal = f"no form of lists, amounts and formats of dates, as of .*{name!r}"
        with pytest.raises(TypeError, match=refusal):
            fitted(X[["a", name]], {name: told}).to_sklearn()
    runtime = pytest.importorskip("onnxruntime")
    graph = model.to_onnx().SerializeToString()
    session = runtime.InferenceSession(graph, providers=["CPUExecutionProvider"])
    rows = {"a": X[["a"]].to_numpy(), "emb": np.array(X["emb"].tolist(), dtype=np.float64)}
    names = {one.name.split("/")[-1]: one.name for one in session.get_inputs()}
    outputs = session.run(None, {name: rows[plain] for plain, name in names.items()})
    found = next(each for each in outputs if np.ndim(each) == 2)
    np.testing.assert_allclose(found, model.predict_proba(X[["a", "emb"]]), atol=1e-9)
    with pytest.raises(TypeError, match="no form of missing lists, as of the column 'emb'"):
        fitted(X[["a", "emb"]], indicators=["emb"]).to_onnx()
