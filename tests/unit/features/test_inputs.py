"""Whatever holds the images, the rows are the same; what is none is told apart."""

import pathlib

import numpy as np
import pandas as pd
import pytest
import torch
from PIL import Image
from torch.utils.data import Dataset

from tests.private_names import as_items
from tests.unit.features.conftest import make_pixels


class Pairs(Dataset):
    """Images with labels, which are ignored."""

    def __init__(self, pixels, form):
        self.pixels, self.form = pixels, form

    def __len__(self):
        return len(self.pixels)

    def __getitem__(self, index):
        return self.form(self.pixels[index]), -1


FORMS = {
    "array": lambda pixels, paths: pixels,
    "memory map": lambda pixels, paths: np.load(save(paths, pixels), mmap_mode="r"),
    "tensor": lambda pixels, paths: torch.from_numpy(pixels),
    "list of paths": lambda pixels, paths: paths,
    "tuple of Path objects": lambda pixels, paths: tuple(map(pathlib.Path, paths)),
    "array of paths": lambda pixels, paths: np.array(paths),
    "column of paths": lambda pixels, paths: np.array(paths, dtype=object)[:, None],
    "series of paths": lambda pixels, paths: pd.Series(paths, index=range(5, 15)),
    "frame of paths": lambda pixels, paths: pd.DataFrame({"path": paths}),
    "PIL images": lambda pixels, paths: [Image.fromarray(image) for image in pixels],
    "opened files": lambda pixels, paths: [Image.open(path) for path in paths],
    "list of arrays": lambda pixels, paths: list(pixels),
    "list of tensors": lambda pixels, paths: list(torch.from_numpy(pixels).permute(0, 3, 1, 2)),
    "all mixed": lambda pixels, paths: [*paths[:3], *map(Image.fromarray, pixels[3:6]), *pixels[6:]],
    "dataset of images": lambda pixels, paths: Pairs(pixels, Image.fromarray),
    "dataset of arrays": lambda pixels, paths: Pairs(pixels, np.asarray),
}


def save(paths, pixels):
    file = pathlib.Path(paths[0]).parent.parent / "pixels.npy"
    np.save(file, pixels)
    return file


@pytest.mark.parametrize("form", FORMS)
def test_rows_do_not_depend_on_what_holds_the_images(form, pixels, paths, tiny):
    reference = tiny().transform(pixels)
    found = tiny().transform(FORMS[form](pixels, paths))
    assert found.dtype == np.float32 and found.shape == (10, 16)
    np.testing.assert_allclose(found, reference, rtol=1e-5, atol=1e-4)
    assert len(np.unique(reference.round(3), axis=0)) == 10


@pytest.mark.parametrize("shape", [(10, 12, 12), (10, 12, 12, 1)])
def test_grey_images(shape, pixels, tiny):
    grey = pixels[..., 0].reshape(shape)
    colour = np.repeat(pixels[..., :1], 3, axis=3)
    np.testing.assert_allclose(tiny().transform(grey), tiny().transform(colour), rtol=1e-5, atol=1e-4)


def test_images_of_several_modes(pixels, tiny, tmp_path):
    image = Image.fromarray(pixels[0])
    rgba = image.convert("RGBA")
    palette = image.quantize(256)
    rows = tiny().transform([image, rgba, palette, palette.convert("RGB")])
    np.testing.assert_array_equal(rows[0], rows[1])
    np.testing.assert_array_equal(rows[2], rows[3])


@pytest.mark.parametrize(
    ("X", "error", "message"),
    [
        ("photos", TypeError, "X='photos' is one str; pass a list of items .*from_folder"),
        (pathlib.Path("photos"), TypeError, "is one .*Path; pass a list"),
        (
            3,
            TypeError,
            "X is a int; pass a list of image paths or PIL images, a uint8 array, or a torch Dataset",
        ),
        ([], ValueError, "X holds no items; pass at least one"),
        ([3], ValueError, "item 0 is a int and not an image, a path or an array; fix or remove it"),
        (np.zeros((2, 4, 4, 3)), ValueError, r"holds numbers of .*; pass images as uint8, from 0 to 255"),
        (np.zeros((2, 4, 4, 4), np.uint8), ValueError, r"X has shape \(2, 4, 4, 4\); .* 1 or 3 channels"),
        (np.zeros((2, 3, 4, 4), np.uint8), ValueError, r"X has shape \(2, 3, 4, 4\); .* 1 or 3 channels"),
        (np.zeros((2, 0, 4, 3), np.uint8), ValueError, r"X has shape \(2, 0, 4, 3\)"),
        (np.zeros((2, 4)), ValueError, r"X holds numbers of shape \(2, 4\); pass uint8 images"),
        (np.zeros(3), ValueError, r"X holds numbers of shape \(3,\); pass uint8 images"),
        ([np.zeros((4, 4, 3))], ValueError, "item 0 holds numbers; give uint8 pixels, before any scaling"),
        ([np.zeros((4, 4, 2), np.uint8)], ValueError, r"item 0 has shape \(4, 4, 2\)"),
        ([torch.zeros(3, 4, 4)], ValueError, "item 0 holds numbers; give uint8 pixels"),
    ],
)
def test_what_is_no_image_is_told(X, error, message, tiny):
    with pytest.raises(error, match=message):
        tiny().transform(X)


@pytest.mark.parametrize(
    ("form", "message"),
    [
        (lambda image: torch.zeros(3, 4, 4), "item 0 holds numbers"),
        (lambda image: None, "item 0 is a NoneType and not an image, a path or an array"),
        (lambda image: 1 / 0, r"item 0 cannot be read \(damaged, or not what it seems\)"),
    ],
)
def test_datasets_of_something_else(form, message, pixels, tiny):
    with pytest.raises(ValueError, match=message):
        tiny().transform(Pairs(pixels, form))


def test_deep_pixels_are_refused_rather_than_cut_off(tmp_path, tiny):
    path = tmp_path / "deep.png"
    Image.fromarray(np.full((4, 4), 40_000, dtype=np.uint16)).save(path)
    with pytest.raises(ValueError, match=r"deep\.png has pixels of mode I;16, of more than 8 bits"):
        tiny().transform([path])


def test_texts():
    texts = as_items(["one", "two"], "text")
    assert [texts[0], texts[1]] == ["one", "two"]
    assert as_items(np.array(["one", "two"]), "text").digest(1) == texts.digest(1) != texts.digest(0)
    with pytest.raises(TypeError, match="X holds a float; pass texts"):
        as_items(["one", float("nan")], "text")
    with pytest.raises(TypeError, match=r"^X is one str; pass a list of items \(use \[X\]\)"):
        as_items("one", "text")
    with pytest.raises(ValueError, match=r"X holds numbers of shape \(2,\); pass n texts"):
        as_items(np.arange(2), "text")
    with pytest.raises(TypeError, match="X is a set; pass a list of texts"):
        as_items({"one"}, "text")


@pytest.mark.parametrize("form", FORMS)
def test_a_digest_is_that_of_the_content(form, pixels, paths):
    items = as_items(FORMS[form](pixels, paths), "image")
    digests = [items.digest(i) for i in range(10)]
    assert len(set(digests)) == 10
    changed = pixels.copy()
    changed[4, 5, 5, 1] ^= 1
    Image.fromarray(changed[4]).save(paths[4])
    again = as_items(FORMS[form](changed, paths), "image")
    assert [again.digest(i) == digests[i] for i in range(10)] == [i != 4 for i in range(10)]


def test_the_shape_is_part_of_the_content():
    flat = make_pixels(1)
    one, other = as_items(flat, "image"), as_items(flat.reshape(1, 24, 6, 3), "image")
    assert one.digest(0) != other.digest(0)
    one, other = Image.fromarray(flat[0]).quantize(4), Image.fromarray(flat[0]).quantize(4)
    other.putpalette([0, 1, 2] * 4)
    items = as_items([one, other], "image")
    assert items.digest(0) != items.digest(1)
