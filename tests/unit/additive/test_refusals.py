"""Rows of an additive model are refused before the charge or not at all: none after a release."""

import numpy as np
import pytest

from skmixdp import AdditiveDPClassifier, AdditiveDPRegressor
from skmixdp.datasets import open_rows
from skmixdp.privacy import NoiseSource, PrivacyLedger
from tests.unit.rows.conftest import HELD

N, PLACE = 400, 131
RNG = np.random.default_rng(0)
X = np.column_stack([RNG.normal(size=N), RNG.lognormal(size=N), np.arange(N) % 2])
Y = np.arange(N) % 2
BIG, TINY = np.finfo("f8").max, np.finfo("f8").smallest_subnormal
#: What one row is.
ODD = {
    "huge": [BIG, -BIG, BIG],
    "nearly huge": [1e300, 1e154, -1e200],
    "single precision overflows": [1e39, -1e39, 3.5e38],
    "subnormal": [TINY, -TINY, TINY],
    "negative zeros": [-0.0, -0.0, -0.0],
    "infinite": [np.inf, -np.inf, np.inf],
    "missing": [np.nan] * 3,
}


def unreadable(path, rows, y):
    """A chunk fails when it is computed."""

    def chunk(block):
        if len(block) and not np.isin(block, X).all():
            raise KeyError("SECRET")
        return block

    lazy = pytest.importorskip("dask.array").from_array(rows, chunks=(90, 3))
    return lazy.map_blocks(chunk, dtype=float, meta=np.empty((0, 0))), y


SOURCES = {name: HELD[name] for name in ("memory", "sparse", "memory map", "npy files", "dask")}
SOURCES["unreadable Dask"] = unreadable


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("kind", ["float64", "float32", "int64", "bool"])
def test_an_empty_cell_of_a_file_is_a_missing_value(tmp_path, kind):
    pa, cells = pytest.importorskip("pyarrow"), (np.arange(N) % 5).astype(kind)
    gaps = np.arange(N) % 7 == 0
    file = pa.table({"a": pa.array(cells, mask=gaps), "b": X[:, 1]})
    pytest.importorskip("pyarrow.parquet").write_table(file, tmp_path / "rows.parquet", row_group_size=90)
    rows = np.column_stack([np.where(gaps, np.nan, cells), X[:, 1]])
    fits = [
        AdditiveDPClassifier(epsilon=50.0, classes=[0, 1], random_state=0).fit(each, Y).coef_
        for each in (open_rows(tmp_path / "rows.parquet"), rows)
    ]
    np.testing.assert_allclose(*fits, atol=1e-9)


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("held", SOURCES)
@pytest.mark.parametrize("odd", ODD)
def test_no_row_is_refused_after_a_release(tmp_path, monkeypatch, odd, held):
    rows, releases, add_noise = X.copy(), [], NoiseSource.add_noise
    rows[PLACE] = ODD[odd]
    monkeypatch.setattr(NoiseSource, "add_noise", lambda *args: (releases.append(1), add_noise(*args))[1])
    with np.errstate(all="ignore"):
        rows, _ = SOURCES[held](tmp_path, rows, Y)
    fits = [(AdditiveDPClassifier(epsilon=50.0, classes=[0, 1], interactions="auto"), {})]
    if held in ("memory", "npy files"):
        fits.append((AdditiveDPRegressor(epsilon=50.0), {"groups": np.arange(N) // 2}))
    for model, more in fits:
        entry = PrivacyLedger(":memory:").add_dataset(
            "rows", epsilon=99.0, delta=1e-4, unit="person" if more else "row"
        )
        releases.clear()
        try:
            model.set_params(ledger=entry).fit(rows, Y, **more)
        except ValueError:
            assert not releases and not entry.charges()
        else:
            assert releases and np.isfinite(model.coef_).all()
            assert "knots" in dict(model.privacy_.shares)
