"""Fashion-MNIST through a frozen network or two layers of scattering: ten kinds of clothes."""

from pathlib import Path

from benchmarks.reproduce import fashion_mnist

from ..problems import Rows
from .files import data_folder


def load(cache: Path, *, features: str, n_train: int = 10_000, n_test: int = 10_000) -> Rows:
    """Some images, drawn once for all; features as in ``benchmarks.reproduce.fashion_mnist``.

    ``features`` is "scattering" (3,969, which nobody trained) or "mobilenetv2" (1,280, trained on
    ImageNet). They are kept in the cache.
    """
    data_folder("fashion_mnist")  # says what is missing
    found = fashion_mnist.load(features, fashion_mnist.Size(n_train, n_test), cache)
    return Rows(found.X, found.y, found.X_test, found.y_test)
