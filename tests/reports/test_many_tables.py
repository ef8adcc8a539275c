"""Two hundred made-up tables with odd cells, written as CSV: no column has a wrong kind without a warning."""

import io
import warnings

import numpy as np
import pandas as pd
import pytest

from skmixdp.preprocessing import TableEncoder

#: Before 3.1, pandas rounds numbers otherwise than Python does.
OLDER = tuple(map(int, pd.__version__.split(".")[:2])) < (3, 1)
EXACT = {"float_precision": "round_trip"} if OLDER else {}
N = 60
STYLES = ("%d/%m/%Y", "%m/%d/%y", "%d.%m.%Y", "%d-%b-%Y", "%Y-%m-%d", "%Y-%m-%d %H:%M")
ODD = ("?", "-", "1,234.50", "$84,835.00 ", "unknown", "n/k", "10-20", "see note")


def days(rng):
    return pd.Timestamp("2001-01-01 06:30") + pd.to_timedelta(rng.integers(0, 9000, N), "D")


#: By name: the cells of a column as texts, and what it holds.
COLUMNS = {
    "count": (lambda rng: rng.poisson(3, N).astype(str), "number"),
    "price": (lambda rng: np.array([f"{x:.2f}" for x in rng.lognormal(3, 1, N)]), "number"),
    "income": (lambda rng: rng.lognormal(10.5, 0.6, N).astype(int).astype(str), "number"),
    "signed": (lambda rng: np.array([repr(x) for x in rng.standard_normal(N).tolist()]), "number"),
    "tiny": (lambda rng: np.array([f"{x:.3e}" for x in rng.lognormal(-20, 3, N)]), "number"),
    "amount": (lambda rng: np.array([f"${x:,.2f}" for x in rng.lognormal(8, 1, N)]), "amount"),
    "share": (lambda rng: np.array([f"{x:.1f}%" for x in rng.uniform(0, 100, N)]), "amount"),
    "member": (lambda rng: rng.choice(["True", "False"], N), "number"),
    "flag": (lambda rng: rng.choice(["0", "1"], N), "number"),
    "city": (lambda rng: rng.choice(["Bonn", "Ulm", "Rome", "São Paulo"], N), "category"),
    "answer": (lambda rng: rng.choice(["yes", "no"], N), "category"),
    "code": (lambda rng: rng.choice(["1_12", "11_2", "A1"], N), "category"),
    **{f"day {one}": (lambda rng, one=one: days(rng).strftime(one).to_numpy(), one) for one in STYLES},
}


def csv_of(seed):
    """A table of some columns with gaps and odd cells in some of them, and which have odd ones."""
    rng = np.random.default_rng(seed)
    table, odd = {}, {}
    for name in rng.choice([*COLUMNS], 4, replace=False).tolist():
        cells = COLUMNS[name][0](rng).astype(object)
        cells[rng.random(N) < rng.choice([0, 0.1])] = ""
        odd[name] = bool(rng.random() < 0.5)
        if odd[name]:
            cells[rng.choice(N, int(rng.integers(1, 6)), replace=False)] = rng.choice(ODD)
        table[name] = cells
    return pd.DataFrame(table).to_csv(index=False), odd


def learned(frame, told=None):
    with warnings.catch_warnings(record=True, action="always") as caught:
        encoder = TableEncoder(told).fit(frame[:0], X_pub=frame)
    return encoder, [str(one.message) for one in caught]


SLOW = [pytest.param(first, marks=pytest.mark.slow) for first in range(20, 200, 20)]


@pytest.mark.parametrize("first", [0, *SLOW])
def test_no_column_has_a_wrong_kind_that_is_not_warned_of(first):
    for seed in range(first, first + 20):
        text, odd = csv_of(seed)
        frames = [
            pd.read_csv(io.StringIO(text), **EXACT),
            pd.read_csv(io.StringIO(text), dtype=str),
            pd.read_csv(io.StringIO(text), dtype=str, keep_default_na=False),
        ]
        found = [learned(frame) for frame in frames]
        encoder, messages = found[0]
        for other, told in found[1:]:
            assert other.columns_ == encoder.columns_ and told == messages, seed
            for frame in frames:
                assert other.transform(frame).tobytes() == encoder.transform(frames[0]).tobytes(), seed
        for name, column in encoder.columns_.items():
            kind = COLUMNS[name][1]
            own = [message for message in messages if f"column {name!r}" in message]
            plain = kind in ("number", "%Y-%m-%d", "%Y-%m-%d %H:%M") and not odd[name]
            usual = {"number": "number", "%Y-%m-%d": "date", "%Y-%m-%d %H:%M": "datetime"}
            if kind == "category" or plain:
                assert column.kind == usual.get(kind, "category") and own == [], (seed, name, own)
            else:
                assert column.kind in ("category", "text") and len(own) == 1, (seed, name, own)
                remedy = {"%Y-%m-%d": "date", "%Y-%m-%d %H:%M": "date"}.get(kind, kind)
                # The kind that reads most cells: odd ones may be amounts.
                remedies = [remedy, "amount"] if kind == "number" else [remedy]
                said = [f"columns={{{name!r}: {each!r}}}" in own[0] for each in remedies]
                assert any(said), (seed, name, own)
                if kind in usual:
                    remedy = usual[kind]
                forced = learned(frames[0], {name: remedy})[0].columns_[name]
                wanted = "date" if "%" in remedy else remedy
                assert forced.kind == wanted and forced.scale != 1, (seed, name)
