"""Rows that cannot be used are refused by shard and row, before a budget is charged."""

import re

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp

from skmixdp import MixedDPLogisticRegression, RowMapping
from skmixdp.datasets import open_rows
from skmixdp.privacy import PrivacyLedger

from .conftest import draw, in_files

X, y = draw(600)
SECRET = 1234.5


@pytest.fixture
def refuse(tmp_path, no_noise):
    """Open and fit; the refusal is one sentence that shows no row, and nothing was paid or drawn."""
    ledger = PrivacyLedger(tmp_path / "ledger.sqlite").add_dataset("rows", epsilon=10.0, delta=1e-3)

    def check(match, give, y=None):
        clf = MixedDPLogisticRegression(classes=[0, 1, 2], ledger=ledger)
        with pytest.raises(ValueError, match=match) as caught:
            clf.fit(give(), y)
        message = str(caught.value).replace(str(tmp_path), "rows")
        assert ". " not in re.sub(r"\.(npy|npz|parquet|arrow|feather)\b", "", message) and message.endswith(
            "."
        )
        assert "\n" not in message and str(SECRET) not in message and len(message) < 300
        assert not hasattr(clf, "coef_") and not hasattr(clf, "classes_")
        assert ledger.charges() == []
        return message

    return check


def test_a_good_fit_is_charged(tmp_path):
    """Otherwise the refusals below would show nothing."""
    ledger = PrivacyLedger(tmp_path / "ledger.sqlite").add_dataset("rows", epsilon=10.0, delta=1e-3)
    rows = open_rows(in_files(tmp_path, X, y, ".npz"))
    MixedDPLogisticRegression(classes=[0, 1, 2], ledger=ledger).fit(rows)
    assert len(ledger.charges()) == 1


@pytest.mark.covering
@pytest.mark.parametrize("suffix", [".npy", ".npz", ".parquet", ".arrow"])
@pytest.mark.parametrize("dtype", ["float16", "float32", "float64"])
@pytest.mark.parametrize("value", [np.nan, np.inf])
def test_a_row_that_is_not_finite(refuse, tmp_path, suffix, dtype, value):
    if dtype == "float16" and suffix in (".parquet", ".arrow"):
        pytest.skip("pandas does not write half precision")
    bad = X.astype(dtype)
    bad[200, 3], bad[200, 2] = value, SECRET
    paths = in_files(tmp_path, bad, y, suffix)
    label = "label" if suffix in (".parquet", ".arrow") else None
    labels = y if suffix == ".npy" else None
    refuse(r"part1\S*.* contains NaN or infinity; drop", lambda: open_rows(paths, label=label), labels)


def test_a_row_of_a_memory_map_or_of_sparse_rows(refuse, tmp_path):
    bad = X.copy()
    bad[7, 0] = np.nan
    np.save(tmp_path / "bad.npy", bad)
    refuse("X contains NaN or infinity; drop", lambda: np.load(tmp_path / "bad.npy", mmap_mode="r"), y)
    refuse("X contains NaN or infinity", lambda: sp.csr_array(bad), y)
    refuse(r"X has shape \(7,\), not", lambda: sp.coo_array(X[0]), y)
    refuse("X must hold real numbers", lambda: sp.csr_array(X.astype(complex)), y)


def test_a_row_of_a_dask_chunk(refuse):
    da = pytest.importorskip("dask.array")
    bad = X.copy()
    bad[407, 0] = np.inf
    rows = da.from_array(bad, chunks=(200, 3))
    refuse(r"^X contains NaN or infinity; drop", lambda: rows, y)
    refuse("Dask array of numbers in 1 dimensions", lambda: rows[:, 0], y)
    refuse("unknown width", lambda: rows[:, rows.sum(axis=0) > 0], y)
    words = da.from_array(np.array([["a", "b"]] * 9), chunks=3)
    refuse("Dask array of text in 2 dimensions", lambda: words, y)


@pytest.mark.parametrize("suffix", [".npy", ".npz", ".parquet", ".arrow"])
def test_a_file_that_is_cut_short(refuse, tmp_path, suffix):
    paths = in_files(tmp_path, X, y, suffix)
    label = "label" if suffix in (".parquet", ".arrow") else None
    for left in (0.6, 0.01):
        content = paths[1].read_bytes()
        paths[1].write_bytes(content[: int(left * len(content))])
        refuse(
            rf"part1{re.escape(suffix)} cannot be read \(damaged, cut short",
            lambda: open_rows(paths, label=label),
            y,
        )


def test_an_archive_that_is_damaged_inside(refuse, tmp_path):
    paths = in_files(tmp_path, X, y, ".npz")
    content = bytearray(paths[1].read_bytes())
    content[400:440] = bytes(40)
    paths[1].write_bytes(content)
    refuse(r"part1\.npz cannot be read \(damaged, cut short", lambda: open_rows(paths), y)


def test_shards_of_another_width_or_dtype(refuse, tmp_path):
    np.save(tmp_path / "a.npy", X)
    for name, other, told in (
        ("b", X[:, :5], r"b\.npy has 5 features of dtype float32 and a\.npy has 7 of dtype float32"),
        ("b", X.astype(np.float16), r"b\.npy has 7 features of dtype float16 and a\.npy has 7 of"),
        ("b", X[:, 0], r"b\.npy holds numbers of shape \(600,\)"),
        ("b", X.astype(complex), r"b\.npy holds complex numbers of shape \(600, 7\)"),
        ("b", X.astype(object), r"b\.npy holds Python objects"),
    ):
        np.save(tmp_path / f"{name}.npy", other)
        refuse(told, lambda: open_rows([tmp_path / "a.npy", tmp_path / "b.npy"]), y)


def test_archives_and_tables_that_lack_something(refuse, tmp_path):
    np.savez(tmp_path / "rows.npz", rows=X)
    refuse(r"rows\.npz holds the arrays \['rows'\] and no X", lambda: open_rows(tmp_path / "rows.npz"), y)
    np.savez(tmp_path / "rows.npz", X=X)
    refuse("label='z' is no array of", lambda: open_rows(tmp_path / "rows.npz", label="z"), y)
    refuse("the target y is None", lambda: open_rows(tmp_path / "rows.npz"))
    np.savez(tmp_path / "other.npz", X=X, y=y)
    both = [tmp_path / "rows.npz", tmp_path / "other.npz"]
    refuse(r"rows\.npz has no labels and other shards do", lambda: open_rows(both))
    np.savez(tmp_path / "rows.npz", X=X, y=y[:-1])
    refuse(r"rows\.npz has 600 rows and 599 labels", lambda: open_rows(tmp_path / "rows.npz"))


def test_tables_that_lack_something(refuse, tmp_path):
    first, second = tmp_path / "t.parquet", tmp_path / "u.parquet"
    frame = pd.DataFrame(X, columns=list("abcdefg")).assign(label=y)

    def opened(*paths, label="label"):
        return lambda: open_rows(list(paths), label=label)

    frame.assign(a="text").to_parquet(first)
    refuse(r"t\.parquet has the column 'a', which does not", opened(first))
    refuse("label='z' is no column of", opened(first, label="z"))
    empty = frame.a.where(frame.index != 5).astype("Float32")
    frame.assign(a=empty).to_parquet(first)
    refuse("contains NaN or infinity; drop", opened(first))
    missing = frame.label.astype("Int64").where(frame.index != 4)
    frame.assign(label=missing).to_parquet(first)
    refuse("has rows without a label; drop", opened(first))
    frame.to_parquet(first)
    frame[["b", "a", *"cdefg", "label"]].to_parquet(second)
    refuse(r"u\.parquet .* has other columns than t\.parquet", opened(first, second))


def test_paths_that_lead_nowhere(refuse, tmp_path):
    (tmp_path / "empty").mkdir()
    refuse(r"has no \.csv, .* file", lambda: open_rows(tmp_path / "empty"))
    refuse(
        r"missing\.npy cannot be read \(No such file or directory\); check the path",
        lambda: open_rows(tmp_path / "missing.npy"),
    )
    (tmp_path / "rows.txt").write_text("1,2")
    refuse(r"rows\.txt must end in one of \.csv", lambda: open_rows(tmp_path / "rows.txt"))
    refuse("hold no rows", lambda: open_rows([]))
    np.save(tmp_path / "rows.npy", X)
    refuse("label='y' is no array of rows.npy", lambda: open_rows(tmp_path / "rows.npy", label="y"))


def test_too_few_rows_or_labels(refuse, tmp_path):
    np.save(tmp_path / "rows.npy", X[:1])
    refuse("X has 1 sample", lambda: open_rows(tmp_path / "rows.npy"), y[:1])
    refuse(r"X has 0 feature\(s\)", lambda: sp.csr_array((5, 0)), y[:5])
    np.save(tmp_path / "rows.npy", X)
    refuse("y has 599 labels and X 600 rows", lambda: open_rows(tmp_path / "rows.npy"), y[:-1])
    refuse("y holds a label that is not one of the classes", lambda: open_rows(tmp_path / "rows.npy"), y + 1)


def test_rows_too_long_for_their_precision(tmp_path):
    long = X.astype(np.float64)
    long[17] *= 1e200
    np.save(tmp_path / "long.npy", long)
    for rows in (long, np.load(tmp_path / "long.npy", mmap_mode="r"), sp.csr_array(long)):
        clf = MixedDPLogisticRegression(
            classes=[0, 1, 2], rows=RowMapping(norm=None), learning_rate=0.1, dtype="float64"
        )
        with pytest.raises(
            ValueError, match=r"X holds a row that is too large .* rows=RowMapping\(norm='unit'"
        ):
            clf.fit(rows, y)
        assert np.isfinite(clf.set_params(rows=RowMapping(norm="unit")).fit(rows, y).coef_).all()


def test_predictions_for_rows_that_are_not_finite_or_of_another_width(tmp_path):
    clf = MixedDPLogisticRegression(classes=[0, 1, 2]).fit(X, y)
    bad = X.copy()
    bad[3, 1] = np.nan
    np.save(tmp_path / "bad.npy", bad)
    with pytest.raises(ValueError, match="X contains NaN or infinity"):
        clf.predict(np.load(tmp_path / "bad.npy", mmap_mode="r"))
    with pytest.raises(ValueError, match="X has 6 features"):
        clf.predict(sp.csr_array(X[:, :6]))


def test_rows_too_long_for_single_precision_are_refused_by_every_source(holder):
    long, y = draw(600)
    long[17] = 1e35
    with pytest.raises(ValueError, match="X holds a row that is too large for float32 products"):
        holder.source(long, y, dtype="float32")
    long[17] = 1e29
    holder.source(long, y, dtype="float32")
