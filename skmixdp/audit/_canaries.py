"""Rows whose presence is easy to see."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

Array = NDArray[Any]

#: How far out made-up rows lie, in units of the farthest given row's distance from the mean.
_FAR = 3.0

#: Distance of made-up targets from the mean, in standard deviations of the given ones.
_FAR_TARGET = 20.0


def made_up_rows(
    X: Array, y: Array, n_rows: int, *, classifier: bool, wrong_labels: bool, rng: np.random.RandomState
) -> tuple[Array, Array]:
    """Rows from which canaries are chosen.

    Parameters
    ----------
    X : array of shape (n, n_features)
        Rows that say where data lie.
    y : array of shape (n,) or (n, k)
        Their labels or targets.
    n_rows : int
        How many rows to make up, at least.
    classifier : bool
        Whether ``y`` holds labels.
    wrong_labels : bool
        Whether to add each class's mean under the labels of all others, and the direction in which
        rows vary least.
    rng : RandomState
        Source of directions and labels.

    Returns
    -------
    X_made, y_made : arrays
        Far from the given rows, in random directions that are at right angles to each other as far
        as there are dimensions; labels are random, targets far from the mean on either side.
    """
    centre = X.mean(axis=0)
    deviations = X - centre
    farthest = float(np.sqrt(np.max(np.sum(deviations**2, axis=1)))) or 1.0
    rows = centre + _FAR * farthest * _directions(n_rows, X.shape[1], rng)
    if not classifier:
        side = np.where(rng.randint(2, size=(n_rows, *y.shape[1:])) == 1, 1.0, -1.0)
        return rows, y.mean(axis=0) + _FAR_TARGET * (y.std(axis=0) + (y.std(axis=0) == 0)) * side
    classes = np.unique(y)
    labels = classes[rng.randint(len(classes), size=n_rows)]
    if not wrong_labels:
        return rows, labels
    rare = np.linalg.svd(deviations, full_matrices=False)[2][-1]
    means = [centre + _FAR * farthest * rare, centre - _FAR * farthest * rare]
    means += [X[y == label].mean(axis=0) for label in classes]
    rows = np.concatenate([rows, np.repeat(means, len(classes), axis=0)])
    return rows, np.concatenate([labels, np.tile(classes, len(means))])


def _directions(count: int, dimension: int, rng: np.random.RandomState) -> Array:
    """Unit vectors (count, dimension): random orthonormal bases, as many as it takes."""
    bases = [np.linalg.qr(rng.normal(size=(dimension, dimension)))[0] for _ in range(-(-count // dimension))]
    return np.concatenate(bases)[:count]
