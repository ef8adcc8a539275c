"""Rows that must be decoded are decoded once, into a file without a name, and the fit stays the same."""

import errno
import os
import signal
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from skmixdp import MixedDPLogisticRegression, RowMapping, fit_many
from skmixdp.privacy import PrivacyLedger
from tests.private_names import (
    ArrowFile,
    RowMap,
    StreamedRows,
    dotted_path,
    open_rows,
    temporary,
    temporary_memory,
)

from .conftest import draw, in_files
from .test_mapped_rows import everything

DECODED = [".npz", ".parquet", ".arrow"]
pytestmark = pytest.mark.filterwarnings("ignore:random_state")


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """The temporary folder of the system."""
    folder = tmp_path / "temporary"
    folder.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(folder))
    return folder


@pytest.fixture
def decoded(monkeypatch):
    """The parts of tables whose features are decoded, in order."""
    parts, read = [], ArrowFile._read

    def noted(self, i, columns):
        if "label" not in columns:
            parts.append(self.part_where(i))
        return read(self, i, columns)

    monkeypatch.setattr(ArrowFile, "_read", noted)
    return parts


def opened(tmp_path, X, y, suffix):
    return open_rows(in_files(tmp_path, X, y, suffix), label=None if suffix == ".npz" else "label")


def head(**given):
    return MixedDPLogisticRegression(epsilon=4.0, delta=1e-5, classes=range(3), random_state=0, **given)


def maps():
    """The maps of this process to files without a name."""
    path = Path("/proc/self/maps")
    if not path.exists():
        pytest.skip("maps of a process are listed on Linux alone")
    return [line for line in path.read_text().splitlines() if "(deleted)" in line]


def test_the_file_has_no_name_and_goes_with_the_array(folder):
    before = maps()
    memory = temporary_memory(300, 7, np.float32)
    memory[:] = np.arange(2100, dtype=np.float32).reshape(300, 7)
    assert list(folder.iterdir()) == [] and memory.flags.f_contiguous
    assert len(maps()) == len(before) + 1 and str(folder) in "".join(maps())
    assert memory[299, 6] == 2099
    part = memory[10:20]
    del memory
    assert part[0, 0] == 70 and str(folder) in "".join(maps())
    del part
    assert maps() == before


@pytest.mark.parametrize("suffix", DECODED)
def test_narrow_files_give_the_head_of_a_frame_to_the_last_bit(suffix, tmp_path):
    X, y = draw(900, dtype="float64")
    for given in ({}, {"rows": RowMapping(norm="unit")}, {"scale": False, "rows": RowMapping(whiten=False)}):
        found = head(**given).fit(opened(tmp_path, X, y, suffix), X_pub=X[:60], y_pub=y[:60])
        wanted = head(**given).fit(pd.DataFrame(X), y, X_pub=X[:60], y_pub=y[:60])
        np.testing.assert_array_equal(found.coef_, wanted.coef_)
    learned = [head().fit(*rows).coef_ for rows in ((opened(tmp_path, X, y, suffix),), (X, y))]
    np.testing.assert_array_equal(*learned)


@pytest.mark.covering
@pytest.mark.parametrize("exact", [False, True])
@pytest.mark.parametrize("suffix", DECODED)
def test_wide_files_give_the_sums_of_decoding_in_every_pass(suffix, exact, tmp_path):
    X, y = draw(900, 90)
    files, row_map = opened(tmp_path, X, y, suffix), RowMap(np.full(90, 0.1), True, 0.3)
    dtype = np.dtype("float64" if exact else "float32")
    shards = files._shards
    for shard in shards:  # what each pass decodes, in one piece
        rows = lambda read=shard.rows: iter([np.concatenate(list(read()))])  # noqa: E731
        object.__setattr__(shard, "rows", rows)
    wanted = everything(StreamedRows(shards, y, row_map, dtype, exact=exact), 91)
    found = everything(files.for_fit().private_rows(y, row_map, dtype, exact=exact), 91)
    for one, other in zip(found, wanted, strict=True):
        np.testing.assert_array_equal(one, other)


@pytest.mark.parametrize("d", [7, 90])
def test_each_part_is_decoded_once_in_a_fit_and_freed_after_it(d, tmp_path, folder, decoded):
    X, y = draw(900, d)
    files = opened(tmp_path, X, y, ".parquet")
    before = maps()
    head().fit(files)
    assert len(decoded) == len(set(decoded)) == len(files._shards)
    assert maps() == before and list(folder.iterdir()) == []
    head().fit(files)
    assert len(decoded) == 2 * len(files._shards)


def test_fits_at_the_same_time_decode_once(tmp_path, decoded):
    X, y = draw(900)
    files = opened(tmp_path, X, y, ".parquet")
    heads = fit_many(
        [head(), head(rows=RowMapping(norm="unit", geometry=True)), head(rows=RowMapping(geometry=True))],
        files,
    )
    assert len(decoded) == len(files._shards)
    for each in heads:
        alone = MixedDPLogisticRegression(**each.get_params(deep=False)).fit(files)
        np.testing.assert_allclose(each.coef_, alone.coef_, rtol=0, atol=1e-5)


def test_no_map_is_made_for_files_that_need_no_decoding(tmp_path, monkeypatch):
    X, y = draw(900)
    monkeypatch.setattr(dotted_path("streamed.temporary_memory"), lambda *args, **kw: pytest.fail("made"))
    head().fit(open_rows(in_files(tmp_path, X, y, ".npy")), y)


@pytest.mark.covering
@pytest.mark.parametrize("reserving", [True, False], ids=["reserved", "free space looked up"])
@pytest.mark.parametrize(("d", "columns"), [(7, 0), (7, 14), (7, 21), (90, 0)])
def test_a_disk_that_is_too_full_is_refused_before_the_charge(
    d, columns, reserving, tmp_path, folder, monkeypatch
):
    """A fit that could not hold mapped rows later is refused, too, if a single column is too many."""
    left = [columns * 900 * 4]

    def reserve(file, start, size):
        left[0] -= size
        if left[0] < 0:
            raise OSError(errno.ENOSPC, "secret")

    def free(path):
        here = left[0]
        left[0] = max(here - d * 900 * 8, 0)  # the decoded rows are the first, in float64
        return type("Usage", (), {"free": here})

    if reserving:
        monkeypatch.setattr(os, "posix_fallocate", reserve, raising=False)
    else:
        monkeypatch.delattr(os, "posix_fallocate", raising=False)
        monkeypatch.setattr(temporary.shutil, "disk_usage", free)
    X, y = draw(900, d)
    ledger = PrivacyLedger(tmp_path / "ledger.sqlite").add_dataset("rows", epsilon=10.0, delta=1e-3)
    clf = head(ledger=ledger)
    with pytest.raises(ValueError, match=r"^X needs \d+ MiB .* \(No space left on device\); free") as caught:
        clf.fit(opened(tmp_path, X, y, ".parquet"))
    message = str(caught.value)
    assert str(folder) in message and "TMPDIR" in message and message.count(". ") == 0
    assert ledger.charges() == [] and not hasattr(clf, "coef_")


def test_a_folder_that_cannot_be_written_is_refused(tmp_path, monkeypatch):
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "missing"))
    with pytest.raises(ValueError, match="No such file or directory"):
        temporary_memory(3, 2, np.float32)


KILLED = """
import os, signal, sys
from skmixdp import MixedDPLogisticRegression
from skmixdp._engine import loop
from skmixdp.datasets import open_rows

answered, release = [], loop.release

def then_killed(*asked):
    answered.append(release(*asked))
    if len(answered) == 5:
        os.kill(os.getpid(), signal.SIGKILL)
    return answered[-1]

loop.release = then_killed
MixedDPLogisticRegression(classes=range(3)).fit(open_rows(sys.argv[1], label="label"))
"""


@pytest.mark.skipif(not hasattr(signal, "SIGKILL"), reason="this system has no SIGKILL")
def test_nothing_is_left_when_a_fit_is_killed(tmp_path, folder):
    X, y = draw(900)
    pd.DataFrame(X, columns=[f"x{j}" for j in range(7)]).assign(label=y).to_parquet(tmp_path / "rows.parquet")
    environment = os.environ | {"TMPDIR": str(folder)}
    ended = subprocess.run(
        [sys.executable, "-c", KILLED, str(tmp_path / "rows.parquet")], env=environment, capture_output=True
    )
    assert ended.returncode == -signal.SIGKILL, ended.stderr
    assert list(folder.iterdir()) == []
