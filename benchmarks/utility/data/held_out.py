"""Problems that took no part in the choice of rules and constants; ``accuracy.md`` names one exception."""

import json
import lzma
from pathlib import Path

import numpy as np
import pandas as pd
from sklearn.datasets import make_classification
from sklearn.feature_extraction.text import HashingVectorizer

from ..problems import Array, Rows
from . import adult
from .files import data_folder


def load(cache: Path, *, problem: str) -> Rows:
    """One of the problems.

    Parameters
    ----------
    cache : Path
        Folder for the features of images.
    problem : str
        "words" has the sentences of BANKING77 as 1,024 hashed counts of words and pairs of words.
        "occupation" has the other columns of Adult, and the occupation as one of 12 classes, the smallest of
        which has a sixth of the rows of the largest. "random patches" has 20,000 images of Fashion-MNIST as
        responses to 64 random filters. "clusters" has 8 made-up classes of two clusters each, of 2% to 30%
        of the rows.

    Raises
    ------
    ValueError
        If the problem is unknown.
    """
    loaders = {"words": _words, "occupation": _occupation, "clusters": _clusters}
    if problem == "random patches":
        return _random_patches(cache)
    if problem not in loaders:
        raise ValueError(f"problem={problem!r}; name one of random patches, {', '.join(loaders)}.")
    return loaders[problem]()


def _words() -> Rows:
    parts = []
    for part in ("train", "test"):
        with lzma.open(data_folder("banking77") / f"{part}.jsonl.xz", "rt", encoding="utf-8") as lines:
            parts.append([json.loads(line) for line in lines])
    names = sorted({label for label, _ in parts[0]})
    hashed = HashingVectorizer(n_features=1024, ngram_range=(1, 2))
    rows = []
    for part in parts:
        rows.append(hashed.transform([text for _, text in part]).toarray().astype(np.float32))
        rows.append(np.searchsorted(names, [label for label, _ in part]))
    return Rows(*rows)


def _occupation() -> Rows:
    rows = []
    for part in ("train", "test"):
        table = pd.read_csv(data_folder("adult") / f"{part}.csv.xz")
        job = table["occupation"].astype(str).str.strip()
        kept = ~job.isin(["?", "nan", "Armed-Forces", "Priv-house-serv"])
        features = adult.features(table.assign(occupation="?")[kept])
        rows += [features, np.unique(job[kept], return_inverse=True)[1]]
    return Rows(*rows)


def _clusters() -> Rows:
    X, y = make_classification(
        25_000,
        40,
        n_informative=15,
        n_redundant=10,
        n_classes=8,
        n_clusters_per_class=2,
        weights=[0.3, 0.2, 0.15, 0.12, 0.1, 0.07, 0.04, 0.02],
        class_sep=1.5,
        random_state=7,
    )
    X = X.astype(np.float32)
    return Rows(X[:20_000], y[:20_000], X[20_000:], y[20_000:])


def _random_patches(cache: Path, n_train: int = 20_000, n_test: int = 5_000) -> Rows:
    with np.load(data_folder("fashion_mnist") / "fashion_mnist.npz") as file:
        images, labels = (np.concatenate([file[f"{kind}_train"], file[f"{kind}_test"]]) for kind in "xy")
    chosen = np.random.default_rng(1).permutation(len(images))[: n_train + n_test]
    path = cache / f"random_patches_{n_train}_{n_test}.npy"
    if not path.exists():
        cache.mkdir(parents=True, exist_ok=True)
        np.save(path, _responses(images[chosen].astype(np.float32) / 255))
    X, y = np.load(path), labels[chosen]
    return Rows(X[:n_train], y[:n_train], X[n_train:], y[n_train:])


def _responses(images: Array) -> Array:
    """Absolute responses to random filters, (n, 64 * 16): means over a grid of 4 x 4 cells."""
    filters = np.random.default_rng(2).standard_normal((64, 25)).astype(np.float32)
    filters -= filters.mean(axis=1, keepdims=True)
    cells = []
    for block in np.array_split(images, max(1, len(images) // 200)):
        patches = np.lib.stride_tricks.sliding_window_view(block, (5, 5), axis=(1, 2)).reshape(-1, 25)
        responses = np.abs(patches @ filters.T).reshape(-1, 4, 6, 4, 6, 64)
        cells.append(responses.mean(axis=(2, 4)).reshape(len(block), -1))
    return np.concatenate(cells)
