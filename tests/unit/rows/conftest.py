"""The same rows, held in every way that is supported."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet
import pytest
import scipy.sparse as sp

from skmixdp.datasets import open_rows
from tests.private_names import ArrayTable, RowMap, special_table, streamed


def in_files(tmp_path, X, y, suffix):
    """Three files of unequal length; returns what opens them."""
    names = []
    for part, rows in enumerate(np.split(np.arange(len(X)), [len(X) // 5, len(X) // 2])):
        path = tmp_path / f"part{part}{suffix}"
        if suffix == ".npy":
            np.save(path, X[rows])
        elif suffix == ".npz":
            (np.savez_compressed if part else np.savez)(path, X=X[rows], y=y[rows])
        else:
            frame = pd.DataFrame(X[rows], columns=[f"x{j}" for j in range(X.shape[1])]).assign(label=y[rows])
            if suffix == ".parquet":
                frame.to_parquet(path, row_group_size=300)
            else:
                frame.to_feather(path, chunksize=300)
        names.append(path)
    return names


def memory_map(tmp_path, X, y):
    np.save(tmp_path / "rows.npy", X)
    return np.load(tmp_path / "rows.npy", mmap_mode="r"), y


def lists(tmp_path, X, y):
    """A column of lists of one length, as feature extraction writes embeddings."""
    column = pa.FixedSizeListArray.from_arrays(pa.array(X.ravel()), X.shape[1])
    table = pa.table({"features": column, "label": y})
    pa.parquet.write_table(table, tmp_path / "rows.parquet", row_group_size=400)
    return open_rows(tmp_path / "rows.parquet", label="label"), None


def dask_array(tmp_path, X, y):
    da = pytest.importorskip("dask.array")
    return da.from_array(X, chunks=(350, -1)), y


def tensor(tmp_path, X, y):
    torch = pytest.importorskip("torch", reason="tensors need skmixdp[features]")
    return torch.from_numpy(X), y


def has_cuda():
    return pytest.importorskip("torch", reason="tensors need skmixdp[features]").cuda.is_available()


def pytest_markeval_namespace(config):
    """So that torch is imported by tests that need it alone."""
    return {"has_cuda": has_cuda}


HELD: dict[str, Callable[..., Any]] = {
    "memory": lambda tmp_path, X, y: (X, y),
    "sparse": lambda tmp_path, X, y: (sp.csr_array(X), y),
    "memory map": memory_map,
    "memory map, as if wide": memory_map,
    "npy files": lambda tmp_path, X, y: (open_rows(in_files(tmp_path, X, y, ".npy")), y),
    "npz files": lambda tmp_path, X, y: (open_rows(in_files(tmp_path, X, y, ".npz")), None),
    "parquet": lambda tmp_path, X, y: (open_rows(in_files(tmp_path, X, y, ".parquet"), label="label"), None),
    "arrow": lambda tmp_path, X, y: (open_rows(in_files(tmp_path, X, y, ".arrow"), label="label"), None),
    "lists": lists,
    "dask": dask_array,
    "torch": tensor,
    "torch, as on a device": tensor,
    "torch, CUDA": lambda folder, X, y: (pytest.importorskip("torch").from_numpy(X).cuda(), y),
}


@dataclass
class Holder:
    """One way of holding rows."""

    kind: str
    tmp_path: Any

    def hold(self, X, y):
        """``X, y`` as an estimator takes them."""
        return HELD[self.kind](self.tmp_path, X, y)

    def source(self, X, y, row_map=None, dtype="float64", *, exact=False):
        """The private rows that queries are put to."""
        held, _ = self.hold(X, y)
        table = special_table(held)
        table = ArrayTable(held) if table is None else table
        assert table.shape == X.shape
        return table.private_rows(y, row_map or RowMap(None, False, None), np.dtype(dtype), exact=exact)


NEEDS_CUDA = pytest.mark.skipif("not has_cuda()", reason="needs a CUDA device")


@pytest.fixture(params=[pytest.param(kind, marks=NEEDS_CUDA if "CUDA" in kind else ()) for kind in HELD])
def holder(request, tmp_path, monkeypatch):
    if request.param == "memory map, as if wide":
        monkeypatch.setattr(streamed, "NARROW", 0)
    if request.param == "torch, as on a device":
        pytest.importorskip("torch", reason="tensors need skmixdp[features]")
        from tests.private_names import tensors as torch_table

        monkeypatch.setattr(torch_table, "is_processor", lambda device: False)
    return Holder(request.param, tmp_path)


def draw(n=1500, d=7, seed=0, *, dtype="float32", n_classes=3):
    """Rows of which many entries are zero, with labels."""
    rng = np.random.default_rng(seed)
    y = rng.integers(n_classes, size=n)
    centres = 2 * np.random.default_rng(1).normal(size=(n_classes, d))
    X = (centres[y] + rng.normal(size=(n, d))) * (rng.random((n, d)) < 0.5)
    return X.astype(dtype), y
