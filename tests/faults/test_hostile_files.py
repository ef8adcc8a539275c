"""Files that would fill the memory, hang the process or replace a device: refused in one sentence."""

import json
import os
import socket
import stat
import tracemalloc
from contextlib import closing, contextmanager
from pathlib import Path

import numpy as np
import pytest

import skmixdp
from skmixdp import MixedDPLogisticRegression
from tests.fuzz.test_files import parts_of, with_checksum
from tests.private_names import main, write_together

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


# -- what is written -----------------------------------------------------------------------


def special(folder, kind):
    """A path that is no plain file."""
    path = folder / f"special{kind}.safetensors"
    if kind == "device":
        path.symlink_to(os.devnull)
    elif kind == "pipe":
        os.mkfifo(path)
    elif kind == "socket":
        with closing(socket.socket(socket.AF_UNIX)) as end:
            end.bind(str(path))
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
