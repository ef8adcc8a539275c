"""Every format of files: read whole, read in parts, damaged, and documented."""

import zipfile
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from skmixdp.datasets import open_rows
from tests.private_names import (
    FORMATS,
    ArrayFile,
    FileError,
    NpyFile,
    ParquetFile,
    TableFile,
    TextFile,
    format_of,
    formats,
)

DOCS = Path(__file__).parents[3] / "docs"
X = np.arange(24.0).reshape(6, 4)
Y = np.array(["b", "a", "a", "c", "b", "a"])
FRAME = pd.DataFrame(X, columns=list("wxyz")).assign(label=Y)

WRITERS = {
    ".csv": lambda path: FRAME.to_csv(path, index=False),
    ".tsv": lambda path: FRAME.to_csv(path, index=False, sep="\t"),
    ".parquet": lambda path: FRAME.to_parquet(path, row_group_size=4),
    ".arrow": lambda path: FRAME.to_feather(path, chunksize=4),
    ".feather": lambda path: FRAME.to_feather(path, chunksize=4),
    ".npy": lambda path: np.save(path, X),
    ".npz": lambda path: np.savez(path, X=X, y=Y),
}


@pytest.fixture(params=FORMATS)
def path(request, tmp_path):
    """A file of each format."""
    path = tmp_path / f"rows{request.param}"
    WRITERS[request.param.removesuffix(".gz").removesuffix(".xz")](path)
    return path


def read(path):
    file = format_of(path, "FILE")(path, "FILE")
    return file.frame() if isinstance(file, TableFile) else file.read("X")


def test_whole_and_in_parts(path):
    file = format_of(path, "FILE")(path, "FILE")
    if isinstance(file, TableFile):
        whole = file.frame()
        types = FRAME.dtypes if isinstance(file, TextFile) else {}  # text does not tell them
        pd.testing.assert_frame_equal(whole.astype(types), FRAME)
        whole = whole.astype(types)
        rows, labels = whole.drop(columns="label").to_numpy(), whole["label"].to_numpy()
    else:
        assert isinstance(file, ArrayFile)
        assert file.headers["X"] == (X.shape, X.dtype)
        rows, labels = file.read("X"), file.read("y") if "y" in file.headers else None
        assert rows.flags.writeable and not isinstance(rows, np.memmap)
    np.testing.assert_array_equal(rows, X)
    opened = open_rows(path, label="label" if isinstance(file, TableFile) else None)
    np.testing.assert_array_equal(np.concatenate(list(opened.blocks())), rows)
    assert (opened.labels is None) == (labels is None) == isinstance(file, NpyFile)
    if labels is not None:
        assert opened.labels.tolist() == labels.tolist()


def test_a_damaged_file_is_told_in_one_sentence_without_its_content(path):
    content = path.read_bytes()
    is_text = path.suffix in (".csv", ".tsv")
    path.write_bytes(b'\xff"' + content if is_text else content[: len(content) // 2])
    told = (
        "is not text in utf-8; name" if is_text else r"cannot be read \(damaged, cut short, .*\); check the"
    )
    with pytest.raises(FileError, match=f"^FILE {told}") as caught:
        read(path)
    assert caught.value.__cause__ is None and caught.value.__suppress_context__
    path.unlink()
    with pytest.raises(
        FileError, match=r"^FILE cannot be read \(No such file or directory\); check the path"
    ):
        read(path)


def test_endings_are_read_in_any_case_and_members_that_are_no_arrays_are_passed_over(tmp_path):
    path = tmp_path / "ROWS.NPZ"
    with path.open("wb") as file:
        np.savez(file, X=X, y=Y)
    with zipfile.ZipFile(path, "a") as archive:
        archive.writestr("readme.txt", "about the rows")
    opened = open_rows(tmp_path)
    assert opened.shape == X.shape and opened.labels.tolist() == Y.tolist()


def test_the_documentation_names_every_ending():
    by_hand = (DOCS / "command_line.md").read_text()
    in_parts = (DOCS / "large_data.md").read_text()
    assert [ending for ending in FORMATS if f"`{ending}`" not in by_hand] == []
    assert [ending for ending in FORMATS if f"`{ending}`" not in in_parts] == []


def test_lines_of_many_cells_are_read_a_few_at_a_time(tmp_path):
    wide = np.random.default_rng(0).standard_normal((70, 3000)).round(3)
    pd.DataFrame(wide).add_prefix("c").to_csv(tmp_path / "rows.csv", index=False)
    pieces = [*TextFile(tmp_path / "rows.csv", "FILE")._rows()]
    assert {len(piece) for piece in pieces[:-1]} == {2**16 // 3000}
    np.testing.assert_array_equal(np.concatenate([*open_rows(tmp_path / "rows.csv").blocks()]), wide)


def test_columns_of_many_are_decoded_a_few_at_a_time(tmp_path, monkeypatch):
    frame = FRAME.assign(lists=[*X[:, :3]], label=range(6))[["w", "lists", "x", "y", "z", "label"]]
    frame.to_parquet(tmp_path / "rows.parquet", row_group_size=4)
    wanted = open_rows(tmp_path / "rows.parquet")
    together, asked, tables = [*wanted.blocks()], [], ParquetFile._tables

    def noted(self, i, columns):
        asked.append(columns)
        return tables(self, i, columns)

    monkeypatch.setattr(formats, "_COLUMNS", 2)
    monkeypatch.setattr(ParquetFile, "_tables", noted)
    found = open_rows(tmp_path / "rows.parquet")
    assert found.names == wanted.names
    asked.clear()
    for one, other in zip(found.blocks(), together, strict=True):
        np.testing.assert_array_equal(one, other)
    assert asked == 2 * [["w", "lists"], ["x", "y"], ["z", "label"]]
