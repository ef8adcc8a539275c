"""One odd private cell changes the type of its column, and nothing that is read of other rows."""

import warnings
from datetime import UTC, date, datetime, timedelta, timezone
from decimal import Decimal

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from skmixdp.preprocessing import TableEncoder

ROME = timezone(timedelta(hours=1))
#: By kind: cells of the rows that must stay, and what may be told about their column.
USUAL = {
    "truth values": ([True, False, True, True], ["number", "boolean", ["True", "False"], [0, 1], "text"]),
    "integers": ([3, 0, 1, 2], ["number", "boolean", (0, 9), ["0", 1, 2], "text", "amount"]),
    "large integers": ([2**53 + 1, 2**60, 7, -(2**62)], ["number", [str(2**60), 7], "text", "category"]),
    "numbers": ([0.1, -0.0, 1.0, 1e300], ["number", (0, 1), ["0.1", "0", 1], "text", "amount"]),
    "codes": ([20200101, 20210630, 19700101, 1], ["date", "datetime", "number", "text", "%Y%m%d"]),
    "texts of codes": (["1.0", "01", "1e2", "7"], ["number", ["1", "100"], "text", "amount", "%d%m%Y"]),
    "texts": (["Ulm", "x y", "1_12", "Rome"], [["Ulm", "1_12"], "text", "number", "category"]),
    "moments": (
        [*(datetime(year, 1, 1) for year in (2020, 2262, 1700)), datetime(1969, 7, 20, 20, 17, 40, 5)],
        ["date", "datetime", ("2000-01-01", "2030-01-01"), ["2020-01-01"], "text", "%d/%m/%Y"],
    ),
    "moments in a zone": (
        [datetime(2020, 1, 1, tzinfo=ROME), datetime(2021, 6, 1, 23, 59, 59, tzinfo=ROME)],
        ["date", "datetime", ["2019-12-31 23:00"], "text"],
    ),
    "dates": ([date(2020, 1, 1), date(1600, 2, 29)], ["date", "datetime", ["2020-01-01"], "text"]),
    "texts of dates": (["2020-01-01", "2020-01-01T06:30", "x"], ["date", "datetime", ["2020-01-01"], "text"]),
    "durations": ([timedelta(1), timedelta(seconds=3.5)], ["number", "text", ["86400"]]),
    "lists": ([[1.0, 2.0], [3, 4], [5, None]], [2, "text", "number"]),
}
ODD = {
    "a gap": None,
    "NaN": float("nan"),
    "NA": pd.NA,
    "NaT": pd.NaT,
    "a word": "SECRET",
    "empty": "",
    "a huge number": 1e308,
    "a tiny number": 1e-300,
    "a subnormal number": 5e-324,
    "infinity": -np.inf,
    "an integer": 7,
    "a huge integer": 10**400,
    "beyond 64 bits": 2**64 + 1,
    "a number": 0.1,
    "a short number": np.float32(0.1),
    "a truth value": True,
    "a complex number": 1j,
    "a decimal": Decimal("1.50"),
    "a date": date(2020, 2, 29),
    "a date beyond range": date(9999, 12, 31),
    "the first date": datetime(1, 1, 1, tzinfo=timezone(timedelta(hours=14))),
    "a moment of NumPy": np.datetime64("9999-12-31T23:59", "s"),
    "a moment beyond Python": np.datetime64("30000-01-01", "s"),
    "a fine moment": pd.Timestamp(2**60 + 1),
    "a duration": timedelta(5),
    "a list": [1, 2],
    "a nested list": [[1], [2, 3]],
    "an array": np.array([1.0, 2.0]),
    "a dict": {"a": 1},
    "a surrogate": "\ud800",
    "bytes": b"\xff",
    "NUL": "a\0b",
    "an amount": "$1,234.50",
    "an object": object(),
}


def inferred(cells):
    """A column with the type that pandas finds for all cells."""
    with warnings.catch_warnings(action="ignore"):
        try:
            return pd.Series(cells)
        except Exception:
            return pd.Series(cells, dtype=object)


def joined(cells, odd):
    """A column with the type of two columns, one below the other."""
    with warnings.catch_warnings(action="ignore"):
        try:
            return pd.concat([inferred(cells), inferred([odd])], ignore_index=True)
        except Exception:
            return pd.Series([*cells, odd], dtype=object)


TYPES = """
float64 Float64 Int64 boolean object category string str int64[pyarrow] double[pyarrow] bool[pyarrow]
string[pyarrow] int64 bool int16 uint8 datetime64[s] datetime64[us] datetime64[ns] timestamp[us][pyarrow]
complex128 timedelta64[ns]
"""
TYPES = [
    *TYPES.split(),
    *("datetime64[us, UTC]", "datetime64[ns, Asia/Tokyo]", "timestamp[ns, Asia/Tokyo][pyarrow]"),
]


def columns_of(cells):
    """The same cells in columns of all types that hold them, by type."""
    found = {"as they are": inferred(cells), "objects": pd.Series(cells, dtype=object)}
    with warnings.catch_warnings(action="ignore"):
        for kind in TYPES:
            try:
                column = inferred(cells).astype(kind)
                alike = all(_same(one, other) for one, other in zip(cells, column.tolist(), strict=True))
            except Exception:  # this type does not hold them
                continue
            if alike:
                found[kind] = column
    for library in ("polars", "pyarrow"):
        module = pytest.importorskip(library)
        try:
            one = module.Series("c", cells) if library == "polars" else module.table({"c": cells})
        except Exception:  # nor does this library
            continue
        found[library] = one
    return found


def _same(one, other):
    """Whether a cell is another, or its text."""
    if isinstance(other, str) and not isinstance(one, str):
        return other == str(one) and not isinstance(one, list)
    try:
        return bool(one == other)
    except (TypeError, ValueError):
        return False


def declared_columns(told):
    """An encoder of a column that is told in several ways, under as many names."""
    columns = {f"c{place}": each for place, each in enumerate(told)}
    return TableEncoder(columns, indicators=True).fit(pd.DataFrame(columns=[*columns]))


def frame_of(column, names):
    if isinstance(column, pd.Series):
        return pd.DataFrame(dict.fromkeys(names, column))
    if hasattr(column, "alias"):  # of polars
        return column.to_frame().select([column.alias(name) for name in names])
    return type(column).from_arrays([column.column(0)] * len(names), names=[*names])


def seen(encoder, column):
    """Encoded rows, without any warning, whatever NumPy is set to."""
    before = dict(vars(encoder))
    with warnings.catch_warnings(action="error"), np.errstate(all="raise"):
        rows = encoder.transform(frame_of(column, encoder.columns_))
    assert vars(encoder) == before
    assert np.all(np.isfinite(rows))
    return rows


@pytest.mark.parametrize("kind", USUAL)
def test_no_odd_cell_changes_how_other_rows_are_read(kind):
    cells, told = USUAL[kind]
    encoder = declared_columns(told)
    rows = seen(encoder, pd.Series(cells, dtype=object))
    for name, odd in ODD.items():
        columns = inferred([*cells, odd]), joined(cells, odd), pd.Series([*cells, odd], dtype=object)
        for column in columns:
            assert seen(encoder, column)[:-1].tobytes() == rows.tobytes(), (name, column.dtype)
        first = inferred([odd, *cells])
        assert seen(encoder, first)[1:].tobytes() == rows.tobytes(), (name, first.dtype)


@pytest.mark.parametrize("kind", USUAL)
def test_columns_of_every_type_are_read_alike(kind):
    cells, told = USUAL[kind]
    encoder = declared_columns(told)
    rows = seen(encoder, pd.Series(cells, dtype=object))
    for name, column in columns_of(cells).items():
        assert seen(encoder, column).tobytes() == rows.tobytes(), name
        if isinstance(column, pd.Series):
            for place in range(len(cells)):
                assert seen(encoder, column[place : place + 1]).tobytes() == rows[place].tobytes(), name


NUMBERS = st.one_of(
    st.booleans(), st.integers(-(2**70), 2**70), st.floats(), st.floats(width=32), st.sampled_from([0, 1, 2])
)


@given(
    st.lists(NUMBERS, min_size=1, max_size=5),
    st.sampled_from(["number", "boolean", (0, 2), [0, 1, "2"], "text"]),
)
def test_numbers_of_any_class(cells, told):
    """A number is the same as an object, a text, and in an array of its own type or of double precision."""
    encoder = declared_columns([told])
    rows = seen(encoder, pd.Series(cells, dtype=object))
    for column in (inferred(cells), pd.Series([repr(cell) for cell in cells]), pd.Series(map(float, cells))):
        assert seen(encoder, column).tobytes() == rows.tobytes()


@given(st.lists(st.datetimes(), min_size=1, max_size=5), st.sampled_from(["datetime", "date", "text"]))
def test_moments_of_any_class(cells, told):
    encoder = declared_columns([told])
    rows = seen(encoder, pd.Series(cells, dtype=object))
    texts = pd.Series([cell.isoformat() for cell in cells], dtype=object)
    aware = pd.Series([cell.replace(tzinfo=UTC) for cell in cells], dtype=object)
    for column in (inferred(cells), pd.Series(np.array(cells, dtype="M8[us]")), texts, aware):
        assert seen(encoder, column).tobytes() == rows.tobytes()


@pytest.mark.parametrize(
    "kind", ["truth values", "integers", "numbers", "texts of codes", "moments", "dates"]
)
def test_public_rows_of_a_joint_table_are_learned_alike(kind):
    """A private cell decides the type of a joint table, and its public part has that type."""
    cells = USUAL[kind][0] * 5
    learned, told = [], []
    for odd in (cells[0], *ODD.values()):
        joint = joined(cells, odd).to_frame("c")
        with warnings.catch_warnings(record=True, action="always") as caught:
            try:
                encoder = TableEncoder().fit(joint, X_pub=joint[:-1])
            except ValueError as error:
                learned.append(str(error))
                continue
        learned.append(encoder.columns_)
        told.append([str(one.message) for one in caught])
    assert all(one == learned[0] for one in learned)
    assert all(one == told[0] for one in told)


#: By kind: cells, and the types of Arrow that hold them.
OF_ARROW = {
    "decimals": ([Decimal("1.50"), Decimal("2.00"), None], ["decimal128(10, 2)", "decimal128(20, 5)"]),
    "integers": ([1, 2, None], ["int8", "uint8", "uint64", "int64", "float16", "float32", "float64"]),
    "large integers": ([2**53 + 1, 2**62, None], ["int64", "uint64"]),
    "texts": (["1", "a", None], ["string", "large_string", "dictionary"]),
    "truth values": ([True, False, None], ["bool_"]),
    "moments": (
        [datetime(2020, 1, 1, 3, 4, 5), datetime(1700, 1, 1), None],
        ["timestamp('s')", "timestamp('ms')", "timestamp('us')", "timestamp('ns')", "timestamp('us', 'UTC')"],
    ),
    "dates": ([date(2020, 1, 1), date(1700, 1, 1), None], ["date32", "date64"]),
    "durations": ([timedelta(1), timedelta(seconds=2), None], ["duration('s')", "duration('us')"]),
    "lists": ([[1.0, 2.0], [3.0, 4.0], None], ["list", "large_list", "fixed", "list of integers"]),
    "gaps": ([None, None], ["null", "string", "float64", "bool_", "timestamp('us')"]),
    "bytes": ([b"a", b"1", None], ["binary"]),
}


def type_of_arrow(arrow, name):
    """A type of pyarrow by its name."""
    lists = {
        "list": lambda: arrow.list_(arrow.float64()),
        "large_list": lambda: arrow.large_list(arrow.float32()),
        "fixed": lambda: arrow.list_(arrow.float32(), 2),
        "list of integers": lambda: arrow.list_(arrow.int8()),
        "dictionary": lambda: arrow.dictionary(arrow.int32(), arrow.string()),
    }
    if name in lists:
        return lists[name]()
    name, _, options = name.partition("(")
    parts = [part.strip(" ')") for part in options.split(",") if part]
    return getattr(arrow, name)(*(int(part) if part.isdigit() else part for part in parts))


@pytest.mark.parametrize("kind", OF_ARROW)
def test_types_of_arrow(kind):
    arrow, polars = pytest.importorskip("pyarrow"), pytest.importorskip("polars")
    cells, types = OF_ARROW[kind]
    many = ["number", "boolean", (0, 5), ["0", "2", "a"], "text", "date", "datetime", "amount", "%d/%m/%Y", 2]
    encoder = declared_columns(many)
    rows = seen(encoder, pd.Series(cells, dtype=object))
    for name in types:
        column = arrow.array(cells, type_of_arrow(arrow, name))
        columns = [arrow.table({"c": column}), column.to_pandas(), polars.from_arrow(column)]
        columns.append(pd.Series(column, dtype=pd.ArrowDtype(column.type)))
        for each in columns:
            assert seen(encoder, each).tobytes() == rows.tobytes(), (name, type(each))
