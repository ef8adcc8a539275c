"""Synthetic rows whose presence is easy to detect."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

Array = NDArray[Any]

#: Distance of synthetic rows from the mean, relative to that of the farthest known row.
_TIMES_FARTHEST = 3.0

#: Distance of synthetic targets from the mean, in standard deviations of known targets.
_FAR_TARGET = 20.0


def synthetic_rows(
    X: Array, y: Array, n_rows: int, *, classifier: bool, wrong_labels: bool, rng: np.random.RandomState
) -> tuple[Array, Array]:
    """At least ``n_rows`` rows far from ``X`` in random directions, with random labels or far targets.

    ``wrong_labels`` adds each class's mean, and the direction in which rows vary least, under all labels;
    where rows have several labels, they get random ones.
    """
    centre = X.mean(axis=0)
    deviations = X - centre
    farthest = float(np.sqrt(np.max(np.sum(deviations**2, axis=1)))) or 1.0
    d = X.shape[1]
    bases = [np.linalg.qr(rng.normal(size=(d, d)))[0] for _ in range(-(-n_rows // d))]
    rows = centre + _TIMES_FARTHEST * farthest * np.concatenate(bases)[:n_rows]
    if not classifier:
        side = np.where(rng.randint(2, size=(n_rows, *y.shape[1:])) == 1, 1.0, -1.0)
        return rows, y.mean(axis=0) + _FAR_TARGET * (y.std(axis=0) + (y.std(axis=0) == 0)) * side
    if y.ndim == 2:
        return rows, rng.randint(2, size=(n_rows, y.shape[1]))
    classes = np.unique(y)
    labels = classes[rng.randint(len(classes), size=n_rows)]
    if not wrong_labels:
        return rows, labels
    rare = np.linalg.svd(deviations, full_matrices=False)[2][-1]
    means = [centre + _TIMES_FARTHEST * farthest * rare, centre - _TIMES_FARTHEST * farthest * rare]
    means += [X[y == label].mean(axis=0) for label in classes]
    rows = np.concatenate([rows, np.repeat(means, len(classes), axis=0)])
    return rows, np.concatenate([labels, np.tile(classes, len(means))])
