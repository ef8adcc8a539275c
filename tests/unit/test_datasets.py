"""Folders of images."""

import numpy as np
import pytest

from skmixdp.datasets import from_folder, image_files


@pytest.fixture
def folder(tmp_path):
    """Three classes; one has a folder below its own."""
    for name in ("eel/2.JPG", "cat/b.png", "cat/a.webp", "dog/young/1.bmp", "cat/.hidden", ".git/x.png"):
        path = tmp_path / "animals" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(b"")
    return tmp_path / "animals"


def test_paths_labels_and_classes_are_sorted(folder):
    paths, labels, class_names = found = from_folder(str(folder))
    assert found.labels is labels and found.class_names is class_names
    names = ["cat/a.webp", "cat/b.png", "dog/young/1.bmp", "eel/2.JPG"]
    assert paths.tolist() == [str(folder / name) for name in names]
    assert labels.tolist() == ["cat", "cat", "dog", "eel"]
    assert class_names.tolist() == ["cat", "dog", "eel"]
    assert all(isinstance(array, np.ndarray) and array.dtype.kind == "U" for array in (paths, labels))


def test_files_of_a_folder_without_classes(folder):
    assert image_files(folder / "cat") == [str(folder / "cat" / name) for name in ("a.webp", "b.png")]


def test_what_is_no_folder_of_classes_is_told(folder, tmp_path):
    with pytest.raises(FileNotFoundError, match=r"path='.*none' does not exist; give a folder of images"):
        from_folder(tmp_path / "none")
    with pytest.raises(NotADirectoryError, match=r"b\.png' is a file; give a folder of images"):
        from_folder(folder / "cat" / "b.png")
    with pytest.raises(ValueError, match=r"cat' has no subfolders; put the images of each class into a"):
        from_folder(folder / "cat")
    (folder / "fox").mkdir()
    with pytest.raises(ValueError, match=r"fox' holds no images; add some, or remove the folder"):
        from_folder(folder)
    (folder / "fox" / "notes.txt").write_text("")
    with pytest.raises(ValueError, match=r"holds 1 files without an image ending, such as .*notes\.txt"):
        from_folder(folder)
    (folder / "loose.png").write_bytes(b"")
    with pytest.raises(ValueError, match=r"holds 1 files next to its subfolders, such as .*loose\.png"):
        from_folder(folder)
