"""Wherever the rows lie, the noise is the stated one; see :mod:`tests.statistical.test_noise_everywhere`."""

import numpy as np
import pytest
import scipy.sparse as sp

from skmixdp import fit_many
from skmixdp.datasets import open_rows
from tests.noise import FAULTS, REPEATED, assert_found, check_releases, recorded
from tests.statistical.test_noise_everywhere import FOLDS, PUBLIC, D, X, Y, classifier, fitted, of, several


def memory_map(folder):
    np.save(folder / "rows.npy", X)
    return np.load(folder / "rows.npy", mmap_mode="r")


def parquet(folder):
    pandas = pytest.importorskip("pandas")
    pytest.importorskip("pyarrow")
    path = folder / "rows.parquet"
    pandas.DataFrame(X, columns=[f"x{j}" for j in range(D)]).to_parquet(path, row_group_size=100)
    return open_rows(path)


def dask_array(folder):
    return pytest.importorskip("dask.array").from_array(X, chunks=(70, -1))


def tensor(folder):
    return pytest.importorskip("torch", reason="needs skmixdp[features]").from_numpy(X)


SOURCES = {
    "sparse": lambda folder: sp.csr_array(X),
    "memory map": memory_map,
    "parquet": parquet,
    "dask": dask_array,
    "tensor": tensor,
}


@pytest.mark.covering
@pytest.mark.parametrize("name", SOURCES)
@pytest.mark.parametrize("batch_size", [None, 60])
def test_the_noise_is_the_same_on_every_source(monkeypatch, tmp_path, name, batch_size):
    rows = SOURCES[name](tmp_path)
    log, stated = recorded(monkeypatch, lambda: fitted(classifier(batch_size=batch_size), rows))
    check_releases(log, stated)
    assert_found(FAULTS, log, stated)


@pytest.mark.parametrize("name", SOURCES)
def test_the_noise_is_the_same_for_folds_of_every_source(monkeypatch, tmp_path, name):
    rows = SOURCES[name](tmp_path)
    log, stated = recorded(monkeypatch, lambda: of(*fit_many(several(), rows, Y, **PUBLIC, rows=FOLDS)))
    check_releases(log, stated)
    assert_found(FAULTS | REPEATED, log, stated)
