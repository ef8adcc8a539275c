"""Frames of pandas, polars and pyarrow as people have them, passed to a head without an encoder."""

import datetime
import warnings

import numpy as np
import pandas as pd
import pytest

from skmixdp import MixedDPLogisticRegression, MixedDPRidge
from skmixdp.preprocessing import NoisyScaler

RNG = np.random.default_rng(0)
ROWS = RNG.standard_normal((80, 3))
Y = (ROWS[:, 0] > 0).astype(int)
FRAME = pd.DataFrame(ROWS, columns=["a", "b", "c"])


def fitted(X, known=20, head=None):
    head = head or MixedDPLogisticRegression(epsilon=5.0, delta=1e-3, random_state=0)
    with warnings.catch_warnings(action="ignore"):
        return head.fit(X[known:], Y[known:], X_pub=X[:known], y_pub=Y[:known])


def frames(library, columns):
    """A frame of a library, of columns by name."""
    module = pytest.importorskip(library)
    if library == "pandas":
        return pd.DataFrame({name: pd.Series([*cells]) for name, cells in columns.items()})
    return (module.table if library == "pyarrow" else module.DataFrame)(columns)


@pytest.mark.parametrize("library", ["pandas", "polars", "pyarrow"])
def test_a_head_takes_frames_of_every_library(library):
    X = frames(library, {name: FRAME[name].to_numpy() for name in FRAME})
    head = fitted(X)
    np.testing.assert_array_equal(head.coef_, fitted(FRAME).coef_)
    assert head.feature_names_in_.tolist() == ["a", "b", "c"]
    np.testing.assert_array_equal(head.predict(X), fitted(FRAME).predict(FRAME))
    scaler = NoisyScaler(epsilon=5.0, delta=1e-3, bounds=(-4, 4), random_state=0)
    with pytest.warns(UserWarning, match="random_state"):
        np.testing.assert_array_equal(scaler.fit(X).transform(X), scaler.transform(FRAME))


def lists(kind):
    """A column of lists of one type, three numbers each."""
    arrow = pytest.importorskip("pyarrow")
    values = [[*row] for row in ROWS.astype(np.float32).astype(float)]
    types = {
        "list<float>": arrow.list_(arrow.float32()),
        "list<double>": arrow.list_(arrow.float64()),
        "large_list": arrow.large_list(arrow.float32()),
        "fixed size": arrow.list_(arrow.float32(), 3),
        "list<int8>": arrow.list_(arrow.int8()),
        "list<bool>": arrow.list_(arrow.bool_()),
    }
    if kind in ("list<int8>", "list<bool>"):
        values = [[cell > 0 if kind == "list<bool>" else int(10 * cell) for cell in row] for row in values]
    return values, arrow.array(values, types[kind])


KINDS = ["list<float>", "list<double>", "large_list", "fixed size", "list<int8>", "list<bool>"]


@pytest.mark.parametrize("kind", KINDS)
def test_lists_of_one_length_become_columns(kind):
    arrow, polars = pytest.importorskip("pyarrow"), pytest.importorskip("polars")
    values, column = lists(kind)
    age = np.arange(80.0)
    names = ["age", "emb[0]", "emb[1]", "emb[2]"]
    expected = fitted(pd.DataFrame(np.column_stack([age, values]), columns=names))
    table, fixed = arrow.table({"age": age, "emb": column}), polars.Array(polars.Float64, 3)
    tables = {
        "pyarrow": table,
        "pandas": table.to_pandas(),
        "pandas with types of Arrow": table.to_pandas(types_mapper=pd.ArrowDtype),
        "polars": polars.from_arrow(table),
        "lists": pd.DataFrame({"age": age, "emb": values}),
        "tuples": pd.DataFrame({"age": age, "emb": [(*row,) for row in values]}),
        "arrays": pd.DataFrame({"age": age, "emb": [np.array(row) for row in values]}),
        "arrays of polars": polars.DataFrame({"age": age, "emb": polars.Series(values).cast(fixed)}),
    }
    for which, X in tables.items():
        head = fitted(X)
        assert head.feature_names_in_.tolist() == names, which
        np.testing.assert_array_equal(head.coef_, expected.coef_, err_msg=which)
        assert head.predict(X[:3]).shape == (3,), which
    targets = MixedDPRidge(epsilon=5.0, delta=1e-3, random_state=0)
    assert fitted(table, head=targets).coef_.shape == (4,)


ODD_LISTS = {"shorter": [1.0, 2.0], "longer": [1.0, 2.0, 3.0, 4.0], "empty": [], "missing": None}
ODD_LISTS["with a gap"] = [1.0, None, 3.0]


@pytest.mark.parametrize("library", ["pandas", "polars", "pyarrow"])
@pytest.mark.parametrize("odd", ODD_LISTS)
@pytest.mark.parametrize("place", [0, 30])
def test_lists_of_different_lengths_are_refused(library, odd, place):
    cells = [[*row] for row in ROWS]
    cells[place] = ODD_LISTS[odd]
    X = frames(library, {"emb": cells})
    told = r"^the column 'emb' of X(_pub)? must hold lists of numbers.*np.stack"
    with pytest.raises(ValueError, match=told):
        fitted(X)
    head = fitted(frames(library, {"emb": [[*row] for row in ROWS]}))
    with pytest.raises(ValueError, match=r"^the column 'emb' of X must hold lists"):
        head.predict(X)


def test_lists_of_texts_are_refused():
    X = pd.DataFrame({"tags": [["a", "b"]] * 80})
    with pytest.raises(ValueError, match="the column 'tags' of X must hold lists of numbers"):
        fitted(X)


GAPS = {
    "categories": pd.Categorical([1, 2, None, 1]),
    **{kind: pd.array([1, 2, None, 1], dtype=kind) for kind in ("Int64", "UInt8", "Float64")},
    "truth values": pd.array([True, False, None, True], dtype="boolean"),
    "objects": np.array([1, 2, None, 1], dtype=object),
    "pandas.NA": np.array([1, 2, pd.NA, 1], dtype=object),
    "plain": np.array([1, 2, np.nan, 1]),
    **{kind: pd.Series([1, 2, None, 1]).astype(kind) for kind in ("int64[pyarrow]", "double[pyarrow]")},
    "truth values of Arrow": pd.Series([True, False, None, True]).astype("bool[pyarrow]"),
}


@pytest.mark.parametrize("kind", GAPS)
@pytest.mark.parametrize("alone", [False, True])
def test_missing_numbers_are_refused_with_the_name_of_their_column(kind, alone):
    column = pd.Series(GAPS[kind])
    X = pd.concat([column] * 20, ignore_index=True).to_frame("gap")
    X = X if alone else pd.concat([FRAME, X], axis=1)
    with pytest.raises(ValueError, match=r"^X contains NaN or infinity in the columns \['gap'\]; drop"):
        fitted(X)
    full = X.assign(gap=pd.concat([column[[0, 1]]] * 40, ignore_index=True))
    plain = X.assign(gap=np.tile([float(cell) for cell in column[[0, 1]]], 40))
    head = fitted(full)
    np.testing.assert_array_equal(head.coef_, fitted(plain.astype(float)).coef_)
    with pytest.raises(ValueError, match=r"in the columns \['gap'\]"):
        head.predict(X)


@pytest.mark.parametrize("library", ["polars", "pyarrow"])
@pytest.mark.parametrize("cells", [[1, None], [1.5, None], [True, None], [1.0, float("nan")]])
def test_missing_numbers_of_other_libraries(library, cells):
    X = frames(library, {"a": ROWS[:, 0], "gap": cells * 40})
    with pytest.raises(ValueError, match=r"^X contains NaN or infinity in the columns \['gap'\]"):
        fitted(X)


DATES = {
    "dates": pd.to_datetime(["2020-01-01", "2021-01-01"]),
    "dates with NaT": pd.to_datetime(["2020-01-01", None]),
    "zones": pd.to_datetime(["2020-01-01", "2021-01-01"]).tz_localize("Europe/Rome"),
    "durations": pd.to_timedelta([1, 2], unit="D"),
    "durations with NaT": pd.to_timedelta([1, None], unit="D"),
}


@pytest.mark.parametrize("kind", DATES)
@pytest.mark.parametrize("alone", [False, True])
def test_dates_are_refused_with_the_name_of_their_column(kind, alone):
    X = pd.DataFrame({"when": pd.concat([pd.Series(DATES[kind])] * 40, ignore_index=True)})
    X = X if alone else pd.concat([FRAME, X], axis=1)
    with pytest.raises(ValueError, match=r"^X holds dates or durations in the columns \['when'\]; encode"):
        fitted(X)


@pytest.mark.parametrize("library", ["polars", "pyarrow"])
def test_dates_of_other_libraries_are_refused(library):
    for cell in (datetime.datetime(2020, 1, 1), datetime.timedelta(1)):
        X = frames(library, {"a": ROWS[:, 0], "when": [cell, None] * 40})
        with pytest.raises(ValueError, match=r"^X holds dates or durations in the columns \['when'\]"):
            fitted(X)


def test_columns_of_one_name_are_refused_with_it():
    X = pd.concat([FRAME, FRAME[["b"]]], axis=1)
    with pytest.raises(ValueError, match=r"^X has several columns of the names \['b'\]; give each its own"):
        fitted(X)


def test_tables_of_pyarrow_with_other_columns_are_refused_without_cells():
    arrow = pytest.importorskip("pyarrow")
    X = arrow.table({"a": ROWS[:, 0], "b": ROWS[:, 1]})
    head = MixedDPLogisticRegression(epsilon=5.0, delta=1e-3)
    message = r"^X_pub has the columns \['b', 'a'\] and X has \['a', 'b'\]; pass the same"
    with pytest.raises(ValueError, match=message):
        head.fit(X, Y, X_pub=X.select(["b", "a"])[:20], y_pub=Y[:20])
