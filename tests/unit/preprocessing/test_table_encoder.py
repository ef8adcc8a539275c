"""What the encoder learns from public rows or is declared, and what it says if it cannot."""

import io
import pickle
import warnings
from datetime import date, datetime, timedelta, timezone
from decimal import Decimal

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from sklearn.base import clone

from skmixdp import MixedDPLogisticRegression, private_pipeline
from skmixdp.preprocessing import TableEncoder
from tests.private_names import days_of, kind_of, number_of, text_of
from tests.rounding import assert_close


class Unread:
    """A private frame whose cells and types nobody may look at."""

    def __init__(self, *names):
        self.columns = list(names)

    def __getattr__(self, name):
        raise AttributeError(f"private rows were asked for {name}")

    def __getitem__(self, key):
        raise AssertionError("private cells were read")


class LikePolars:
    """A frame with what polars and pandas share."""

    def __init__(self, **columns):
        self.columns, self._columns = list(columns), columns
        self.shape = (len(next(iter(columns.values()))), len(columns))

    def __getitem__(self, name):
        cells = self._columns[name]

        class Column:
            dtype = "String"

            def __len__(self):
                return len(cells)

            def to_list(self):
                return cells

        return Column()


def people(n=60):
    rng = np.random.default_rng(0)
    return pd.DataFrame(
        {
            "age": np.where(np.arange(n) % 7 == 0, np.nan, rng.integers(18, 80, n)),
            "city": rng.choice(np.array(["Bonn", "Ulm", None]), n),
            "member": rng.random(n) < 0.5,
            "joined": pd.Timestamp("2020-01-01") + pd.to_timedelta(rng.integers(0, 999, n), "D"),
            "seen": pd.Timestamp("2024-01-01 12:00") + pd.to_timedelta(rng.integers(0, 999, n), "h"),
            "note": [f"word{i} and word{i % 9}" for i in rng.permutation(n)],
            "level": pd.Categorical(rng.integers(1, 4, n)),
        }
    )


def of_polars(X):
    cells = {name: [None if pd.isna(cell) else cell for cell in X[name].tolist()] for name in X}
    return pytest.importorskip("polars").DataFrame(cells)


def encoded(X, columns=None, **options):
    return TableEncoder(columns, **options).fit(X).transform(X)


def test_public_rows_tell_kinds_means_categories_and_gaps():
    X = people()
    with pytest.warns(UserWarning, match="nearly every public row has another text in the column 'note'"):
        encoder = TableEncoder().fit(X, X_pub=X)
    assert {name: column.kind for name, column in encoder.columns_.items()} == {
        "age": "number",
        "city": "category",
        "member": "number",
        "joined": "date",
        "seen": "datetime",
        "note": "text",
        "level": "category",
    }
    rows = pd.DataFrame(encoder.transform(X), columns=encoder.get_feature_names_out())
    known = X["age"].notna().to_numpy()
    np.testing.assert_allclose(rows["age"][known].mean(), 0, atol=1e-12)
    assert_close(rows["age"][known].std(ddof=0), 1)
    assert np.all(rows["age"][~known] == 0)
    np.testing.assert_array_equal(rows["age is missing"], ~known)
    for city in ("Bonn", "Ulm"):
        np.testing.assert_array_equal(rows[f"city={city}"], X["city"] == city)
    np.testing.assert_array_equal(rows["city is missing"], X["city"].isna())
    member = X["member"].astype(float)
    np.testing.assert_allclose(rows["member"], (member - member.mean()) / member.std(ddof=0), atol=1e-12)
    assert encoder.columns_["level"].categories == ("1", "2", "3")
    hours = 2 * np.pi * X["seen"].dt.hour / 24
    np.testing.assert_allclose(rows["seen day sin"], np.sin(hours), atol=1e-9)
    np.testing.assert_allclose(rows["seen day cos"], np.cos(hours), atol=1e-9)
    week = 2 * np.pi * ((X["joined"] - pd.Timestamp(0)).dt.days / 7)
    np.testing.assert_allclose(rows["joined week cos"], np.cos(week), atol=1e-9)
    assert "joined day cos" not in rows and "note is missing" not in rows
    np.testing.assert_allclose(np.linalg.norm(rows.filter(like="note#"), axis=1), 1, atol=1e-12)


def test_nothing_but_the_names_of_private_columns_is_read():
    X_pub = people()[["age", "city"]]
    X = Unread("city", "age")
    encoder = TableEncoder().fit(X, y=X, X_pub=X_pub)
    assert list(encoder.columns_) == ["city", "age"] and encoder.n_features_in_ == 2
    TableEncoder({"age": "number", "city": ["Bonn"]}).fit(X)


def test_declared_columns():
    X = pd.DataFrame({"age": [20, 80, 50, 1e300, None], "city": ["Ulm", "Rome", None, "Bonn", "Ulm"]})
    X = X.assign(grade=[1.0, 2.0, 7.0, None, 3.0], born=["2020-01-01", "2020-12-31", "x", None, "1000-01-01"])
    columns = {
        "age": (20, 80),
        "city": ["Bonn", "Ulm"],
        "grade": [1, 2, 3],
        "born": ("2020-01-01", "2020-12-31"),
    }
    encoder = TableEncoder(columns).fit(X)
    rows = pd.DataFrame(encoder.transform(X), columns=encoder.get_feature_names_out())
    assert rows["age"].tolist() == [-1, 1, 0, 1, 0]
    assert rows["city=Ulm"].tolist() == [1, 0.5, 0.5, 0, 1]
    assert rows["city=Bonn"].tolist() == [0, 0.5, 0.5, 1, 0]
    assert rows["grade=1"].tolist() == [1, 0, 1 / 3, 1 / 3, 0]
    assert rows["born"].tolist() == [-1, 1, 0, 0, -1]
    assert rows["born year sin"][2] == rows["born year sin"][3] == 0 != rows["born year sin"][1]
    assert not any("missing" in name for name in rows)


def test_declared_columns_without_bounds_keep_their_unit_and_texts_are_hashed():
    X = pd.DataFrame(
        {"a": [1.0, -np.inf, None], "b": ["x y", "y", None], "c": ["k", "l", "m"], "d": [1, 2, 3]}
    )
    columns = {"a": "number", "b": "text", "c": "category", "d": "drop"}
    rows = encoded(X, columns, n_hashed=8, indicators=["a"])
    assert rows.shape == (3, 2 + 8 + 8)
    assert rows[:, 0].tolist() == [1.0, -9e18, 0.0] and rows[:, 1].tolist() == [0, 0, 1]
    assert np.all(rows[2, 2:10] == 0) and np.count_nonzero(rows[0, 2:10]) >= 1


def test_declarations_come_before_public_cells():
    X = people()
    encoder = TableEncoder({"age": (0, 100), "note": "drop", "level": "number"}).fit(X, X_pub=X)
    assert encoder.columns_["age"].cut == 1 and encoder.columns_["age"].indicator
    assert encoder.columns_["level"].kind == "number" and encoder.columns_["level"].scale < 2
    assert not any(name.startswith("note") for name in encoder.get_feature_names_out())


def test_few_public_numbers_give_a_mean_and_no_scale():
    column = TableEncoder().fit(people(), X_pub=people()[:9].assign(note="a")).columns_["age"]
    assert column.scale == 1 and column.cut == 9e18 and column.center != 0


def test_many_categories_are_hashed():
    X = pd.DataFrame({"a": [f"v{i % 20}" for i in range(100)]})
    assert encoded_by_public(X).shape == (100, 20)
    assert encoded_by_public(X, max_categories=19, n_hashed=4).shape == (100, 4)


def encoded_by_public(X, **options):
    return TableEncoder(**options).fit(X, X_pub=X).transform(X)


def test_columns_that_are_constant_or_empty():
    X = pd.DataFrame({"a": [3.0, 3.0], "b": [np.nan, np.nan], "c": ["x", "x"]})
    with pytest.warns(UserWarning, match="no public row has a value in the column 'b', which is left out"):
        rows = encoded_by_public(X)
    assert rows.tolist() == [[0, 1], [0, 1]]
    rounded = pd.DataFrame({"a": [0.1] * 11})  # whose mean is not 0.1
    assert TableEncoder().fit(rounded, X_pub=rounded).columns_["a"].scale == 1


def test_a_declared_type_counts_only_where_it_occurs():
    """Categories of a dtype that no public row has may come from private rows."""
    X = pd.DataFrame({"a": pd.Categorical(["x", "secret", "y"])})
    assert TableEncoder().fit(X, X_pub=X[::2]).columns_["a"].categories == ("x", "y")
    X_pub = pd.DataFrame({"a": [1, 2]})
    for private in (X_pub, X_pub.astype("category"), X, X.astype(str)):
        assert TableEncoder().fit(private, X_pub=X_pub).columns_["a"].kind == "number"


@pytest.mark.parametrize(
    "dtype", ["float64", "float32", "Int64", "Float64", object, "str", "string", "category"]
)
def test_numbers_of_any_type(dtype):
    X = pd.DataFrame({"a": pd.Series([1, 2, None, 4]).astype(dtype)})
    public = pd.DataFrame({"a": [1.0, 2.0, None, 4.0] * 3})
    expected = TableEncoder().fit(public, X_pub=public)
    np.testing.assert_array_equal(expected.transform(X), expected.transform(public[:4]))
    if dtype != "category":
        learned = TableEncoder().fit(X, X_pub=pd.concat([X] * 3, ignore_index=True))
        assert learned.columns_ == expected.columns_


def test_numbers_have_the_same_bits_whatever_else_is_in_their_column():
    numbers = [0.1, 1 / 3, 2.0**60 + 1, -1e-9]
    rows = encoded(pd.DataFrame({"a": numbers}), {"a": "number"})
    for other in ("x", None, pd.Timestamp(0), 10**30):
        column = pd.Series([*numbers, other], dtype=object).infer_objects()
        np.testing.assert_array_equal(encoded(pd.DataFrame({"a": column}), {"a": "number"})[:4], rows)


@pytest.mark.covering
@pytest.mark.parametrize("other", [1j, 1 + 2j, complex(np.nan, 1), np.complex64(1j)])
@pytest.mark.parametrize("declared", ["number", "boolean", (0, 9), ["1", "2.5"], "text"])
def test_a_complex_number_changes_no_other_row_of_its_column(declared, other):
    usual = pd.DataFrame({"a": [1, 0, 2.5, np.nan, np.inf, 20200101]})
    mixed = pd.DataFrame({"a": pd.concat([usual["a"], pd.Series([other])], ignore_index=True)})
    assert mixed["a"].dtype.kind == "c"
    rows = encoded(mixed, {"a": declared}, indicators=True)
    np.testing.assert_array_equal(rows[:-1], encoded(usual, {"a": declared}, indicators=True))
    np.testing.assert_array_equal(rows[-1], rows[3])  # missing
    np.testing.assert_array_equal(encoded(mixed.to_numpy(), {"x0": declared}, indicators=True), rows)
    if declared == "number":
        public = TableEncoder(indicators=True).fit(mixed, X_pub=mixed.replace(np.inf, 1.0))
        assert public.columns_["a"].kind == "number"


@pytest.mark.parametrize("dtype", ["float32", "Float32", "float16"])
@pytest.mark.parametrize("declared", ["text", ["0.1", "0.10000000149011612"]])
def test_a_text_among_short_numbers_changes_no_other_row(declared, dtype):
    column = pd.Series([0.1, 0.2, 0.1]).astype(dtype)
    mixed = pd.Series([*column[:2], "x"], dtype=object)
    encoder = TableEncoder({"a": declared}).fit(pd.DataFrame({"a": column}))
    alike, other = (encoder.transform(pd.DataFrame({"a": cells})) for cells in (column, mixed))
    np.testing.assert_array_equal(alike[:2], other[:2])


def test_frames_arrays_and_lists_of_the_same_cells():
    cells = {"x0": [1.5, 2.0, None], "x1": ["a", None, "b"]}
    columns = {"x0": (0, 4), "x1": ["a", "b"]}
    expected = encoded(pd.DataFrame(cells), columns)
    rows = [list(row) for row in zip(*cells.values(), strict=True)]
    for X in (LikePolars(**cells), rows, np.array(rows, dtype=object)):
        np.testing.assert_array_equal(encoded(X, columns), expected)


def test_a_date_of_pyarrow_that_python_cannot_hold_is_missing():
    arrow = pytest.importorskip("pyarrow")
    dates = [arrow.table({"a": arrow.array([0, 9, last], arrow.date32())}) for last in (12, 10**7)]
    encoder = TableEncoder(indicators=True).fit(dates[0], X_pub=dates[0])
    usual, late = (encoder.transform(table) for table in dates)
    np.testing.assert_array_equal(late[:2], usual[:2])
    np.testing.assert_array_equal(late[2], encoder.transform(arrow.table({"a": [None]}))[0])


def test_frames_of_polars_reach_the_head():
    """Its frames, labels and ids of persons give the model of pandas, with the name of the ids."""
    polars = pytest.importorskip("polars")
    X = people().drop(columns=["level", "note"])
    frame = of_polars(X)
    y, ids = np.arange(len(X)) % 2, np.arange(len(X)) // 2
    model = private_pipeline(TableEncoder(), MixedDPLogisticRegression(delta=1e-4, random_state=0))
    fits = [
        clone(model).fit(rows, series("y", y), X_pub=rows[:20], y_pub=y[:20], groups=series("patient", ids))
        for rows, series in ((X, lambda name, values: pd.Series(values, name=name)), (frame, polars.Series))
    ]
    np.testing.assert_array_equal(fits[0][-1].coef_, fits[1][-1].coef_)
    assert [fit.privacy_.unit for fit in fits] == ["patient"] * 2
    np.testing.assert_array_equal(fits[1].predict(frame), fits[0].predict(X))


@pytest.mark.parametrize("library", ["polars", "pyarrow"])
def test_frames_of_other_libraries(library):
    module = pytest.importorskip(library)
    X = people().drop(columns=["level", "note"])
    frame = module.Table.from_pandas(X) if library == "pyarrow" else of_polars(X)
    encoder = TableEncoder().fit(X, X_pub=X)
    assert TableEncoder().fit(frame, X_pub=frame).columns_ == encoder.columns_
    np.testing.assert_array_equal(encoder.transform(frame), encoder.transform(X))


def test_several_sources_count_as_one():
    X = people().drop(columns="note")
    one, two = TableEncoder().fit(X, X_pub=X), TableEncoder().fit(X, X_pub=(X[:20], X[20:]))
    assert one.columns_ == two.columns_


def test_rows_without_labels_count_like_those_with_labels():
    X = people().drop(columns="note")
    both = TableEncoder().fit(Unread(*X.columns), X_pub=X[:20], X_unlabeled=X[20:])
    assert both.columns_ == TableEncoder().fit(Unread(*X.columns), X_pub=X).columns_
    alone = TableEncoder().fit(Unread(*X.columns), X_unlabeled=(X[:20], X[20:]))
    assert alone.columns_ == both.columns_
    with pytest.raises(ValueError, match="X_unlabeled has 1 column"):
        TableEncoder().fit(X, X_unlabeled=X.assign(more=1))


def test_a_pipeline_learns_a_table_from_rows_without_labels():
    X = people(200)
    y = (X["city"] == "Ulm").to_numpy()
    model = private_pipeline(
        TableEncoder({"note": "drop"}), MixedDPLogisticRegression(delta=1e-4, classes=[False, True])
    )
    model.fit(X[50:], y[50:], X_unlabeled=X[:50])
    assert model[0].columns_["city"].categories == ("Bonn", "Ulm")
    assert model.privacy_.n_public == 0
    assert "50 rows known to be public without labels" in " ".join(str(model.privacy_).split())


def test_columns_in_any_order_and_clones_and_pickles():
    X = people().drop(columns="note")
    encoder = TableEncoder().fit(X, X_pub=X)
    rows = encoder.transform(X)
    np.testing.assert_array_equal(encoder.transform(X[X.columns[::-1]]), rows)
    np.testing.assert_array_equal(pickle.loads(pickle.dumps(encoder)).transform(X), rows)
    assert not hasattr(clone(encoder), "columns_")
    frame = encoder.set_output(transform="pandas").transform(X)
    assert frame.columns.tolist() == encoder.get_feature_names_out().tolist()


BOTH = {"age": "number", "city": "text"}


@pytest.mark.parametrize(
    ("columns", "message"),
    [
        ({}, r"columns=\{\} does not declare what is in 2 of the 2 columns of X, and there are no public"),
        ({"age": "number"}, "does not declare what is in 1 of the 2 columns of X"),
        ({0: "number", "0": "text"}, "names a column twice; declare each column once"),
        (BOTH | {"cit": ["Ulm"]}, "columns names 'cit', which X does not have; did you mean city"),
        (BOTH | {"age": "float"}, r"columns\['age'\]='float' must be one of 'number', 'boolean'"),
        (BOTH | {"age": (2, 1)}, r"columns\['age'\]=\(2, 1\) must be one of"),
        (BOTH | {"age": ("x", "y")}, r"columns\['age'\]=\('x', 'y'\) must be one of"),
        (BOTH | {"age": (0, 5e-324)}, r"columns\['age'\]=\(0, 5e-324\) must be one of"),
        (BOTH | {"age": (0, np.inf)}, r"columns\['age'\]=\(0, inf\) must be one of"),
        (BOTH | {"city": []}, r"columns\['city'\]=\[\] must be one of"),
        (BOTH | {"city": ["a", "a"]}, r"columns\['city'\]=.* distinct and not missing"),
        (BOTH | {"city": ["a", None]}, r"columns\['city'\]=.* distinct and not missing"),
        ({"age": "drop", "city": "drop"}, "no column of X is left to encode"),
    ],
)
def test_wrong_declarations(columns, message, **options):
    X = people()[["age", "city"]]
    with pytest.raises(ValueError, match=message) as caught:
        TableEncoder(columns, **options).fit(X)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"n_hashed": 0}, "n_hashed=0 must be 'auto' or a whole number from 1 to"),
        ({"max_categories": 0}, "max_categories=0 must be a whole number"),
        ({"indicators": "all"}, "indicators='all' must be 'auto', True, F"),
        ({"indicators": ["a"]}, r"indicators names \['a'\], which X does not"),
    ],
)
def test_wrong_options(options, message):
    test_wrong_declarations(BOTH, message, **options)


def test_columns_is_a_dict():
    with pytest.raises(TypeError, match=r"columns=\['age'\] must be a dict such as"):
        TableEncoder(["age"]).fit(people())


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda X: X.drop(columns="age"), r"X_pub lacks 1 column\(s\) of X; pass the same columns"),
        (lambda X: X.assign(more=1, other=2), r"X_pub has 2 column\(s\) that X has not; pass the same"),
        (lambda X: X.assign(age=np.inf), "public rows have infinite numbers in the column 'age'"),
        (
            lambda X: X.assign(city="x"),
            "60 of 60 public cells of the column 'city' are no truth value; declare",
        ),
        (lambda X: X.set_axis(["age", "age"], axis=1), "X_pub has columns of the same name"),
        (lambda X: X["age"], "X_pub has 1 dimensions and is no table"),
    ],
)
def test_public_rows_that_do_not_fit(change, message):
    X = people()[["age", "city"]]
    with pytest.raises(ValueError, match=message):
        TableEncoder({"city": "boolean"} if "truth" in message else None).fit(X, X_pub=change(X))


def test_no_message_quotes_a_row_that_was_read_as_names():
    X = pd.DataFrame([["4712 Jones", 1]], columns=["4711 Smith", "55000"])
    X_pub = X.set_axis(["name", "income"], axis=1)
    for columns, public in (({}, None), ({"name": "text"}, None), ({}, X_pub), ({"name": "text"}, X_pub)):
        with pytest.raises(ValueError, match="column") as caught:
            TableEncoder(columns).fit(X, X_pub=public)
        assert "Smith" not in str(caught.value) and "55000" not in str(caught.value)


def test_columns_whose_names_are_numbers():
    X = pd.DataFrame({0: [1.0, 2.0], 1: pd.Categorical([1, 2])})
    assert encoded(X, {0: (0, 4), 1: [1, 2]}).tolist() == [[-0.5, 1, 0], [0, 0, 1]]
    assert TableEncoder({0: "number"}).fit(X, X_pub=X).columns_["1"].categories == ("1", "2")


@pytest.mark.parametrize("unit", ["D", "s", "us", "ns", "ps"])
def test_moments_of_any_unit(unit):
    moments = np.array([["2020-01-01"], ["NaT"], ["1970-01-02"]], dtype=f"datetime64[{unit}]")
    lengths = np.array([[86400], [5]], dtype="timedelta64[s]").astype(f"timedelta64[{unit}]")
    if unit == "ps":  # it reaches about 106 days
        moments = moments[1:]
    days = encoded(moments, {"x0": "datetime"}, indicators=True)
    assert days[:, [0, -1]].tolist() == [[18262, 0], [0, 1], [1, 0]][-len(moments) :]
    assert encoded(lengths, {"x0": "number"}).ravel().tolist() == [86400, 0 if unit == "D" else 5]


def test_dates_in_other_formats_that_are_converted_cell_by_cell():
    """As docs/preprocessing.md recommends; with ``parse_dates``, one cell leaves the column as text."""
    usual, mixed = (
        pd.read_csv(io.StringIO("\n".join(["joined", "01.02.2020", "15.03.2021", *more])))
        for more in ([], ["unknown"])
    )
    rows = [
        encoded(
            X.assign(joined=pd.to_datetime(X["joined"], format="%d.%m.%Y", errors="coerce")),
            {"joined": "date"},
        )
        for X in (usual, mixed)
    ]
    np.testing.assert_array_equal(rows[0], rows[1][:2])
    assert rows[0][0, 0] == days_of("2020-02-01")


def test_sparse_rows_and_columns_that_are_missing_or_new_later():
    X = people()[["age", "city"]]
    encoder = TableEncoder().fit(X, X_pub=X)
    with pytest.raises(TypeError, match=r"X is sparse, and cells of tables are dense; pass X.toarray\(\)"):
        encoder.transform(sp.csr_array((2, 2)))
    with pytest.raises(
        ValueError, match=r"X lacks the columns \['city'\] of the table of fit; pass the same"
    ):
        encoder.transform(X[["age"]])
    with pytest.raises(ValueError, match=r"X has 1 column\(s\) that the table of fit has not") as caught:
        encoder.transform(X.assign(secret=1))
    assert "secret" not in str(caught.value)


class Hostile:
    """A cell that raises whatever is done with it."""

    def __getattr__(self, name):
        raise RuntimeError("secret")

    def __str__(self):
        raise RuntimeError("secret")

    def __eq__(self, other):
        raise RuntimeError("secret")

    __hash__ = None


ODD = [
    *(
        *(None, pd.NA, pd.NaT, float("nan"), np.inf, -np.inf, 1e308, -5e-324, 10**400, 2**63, True),
        np.bool_(False),
    ),
    *(
        *(np.float32(0.1), Decimal("1.5"), Decimal("sNaN"), 1j, "", " ", "x", "1e400", "-inf", "nan"),
        *("1_000", "\ud800"),
    ),
    *("2020-01-01", "20200101", "2020-02-30", "10000-01-01", "0001-01-01T00:00+14:00", b"bytes", b"\xff"),
    *(date(1, 1, 1), datetime.max, datetime(2020, 1, 1, tzinfo=timezone(timedelta(hours=14))), timedelta.max),
    *(
        pd.Timestamp.max,
        pd.Timestamp("2020-01-01", tz="Asia/Tokyo"),
        np.datetime64("NaT", "s"),
        pd.Period("2020-01"),
    ),
    *(
        *([1, 2], (1, 2), {"a": 1}, np.array([1.0, 2.0]), np.array(1.0), pd.Series([1]), object(), Hostile()),
        "a\0b",
    ),
    *(np.datetime64("9999-01-01"), np.timedelta64(1, "D"), "True", "FALSE", "é" * 10_000, Hostile, float),
]
TOLD = {
    "number": "number",
    "bounds": (0, 1),
    "boolean": "boolean",
    "date": "date",
    "datetime": "datetime",
    "days": ("2020-01-01", "2021-01-01"),
    "category": ["a", "1"],
    "text": "text",
    "hashed": "category",
}


@pytest.mark.parametrize("odd", ODD, ids=lambda odd: type(odd).__name__)
def test_no_cell_is_refused_or_changes_another_row(odd):
    def frame(cell):
        column = np.empty(3, dtype=object)
        column[0], column[2] = "1", cell
        return pd.DataFrame(dict.fromkeys(TOLD, column), dtype=object)

    encoder = TableEncoder(TOLD, indicators=True).fit(frame("1"))
    usual = encoder.transform(frame("1"))
    with warnings.catch_warnings(action="error"), np.errstate(all="raise"):
        try:
            rows, alone = encoder.transform(frame(odd)), encoder.transform(frame(odd)[2:])
        except Exception as error:
            pytest.fail(f"the fit would end with {error!r}")
    assert rows.shape == usual.shape and rows.dtype == np.float64 and np.all(np.isfinite(rows))
    np.testing.assert_array_equal(rows[:2], usual[:2])
    np.testing.assert_array_equal(rows[2], alone[0])


@pytest.mark.parametrize(
    ("cells", "kind"),
    [
        ([True, None, False], "number"),
        (["true", "FALSE"], "number"),
        ([1, 0, None], "number"),
        ([1, "2", " 3.5 "], "number"),
        ([True, 2], "number"),
        (["2020-01-01", "2021-12-31"], "date"),
        ([date(2020, 1, 1), None], "date"),
        (["2020-01-01T12:00"], "datetime"),
        ([datetime(2020, 1, 1, 6), pd.NaT], "datetime"),
        (["2020-01-01", "x"], "category"),
        (["1", "x"], "category"),
        (["", None, float("nan"), pd.NA], None),
        ([], None),
    ],
)
def test_kinds_follow_from_cells(cells, kind):
    assert kind_of(cells) == kind


def test_cells_are_spelt_alike_whatever_their_type():
    assert [text_of(cell) for cell in (1, 1.0, "1", "01", "1.0", np.int8(1), Decimal(1))] == ["1"] * 7
    assert [text_of(cell) for cell in (True, "true", "TRUE", np.bool_(True), 1, "1.0")] == ["1"] * 6
    days = "2020-01-01", date(2020, 1, 1), pd.Timestamp("2020-01-01"), "2020-01-01 01:00+01:00"
    assert [text_of(cell) for cell in days] == ["2020-01-01"] * 4
    assert [number_of(cell) for cell in (True, "true", 1, "1", 1.0, timedelta(seconds=1))] == [1.0] * 6
    moments = (
        *("2020-01-01", date(2020, 1, 1), datetime(2020, 1, 1), pd.Timestamp("2020-01-01"), "20200101"),
        *(20200101, np.datetime64("2020-01-01"), pd.Timestamp("2020-01-01 01:00", tz="Europe/Berlin")),
    )
    assert {days_of(moment) for moment in moments} == {18262.0}
