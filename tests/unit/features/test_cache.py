"""Rows are computed once, whatever happens in between."""

import errno
import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from tests.private_names import RowCache, _extraction
from tests.unit.features.conftest import TinyEncoder, TinyFeatures, make_pixels

ROOT = Path(__file__).parents[3]


@pytest.fixture
def cache(tmp_path):
    return tmp_path / "cache"


def shards(cache):
    return sorted(cache.rglob("*.npz"))


def n_computed(transformer, X):
    return transformer.extract(X).n_computed


def test_rows_come_back_as_they_were(pixels, tiny, cache):
    first = tiny(cache=cache).extract(pixels)
    again = tiny(cache=cache).extract(pixels)
    assert (first.n_computed, again.n_computed) == (10, 0)
    np.testing.assert_array_equal(first.features, again.features)
    np.testing.assert_array_equal(first.features, tiny().transform(pixels))


def test_any_part_in_any_order_is_found(pixels, tiny, encoder, cache):
    rows = tiny(cache=cache).transform(pixels)
    encoder.batches.clear()
    order = [7, 2, 2, 9]
    np.testing.assert_array_equal(tiny(cache=cache).transform(pixels[order]), rows[order])
    assert encoder.batches == []
    assert n_computed(tiny(cache=cache), np.concatenate([pixels[3:], make_pixels(2, seed=9)])) == 2
    repeated = make_pixels(2, seed=8)[[0, 1, 0, 0, 1]]
    found = tiny(cache=cache).extract(repeated)
    assert n_computed(tiny(cache=cache), repeated) == 0
    np.testing.assert_allclose(found.features, tiny().transform(repeated), rtol=1e-5, atol=1e-4)


def test_files_are_known_by_content_and_not_by_name(pixels, paths, tiny, cache, tmp_path):
    assert n_computed(tiny(cache=cache), paths) == 10
    shutil.move(tmp_path / "images", tmp_path / "elsewhere")
    moved = [path.replace("images", "elsewhere") for path in paths]
    assert n_computed(tiny(cache=cache), moved) == 0
    status = Path(moved[0]).stat()
    Image.fromarray(255 - pixels[0]).save(moved[0])
    os.utime(moved[0], ns=(status.st_atime_ns, status.st_mtime_ns))
    assert n_computed(tiny(cache=cache), moved) == 1


@pytest.mark.parametrize("change", ["weights", "precision", "dtype", "preprocessing", "origin"])
def test_what_decides_rows_decides_the_key(change, pixels, encoder, tiny, cache):
    tiny(cache=cache).transform(pixels)
    other = tiny(cache=cache)
    if change == "weights":
        other.encoder = TinyEncoder(seed=1)
    elif change == "precision":
        other.amp = "bfloat16"
    elif change == "dtype":
        other.dtype = "float16"
    elif change == "preprocessing":
        encoder.description["preprocessing"] = "other"
    else:  # the same weights in another folder
        encoder.description["weights"]["origin"] = "elsewhere"
    assert other.extract(pixels).n_computed == (0 if change == "origin" else 10)
    assert other.extract(pixels).n_computed == 0


def test_half_precision_is_half_the_size_and_the_same_fresh_or_stored(pixels, tiny, cache):
    fresh = tiny(dtype="float16", cache=cache).transform(pixels)
    assert fresh.dtype == np.float32
    np.testing.assert_array_equal(fresh, tiny(dtype="float16", cache=cache).transform(pixels))
    np.testing.assert_array_equal(fresh, tiny(dtype="float16").transform(pixels))
    np.testing.assert_array_equal(fresh, tiny().transform(pixels).astype(np.float16))
    with np.load(shards(cache)[0]) as shard:
        assert shard["rows"].dtype == np.float16


@pytest.mark.parametrize("damage", ["cut", "flipped", "emptied", "foreign"])
def test_a_damaged_shard_is_computed_again(damage, pixels, tiny, cache):
    rows = tiny(cache=cache).transform(pixels)
    (path,) = shards(cache)
    content = bytearray(path.read_bytes())
    if damage == "cut":
        content = content[: len(content) // 2]
    elif damage == "flipped":
        place = bytes(content).index(rows[4].tobytes())
        content[place + 5] ^= 16
    elif damage == "emptied":
        content = bytearray()
    if damage == "foreign":
        np.savez(path, keys=np.load(path)["keys"], rows=np.ones((10, 3), np.float32))
    else:
        path.write_bytes(content)
    with pytest.warns(UserWarning, match="is damaged .*; it is removed and its rows are computed again"):
        found = tiny(cache=cache).extract(pixels)
    assert found.n_computed == 10
    np.testing.assert_array_equal(found.features, rows)
    assert n_computed(tiny(cache=cache), pixels) == 0


def test_what_was_computed_before_an_error_is_kept(paths, tiny, cache):
    damaged = [*paths[:6], str(cache)]
    with pytest.raises(ValueError, match="cannot be read"):
        tiny(cache=cache, batch_size=3).transform(damaged)
    assert n_computed(tiny(cache=cache), paths) == 4


def test_shards_are_written_on_the_way(pixels, tiny, cache, monkeypatch):
    monkeypatch.setattr(_extraction, "_SHARD_ROWS", 4)
    tiny(cache=cache, batch_size=2).transform(pixels)
    assert sorted(len(np.load(path)["keys"]) for path in shards(cache)) == [2, 4, 4]
    monkeypatch.setattr(_extraction, "_SHARD_SECONDS", 0.0)
    tiny(cache=cache, batch_size=2).transform(make_pixels(6, seed=5))
    assert len(shards(cache)) == 6


def test_only_the_owner_reads_a_new_cache(pixels, tiny, cache):
    tiny(cache=cache).transform(pixels)
    for folder in (cache, *cache.iterdir()):
        assert folder.stat().st_mode & 0o077 == 0


def test_only_the_owner_reads_what_is_in_a_folder_of_others(pixels, tiny, cache):
    """The names of shards follow from the items."""
    cache.mkdir(mode=0o755)
    tiny(cache=cache).transform(pixels)
    (folder,) = cache.iterdir()
    assert folder.stat().st_mode & 0o077 == 0 and list(folder.glob("*.npz"))
    assert not [path for path in cache.rglob("*") if path.suffix == ".tmp"]


def test_a_folder_that_cannot_be_used_is_told(pixels, tiny, tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(ValueError, match=r"cache='.*file' cannot be used \(.*\); name a folder that can be"):
        tiny(cache=str(tmp_path / "file")).transform(pixels)


def test_a_shard_that_another_process_took_away(cache, monkeypatch):
    store = RowCache(cache, {"weights": "w"}, "float32")
    monkeypatch.setattr(Path, "glob", lambda self, pattern: iter([self / "gone.npz"]))
    out = np.empty((1, 2), np.float32)
    assert store.read([b"k" * 16], out).tolist() == [False]


SCRIPT = """
import sys, time
sys.path.insert(0, {root!r})
from skmixdp.features import _extraction
from tests.unit.features.conftest import TinyEncoder, TinyFeatures, make_pixels
_extraction._SHARD_ROWS = 5
class Slow(TinyEncoder):
    def forward(self, batch):
        time.sleep({delay})
        return super().forward(batch)
features = TinyFeatures(Slow(), cache=sys.argv[1], batch_size=5)
print("ready", flush=True)
print(features.extract(make_pixels(100)).n_computed, flush=True)
"""


def start(cache, delay):
    code = SCRIPT.format(root=str(ROOT), delay=delay)
    environment = {**os.environ, "OMP_NUM_THREADS": "1"}
    process = subprocess.Popen(
        [sys.executable, "-c", code, str(cache)], stdout=subprocess.PIPE, text=True, env=environment
    )
    assert process.stdout.readline() == "ready\n"
    return process


@pytest.mark.slow
def test_a_killed_run_goes_on_where_it_stopped(cache):
    process = start(cache, 0.05)
    while len(shards(cache)) < 3 and process.poll() is None:
        time.sleep(0.005)
    process.send_signal(signal.SIGKILL)
    process.communicate()
    kept = sum(len(np.load(path)["keys"]) for path in shards(cache))
    assert 15 <= kept < 100
    encoder = TinyEncoder()
    found = TinyFeatures(encoder, cache=cache).extract(make_pixels(100))
    assert found.n_computed == sum(encoder.batches) == 100 - kept
    np.testing.assert_allclose(
        found.features, TinyFeatures(TinyEncoder()).transform(make_pixels(100)), rtol=1e-5, atol=1e-4
    )


@pytest.mark.slow
def test_processes_share_a_cache(cache):
    processes = [start(cache, 0.002) for _ in range(3)]
    outputs = [process.communicate()[0] for process in processes]
    assert [process.returncode for process in processes] == [0, 0, 0]
    assert all(int(output) <= 100 for output in outputs)
    found = TinyFeatures(TinyEncoder(), cache=cache).extract(make_pixels(100))
    assert found.n_computed == 0
    np.testing.assert_allclose(
        found.features, TinyFeatures(TinyEncoder()).transform(make_pixels(100)), rtol=1e-5, atol=1e-4
    )


def test_a_full_disk_is_told_and_what_was_written_is_kept(pixels, tiny, cache, monkeypatch):
    def full_disk(descriptor):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    tiny(cache=cache).transform(pixels[:4])
    with monkeypatch.context() as patched:
        patched.setattr(os, "fsync", full_disk)
        with pytest.raises(
            ValueError, match=r"^cache='.*' cannot be used \(No space left on device\); name a"
        ):
            tiny(cache=cache).transform(pixels)
    assert tiny(cache=cache).extract(pixels).n_computed == len(pixels) - 4
    assert not [path for path in Path(cache).rglob("*") if path.name.endswith(".tmp")]
