"""Files that would fill the memory, hang the process or replace a device: refused in one sentence."""

import gzip
import io
import json
import lzma
import os
import socket
import stat
import subprocess
import sys
import tracemalloc
import zipfile
from contextlib import chdir, closing, contextmanager
from itertools import product
from pathlib import Path

import numpy as np
import pytest

import skmixdp
from skmixdp import MixedDPLogisticRegression
from skmixdp.datasets import open_rows
from skmixdp.privacy import PrivacyLedger
from tests.fuzz.test_files import parts_of, with_checksum
from tests.private_names import files_text as text
from tests.private_names import formats, main, write_together

MIB = 2**20
rng = np.random.default_rng(0)
X, y = rng.normal(size=(60, 3)), np.array(["a", "b", "c"])[np.arange(60) % 3]


@pytest.fixture(scope="module")
def model():
    return MixedDPLogisticRegression("adamix", classes=["a", "b", "c"], delta=1e-3).fit(X, y)


@contextmanager
def at_most(n_bytes):
    """The block takes no more memory, as far as Python and NumPy know."""
    tracemalloc.start()
    try:
        yield
        assert tracemalloc.get_traced_memory()[1] < n_bytes
    finally:
        tracemalloc.stop()


# -- models --------------------------------------------------------------------------------

FORGED = {
    "a wide type": {"labels": ["a", "b", "c"] * 20_000, "dtype": "<U16384"},
    "a long label": {"labels": ["a" * 10_000, *map(str, range(60_000))], "dtype": "<U10000"},
    "many arrays": [{"labels": ["a" * 5_000, *map(str, range(199))], "dtype": "<U5000"}] * 200,
    "arrays in arrays": {"labels": [{"tuple": ["a"]}] * 3, "dtype": "<U4"},
    "a long range": {"range": [0, 10**12, 1]},
    "many ranges": [{"range": [0, 10**6, 1]}] * 500,
    "a range beyond numbers": {"range": [0, 10**30, 1]},
    "text of bytes": {"labels": ["a"], "dtype": "S99999999"},
    "a wide object": {"labels": ["a"], "dtype": "V99999999"},
}


@pytest.mark.parametrize("what", FORGED)
@pytest.mark.parametrize("where", ["attributes", "parameters"])
def test_a_forged_model_takes_no_more_memory_than_a_small_number_times_its_size(model, tmp_path, what, where):
    path = tmp_path / "m.safetensors"
    model.save(path)
    arrays, texts = parts_of(path.read_bytes())
    content = json.loads(texts["model"])
    content[where]["classes_" if where == "attributes" else "classes"] = FORGED[what]
    path.write_bytes(with_checksum(arrays, texts | {"model": json.dumps(content)}))
    size = path.stat().st_size
    with at_most(80 * MIB + 32 * size):
        try:
            skmixdp.load(path)
        except ValueError as error:
            text = str(error)
        else:
            text = ""
    assert "\n" not in text and ("too large" in text) == (what in TOO_LARGE), text
    assert "m.safetensors cannot be read" in text or (where, what) == ("parameters", "a wide type")


TOO_LARGE = ("a long label", "many arrays", "a long range", "many ranges", "a range beyond numbers")


def test_labels_of_very_different_length_are_loaded(tmp_path):
    classes = ["a", "b" * 3000, "ü" * 17]
    fitted = MixedDPLogisticRegression("adamix", classes=classes, delta=1e-3).fit(
        X, np.array(classes)[np.arange(60) % 3]
    )
    fitted.save(tmp_path / "m.safetensors")
    loaded = skmixdp.load(tmp_path / "m.safetensors")
    assert loaded.classes_.tolist() == fitted.classes_.tolist() == sorted(classes)
    assert np.array_equal(loaded.predict(X), fitted.predict(X))


# -- rows ----------------------------------------------------------------------------------


def lines_of(folder, ending, pieces):
    openers = {".xz": lzma.open, ".gz": gzip.open}
    path = folder / f"rows.csv{ending}"
    with openers.get(ending, open)(path, "wb") as file:
        for piece in pieces:
            file.write(piece)
    return path


def forged_archive(folder, shape):
    """An archive whose rows have another shape than its bytes."""
    path = folder / "rows.npz"
    header = io.BytesIO()
    np.lib.format.write_array_header_1_0(header, {"descr": "<f8", "fortran_order": False, "shape": shape})
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("X.npy", header.getvalue() + bytes(80))
    return path


def zeros_archive(folder, n_bytes, method):
    path = folder / "rows.npz"
    header = io.BytesIO()
    shape = (n_bytes // 80, 10)
    np.lib.format.write_array_header_1_0(header, {"descr": "<f8", "fortran_order": False, "shape": shape})
    with zipfile.ZipFile(path, "w", method) as archive, archive.open("X.npy", "w") as file:
        file.write(header.getvalue())
        for _ in range(n_bytes // MIB):
            file.write(bytes(MIB))
    return path


def table(folder, ending, column, n_rows, **options):
    pa, parquet = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
    path, rows = folder / f"rows.{ending}", pa.table({"x": column})
    if ending == "parquet":
        parquet.write_table(rows, path, **options)
    else:
        with pa.OSFile(str(path), "wb") as file:
            compressed = pa.ipc.IpcWriteOptions(compression="zstd")
            with pa.ipc.new_file(file, rows.schema, options=compressed) as writer:
                writer.write_table(rows, max_chunksize=2**16)
    return path


def zeros(n_rows):
    pa = pytest.importorskip("pyarrow")
    return pa.array(np.zeros(n_rows))


def lists(n_rows, length, fixed=False):
    pa = pytest.importorskip("pyarrow")
    values = pa.array(np.zeros(n_rows * length))
    if fixed:
        return pa.FixedSizeListArray.from_arrays(values, length)
    return pa.ListArray.from_arrays(np.arange(0, n_rows * length + 1, length, dtype=np.int32), values)


#: Files that hold far more than their bytes: what makes them, and what the message says. Limits are low, so
#: that they are made and refused fast.
LARGE = {
    "one line in .xz": (
        lambda at: lines_of(at, ".xz", [b"a,b\n", *[b"1" * MIB] * 20]),
        "a line of more than",
    ),
    "one line in .gz": (
        lambda at: lines_of(at, ".gz", [b"a,b\n", *[b"1" * MIB] * 20]),
        "a line of more than",
    ),
    "one line": (lambda at: lines_of(at, "", [b"a,b\n", *[b"1" * MIB] * 20]), "a line of more than"),
    "names": (lambda at: lines_of(at, "", [b"," * MIB] * 20), "a line of more than"),
    "null characters": (lambda at: lines_of(at, ".gz", [b"a\n", *[bytes(MIB)] * 20]), "a line of more than"),
    "short lines": (
        lambda at: lines_of(at, ".xz", [b"a\n", *[b"1\n" * (MIB // 2)] * 20]),
        "times its own bytes",
    ),
    "blank lines": (lambda at: lines_of(at, ".xz", [b"a,b\n", *[b"\n" * MIB] * 20]), "times its own bytes"),
    "packed zeros": (lambda at: zeros_archive(at, 20 * MIB, zipfile.ZIP_DEFLATED), "times its own bytes"),
    "zeros by lzma": (lambda at: zeros_archive(at, 20 * MIB, zipfile.ZIP_LZMA), "times its own bytes"),
    "parquet": (lambda at: table(at, "parquet", zeros(2 * MIB), 0), "times its own bytes"),
    "parquet lists": (lambda at: table(at, "parquet", lists(2, MIB), 0), "times its own bytes"),
    "parquet fixed lists": (lambda at: table(at, "parquet", lists(2, MIB, True), 0), "times its own bytes"),
    "arrow": (lambda at: table(at, "arrow", zeros(2 * MIB), 0), "times its own bytes"),
    "arrow fixed lists": (lambda at: table(at, "arrow", lists(2, MIB, True), 0), "times its own bytes"),
}


@pytest.mark.parametrize("what", LARGE)
def test_files_that_hold_far_more_than_their_bytes_are_too_large(tmp_path, monkeypatch, what, capsys):
    make, match = LARGE[what]
    path = make(tmp_path)
    monkeypatch.setattr(text, "_LEAST_BYTES", MIB // 8)
    monkeypatch.setattr(text, "_EXPANSION", 50)
    people = PrivacyLedger(tmp_path / "ledger.sqlite").add_dataset("people", epsilon=3.0, delta=1e-3)
    head = MixedDPLogisticRegression(classes=[0, 1], delta=1e-3, ledger=people)
    with at_most(150 * MIB), pytest.raises(ValueError, match=f"^rows.* is too large: it .*{match}") as said:
        head.fit(open_rows(path), np.zeros(2))
    assert "\n" not in str(said.value)
    assert people.charges() == []
    label = [] if path.suffix == ".npz" else ["--label-column", "a"]
    argv = ["fit", "--private", str(path), *label, "--epsilon", "1", "--delta", "1e-3", "--classes", "0,1"]
    with at_most(150 * MIB):
        assert main([*argv, "--out", str(tmp_path / "m.safetensors")]) == 2
    assert "is too large: it " in capsys.readouterr().err


def test_files_below_the_limits_are_read(tmp_path):
    """One-hot columns, constant columns and long lines are usual."""
    path = lines_of(
        tmp_path, ".xz", [b",".join(b"c%d" % j for j in range(5000)), b"\n", *[b"0," * 4999 + b"1\n"] * 40]
    )
    assert open_rows(path).shape == (40, 5000)
    assert open_rows(table(tmp_path, "parquet", zeros(MIB), 0)).shape == (MIB, 1)
    for ending in ("parquet", "arrow"):
        rows = open_rows(table(tmp_path, ending, lists(30, 20_000, ending == "arrow"), 0))
        assert rows.shape == (30, 20_000) and sum(len(piece) for piece in rows.blocks()) == 30


@pytest.mark.parametrize("shape", [(10**9, 10**9), (10**6, 8), (2**62, 4), (11, 1)])
def test_a_shape_beyond_its_numbers_is_refused_at_once(tmp_path, shape):
    with at_most(8 * MIB), pytest.raises(ValueError, match=r"^rows\.npz cannot be read"):
        open_rows(forged_archive(tmp_path, shape))


def test_a_lack_of_memory_is_no_damage(tmp_path, monkeypatch):
    path = lines_of(tmp_path, "", [b"a,b\n1,2\n"])

    def full(*_):
        raise MemoryError

    monkeypatch.setattr(text, "cells_of", full)
    with pytest.raises(ValueError, match=r"^rows\.csv is too large: the memory of this machine"):
        open_rows(path)


@pytest.mark.parametrize("ending", ["csv", "csv.gz", "tsv", "npy", "npz", "parquet", "arrow", "feather"])
@pytest.mark.parametrize("kind", ["pipe", "device", "folder"])
def test_rows_that_are_no_plain_file_are_refused_and_not_waited_for(tmp_path, ending, kind, capsys):
    path = tmp_path / f"rows.{ending}"
    special(tmp_path, kind).rename(path)
    with pytest.raises(
        ValueError, match=r"is a folder, a device or a pipe|has no .* file; name another folder"
    ):
        open_rows([path])
    np.savez(tmp_path / "private.npz", X=X, y=y)
    private = ["--private", str(tmp_path / "private.npz"), "--classes", "a,b,c"]
    public = ["--public", str(path), "--public-labels", str(path)]
    for flags in (["--private", str(path), "--labels", str(path)], [*private, *public]):
        argv = ["fit", *flags, "--epsilon", "1", "--delta", "1e-3", "--out", str(tmp_path / "m.safetensors")]
        assert main(argv) == 2
    assert "Traceback" not in capsys.readouterr().err


CUT = """
import sys
from skmixdp.datasets import open_rows
for path in sys.argv[1:]:
    rows = open_rows(path)
    with open(path, "r+b") as file:
        file.truncate(int(path.split(".")[-2]))
    try:
        print(sum(float(piece.sum()) for piece in rows.blocks()))
    except ValueError as error:
        print("refused:", error)
"""


def test_a_table_that_is_cut_while_it_is_read_ends_no_process(tmp_path):
    pa = pytest.importorskip("pyarrow")
    paths = []
    for ending, left in product(("parquet", "arrow"), (0, 100, 200_000)):
        path = table(tmp_path, ending, pa.array(rng.normal(size=100_000)), 0)
        paths.append(str(path.rename(tmp_path / f"rows.{left}.{ending}")))
    done = subprocess.run([sys.executable, "-c", CUT, *paths], capture_output=True, text=True, check=False)
    assert done.returncode == 0, (done.stdout, done.stderr)
    lines = done.stdout.splitlines()
    assert len(lines) == len(paths) and all(line.startswith("refused: rows.") for line in lines)


def test_many_columns_take_a_pass_and_no_more(tmp_path):
    """Places of names are looked up at once; to search them would take the square of their number."""
    names = b",".join(b"c%d" % j for j in range(200_000))
    path = lines_of(tmp_path, "", [names, b"\n", *[b"1," * 199_999 + b"0\n"] * 2])
    calls = []

    class Counted(list):
        def index(self, *arguments):
            calls.append(1)
            return super().index(*arguments)

    file = formats.opened(path, "rows.csv")
    file.names = Counted(file.names)
    assert next(file.numbers(0, file.names, file.layout(file.names))).shape[1] == 200_000
    assert not calls


# -- what is written -----------------------------------------------------------------------


def special(folder, kind):
    """A path that is no plain file."""
    path = folder / f"special{kind}.safetensors"
    if kind == "device":
        path.symlink_to(os.devnull)
    elif kind == "pipe":
        os.mkfifo(path)
    elif kind == "socket":
        with closing(socket.socket(socket.AF_UNIX)) as end, chdir(folder):
            end.bind(path.name)  # an address holds a hundred letters; a folder's name may be longer
    elif kind == "link to a pipe":
        os.mkfifo(folder / "pipe")
        path.symlink_to("pipe")
    else:
        path.mkdir()
    return path


KINDS = ["device", "pipe", "socket", "link to a pipe", "folder"]


@pytest.mark.parametrize("kind", KINDS)
def test_what_is_no_plain_file_is_not_replaced(model, tmp_path, kind, capsys):
    path = special(tmp_path, kind)
    before = os.lstat(path), path.stat().st_mode
    names = sorted(tmp_path.iterdir())
    with pytest.raises(ValueError, match="is a folder, a device or a pipe; give the name of a plain file"):
        model.save(path)
    with pytest.raises(ValueError, match="is a folder, a device or a pipe"):
        write_together({path: lambda file: file.write(b"")})
    with pytest.raises(ValueError, match="is a folder, a device or a pipe"):
        skmixdp.load(path)
    np.savez(tmp_path / "rows.npz", X=X, y=y)
    argv = ["fit", "--private", str(tmp_path / "rows.npz"), "--out", str(path), "--force"]
    assert main([*argv, "--epsilon", "1", "--delta", "1e-3"]) == 2
    assert "is a folder, a device or a pipe" in capsys.readouterr().err
    (tmp_path / "rows.npz").unlink()
    assert (os.lstat(path), path.stat().st_mode) == before and sorted(tmp_path.iterdir()) == names


@pytest.mark.parametrize("mode", [0o600, 0o640, 0o444, 0o755])
@pytest.mark.parametrize("by", ["save", "command line"])
def test_a_file_that_is_replaced_keeps_its_mode_and_its_links(model, tmp_path, mode, by):
    (tmp_path / "models").mkdir()
    target = tmp_path / "models" / "today.safetensors"
    target.write_bytes(b"former")
    target.chmod(mode)
    (tmp_path / "link").symlink_to("models/today.safetensors")
    (tmp_path / "current.safetensors").symlink_to("link")
    if by == "save":
        model.save(tmp_path / "current.safetensors")
    else:
        parts = {tmp_path / "other": lambda file: file.write(b"x")}
        write_together({**parts, tmp_path / "current.safetensors": lambda file: file.write(b"new")})
        assert target.read_bytes() == b"new"
    assert stat.S_IMODE(target.stat().st_mode) == mode and target.is_file() and not target.is_symlink()
    assert (tmp_path / "current.safetensors").readlink() == Path("link")
    assert (tmp_path / "link").readlink() == Path("models/today.safetensors")
    if by == "save":
        assert skmixdp.load(tmp_path / "current.safetensors").classes_.tolist() == ["a", "b", "c"]
    assert not list(tmp_path.rglob("*.tmp"))


def test_links_that_lead_nowhere(model, tmp_path):
    (tmp_path / "new.safetensors").symlink_to("target.safetensors")
    model.save(tmp_path / "new.safetensors")
    assert (tmp_path / "target.safetensors").is_file() and (tmp_path / "new.safetensors").is_symlink()
    (tmp_path / "circle").symlink_to("circle")
    with pytest.raises(OSError, match="circle"):
        model.save(tmp_path / "circle")
    assert (tmp_path / "circle").readlink() == Path("circle")


@pytest.mark.skipif(os.name == "nt" or os.getuid() != 0, reason="needs a user who may give files away")
def test_the_owner_of_a_replaced_file_stays(model, tmp_path):
    path = tmp_path / "m.safetensors"
    path.write_bytes(b"former")
    os.chown(path, 1234, 1235)
    model.save(path)
    assert (path.stat().st_uid, path.stat().st_gid) == (1234, 1235)
