"""Intercepts at which a head treats all classes alike, estimated on held-out public rows."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import softmax

FloatArray = NDArray[np.floating[Any]]

#: Public rows of a class in each half, beyond which more tell nothing that matters.
_MOST_ROWS = 100

#: Largest change of a round at which the search for intercepts ends, and the most rounds.
_TOLERANCE, _ROUNDS = 1e-3, 100


def reliable_balance(halves: Sequence[tuple[FloatArray, NDArray[Any]]], n_classes: int) -> FloatArray:
    """Intercepts (k,) that balance a head, as far as the two halves agree on them.

    Parameters
    ----------
    halves : two tuples (Z, y)
        Logits (n, k) of held-out rows of one half, and their class indices.
    n_classes : int
        Number of classes k.

    Returns
    -------
    array of shape (k,)
        The mean of the intercepts of both halves, times ``2 r / (1 + r)``. Here r is the correlation of the
        halves about zero, or 0 if it is negative. This is the reliability of the mean (Spearman 1910,
        Brown 1910), so intercepts that differ by chance alone come out near zero.
    """
    first, second = (balance(_first_rows(y, Z, n_classes), n_classes) for Z, y in halves)
    energy = float(first @ first + second @ second) / 2
    r = max(0.0, float(first @ second) / energy) if energy > 0 else 0.0
    return np.asarray((first + second) / 2 * (2 * r / (1 + r)))


def balance(rows: tuple[FloatArray, NDArray[Any]], n_classes: int) -> FloatArray:
    """Intercepts (k,), of mean zero, at which every class has the same mean probability.

    The mean gives the rows of every class the same weight in total. Classes without rows get zero.

    Parameters
    ----------
    rows : tuple (Z, y)
        Logits (n, k) and class indices (n,).
    n_classes : int
        Number of classes k.
    """
    Z, y = rows
    counts = np.bincount(y, minlength=n_classes)
    present = counts > 0
    weights = 1 / counts[y] / present.sum()
    b = np.zeros(n_classes)
    for _ in range(_ROUNDS):
        means = (weights @ softmax(Z + b, axis=1))[present] * present.sum()
        change = -np.log(np.maximum(means, 1e-9))
        b[present] += change - change.mean()
        if np.abs(change - change.mean()).max() < _TOLERANCE:
            break
    return b


def _first_rows(y: NDArray[Any], Z: FloatArray, n_classes: int) -> tuple[FloatArray, NDArray[Any]]:
    """The first rows of each class."""
    chosen = np.concatenate([np.flatnonzero(y == c)[:_MOST_ROWS] for c in range(n_classes)])
    return Z[chosen], y[chosen]
