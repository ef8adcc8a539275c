"""Images, and a network small enough to see through."""

from importlib import import_module

import numpy as np
import pytest
from PIL import Image

from skmixdp.features import FrozenFeatures

torch = pytest.importorskip("torch", reason="needs the extra features")
nn = torch.nn


def library(name):
    """A library of networks, imported by the tests that need it alone: that takes seconds."""
    import_module("skmixdp.features.backends")  # first: it sees to it that torchvision can be imported
    return import_module(name)


class TinyPreparation:
    """Pixels as float, in colour."""

    def one(self, item):
        return torch.from_numpy(np.asarray(item.convert("RGB"), dtype=np.float32)).permute(2, 0, 1)

    def stack(self, prepared):
        return torch.stack(list(prepared))

    def many(self, pixels):
        return pixels.permute(0, 3, 1, 2).float() if pixels.shape[3] == 3 else None


class TinyEncoder:
    """A network with layers that mix rows in training mode; it keeps the sizes of its batches."""

    def __init__(self, seed=0):
        from skmixdp.features.backends.loading import weights_hash

        with torch.random.fork_rng():
            torch.manual_seed(seed)
            self.module = nn.Sequential(
                nn.Conv2d(3, 4, 3, stride=2), nn.BatchNorm2d(4), nn.Dropout(0.5), nn.AdaptiveAvgPool2d(2)
            )
        self.preparation = TinyPreparation()
        self.n_outputs = 16
        self.description = {
            "library": "tiny",
            "weights": {"origin": "seed", "sha256": weights_hash(self.module)},
        }
        self.batches = []

    def forward(self, batch):
        self.batches.append(len(batch))
        return self.module(batch).flatten(1)

    def __sklearn_clone__(self):
        return self


class TinyFeatures(FrozenFeatures):
    """The tiny network as a transformer."""

    def __init__(
        self,
        encoder=None,
        *,
        device="cpu",
        batch_size="auto",
        n_workers="auto",
        amp="auto",
        cache=None,
        dtype="float32",
        on_error="raise",
        verbose=0,
    ):
        self.encoder = encoder
        self.device = device
        self.batch_size = batch_size
        self.n_workers = n_workers
        self.amp = amp
        self.cache = cache
        self.dtype = dtype
        self.on_error = on_error
        self.verbose = verbose

    def _encoder(self):
        return self.encoder


def make_pixels(n, size=12, seed=0):
    return np.random.default_rng(seed).integers(0, 256, (n, size, size, 3), dtype=np.uint8)


def save_images(folder, pixels, ending=".png"):
    """One file for each image; their paths."""
    folder.mkdir(parents=True, exist_ok=True)
    paths = [folder / f"{i:04d}{ending}" for i in range(len(pixels))]
    for path, image in zip(paths, pixels, strict=True):
        Image.fromarray(image).save(path)
    return [str(path) for path in paths]


@pytest.fixture
def pixels():
    return make_pixels(10)


@pytest.fixture
def paths(pixels, tmp_path):
    return save_images(tmp_path / "images", pixels)


@pytest.fixture
def encoder():
    return TinyEncoder()


@pytest.fixture
def tiny(encoder):
    """The transformer with some parameters set."""

    def make(**parameters):
        return TinyFeatures(encoder, **parameters)

    return make
