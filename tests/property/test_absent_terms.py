"""A row that contributes nothing moves no bit of the sums, on any source."""

import numpy as np
import pytest

from tests.asking import request_of
from tests.private_names import Batch, RowMap
from tests.property.spies import prepare, source

N, D, K, ROW = 900, 6, 3, 417
rng = np.random.default_rng(0)
X = rng.normal(size=(N, D)).astype("f4")
Y = rng.integers(K, size=N)
W = rng.normal(size=(K, D + 1))
ROWS = {
    "zeros": np.zeros(D),
    "subnormal": np.full(D, 1e-44),
    "tiny": np.full(D, 1e-20),
    "one entry": 7.0 * np.eye(D)[2],
    "long": np.full(D, 3e5),
    "another row": X[3],
}
KINDS = ["memory", "sparse", "memory map", "memory map, as if wide", "parquet", "dask", "torch"]
KINDS += ["torch, as on a device"]
MAPS = {
    "as they are": RowMap(None, False, None),
    "with an intercept": RowMap(None, False, 0.4),
    "of unit length": RowMap(rng.normal(size=D), True, 0.4),
}
MEMBERS = {"all": None, "a fold": np.arange(N) % 3 != 1}


def contribute(Z, block):
    """Residuals and one number for each row, and zeros for the rows of the last label."""
    kept = (block.y < K)[:, np.newaxis]
    C = Z - np.eye(K)[block.y % K].astype(Z.dtype)
    return np.where(kept, C, 0).astype(Z.dtype), np.where(kept, 1.0 + block.y[:, np.newaxis], 0.0)


@pytest.mark.covering
@pytest.mark.parametrize("members", MEMBERS)
@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("row_map", MAPS)
@pytest.mark.parametrize("kind", KINDS)
def test_a_row_that_contributes_nothing_moves_no_bit_of_the_sums(
    monkeypatch, tmp_path, kind, row_map, dtype, members
):
    prepare(kind, monkeypatch)
    found, points = {}, W[:, : MAPS[row_map].width(D)]
    for name, row in ROWS.items():
        rows, labels = X.copy(), Y.copy()
        rows[ROW], labels[ROW] = row, K  # the label says that it contributes nothing
        folder = tmp_path / name
        folder.mkdir()
        held = source(kind, folder, rows, labels, MAPS[row_map], dtype)
        request = request_of(points, contribute, Batch(members=MEMBERS[members]))
        ((matrix, vector),) = held.private_sums([request])
        found[name] = np.asarray(matrix).tobytes(), np.asarray(vector).tobytes()
    first = found["zeros"]
    assert [name for name in found if found[name] != first] == []
