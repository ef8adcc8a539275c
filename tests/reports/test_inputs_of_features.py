"""Photographs and texts as people have them."""

import numpy as np
import pytest
import scipy.sparse as sp

from skmixdp import MixedDPLogisticRegression
from tests.private_names import as_items

PIXELS = np.arange(2 * 3 * 3, dtype=np.uint8).reshape(2, 3, 3)


@pytest.mark.parametrize("orientation", [None, *range(1, 9)])
@pytest.mark.parametrize("as_path", [True, False])
def test_photographs_are_turned_as_their_camera_says(tmp_path, orientation, as_path):
    image_module = pytest.importorskip("PIL.Image")
    ops = pytest.importorskip("PIL.ImageOps")
    image = image_module.fromarray(PIXELS)
    exif = image_module.Exif()
    if orientation is not None:
        exif[0x0112] = orientation
    path = tmp_path / "photo.png"
    image.save(path, exif=exif)
    with image_module.open(path) as stored:
        stored.load()
        expected = np.asarray(ops.exif_transpose(stored))
    items = as_items([path if as_path else stored], "image")
    np.testing.assert_array_equal(np.asarray(items[0]), expected)
    assert expected.shape[0] == (3 if orientation in (5, 6, 7, 8) else 2)
    assert len(items.digest(0)) == 16


def test_an_image_that_was_turned_before_stays():
    image_module, ops = pytest.importorskip("PIL.Image"), pytest.importorskip("PIL.ImageOps")
    image = image_module.fromarray(PIXELS)
    image.getexif()[0x0112] = 6
    once = as_items([image], "image")[0]
    np.testing.assert_array_equal(np.asarray(once), np.rot90(PIXELS, -1))
    np.testing.assert_array_equal(np.asarray(as_items([ops.exif_transpose(image)], "image")[0]), once)


@pytest.mark.parametrize("text", ["\ud800", "a \udfff b", "x" * 9 + "\udc80", "\ud83d\ude00 \ud83d"])
def test_texts_with_halves_of_characters(text):
    """A cache has a key for them, and networks, which take UTF-8, get question marks."""
    items = as_items(["usual é", text], "text")
    assert items[0] == "usual é" and "?" in items[1]
    items[1].encode()
    assert len({items.digest(0), items.digest(1)}) == 2


@pytest.mark.parametrize("form", [sp.csr_array, sp.csc_array, sp.coo_array, sp.csr_matrix])
def test_sparse_rows_of_half_precision(form):
    rng = np.random.default_rng(0)
    dense = (rng.random((80, 6)) < 0.4) * rng.integers(1, 9, (80, 6)) / 8
    X = form(dense)
    X.data = X.data.astype(np.float16)
    y = (dense[:, 0] > 0).astype(int)
    heads = []
    for rows in (X, form(dense)):
        head = MixedDPLogisticRegression(epsilon=5.0, delta=1e-3, random_state=0)
        with pytest.warns(UserWarning, match="random_state"):
            heads.append(head.fit(rows, y, X_pub=rows, y_pub=y))
    np.testing.assert_array_equal(heads[0].predict(X), heads[1].predict(form(dense)))
    np.testing.assert_allclose(heads[0].coef_, heads[1].coef_, atol=1e-9)
