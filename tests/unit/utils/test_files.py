"""Files that are written whole or not at all."""

import os
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from tests.private_names import files, sync_folder, written_whole


def write(path, content):
    with written_whole(path) as file:
        file.write(content)


def test_a_file_is_replaced_and_no_draft_stays(tmp_path):
    path = tmp_path / "file"
    for content in (b"one", b"another"):
        write(path, content)
        assert path.read_bytes() == content
    assert [entry.name for entry in tmp_path.iterdir()] == ["file"]


@pytest.mark.parametrize("error", [OSError, KeyboardInterrupt])
def test_a_block_that_fails_leaves_the_former_content(tmp_path, error):
    path = tmp_path / "file"
    write(path, b"one")

    def fail():
        with written_whole(path) as file:
            file.write(b"anot")
            raise error

    with pytest.raises(error):
        fail()
    assert path.read_bytes() == b"one"
    assert [entry.name for entry in tmp_path.iterdir()] == ["file"]


def test_content_is_on_the_disk_before_the_name_and_the_name_before_the_end(tmp_path, monkeypatch):
    done, fsync, replace = [], os.fsync, Path.replace
    monkeypatch.setattr(files.os, "fsync", lambda fd: (done.append("fsync"), fsync(fd))[1])
    monkeypatch.setattr(Path, "replace", lambda *paths: (done.append("replace"), replace(*paths))[1])
    write(tmp_path / "file", b"content")
    assert done == ["fsync", "replace", "fsync"]


def test_a_folder_is_not_opened_where_that_cannot_be(tmp_path, monkeypatch):
    sync_folder(tmp_path)
    with pytest.raises(FileNotFoundError):
        sync_folder(tmp_path / "missing")
    monkeypatch.setattr(files.os, "name", "nt")
    sync_folder(tmp_path / "missing")


def test_threads_that_write_one_file_leave_the_content_of_one(tmp_path):
    path = tmp_path / "file"
    contents = [bytes([65 + i]) * 20_000 for i in range(8)]

    def work(content):
        for _ in range(5):
            write(path, content)

    with ThreadPoolExecutor(8) as pool:
        assert list(pool.map(work, contents)) == [None] * 8  # no error of theirs
    assert path.read_bytes() in contents
    assert [entry.name for entry in tmp_path.iterdir()] == ["file"]
