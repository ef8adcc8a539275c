"""Frames of any cells: a row becomes what it is by itself, and nothing is learned from private rows."""

import warnings
from datetime import date, datetime, timedelta

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from skmixdp import MixedDPLogisticRegression, private_pipeline
from skmixdp.preprocessing import TableEncoder
from skmixdp.privacy import PrivacyLedger
from tests.property.test_cells_of_any_type import inferred
from tests.replay import check_neighbours, shown

CELLS = {
    "integers": st.integers(-(2**60), 2**60),
    "numbers": st.floats(allow_nan=True, allow_infinity=False),
    "texts of numbers": st.one_of(
        st.integers().map(str), st.floats().map(repr), st.sampled_from(["01", "1e5", " 7"])
    ),
    "booleans": st.one_of(st.booleans(), st.sampled_from(["true", "False", "TRUE"])),
    "categories": st.sampled_from(["Bonn", "Ulm", "Rome", "1", "True"]),
    "texts": st.text(max_size=20),
    "dates": st.one_of(st.dates(), st.dates().map(str), st.just("2020-02-30")),
    "moments": st.datetimes(datetime(1700, 1, 1), datetime(2200, 1, 1)),
    "nothing": st.none(),
}
MISSING = st.sampled_from([None, float("nan"), pd.NA, pd.NaT, ""])
ANY = st.one_of(*CELLS.values(), MISSING, st.just(np.inf), st.binary(max_size=3), st.just(date(1, 1, 1)))


@st.composite
def frames(draw, rows=6):
    """Public and private rows of columns of one kind each, with gaps, and an odd row."""
    public, private, odd = {}, {}, {}
    for place in range(draw(st.integers(1, 4))):
        cells = CELLS[draw(st.sampled_from(sorted(CELLS)))]
        with_gaps = st.one_of(cells, MISSING)
        known = [cell for cell in draw(st.lists(with_gaps, min_size=rows, max_size=rows)) if cell is not None]
        public[f"c{place}"] = pd.Series([*known, *[None] * (rows - len(known))], dtype=object)
        private[f"c{place}"] = draw(st.lists(st.one_of(with_gaps, ANY), min_size=rows, max_size=rows))
        odd[f"c{place}"] = draw(ANY)
    return pd.DataFrame(public), private, odd


def fitted(public, told=None, **options):
    """An encoder by public rows; None if they have nothing to learn from."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of columns in which public rows are empty
        try:
            return TableEncoder(told, **options).fit(public[:0], X_pub=public)
        except ValueError as error:
            assert "no column of X is left" in str(error) or "infinite numbers" in str(error)  # noqa: PT017
            return None


@given(frames(), st.sampled_from(["auto", True, False]))
def test_a_row_becomes_the_same_with_any_others(drawn, indicators):
    public, private, odd = drawn
    encoder = fitted(public, indicators=indicators)
    if encoder is None:
        return
    frame = pd.DataFrame({name: inferred(cells) for name, cells in private.items()})
    changed = pd.DataFrame({name: inferred([*cells[:-1], odd[name]]) for name, cells in private.items()})
    with warnings.catch_warnings(action="error"), np.errstate(all="raise"):
        rows, others = encoder.transform(frame), encoder.transform(changed)
        alone = np.vstack([encoder.transform(frame[i : i + 1]) for i in range(len(frame))])
        backwards = np.ascontiguousarray(encoder.transform(frame[::-1])[::-1])
        objects = encoder.transform(frame.astype(object))
    assert rows.shape == others.shape == (len(frame), len(encoder.get_feature_names_out()))
    assert np.all(np.isfinite(rows)) and np.all(np.isfinite(others))
    assert rows[:-1].tobytes() == others[:-1].tobytes()
    assert rows.tobytes() == objects.tobytes() == alone.tobytes() == backwards.tobytes()


#: Cells whose class or spelling follows from the type of their column.
RETYPED = {
    "durations": [timedelta(1), timedelta(hours=3)],
    "durations of NumPy": [np.timedelta64(1, "D"), np.timedelta64(5, "D")],
    "moments of NumPy": [np.datetime64("2020-01-01"), np.datetime64("2021-01-01T01:00")],
    "intervals": [pd.Interval(0, 1), pd.Interval(1, 2)],
    "zeros": [-0.0, 0.0],
}


@pytest.mark.parametrize("kind", ["number", "datetime", "text"])
@pytest.mark.parametrize("cells", RETYPED.values(), ids=RETYPED)
def test_a_cell_becomes_the_same_in_a_column_of_any_type(cells, kind):
    encoder = TableEncoder({"c": kind}).fit(pd.DataFrame({"c": []}))
    alike = encoder.transform(pd.DataFrame({"c": inferred([*cells, cells[0]])}))[:-1]
    for odd in (None, "SECRET", 1j, [1], np.timedelta64(5, "ns")):
        changed = encoder.transform(pd.DataFrame({"c": inferred([*cells, odd])}))[:-1]
        assert changed.tobytes() == alike.tobytes(), odd


@pytest.mark.parametrize("zone", [None, "Europe/Rome", "without times"])
def test_a_day_that_python_has_not_is_missing(zone):
    polars = pytest.importorskip("polars")
    kinds = ["number", "datetime", "text"]
    if zone == "without times":
        days = polars.Series("c", [18262, 2**31 - 1, -(2**31), None], dtype=polars.Int32).cast(polars.Date)
        kinds.append("date")
    else:
        days = polars.Series("c", [18262, 35804497]).cast(polars.Int64) * 86_400_000
        days = days.cast(polars.Datetime("ms", zone))
    frame = polars.DataFrame({"c": days})
    for kind in kinds:
        encoder = TableEncoder({"c": kind}, indicators=True).fit(frame)
        encoded = encoder.transform(frame)
        assert encoded[0].tobytes() == encoder.transform(frame[:1]).tobytes()
        assert (encoded[1:, -1] == 1).all()


@given(frames())
def test_nothing_is_learned_from_private_rows(drawn):
    public, private, odd = drawn
    encoder = fitted(public)
    if encoder is None:
        return
    for cells in (private, {name: [odd[name]] for name in private}):
        frame = pd.DataFrame({name: inferred(column) for name, column in cells.items()})
        with warnings.catch_warnings(action="ignore"):
            learned = TableEncoder().fit(frame, X_pub=public)
        assert learned.columns_ == encoder.columns_


@given(frames())
def test_kinds_do_not_depend_on_the_types_of_public_columns(drawn):
    """A joint frame has types that private rows decide, and its public part keeps them."""
    public, _, _ = drawn
    encoder = fitted(public)
    if encoder is None:
        return
    typed = pd.DataFrame({name: inferred(public[name].tolist()) for name in public})
    assert fitted(typed).columns_ == encoder.columns_


# -- whole fits ------------------------------------------------------------------------------

N, ROW = 60, 23
_rng = np.random.default_rng(0)


def people(n):
    return pd.DataFrame(
        {
            "age": _rng.integers(18, 80, n),
            "city": _rng.choice(["Bonn", "Ulm"], n),
            "born": pd.Timestamp("2000-01-01") + pd.to_timedelta(_rng.integers(0, 999, n), "D"),
            "member": _rng.random(n) < 0.5,
            "note": _rng.choice(["a b", "b c", "c"], n),
        }
    )


PUBLIC, PRIVATE = people(40), people(N)
LABELS = {len(frame): (frame["age"] > 50).to_numpy().astype(int) for frame in (PUBLIC, PRIVATE)}
TOLD = {"age": "number", "city": ["Bonn", "Ulm"], "born": "date", "member": "boolean", "note": "text"}
#: One row, whose cells change the types of all columns or of some.
ODD = {
    "missing": dict.fromkeys(TOLD),
    "texts": dict.fromkeys(TOLD, "SECRET"),
    "infinite": dict.fromkeys(TOLD, np.inf),
    "huge": {"age": 1e300, "city": 10**30, "born": "9999-12-31", "member": 7, "note": "x " * 999},
    "real": {"age": 0.5, "city": 1.5, "born": datetime(1, 1, 1), "member": 0.5, "note": b"x"},
    "another": {"age": 44, "city": "Rome", "born": pd.Timestamp("1999-01-01"), "member": True, "note": "d"},
}


def with_row(frame, cells):
    changed = frame.astype(object)
    for name, cell in cells.items():
        changed.iat[ROW, changed.columns.get_loc(name)] = cell
    return changed.infer_objects()


@pytest.mark.covering
@pytest.mark.parametrize("public", ["none", "some"])
@pytest.mark.parametrize("odd", sorted(ODD))
def test_a_fit_to_a_neighbouring_frame_shows_nothing_else(monkeypatch, odd, public):
    def path_of(frame):
        def path(calls):
            ledger = PrivacyLedger(":memory:").add_dataset("people", epsilon=1e3, delta=1e-3)
            head = MixedDPLogisticRegression(epsilon=300.0, delta=1e-4, classes=[0, 1], ledger=ledger)
            known = {"X_pub": PUBLIC, "y_pub": LABELS[len(PUBLIC)]} if public == "some" else {}
            model = private_pipeline(TableEncoder(None if known else TOLD), head.set_callbacks(calls))
            model.fit(frame, LABELS[N], **known)
            return model[0].columns_, str(model.privacy_), shown(head, ledger)

        return path

    check_neighbours(monkeypatch, path_of(PRIVATE), path_of(with_row(PRIVATE, ODD[odd])), ROW)
