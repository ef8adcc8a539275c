"""Networks of timm: a real checkpoint, and random weights."""

import hashlib
import os
import pickle
from pathlib import Path

import numpy as np
import pytest
import torch
from huggingface_hub import constants
from PIL import Image
from safetensors.torch import load_file, save_file
from sklearn.base import clone

from skmixdp.features import TimmFeatures
from skmixdp.features.backends import loading
from skmixdp.features.backends.loading import weights_hash
from tests.private_names import _base_of_features
from tests.unit.features.conftest import library, make_pixels, save_images

DATA = Path(os.environ.get("SKMIXDP_DATA", Path(__file__).parents[4] / "shared" / "data"))
#: How the network of the stored checkpoint was trained: RGB / 127.5 - 1, and padding as TensorFlow's.
REAL = {
    "model_args": {"pad_type": "same"},
    "preprocessing": {
        "mean": (0.5,) * 3,
        "std": (0.5,) * 3,
        "crop_pct": 1.0,
        "crop_mode": "squash",
        "interpolation": "bilinear",
    },
    "device": "cpu",
}


def resnet(**parameters):
    given = {"model_name": "test_resnet", "pretrained": False, "image_size": 32, "device": "cpu"}
    return TimmFeatures(**{**given, **parameters})


def vit(**parameters):
    given = {"pretrained": False, "image_size": 32, "device": "cpu", "model_args": {"depth": 2}, **parameters}
    return TimmFeatures("test_vit", **given)


@pytest.fixture
def real():
    """Folder of a real ImageNet checkpoint with two images."""
    folder = DATA / "mobilenetv2_100"
    if not folder.is_dir():
        pytest.skip("needs mobilenetv2_100; set SKMIXDP_DATA to the folder that holds it.")
    return folder


class TestRealCheckpoint:
    FILE = "mobilenetv2_100_imagenet_fp16.safetensors"

    def test_cat_and_parrot_are_recognised_by_the_classifier_on_our_rows(self, real):
        features = TimmFeatures("mobilenetv2_100", pretrained=real / self.FILE, **REAL)
        rows = features.transform([real / "cat.bmp", real / "parrot.jpg"])
        assert rows.shape == (2, 1280)
        weights = load_file(real / self.FILE)
        logits = torch.from_numpy(rows) @ weights["classifier.weight"].float().T
        chances = (logits + weights["classifier.bias"].float()).softmax(dim=1)
        names = (real / "imagenet_labels.txt").read_text().splitlines()
        top = chances.max(dim=1)
        assert [names[i] for i in top.indices] == ["Egyptian cat", "macaw"]
        np.testing.assert_allclose(top.values, [0.672, 0.923], atol=0.01)

    def test_rows_are_what_timm_computes_by_itself(self, real):
        module = (
            library("timm")
            .create_model(
                "mobilenetv2_100", num_classes=1001, pad_type="same", checkpoint_path=str(real / self.FILE)
            )
            .eval()
        )
        image = Image.open(real / "cat.bmp").convert("RGB").resize((224, 224), Image.Resampling.BILINEAR)
        batch = torch.from_numpy(np.asarray(image) / 127.5 - 1).float().permute(2, 0, 1)[None]
        with torch.no_grad():
            expected = module.forward_head(module.forward_features(batch), pre_logits=True).numpy()
        features = TimmFeatures("mobilenetv2_100", pretrained=str(real / self.FILE), **REAL)
        np.testing.assert_allclose(features.transform([real / "cat.bmp"]), expected, atol=1e-4)

    def test_the_report_names_the_file_and_its_sum(self, real):
        path = real / self.FILE
        report = TimmFeatures("mobilenetv2_100", pretrained=path, **REAL).fit().report_
        assert report["weights"]["origin"] == str(path)
        assert report["weights"]["file_sha256"] == hashlib.sha256(path.read_bytes()).hexdigest()
        assert len(report["weights"]["sha256"]) == 64
        assert "Resize(size=(224, 224), interpolation=bilinear" in report["preprocessing"]

    def test_images_in_memory_give_the_rows_of_files(self, real):
        features = TimmFeatures("mobilenetv2_100", pretrained=real / self.FILE, **REAL)
        pixels = np.asarray(Image.open(real / "parrot.jpg").convert("RGB"))
        from_file, from_array = features.transform([real / "parrot.jpg"]), features.transform(pixels[None])
        similarity = (from_file * from_array).sum() / np.linalg.norm(from_file) / np.linalg.norm(from_array)
        assert similarity > 0.9999


@pytest.mark.parametrize("features", [resnet(), vit()], ids=["resnet", "vit"])
def test_rows_do_not_influence_each_other(features, tmp_path):
    pixels = make_pixels(7, size=40)
    reference = features.transform(pixels)
    order = np.random.default_rng(0).permutation(7)
    for size in (1, 3):
        found = features.set_params(batch_size=size).transform(pixels[order])
        np.testing.assert_allclose(found, reference[order], rtol=1e-4, atol=1e-4)


@pytest.mark.covering
@pytest.mark.parametrize("interpolation", ["bilinear", "bicubic"])
@pytest.mark.parametrize("shape", [(20, 20), (50, 80), (70, 40)])
def test_pixels_and_files_are_prepared_alike_up_to_one_grey_level(interpolation, shape, tmp_path):
    features = resnet(preprocessing={"mean": (0,) * 3, "std": (1,) * 3, "interpolation": interpolation})
    preparation = features._encoder().preparation
    pixels = np.random.default_rng(0).integers(0, 256, (4, *shape, 3), dtype=np.uint8)
    paths = save_images(tmp_path / "images", pixels)
    one_by_one = preparation.stack([preparation.one(Image.open(path)) for path in paths])
    together = preparation.many(torch.from_numpy(pixels))
    assert one_by_one.shape == together.shape == (4, 3, 32, 32)
    assert (one_by_one - together).abs().max() * 255 < 1.01


def test_preparations_travel_to_workers():
    preparation = resnet()._encoder().preparation
    image, copy = Image.fromarray(make_pixels(1)[0]), pickle.loads(pickle.dumps(preparation))
    torch.testing.assert_close(copy.one(image), preparation.one(image))


def test_preparations_that_only_pil_can_do_are_done_one_by_one():
    features = resnet(preprocessing={"crop_mode": "border"})
    pixels = make_pixels(3, size=40)
    assert features._encoder().preparation.many(torch.from_numpy(pixels)) is None
    np.testing.assert_allclose(
        features.transform(pixels), features.transform([Image.fromarray(p) for p in pixels]), atol=1e-5
    )


def test_a_network_for_grey_images():
    grey = {"model_args": {"in_chans": 1}, "preprocessing": {"mean": (0.5,), "std": (0.5,)}}
    features, colour = resnet(**grey), make_pixels(3, size=40)
    rows = features.transform([Image.fromarray(image) for image in colour])
    grey_pixels = np.stack([np.asarray(Image.fromarray(image).convert("L")) for image in colour])
    np.testing.assert_allclose(features.transform(grey_pixels), rows, atol=1e-2)
    np.testing.assert_allclose(features.transform(colour), rows, atol=1e-5)
    with pytest.raises(ValueError, match="preprocessing has no mean for images of 1 channels"):
        resnet(model_args={"in_chans": 1}).fit()
    four = {"mean": (0.5,) * 4, "std": (0.5,) * 4}
    with pytest.raises(ValueError, match="the model takes images of 4 channels; use one for grey"):
        resnet(model_args={"in_chans": 4}, preprocessing=four).fit()


def test_random_weights_are_the_same_each_time():
    one = resnet().fit().report_["weights"]
    torch.manual_seed(5)
    _base_of_features._loaded.clear()
    assert resnet().fit().report_["weights"] == one
    assert one["origin"] == "random weights"


def test_clones_share_a_network_and_changed_files_do_not(tmp_path):
    path = tmp_path / "w.safetensors"
    module = library("timm").create_model("test_resnet", num_classes=3)
    save_file(module.state_dict(), path)
    features = resnet(pretrained=path)
    assert features._encoder() is resnet(pretrained=path)._encoder()
    first = features.fit().report_["weights"]["sha256"]
    with torch.no_grad():
        next(module.parameters()).add_(1)
    save_file(module.state_dict(), path)
    os.utime(path, ns=(1, 1))
    assert features.fit().report_["weights"]["sha256"] != first


@pytest.mark.parametrize("ending", [".safetensors", ".pth"])
def test_checkpoints_of_either_format_hold_the_same_weights(ending, tmp_path):
    module = library("timm").create_model("test_resnet", num_classes=7).eval()
    path = tmp_path / f"w{ending}"
    if ending == ".pth":
        torch.save({"state_dict": module.state_dict()}, path)
    else:
        save_file(module.state_dict(), path)
    features = resnet(pretrained=path)
    module.reset_classifier(0)
    assert features.fit().report_["weights"]["sha256"] == weights_hash(module)


class TestLayers:
    pixels = make_pixels(3, size=40)

    @pytest.mark.parametrize("features", [resnet, vit], ids=["resnet", "vit"])
    def test_head_among_layers_is_the_default(self, features):
        default = features().transform(self.pixels)
        rows = features(layers=[-1, "head"]).transform(self.pixels)
        np.testing.assert_allclose(rows[:, -default.shape[1] :], default, atol=1e-5)
        alone = features(layers=-1).transform(self.pixels)
        np.testing.assert_allclose(rows[:, : alone.shape[1]], alone, atol=1e-5)
        assert features(layers=-1).get_feature_names_out().shape == (alone.shape[1],)

    def test_several_stages_are_pooled_and_joined(self):
        rows = resnet(layers=[1, 3]).transform(self.pixels)
        assert rows.shape == (3, 32 + 192)
        encoder = resnet()._encoder()
        batch = encoder.preparation.many(torch.from_numpy(self.pixels))
        with torch.no_grad():
            maps = encoder.module.forward_intermediates(batch, indices=[1, 3], intermediates_only=True)
        expected = np.concatenate([m.mean(dim=(2, 3)).numpy() for m in maps], axis=1)
        np.testing.assert_allclose(rows, expected, atol=1e-4)

    def test_several_poolings(self):
        rows = resnet(pooling=["avg", "max"]).transform(self.pixels)
        assert rows.shape == (3, 2 * 96)
        np.testing.assert_allclose(rows[:, :96], resnet().transform(self.pixels), atol=1e-5)
        assert (rows[:, 96:] >= rows[:, :96] - 1e-5).all()

    def test_channels_last_maps_are_pooled_over_positions(self):
        sequencer = resnet(model_name="sequencer2d_s", model_args={"layers": (1, 1, 1, 1)})
        default = sequencer.transform(self.pixels)
        rows = clone(sequencer).set_params(pooling="avg").transform(self.pixels)
        np.testing.assert_allclose(rows, default, atol=1e-4)

    @pytest.mark.parametrize(
        ("parameters", "message"),
        [
            (
                {"layers": [9]},
                r"layers=\[9\] and pooling=None are not available in model 'test_resnet' \(feature ind",
            ),
            ({"layers": "head"}, "layers='head' must be whole numbers, with 'head' among them"),
            ({"layers": [1.5]}, r"layers=\[1.5\] must be whole numbers"),
            ({"layers": []}, r"layers=\[\] must be whole numbers"),
            ({"pooling": "median"}, "pooling='median' must be one or several of avg and max or None"),
            ({"model_args": {"global_pool": ""}}, r"gives outputs of shape \(1, 96, 1, 1\) and not rows"),
        ],
    )
    def test_what_a_network_does_not_have_is_told(self, parameters, message):
        with pytest.raises(ValueError, match=message):
            resnet(**parameters).transform(self.pixels)


@pytest.mark.parametrize(
    ("parameters", "error", "message"),
    [
        (
            {"model_name": "test_resnest"},
            ValueError,
            r"model_name='test_resnest' is not a model of timm; did you mean .*test_resnet.*\?",
        ),
        (
            {"model_name": "qqqqq"},
            ValueError,
            r"model_name='qqqqq' is not a model of timm; timm.list_models\(\) has their names\.",
        ),
        (
            {"model_name": "resnet50.no_such_tag", "pretrained": True},
            ValueError,
            r"cannot be made \(.*tag.*\); check the tag of the weights",
        ),
        ({"pretrained": 3}, TypeError, "pretrained=3 must be True, False or the path of a checkpoint"),
        ({"pretrained": "none.safetensors"}, ValueError, "pretrained='none.safetensors' is not a file"),
        (
            {"image_size": 0},
            ValueError,
            "image_size=0 must be a positive whole number or a list of two or None",
        ),
        ({"image_size": (3, 4, 5)}, ValueError, r"image_size=\(3, 4, 5\) must be"),
        ({"model_args": {"wings": 2}}, ValueError, r"cannot be made \(.*wings.*check model_args"),
        (
            {"preprocessing": {"sharpness": 2}},
            ValueError,
            r"preprocessing=\{'sharpness': 2\} does not fit timm's",
        ),
    ],
)
def test_bad_parameters_are_told(parameters, error, message):
    with pytest.raises(error, match=message):
        resnet(**parameters).fit()


@pytest.mark.parametrize("content", ["damaged", "other"])
def test_a_file_without_these_weights_is_told(content, tmp_path):
    path = tmp_path / "w.safetensors"
    if content == "damaged":
        path.write_bytes(b"damaged")
    else:
        save_file(library("timm").create_model("resnet34").state_dict(), path)
    with pytest.raises(
        ValueError, match=r"w\.safetensors' does not hold weights of 'test_resnet' \(.*\); check the"
    ):
        resnet(pretrained=path).fit()


def test_weights_that_cannot_be_downloaded_are_told(monkeypatch):
    def offline(*args, **kwargs):
        raise OSError("no connection")

    monkeypatch.setattr(library("timm"), "create_model", offline)
    with pytest.raises(
        ValueError, match=r"\(no connection\); .*where there is no network, pass pretrained=path"
    ):
        resnet(pretrained=True, image_size=(31, 32)).fit()


class TestWithoutNetwork:
    """The hub's client would retry for a minute."""

    @pytest.fixture
    def asked(self, monkeypatch):
        """Whether the hub's client was told to be offline each time it was asked."""
        found = []

        def create_model(*args, **kwargs):
            found.append(constants.HF_HUB_OFFLINE)
            raise OSError("nothing")

        monkeypatch.setattr(library("timm"), "create_model", create_model)
        monkeypatch.setattr(loading, "getproxies", dict)
        monkeypatch.setattr(constants, "HF_HUB_OFFLINE", False)
        return found

    @pytest.mark.parametrize("address", [True, False])
    def test_the_hub_is_asked_only_if_it_has_an_address(self, asked, monkeypatch, address):
        def look_up(host, port):
            assert (host, port) == ("huggingface.co", 443)
            if not address:
                raise loading.socket.gaierror
            return ["an address"]

        monkeypatch.setattr(loading.socket, "getaddrinfo", look_up)
        with pytest.raises(ValueError, match="where there is no network, pass pretrained=path"):
            resnet(pretrained=True, image_size=(31, 31)).fit()
        assert asked == [not address] and constants.HF_HUB_OFFLINE is False

    def test_a_proxy_may_know_the_address(self, asked, monkeypatch):
        monkeypatch.setattr(loading, "getproxies", lambda: {"https": "http://proxy"})
        monkeypatch.setattr(loading.socket, "getaddrinfo", pytest.fail)
        with pytest.raises(ValueError, match="cannot be made"):
            resnet(pretrained=True, image_size=(33, 31)).fit()
        assert asked == [False]
