"""Additive models of rows that are not in memory keep pieces and places of the rows in a file."""

import errno
import os

import numpy as np
import pandas as pd
import pytest

from skmixdp.additive import AdditiveDPClassifier, AdditiveDPRegressor
from skmixdp.datasets import open_rows
from skmixdp.privacy import PrivacyLedger
from tests.private_names import Basis
from tests.unit.rows.conftest import HELD

pytestmark = pytest.mark.filterwarnings("ignore:random_state")

RNG = np.random.default_rng(0)
X = RNG.standard_normal((6000, 4)).round(2)
X[:, 3] = RNG.integers(2, size=6000)  # a column without knots
MISSING = np.where(RNG.random(X.shape) < 0.1, np.nan, X)
Y = (np.sin(2 * X[:, 0]) + X[:, 1] ** 2 > 1).astype(int)


def as_csv(folder, rows, y):
    pd.DataFrame(rows, columns=list("abcd")).to_csv(folder / "rows.csv", index=False)
    return open_rows(folder / "rows.csv"), y


SOURCES = {name: HELD[name] for name in ("memory map", "npy files", "parquet", "sparse")} | {"csv": as_csv}


def model(kind=AdditiveDPClassifier, **given):
    classes = {"classes": [0, 1]} if kind is AdditiveDPClassifier else {}
    return kind(**{"epsilon": 3.0, "random_state": 0, **classes, **given})


@pytest.mark.parametrize("known", [0, 40])
@pytest.mark.parametrize("held", SOURCES)
def test_the_model_is_that_of_rows_in_memory(held, known, tmp_path):
    public = {"X_pub": X[:known], "y_pub": Y[:known]} if known else {}
    rows = MISSING if held in ("memory map", "npy files") else X
    found = model().fit(*SOURCES[held](tmp_path, rows, Y), **public)
    wanted = model().fit(rows, Y, **public)
    assert any(map(len, found._row_map.basis.knots))
    np.testing.assert_array_equal(found.coef_, wanted.coef_)


def test_a_regression_is_that_of_rows_in_memory(tmp_path):
    held, _ = HELD["memory map"](tmp_path, X, Y)
    found, wanted = (model(AdditiveDPRegressor, epsilon=10.0).fit(rows, Y / 2) for rows in (held, X))
    assert any(map(len, found._row_map.basis.knots))
    np.testing.assert_array_equal(found.coef_, wanted.coef_)


@pytest.mark.parametrize("held", SOURCES)
def test_curves_are_computed_of_no_private_row(held, tmp_path, monkeypatch):
    computed, call = [], Basis.__call__

    def counted(self, rows):
        computed.append(len(rows))
        return call(self, rows)

    monkeypatch.setattr(Basis, "__call__", counted)
    monkeypatch.setattr(Basis, "of_column", lambda self, j: _silent(of_column(self, j), call))
    model().fit(*SOURCES[held](tmp_path, X, Y))
    assert sum(computed) < len(X)


of_column = Basis.of_column


def _silent(basis, call):
    """The basis of one column, whose calls are not counted."""
    return lambda rows: call(basis, rows)


@pytest.mark.parametrize("held", ["memory map", "sparse", "parquet"])
def test_a_full_disk_is_refused_before_the_charge(held, tmp_path, monkeypatch):
    rows, y = HELD[held](tmp_path, X, Y)
    ledger = PrivacyLedger(tmp_path / "ledger.sqlite").add_dataset("rows", epsilon=10.0, delta=1e-3)

    def full(*args):
        raise OSError(errno.ENOSPC, "secret")

    monkeypatch.setattr(os, "posix_fallocate", full, raising=False)
    with pytest.raises(ValueError, match=r"^X needs \d+ MiB .*; free space there, or set TMPDIR"):
        model(ledger=ledger).fit(rows, y)
    assert ledger.charges() == []
