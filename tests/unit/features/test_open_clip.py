"""Networks of open_clip, small and with random weights."""

import hashlib
import json

import numpy as np
import pytest
import torch
from PIL import Image

from skmixdp.features import OpenClipFeatures
from skmixdp.features.backends.loading import weights_hash
from tests.private_names import _base_of_features
from tests.rounding import assert_relative
from tests.unit.conftest import CLIP
from tests.unit.features.conftest import library, make_pixels, save_images

# The library takes seconds to import.
pytestmark = pytest.mark.slow


@pytest.fixture
def clip(tiny_clip):
    def make(**parameters):
        return OpenClipFeatures(f"local-dir:{tiny_clip}", **{"device": "cpu", **parameters})

    return make


@pytest.fixture
def reference(tiny_clip):
    """The network, its transform and its tokenizer as open_clip gives them."""
    open_clip = library("open_clip")
    module, _, transform = open_clip.create_model_and_transforms(f"local-dir:{tiny_clip}")
    return module.eval(), transform, open_clip.get_tokenizer(f"local-dir:{tiny_clip}")


def test_rows_are_what_open_clip_computes_by_itself(clip, reference, tmp_path):
    module, transform, tokenizer = reference
    paths = save_images(tmp_path / "images", make_pixels(4, size=50))
    batch = torch.stack([transform(Image.open(path)) for path in paths])
    texts = ["a cat", "a dog on the lawn"]
    with torch.no_grad():
        images = module.encode_image(batch, normalize=True).numpy()
        words = module.encode_text(tokenizer(texts), normalize=True).numpy()
    features = clip()
    np.testing.assert_allclose(features.transform(paths), images, atol=1e-5)
    np.testing.assert_allclose(features.encode_texts(texts), words, atol=1e-5)
    np.testing.assert_allclose(features.encode_texts(np.array(texts)), words, atol=1e-5)


def test_images_in_memory(clip, tmp_path):
    pixels = make_pixels(4, size=50)
    rows = clip().transform(pixels)
    np.testing.assert_allclose(rows, clip().transform(save_images(tmp_path / "i", pixels)), atol=2e-2)
    assert_relative(np.linalg.norm(rows, axis=1), 1, 1e-5)
    assert clip().get_feature_names_out().shape == (8,)


def test_rows_do_not_influence_each_other(clip):
    pixels = make_pixels(7, size=40)
    texts = [f"text number {i}, {'very ' * i}long" for i in range(7)]
    order = np.random.default_rng(0).permutation(7)
    images, words = clip().transform(pixels), clip().encode_texts(texts)
    for size in (1, 3):
        some = clip(batch_size=size)
        np.testing.assert_allclose(some.transform(pixels[order]), images[order], atol=1e-5)
        np.testing.assert_allclose(some.encode_texts([texts[i] for i in order]), words[order], atol=1e-5)


def test_images_and_texts_have_rows_of_their_own_in_a_cache(clip, tmp_path):
    features = clip(cache=tmp_path / "cache")
    pixels, texts = make_pixels(3, size=40), ["one", "two"]
    rows, words = features.transform(pixels), features.encode_texts(texts)
    assert features.extract(pixels).n_computed == 0
    np.testing.assert_array_equal(features.transform(pixels), rows)
    np.testing.assert_array_equal(features.encode_texts(texts), words)
    assert len(list((tmp_path / "cache").iterdir())) == 2


def test_one_network_serves_images_and_texts(clip):
    features = clip()
    assert features._encoder().module is features._encoder(tower="text").module


def test_the_report(clip, tiny_clip, reference):
    report = clip().fit().report_
    assert report["weights"] == {"origin": f"local-dir:{tiny_clip}", "sha256": weights_hash(reference[0])}
    assert "Resize(size=32, interpolation=bilinear" in report["preprocessing"]
    assert "mean=[0.5, 0.5, 0.5]" in report["preprocessing"]


@pytest.fixture
def named(tmp_path):
    """A small network that open_clip knows by name, with a checkpoint."""
    (tmp_path / "tiny-clip-for-tests.json").write_text(json.dumps(CLIP))
    open_clip = library("open_clip")
    open_clip.add_model_config(tmp_path)
    with torch.random.fork_rng():
        torch.manual_seed(8)
        module = open_clip.CLIP(**CLIP)
    torch.save({"state_dict": module.state_dict()}, tmp_path / "checkpoint.pt")
    return "tiny-clip-for-tests", tmp_path / "checkpoint.pt", module


def test_a_checkpoint_by_its_path(named):
    name, path, module = named
    weights = OpenClipFeatures(name, pretrained=path, device="cpu").fit().report_["weights"]
    assert weights == {
        "origin": str(path),
        "file_sha256": hashlib.sha256(path.read_bytes()).hexdigest(),
        "sha256": weights_hash(module),
    }


def test_random_weights_are_the_same_each_time(named):
    from skmixdp.features.backends import open_clip_models

    name = named[0]
    first = OpenClipFeatures(name, pretrained=False, device="cpu").fit().report_["weights"]
    _base_of_features._loaded.clear()
    open_clip_models._model.cache_clear()
    assert OpenClipFeatures(name, pretrained=False, device="cpu").fit().report_["weights"] == first
    assert first["origin"] == "random weights"


@pytest.mark.parametrize(
    ("parameters", "error", "message"),
    [
        ({"model_name": "ViT-Z"}, ValueError, r"model_name='ViT-Z' with .* cannot be loaded \(.*not found"),
        ({"pretrained": "no-such-tag"}, ValueError, r"pretrained='no-such-tag' cannot be loaded"),
        ({"pretrained": True}, TypeError, "pretrained=True must be the tag of weights, the path"),
        ({"pretrained": 3}, TypeError, "pretrained=3 must be the tag"),
    ],
)
def test_bad_parameters_are_told(parameters, error, message):
    with pytest.raises(error, match=message):
        OpenClipFeatures(**parameters).fit()


def test_a_folder_without_weights_is_refused(tiny_clip, tmp_path):
    config = (tiny_clip / "open_clip_config.json").read_text()
    (tmp_path / "open_clip_config.json").write_text(config)
    with pytest.raises(ValueError, match=r"cannot be loaded .*Required pretrained weights"):
        OpenClipFeatures(f"local-dir:{tmp_path}").fit()


def test_texts_must_be_a_list(clip):
    with pytest.raises(TypeError, match="X is one str"):
        clip().encode_texts("a cat")
