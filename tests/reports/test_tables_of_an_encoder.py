"""Tables as people have them, encoded: odd cells, amounts, dates, row numbers, codes and lists."""

import warnings
from datetime import time, timedelta

import numpy as np
import pandas as pd
import pytest

import skmixdp
from skmixdp import MixedDPLogisticRegression, private_pipeline
from skmixdp.preprocessing import TableEncoder

RNG = np.random.default_rng(0)


def learned(cells, told=None, name="v"):
    """The encoder of a public column, and its warnings."""
    X = pd.DataFrame({name: pd.Series(cells, dtype=object)})
    with warnings.catch_warnings(record=True, action="always") as caught:
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
    reads_more = odd in ("1,234.50", "$84,835.00 ", "12,5")
    assert f"columns={{'v': {'amount' if reads_more else 'number'!r}}}" in told[0]
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
# The last group of digits tells the decimal mark; three digits after a comma are thousands.
AMOUNTS |= {
    "0,75": 0.75,
    "12,50 €": 12.5,
    "1.234,50 €": 1234.5,
    "1.234.567": 1234567.0,
    "1.234": 1.234,
    "1234,567": 1234.567,
    "0,750": 0.75,
    ",5": 0.5,
    "1'234.50": 1234.5,
    "CHF 1\u2019234,50": 1234.5,
    "1 234,50": 1234.5,
    "\u22125": -5.0,
    "\u2212$5.25": -5.25,
    "5.00-": -5.0,
    "5,00 €-": -5.0,
    "1.234,5e3": 1234500.0,
    "-12,5 %": -0.125,
}
NO_AMOUNTS = [
    "",
    "-",
    "?",
    "x",
    "$",
    "%",
    "1-2",
    "10 kg",
    "1_000",
    "1,2,3",
    "1.2.3",
    "12 13",
    "1\t2",
    "12.34.567",
]
NO_AMOUNTS += ["1,,000", "()", "1,234.5.6", "1.23.456,7", "--5", "-5-", "."]


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


COMMAS = {"1.234 €": 1234.0, "1.234": 1234.0, "1,234": 1.234, "12,50 €": 12.5, "1.234,5": 1234.5, "7": 7.0}


def test_amounts_with_decimal_commas():
    """Where a point may be of either kind, public cells tell, or what is declared."""
    private = pd.DataFrame({"v": [*COMMAS]})
    declared = TableEncoder({"v": "decimal comma"}).fit(private)
    np.testing.assert_array_equal(declared.transform(private)[:, 0], [*COMMAS.values()])
    public = pd.DataFrame(
        {"v": [f"{number:,.2f}".translate({44: 46, 46: 44}) for number in range(900, 1100)]}
    )
    learned_ = TableEncoder({"v": "amount"}).fit(private, X_pub=public)
    assert learned_.columns_["v"].format == ","
    np.testing.assert_array_equal(learned_.columns_["v"].read(private["v"])[0], [*COMMAS.values()])
    points = TableEncoder({"v": "amount"}).fit(private, X_pub=pd.DataFrame({"v": ["1,234.50", "0.25"] * 9}))
    assert points.columns_["v"].read(private["v"])[0].tolist() == [1.234, 1.234, 1234.0, 12.5, 1234.5, 7.0]


@pytest.mark.parametrize("sign", ["{}", "{} €", "-{}", "{}-", "EUR {}", "\u2212{}"])
def test_the_kind_that_reads_most_cells_is_advised(sign):
    cells = [sign.format(f"{number:.2f}".replace(".", ",")) for number in RNG.lognormal(1, 1, 60)]
    cells[::3] = [str(place) for place in range(20)]  # a third are plain numbers
    _, told = learned(cells)
    assert len(told) == 1 and "columns={'v': 'amount'}" in told[0]
    encoder, told = learned(cells, {"v": "amount"})
    assert told == [] and not encoder.columns_["v"].read(cells)[1].any()


SECONDS = {
    "08:30": 30600.0,
    "8:30": 30600.0,
    "08:30:15": 30615.0,
    "08:30:15.5": 30615.5,
    "8:30 PM": 73800.0,
    "12:15 a.m.": 900.0,
    "24:00": 86400.0,
    "08:30Z": 30600.0,
    time(8, 30, 0, 500_000): 30600.5,
    "PT1H30M": 5400.0,
    "P3DT4H": 273600.0,
    "P2W": 1209600.0,
    "PT1,5S": 1.5,
    "-PT5M": -300.0,
    "P1Y": 365.2425 * 86400,
    "1 days 02:00:00": 93600.0,
    "1 day, 2:00:00": 93600.0,
    "-1 days +02:00:00": -79200.0,
    timedelta(hours=1): 3600.0,
    pd.Timedelta(minutes=1): 60.0,
    np.timedelta64(5, "s"): 5.0,
    30600: 30600.0,
}
NO_SECONDS = ["25:00", "08:61", "13:00 pm", "1:2", "P", "PT", "PTM", "P1DT", "16:9", "noon", "08:30:15:10"]


def test_times_of_the_day_and_durations_are_seconds():
    encoder = TableEncoder({"v": "number"}, indicators=True).fit(pd.DataFrame({"v": []}))
    rows = encoder.transform(pd.DataFrame({"v": [*SECONDS]}, dtype=object))
    np.testing.assert_allclose(rows[:, 0], [*SECONDS.values()], rtol=1e-15, atol=1e-9)
    assert rows[:, 1].tolist() == [0] * len(SECONDS)
    assert encoder.transform(pd.DataFrame({"v": NO_SECONDS})).tolist() == [[0, 1]] * len(NO_SECONDS)
    bounds = TableEncoder({"v": ("08:00", "18:00")}).fit(pd.DataFrame({"v": []}))
    assert bounds.transform(pd.DataFrame({"v": ["08:00", "13:00", "18:00"]})).tolist() == [[-1], [0], [1]]


@pytest.mark.parametrize(
    "spelt", ["{0:02d}:{1:02d}", "{0:02d}:{1:02d}:30", "PT{0}H{1}M", "{0} days {1:02d}:00:00"]
)
def test_public_times_and_durations_tell_that_a_column_is_one_of_numbers(spelt):
    cells = [spelt.format(place % 24, place % 13) for place in range(50)]
    encoder, told = learned(cells)
    assert told == [] and encoder.columns_["v"].kind == "number"


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
        with warnings.catch_warnings(action="error"):
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
    with warnings.catch_warnings(action="ignore"):
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


def test_ensembles_that_turn_frames_into_arrays():
    """They pass X as an array and X_pub as it is; the message says how both are alike."""
    rng = np.random.default_rng(0)
    X = pd.DataFrame(rng.standard_normal((80, 4)), columns=list("abcd"))
    y = (X["a"] > 0).astype(int).to_numpy()
    encoder = TableEncoder()
    with pytest.raises(ValueError, match=r"an array without names.*pass X_pub.to_numpy\(\) to them"):
        encoder.fit(X.to_numpy(), y, X_pub=X[:20])
    encoder.fit(X.to_numpy(), y, X_pub=X[:20].to_numpy())


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
    with warnings.catch_warnings(action="ignore"):
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
        refusal = f"no form of lists, amounts, times and formats of dates, as of .*{name!r}"
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


def _objects(make):
    return pd.Series([make(place) for place in range(120)], dtype=object)


NOT_EXPORTED = {
    "times": lambda: _objects(lambda i: time(i % 24, i % 60)),
    "spelt times": lambda: _objects(lambda i: f"{i % 24:02d}:{i % 60:02d}"),
    "spelt durations": lambda: _objects(lambda i: f"PT{i}M"),
    "lists of words": lambda: _objects(lambda i: ["a", "b"][: 1 + i % 2]),
    "tuples": lambda: _objects(lambda i: ("a", i % 3)),
    "dicts": lambda: _objects(lambda i: {"a": i % 2}),
    "sets": lambda: _objects(lambda i: {i % 2}),
    "bytes": lambda: _objects(lambda i: b"ab"[: 1 + i % 2]),
    "periods": lambda: pd.Series(pd.period_range("2020-01", periods=120, freq="M")),
    "intervals": lambda: pd.Series(pd.cut(np.arange(120.0), 4)),
}


@pytest.mark.parametrize("kind", NOT_EXPORTED)
def test_columns_that_scikit_learn_cannot_read_are_refused_at_export(kind):
    X = pd.DataFrame({"a": np.random.default_rng(0).random(120), "v": NOT_EXPORTED[kind]()})
    with pytest.raises(TypeError, match=r"no form of lists, amounts, times .*'v'; save the pipeline"):
        fitted(X).to_sklearn()


def test_scikit_learn_reads_the_minus_sign_and_no_time_as_missing():
    X = pd.DataFrame({"a": np.random.default_rng(0).random(120), "v": [f"\u2212{i}" for i in range(120)]})
    model = fitted(X)
    plain = model.to_sklearn()
    np.testing.assert_allclose(plain.predict_proba(X), model.predict_proba(X), atol=1e-12)
    complex_ones = X.assign(v=np.arange(120) / 7 + 0j)
    model = fitted(complex_ones)
    found = model.to_sklearn().predict_proba(complex_ones)
    np.testing.assert_allclose(found, model.predict_proba(complex_ones), rtol=0, atol=1e-12)
    with pytest.raises(ValueError, match="08:30"):
        plain.predict_proba(X[:1].assign(v="08:30"))
